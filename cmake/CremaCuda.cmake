# The CUDA toolkit and cuDNN, for the GPU library: sets CREMA_HAS_CUDA and gives the target crema_cudnn.
set(CREMA_HAS_CUDA OFF)
if(CREMA_CUDA STREQUAL "OFF")
  return()
endif()

# What is missing is an error where CUDA was asked for, else CUDA is left out.
macro(crema_no_cuda reason)
  if(CREMA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CREMA_CUDA=ON, but ${reason}, or configure with -DCREMA_CUDA=OFF")
  endif()
  message(STATUS "crema: no CUDA device: ${reason}")
  return()
endmacro()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  crema_no_cuda("there is no CUDA compiler; put nvcc on PATH or set CMAKE_CUDA_COMPILER")
endif()
# Those of this machine's GPUs, or Hopper's where it shows none.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  RESULT_VARIABLE crema_gpus_result OUTPUT_VARIABLE crema_capabilities ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" crema_capabilities "${crema_capabilities}")
  if(crema_gpus_result EQUAL 0 AND crema_capabilities)
    list(REMOVE_DUPLICATES crema_capabilities)
    list(TRANSFORM crema_capabilities REPLACE "\\." "")
    set(CMAKE_CUDA_ARCHITECTURES ${crema_capabilities})
  else()
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
endif()
enable_language(CUDA)
# The first whose nvcc takes C++20.
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
  crema_no_cuda("the CUDA compiler ${CMAKE_CUDA_COMPILER} is of version ${CMAKE_CUDA_COMPILER_VERSION}; \
install the CUDA toolkit 12.0 or later")
endif()
find_package(CUDAToolkit REQUIRED)
if(NOT TARGET CUDA::cublasLt)
  crema_no_cuda("the CUDA toolkit in ${CUDAToolkit_LIBRARY_ROOT} has no cuBLAS; install it (libcublas-dev)")
endif()

# With the toolkit, a package of its own (Debian's lie where compilers look), or unpacked where CUDNN_ROOT says.
find_path(CUDNN_INCLUDE_DIR cudnn_version.h
          HINTS ${CUDNN_ROOT} ENV CUDNN_ROOT ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9
             HINTS ${CUDNN_ROOT} ENV CUDNN_ROOT ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}
             PATH_SUFFIXES lib64 lib)
set(remedy "install cuDNN 9 with its headers (Debian and Ubuntu: libcudnn9-dev-cuda-${CUDAToolkit_VERSION_MAJOR}) or set \
CUDNN_ROOT to where it is")
if(NOT CUDNN_INCLUDE_DIR)
  crema_no_cuda("cuDNN's header cudnn_version.h was not found; ${remedy}")
endif()
if(NOT CUDNN_LIBRARY)
  crema_no_cuda("cuDNN's library libcudnn.so was not found; ${remedy}")
endif()
file(STRINGS "${CUDNN_INCLUDE_DIR}/cudnn_version.h" cudnn_version REGEX "^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
string(REGEX REPLACE "[^0-9;]" "" cudnn_version "${cudnn_version}")
string(REPLACE ";" "." cudnn_version "${cudnn_version}")
if(cudnn_version VERSION_LESS 9)
  crema_no_cuda("cuDNN in ${CUDNN_INCLUDE_DIR} is of version ${cudnn_version}; ${remedy}")
endif()
add_library(crema_cudnn INTERFACE)
target_include_directories(crema_cudnn SYSTEM INTERFACE ${CUDNN_INCLUDE_DIR})
target_link_libraries(crema_cudnn INTERFACE ${CUDNN_LIBRARY})

# NCCL's header lies where cuDNN's may; its library is loaded when several GPUs are asked for. Without the header there is
# no training on several at once.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT} ENV NCCL_ROOT ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
if(NCCL_INCLUDE_DIR)
  add_library(crema_nccl INTERFACE)
  target_include_directories(crema_nccl SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
  target_compile_definitions(crema_nccl INTERFACE CREMA_HAS_NCCL=1)
else()
  message(STATUS "crema: no NCCL (nccl.h): training takes one GPU; install libnccl-dev or set NCCL_ROOT")
endif()

if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc takes it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CREMA_HAS_CUDA ON)
message(STATUS "crema: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}, cuDNN ${cudnn_version}")
