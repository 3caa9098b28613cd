# Component attendant: the server and its tools, what they need on a machine, and
# what people need to use them. scripts/package makes a Debian package of it.
# The unit's StateDirectory, which systemd makes there whatever the prefix.
set(ATTENDANT_DATA_DIR /var/lib/attendant)
foreach(file systemd/attendantd.service attendantd.toml debian/changelog)
  configure_file(${PROJECT_SOURCE_DIR}/deploy/${file}.in
    ${PROJECT_BINARY_DIR}/deploy/${file} @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/deploy/systemd/attendantd.service
  DESTINATION lib/systemd/system COMPONENT attendant)
install(FILES ${PROJECT_BINARY_DIR}/deploy/attendantd.toml
  DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/attendant COMPONENT attendant)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/proto/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/attendant/proto COMPONENT attendant
  FILES_MATCHING PATTERN *.proto)
install(FILES ${PROJECT_SOURCE_DIR}/client/api/service_config.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/attendant COMPONENT attendant)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/grafana
  ${PROJECT_SOURCE_DIR}/deploy/prometheus
  DESTINATION ${CMAKE_INSTALL_DATADIR}/attendant COMPONENT attendant)
install(FILES ${PROJECT_SOURCE_DIR}/README.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT attendant)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT attendant)


set(debian ${PROJECT_SOURCE_DIR}/deploy/debian)
find_program(gzip gzip REQUIRED)
execute_process(COMMAND ${gzip} -9nf ${PROJECT_BINARY_DIR}/deploy/debian/changelog
  COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${debian}/copyright
  ${PROJECT_BINARY_DIR}/deploy/debian/changelog.gz
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT attendant)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME attendant)
set(CPACK_PACKAGE_CONTACT
  "Attendant maintainers <maintainers@attendant.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # for /etc
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL attendant)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ATTENDANT_PACKAGE_NAME attendant)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_COMPONENT_ATTENDANT_DESCRIPTION
  "attention retrieval server
attendantd answers queries over catalogs of items by attention: weighted items,
the pooled value, and the share of the whole catalog's attention that they
hold. Clients speak gRPC. With it come attendant, the command line, and
attendant-load, which puts a server under load.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS adduser)
# Any BLAS does; indexes are trained faster by this one.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libopenblas0-pthread)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/conffiles ${debian}/postinst
  ${debian}/postrm ${debian}/prerm)
include(CPack)
