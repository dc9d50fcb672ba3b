# Every outside library crema uses; docs/architecture.md says why each is here.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
# From version 22 on it needs Abseil, which only its own CMake package names; older ones often come without that package.
find_package(Protobuf CONFIG QUIET)
if(Protobuf_FOUND)
  set(CREMA_PROTOBUF_PACKAGE CONFIG)
else()
  set(CREMA_PROTOBUF_PACKAGE)
  find_package(Protobuf 3.12 REQUIRED)
endif()
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)

# The build of OpenBLAS that computes on OpenMP's threads, as oneDNN and crema do. Where several are installed, Debian's
# default (and openblas.pc) is one that brings threads of its own, which then compete with them for the cores.
find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-openmp openblas REQUIRED)
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-openmp REQUIRED)
add_library(crema_openblas INTERFACE)
target_include_directories(crema_openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
target_link_libraries(crema_openblas INTERFACE ${OPENBLAS_LIBRARY})

pkg_check_modules(GFLAGS REQUIRED IMPORTED_TARGET gflags)
pkg_check_modules(GLOG REQUIRED IMPORTED_TARGET libglog)
if(GLOG_VERSION VERSION_GREATER_EQUAL 0.7)
  # Its headers want to be told that there is a glog/export.h, which its libglog.pc does not do.
  set_property(TARGET PkgConfig::GLOG APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS GLOG_USE_GLOG_EXPORT)
endif()

# Not through oneDNN's own CMake package: Debian's asks for OpenCL headers, which the CPU part does not need.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(crema_dnnl INTERFACE)
target_include_directories(crema_dnnl INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(crema_dnnl INTERFACE ${DNNL_LIBRARY})

find_path(LMDB_INCLUDE_DIR lmdb.h REQUIRED)
find_library(LMDB_LIBRARY lmdb REQUIRED)
add_library(crema_lmdb INTERFACE)
target_include_directories(crema_lmdb INTERFACE ${LMDB_INCLUDE_DIR})
target_link_libraries(crema_lmdb INTERFACE ${LMDB_LIBRARY})

find_package(JPEG REQUIRED)  # libjpeg-turbo: others have no colours in BGR order
find_package(PNG REQUIRED)
find_package(pugixml REQUIRED)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)

# Header-only C++ interface over the C library.
pkg_check_modules(ZEROMQ REQUIRED IMPORTED_TARGET libzmq>=4.3.3)
find_path(CPPZMQ_INCLUDE_DIR zmq.hpp REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
add_library(crema_zeromq INTERFACE)
target_include_directories(crema_zeromq SYSTEM INTERFACE ${CPPZMQ_INCLUDE_DIR} ${XXHASH_INCLUDE_DIR})
target_link_libraries(crema_zeromq INTERFACE PkgConfig::ZEROMQ)

# Optional; Debian's own has a folder and a name of its own.
find_path(HDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5)
set(CREMA_HAS_HDF5 OFF)
if(HDF5_INCLUDE_DIR AND HDF5_LIBRARY)
  set(CREMA_HAS_HDF5 ON)
  add_library(crema_libhdf5 INTERFACE)
  target_include_directories(crema_libhdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIR})
  target_link_libraries(crema_libhdf5 INTERFACE ${HDF5_LIBRARY})
else()
  message(STATUS "crema: HDF5 is not found (libhdf5-dev): the layer HDF5Data and .caffemodel.h5 will not be read")
endif()

# Optional, both or none.
pkg_check_modules(WEBP IMPORTED_TARGET libwebp)
find_package(TIFF)
set(CREMA_HAS_CODECS OFF)
if(WEBP_FOUND AND TIFF_FOUND)
  set(CREMA_HAS_CODECS ON)
  add_library(crema_libcodecs INTERFACE)
  target_link_libraries(crema_libcodecs INTERFACE PkgConfig::WEBP TIFF::TIFF)
else()
  message(STATUS "crema: libwebp and libtiff are not found (libwebp-dev, libtiff-dev): such images will be refused")
endif()

# Optional. Its interface for files changed last in 1.23.
find_path(LEVELDB_INCLUDE_DIR leveldb/db.h)
find_library(LEVELDB_LIBRARY leveldb)
set(CREMA_HAS_LEVELDB OFF)
if(LEVELDB_INCLUDE_DIR AND LEVELDB_LIBRARY)
  file(STRINGS "${LEVELDB_INCLUDE_DIR}/leveldb/db.h" leveldb_version REGEX "int k(Major|Minor)Version = ")
  string(REGEX REPLACE "[^0-9]+" "." leveldb_version "${leveldb_version}")
  string(REGEX MATCH "[0-9]+.[0-9]+" leveldb_version "${leveldb_version}")
endif()
if(leveldb_version VERSION_GREATER_EQUAL 1.23)
  set(CREMA_HAS_LEVELDB ON)
  add_library(crema_libleveldb INTERFACE)
  target_include_directories(crema_libleveldb SYSTEM INTERFACE ${LEVELDB_INCLUDE_DIR})
  target_link_libraries(crema_libleveldb INTERFACE ${LEVELDB_LIBRARY})
else()
  message(STATUS "crema: LevelDB 1.23 or later is not found (libleveldb-dev): db_tool convert will be refused")
endif()

include(CremaMpi)
include(CremaCuda)
message(STATUS "crema: CUDA ${CREMA_HAS_CUDA}, HDF5 ${CREMA_HAS_HDF5}, WebP and TIFF ${CREMA_HAS_CODECS}, LevelDB ${CREMA_HAS_LEVELDB}, MPI ${CREMA_HAS_MPI}, oneDNN ${DNNL_LIBRARY}, protobuf ${Protobuf_VERSION}")
