# The CUDA toolkit: sets CREMA_HAS_CUDA and CREMA_CUDA_LIBRARIES.
set(CREMA_HAS_CUDA OFF)
set(CREMA_CUDA_LIBRARIES)
if(NOT CREMA_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    enable_language(CUDA)
    # The first whose nvcc takes C++20.
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0)
      set(CREMA_HAS_CUDA ON)
    endif()
  endif()
  if(NOT CREMA_HAS_CUDA AND CREMA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CREMA_CUDA=ON, but no CUDA compiler of version 12.0 or later was found "
                        "(nvcc: ${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}); "
                        "put nvcc on PATH or set CMAKE_CUDA_COMPILER, or configure with -DCREMA_CUDA=OFF")
  endif()
endif()

if(CREMA_HAS_CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # Nothing computes on a GPU yet; cuBLAS and cuDNN are only asked for their versions, when that is wanted.
  set(CREMA_CUDA_LIBRARIES CUDA::cudart ${CMAKE_DL_LIBS})
  message(STATUS "crema: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for sm_${CMAKE_CUDA_ARCHITECTURES}")
endif()
