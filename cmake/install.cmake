# What `make install` puts where, for pkg-config and for find_package(weir).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)

install(TARGETS weir weir-static EXPORT weir-targets)
if(TARGET weir-command)
  install(TARGETS weir-command)
  include(cmake/completions.cmake)
endif()
if(TARGET weir-full) # which only weir starts
  install(TARGETS weir-full DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/weir)
endif()
install(DIRECTORY include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# Relative to itself, so that it is right wherever the whole is put.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(weir.pc.in weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Before 1.0 a new minor version may break programs; after it only a new major one.
set(compatible SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatible SameMinorVersion)
endif()
configure_package_config_file(cmake/weir-config.cmake.in weir-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(weir-config-version.cmake COMPATIBILITY ${compatible})
install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/weir-config.cmake ${PROJECT_BINARY_DIR}/weir-config-version.cmake
  DESTINATION ${package_dir})
