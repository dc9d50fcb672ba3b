# The preset "package" and cpack: crema-<version>-<system>-<processor>.tar.gz that runs where nothing but the C library
# is installed. lib/ then also holds the libraries that crema and those of its libraries link, with their
# licences; not the C library, the GPU's driver or CUDA's libraries, which the GPU library looks for when it is loaded
# (src/device/gpu_library.cc), nor MPI, which must be the one that mpirun belongs to.
if(CREMA_BUNDLE)
  install(CODE "set(crema_lib \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
    set(crema_licences \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}/licences\")")
  install(CODE [[
    file(GLOB plugins "${crema_lib}/libcrema_codecs.so" "${crema_lib}/libcrema_hdf5.so" "${crema_lib}/libcrema_leveldb.so")
    file(GET_RUNTIME_DEPENDENCIES
      LIBRARIES "${crema_lib}/libcrema.so" ${plugins}
      RESOLVED_DEPENDENCIES_VAR libraries
      UNRESOLVED_DEPENDENCIES_VAR missing
      POST_EXCLUDE_REGEXES "/(libc|libm|libdl|librt|libpthread|libresolv|libcuda|ld-linux.*)\\.so[^/]*$" "/libcrema[^/]*$")
    if(missing)
      message(FATAL_ERROR "libraries that crema links are not found: ${missing}")
    endif()
    find_program(DPKG dpkg)
    foreach(library IN LISTS libraries)
      file(INSTALL "${library}" DESTINATION "${crema_lib}" FOLLOW_SYMLINK_CHAIN)
      if(NOT DPKG)
        continue()
      endif()
      # By name: the package may know the file by another path to the same folder.
      file(REAL_PATH "${library}" real)
      string(REGEX MATCH "[^/]+/[^/]+$" name "${real}")
      execute_process(COMMAND ${DPKG} -S "*/${name}" OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE status)
      if(NOT status EQUAL 0 OR NOT owner MATCHES "^([^:, ]+)")
        continue()
      endif()
      set(owner "${CMAKE_MATCH_1}")
      if(EXISTS "/usr/share/doc/${owner}/copyright")
        configure_file("/usr/share/doc/${owner}/copyright" "${crema_licences}/${owner}" COPYONLY)
      endif()
    endforeach()
  ]])
endif()

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VENDOR "crema")
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" crema_platform)
set(CPACK_PACKAGE_FILE_NAME "crema-${PROJECT_VERSION}-${crema_platform}")
set(CPACK_STRIP_FILES ON)

# cpack -G DEB, of the preset "deb": a Debian package of this system, whose libraries it depends on.
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train neural networks from Caffe's prototxt files")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "crema trains networks that are described in Caffe's text files, on CPUs,
GPUs and several machines, and reads and writes Caffe's weights, snapshots
and databases.
.
The package holds its programs, the library with headers and a CMake package,
and models and configurations to start from. Reading WebP, TIFF, HDF5 and
LevelDB, and training with MPI, is done by parts that are loaded when they are
used; what these need is recommended or suggested.")
# As dpkg's own tools know who packs.
if(DEFINED ENV{DEBEMAIL} AND DEFINED ENV{DEBFULLNAME})
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
else()
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the crema authors <root@localhost>")
endif()
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/CremaDebian.cmake")
set(CPACK_CREMA_BUNDLE ${CREMA_BUNDLE})
include(CPack)
