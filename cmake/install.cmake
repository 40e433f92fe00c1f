# What `cmake --install` puts into a prefix, and how others find it there: find_package(tilewright) and pkg-config. Nothing in it
# names the prefix or the tree that it was built from: it may be moved. Components: runtime (what a program needs to run),
# development (what it needs to be built), tools (the command tw).
include(CMakePackageConfigHelpers)
set(backends ${CMAKE_INSTALL_LIBDIR}/tilewright)  # src/runtime/device.cpp looks there
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)

install(TARGETS tilewright_static EXPORT tilewrightStatic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT tilewrightStatic NAMESPACE tilewright:: DESTINATION ${package} COMPONENT development)
if(TILEWRIGHT_SHARED)
  install(TARGETS tilewright_shared EXPORT tilewrightShared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT runtime NAMELINK_COMPONENT development)
  install(EXPORT tilewrightShared NAMESPACE tilewright:: DESTINATION ${package} COMPONENT development)
endif()
get_property(targets GLOBAL PROPERTY TW_BACKENDS)
install(TARGETS ${targets} LIBRARY DESTINATION ${backends} COMPONENT runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN *.h PATTERN *.hpp PATTERN *.def)
if(TARGET tw)
  install(TARGETS tw RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  set(words ${PROJECT_BINARY_DIR}/package)  # tools/tw/CMakeLists.txt
  install(FILES ${words}/tw.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  install(FILES ${words}/tw.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tw COMPONENT tools)
  install(FILES ${words}/tw.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _tw COMPONENT tools)
  install(FILES ${words}/tw.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
  # The text that the pair gpt2_block reads.
  install(FILES ${PROJECT_SOURCE_DIR}/lab/data/tinyshakespeare.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/tilewright COMPONENT tools)
endif()

# All that is installed: `make install` builds no tests.
add_custom_target(package_files DEPENDS tilewright_static ${targets})
foreach(target tilewright_shared tw tw_words)
  if(TARGET ${target} AND (TILEWRIGHT_SHARED OR NOT target STREQUAL "tilewright_shared"))
    add_dependencies(package_files ${target})
  endif()
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tilewrightConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/tilewrightConfig.cmake INSTALL_DESTINATION ${package} PATH_VARS backends)
# Before 1.0 a new minor version may change what there is.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/tilewrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix ${prefix})
foreach(name tilewright tilewright-static)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/package/${name}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/package/tilewrightConfig.cmake ${PROJECT_BINARY_DIR}/package/tilewrightConfigVersion.cmake
  DESTINATION ${package} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/package/tilewright.pc ${PROJECT_BINARY_DIR}/package/tilewright-static.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
