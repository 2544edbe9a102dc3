# What is installed and packaged: `cmake --install`, the package that find_package(holmes) finds
# (there and in the build tree), and Debian packages by `cpack -G DEB`.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holmes)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/holmesConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/holmesConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 the interface may change with each minor version.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/holmesConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
set(find_modules ${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake
                 ${PROJECT_SOURCE_DIR}/cmake/HolmesExternal.cmake)

install(EXPORT holmesTargets NAMESPACE holmes:: DESTINATION ${package_dir} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/holmesConfig.cmake ${PROJECT_BINARY_DIR}/holmesConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)
install(FILES ${find_modules} DESTINATION ${package_dir}/modules COMPONENT development)

# The same from the build tree: holmes_DIR is then the build folder.
export(EXPORT holmesTargets NAMESPACE holmes:: FILE ${PROJECT_BINARY_DIR}/holmesTargets.cmake)
file(COPY ${find_modules} DESTINATION ${PROJECT_BINARY_DIR}/modules)

# --- Debian packages: holmes (the executable) and libholmes-dev (libraries and headers) ---

set(HOLMES_PACKAGE_CONTACT "Holmes developers <holmes@localhost>" CACHE STRING
    "Maintainer that the Debian packages name")
set(CPACK_PACKAGE_NAME holmes)
set(CPACK_PACKAGE_CONTACT ${HOLMES_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME holmes)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# Loaded at run time, where there are RDMA ports.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS libibverbs1)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libholmes-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libcaf-dev, libcapnp-dev, libdnnl-dev, libpcre2-dev, libssl-dev, libutf8proc-dev, libxxhash-dev, zlib1g-dev")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The executable holmes, its manual pages and completion.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Static libraries, headers and the CMake package for programs that train with Holmes.")
include(CPack)
