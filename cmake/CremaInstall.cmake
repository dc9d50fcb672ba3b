# cmake --install: programs with completion and manual pages, libcrema, headers, schema, find_package(crema),
# model_zoo/, configs/, examples/ and docs/.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/crema")

set(programs)
foreach(folder tools data_tools)
  get_property(targets DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      list(APPEND programs ${target})
    endif()
  endforeach()
endforeach()
if(programs)
  install(TARGETS ${programs} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# bash-completion looks for the name of a program.
set(names)
foreach(program IN LISTS programs)
  get_target_property(name ${program} OUTPUT_NAME)
  if(NOT name)
    set(name ${program})
  endif()
  list(APPEND names ${name})
endforeach()
set(completions "${PROJECT_BINARY_DIR}/bash-completion")
file(REMOVE_RECURSE "${completions}")
list(JOIN names " " crema_programs)
configure_file("${PROJECT_SOURCE_DIR}/tools/completion.bash" "${completions}/crema" @ONLY)
foreach(name IN LISTS names)
  if(NOT name STREQUAL crema)
    file(CREATE_LINK crema "${completions}/${name}" SYMBOLIC)
  endif()
endforeach()
install(DIRECTORY "${completions}/" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")

set(manual "${PROJECT_BINARY_DIR}/manual")
install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" \"-DBIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\" \"-DOUT=${manual}\"
  -DVERSION=${PROJECT_VERSION} \"-DPROGRAMS=${names}\" -P \"${PROJECT_SOURCE_DIR}/cmake/CremaManual.cmake\")")
install(DIRECTORY "${manual}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")

install(TARGETS crema EXPORT crema-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
get_property(plugins GLOBAL PROPERTY CREMA_PLUGINS)
if(plugins)  # loaded from beside libcrema
  install(TARGETS ${plugins} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(EXPORT crema-targets NAMESPACE crema:: FILE cremaTargets.cmake DESTINATION "${config_dir}")

install(DIRECTORY include/crema DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${PROJECT_BINARY_DIR}/proto/crema" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.pb.h")
install(DIRECTORY proto/crema DESTINATION "${CMAKE_INSTALL_DATADIR}/crema/proto" FILES_MATCHING PATTERN "*.proto")
install(DIRECTORY model_zoo configs examples DESTINATION "${CMAKE_INSTALL_DATADIR}/crema" USE_SOURCE_PERMISSIONS)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md")

# Documents and these folders link to each other as they lie in the sources.
set(data_folder "${CMAKE_INSTALL_FULL_DATADIR}/crema")
set(document_links "${PROJECT_BINARY_DIR}/document_links")
file(REMOVE_RECURSE "${document_links}")
file(MAKE_DIRECTORY "${document_links}/doc" "${document_links}/data")
file(RELATIVE_PATH to_data "${CMAKE_INSTALL_FULL_DOCDIR}" "${data_folder}")
file(RELATIVE_PATH to_doc "${data_folder}" "${CMAKE_INSTALL_FULL_DOCDIR}")
foreach(folder model_zoo configs examples proto)
  file(CREATE_LINK "${to_data}/${folder}" "${document_links}/doc/${folder}" SYMBOLIC)
endforeach()
file(RELATIVE_PATH to_include "${CMAKE_INSTALL_FULL_DOCDIR}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
file(CREATE_LINK "${to_include}" "${document_links}/doc/include" SYMBOLIC)
file(CREATE_LINK "${to_doc}/docs" "${document_links}/data/docs" SYMBOLIC)
install(DIRECTORY "${document_links}/doc/" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${document_links}/data/" DESTINATION "${CMAKE_INSTALL_DATADIR}/crema")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/cremaConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/cremaConfig.cmake" INSTALL_DESTINATION "${config_dir}")
# 0.x: every minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cremaConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cremaConfig.cmake" "${PROJECT_BINARY_DIR}/cremaConfigVersion.cmake"
        DESTINATION "${config_dir}")

set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH crema_up "${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir}" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" crema_up "${crema_up}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/crema.pc.in" "${PROJECT_BINARY_DIR}/crema.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/crema.pc" DESTINATION "${pkgconfig_dir}")
