# Component core: find_package(attendant) for those who link core into their own process.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attendant)
install(EXPORT attendant NAMESPACE attendant:: FILE attendant-targets.cmake
  DESTINATION ${package_dir} COMPONENT core)
configure_package_config_file(cmake/attendant-config.cmake.in
  ${PROJECT_BINARY_DIR}/attendant-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/attendant-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/attendant-config.cmake
  ${PROJECT_BINARY_DIR}/attendant-config-version.cmake
  DESTINATION ${package_dir} COMPONENT core)
