# `make install` and `make package`. Two components:
#   program       bin/laminate with its own libHalide in lib/laminate, manual page, completion
#   development   the runtime: libraries, headers, CMake package; needs neither Halide nor program
# Every part finds the others relative to itself, so the tree may be moved.
include(GNUInstallDirs)

# ---- program
set(private_library_directory "${CMAKE_INSTALL_LIBDIR}/laminate")
file(RELATIVE_PATH to_private_libraries "/${CMAKE_INSTALL_BINDIR}" "/${private_library_directory}")
set_target_properties(laminate PROPERTIES INSTALL_RPATH "$ORIGIN/${to_private_libraries}")
install(TARGETS laminate RUNTIME COMPONENT program)
install(FILES "${laminate_halide_library}" DESTINATION "${private_library_directory}"
        COMPONENT program)

# The program writes the manual page and the completions from its own options.
set(command_line_directory "${PROJECT_BINARY_DIR}/command_line")
set(command_line_files "")
foreach(document "man laminate.1" "bash laminate.bash" "zsh _laminate")
    string(REPLACE " " ";" document "${document}")
    list(GET document 0 format)
    list(GET document 1 file)
    set(file "${command_line_directory}/${file}")
    add_custom_command(OUTPUT "${file}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${command_line_directory}"
        COMMAND laminate reference ${format} > "${file}.partial"
        COMMAND "${CMAKE_COMMAND}" -E rename "${file}.partial" "${file}"
        DEPENDS laminate VERBATIM)
    list(APPEND command_line_files "${file}")
endforeach()
install(FILES "${command_line_directory}/laminate.1"
        DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT program)
install(FILES "${command_line_directory}/laminate.bash"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME laminate
        COMPONENT program)
install(FILES "${command_line_directory}/_laminate"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT program)

# ---- development
set(include_directory "${CMAKE_INSTALL_INCLUDEDIR}/laminate")
set(package_directory "${CMAKE_INSTALL_LIBDIR}/cmake/laminate")
set_target_properties(laminate_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(laminate_media PROPERTIES EXPORT_NAME media)
set_target_properties(laminate_shared PROPERTIES EXPORT_NAME shared)
target_include_directories(laminate_shared INTERFACE "$<INSTALL_INTERFACE:${include_directory}>")
install(TARGETS laminate_base laminate_network laminate_runtime laminate_media laminate_shared
        EXPORT laminate COMPONENT development)
install(EXPORT laminate FILE laminate-targets.cmake NAMESPACE Laminate::
        DESTINATION "${package_directory}" COMPONENT development)
install(DIRECTORY base runtime DESTINATION "${include_directory}"
        COMPONENT development FILES_MATCHING PATTERN "*.h")
install(DIRECTORY nets/network nets/operators DESTINATION "${include_directory}/nets"
        COMPONENT development FILES_MATCHING PATTERN "*.h")

include(CMakePackageConfigHelpers)
configure_package_config_file(
    cmake/laminate-config.cmake.in "${PROJECT_BINARY_DIR}/laminate-config.cmake"
    INSTALL_DESTINATION "${package_directory}" PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/laminate-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES cmake/LaminateHalide.cmake "${PROJECT_BINARY_DIR}/laminate-config.cmake"
              "${PROJECT_BINARY_DIR}/laminate-config-version.cmake"
        DESTINATION "${package_directory}" COMPONENT development)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)

# What `make install` and the packages need, without tests.
add_custom_target(installable ALL DEPENDS ${command_line_files})
add_dependencies(installable
    laminate laminate_network laminate_runtime laminate_media laminate_shared)
# `make docs`
add_custom_target(docs
    COMMAND laminate reference markdown > "${PROJECT_SOURCE_DIR}/docs/cli.md" VERBATIM)

# ---- packages
set(CPACK_PACKAGE_NAME laminate)
set(CPACK_PACKAGE_VENDOR Laminate)
set(CPACK_PACKAGE_CONTACT "the Laminate project")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# No Debian package has the program's libHalide.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    "${laminate_halide_root}/lib64" "${laminate_halide_root}/lib")
# `laminate compile` assembles and links.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc, binutils, libpng-dev, libjpeg62-turbo-dev")
include(CPack)
