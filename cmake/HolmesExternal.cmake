# Libraries that Debian ships without a CMake package, as imported targets holmes_external::NAME.
# Used by this project's build and, installed beside holmesConfig.cmake, by those that link it.

# holmes_external(NAME DEBIAN-PACKAGE LIBRARY-NAMES... [PATHS folder...])
function(holmes_external name debian_package)
  if(TARGET holmes_external::${name})
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "PATHS" ${ARGN})
  string(TOUPPER HOLMES_${name}_LIBRARY variable)
  find_library(${variable} NAMES ${ARG_UNPARSED_ARGUMENTS} PATHS ${ARG_PATHS})
  mark_as_advanced(${variable})
  if(NOT ${variable})
    message(FATAL_ERROR "holmes needs the library ${name}, which was not found; on Debian install "
                        "${debian_package}, elsewhere set ${variable} to its file")
  endif()
  add_library(holmes_external::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(holmes_external::${name} PROPERTIES IMPORTED_LOCATION ${${variable}})
endfunction()

holmes_external(capnp libcapnp-dev capnp)
holmes_external(kj libcapnp-dev kj)
holmes_external(xxhash libxxhash-dev xxhash)
holmes_external(pcre2 libpcre2-dev pcre2-8)
holmes_external(utf8proc libutf8proc-dev utf8proc)
holmes_external(dnnl libdnnl-dev dnnl)
# oneDNN runs on GCC's OpenMP; its thread count is set through that library.
holmes_external(gomp libgomp1 gomp libgomp.so.1 PATHS ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES}
                                                      ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
