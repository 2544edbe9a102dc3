# Whether the CUDA plugin is built: HOLMES_CUDA is AUTO (where CUDA's compiler and cuBLASLt are),
# ON (or fail) or OFF. Nothing else in the build depends on it.
set(HOLMES_CUDA AUTO CACHE STRING "Build the CUDA plugin: AUTO, ON or OFF")
set_property(CACHE HOLMES_CUDA PROPERTY STRINGS AUTO ON OFF)
set(HOLMES_CUDA_ARCHITECTURES 80 90 CACHE STRING "GPU architectures of the CUDA plugin")
set(HOLMES_CUDA_IS_ON OFF)

if(NOT HOLMES_CUDA STREQUAL "OFF" AND NOT HOLMES_FUZZ)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND TARGET CUDA::cublasLt)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE} CACHE FILEPATH "CUDA's compiler")
    # Where there is no GPU, CMake cannot find out by itself.
    set(CMAKE_CUDA_ARCHITECTURES ${HOLMES_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    set(HOLMES_CUDA_IS_ON ON)
    message(STATUS "CUDA ${CUDAToolkit_VERSION}: the plugin is built")
  elseif(HOLMES_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HOLMES_CUDA is ON, but CUDA's compiler or cuBLASLt was not found; install "
                        "the CUDA toolkit, or set CUDAToolkit_ROOT to its folder")
  else()
    message(STATUS "no CUDA toolkit: the plugin is not built")
  endif()
endif()
