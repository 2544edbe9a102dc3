# holmes_module(NAME SOURCES ... [PUBLIC libs...] [PRIVATE libs...])
#
# One folder, one static library, one include root: a module sees the public headers of what it
# links and nothing else, so that a forbidden include does not compile. Each public header is also
# compiled alone (target holmes_NAME_verify_interface_header_sets). Installed and exported as
# holmes::NAME.
function(holmes_module NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target holmes_${NAME})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/holmes/*.hpp)
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(holmes::${NAME} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PRIVATE src)
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON EXPORT_NAME ${NAME})
  install(TARGETS ${target} EXPORT holmesTargets COMPONENT development
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  holmes_warnings(${target})
endfunction()

# Warnings are errors in development only; consumers of the libraries never inherit them.
function(holmes_warnings target)
  if(HOLMES_DEV)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                             -Woverloaded-virtual -Werror)
  endif()
endfunction()

# holmes_test(NAME LABEL label [TIMEOUT seconds] SOURCES ... LIBRARIES ...)
#
# One GoogleTest executable registered with CTest under one label: case by case, but unit tests as a
# whole, since starting hundreds of processes would take longer than their work.
function(holmes_test NAME)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBRARIES} GTest::gmock GTest::gtest_main)
  holmes_warnings(${NAME})
  if(ARG_LABEL STREQUAL unit)
    add_test(NAME ${NAME} COMMAND ${NAME})
    set_tests_properties(${NAME} PROPERTIES LABELS unit TIMEOUT ${ARG_TIMEOUT})
  else()
    gtest_discover_tests(${NAME} DISCOVERY_TIMEOUT 30
                         PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  endif()
endfunction()
