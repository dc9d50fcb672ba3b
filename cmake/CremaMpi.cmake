# MPI's C interface, for the MPI engine: sets CREMA_HAS_MPI. Only the C interface, since all MPIs have it alike.
set(CREMA_HAS_MPI OFF)
if(CREMA_MPI STREQUAL "OFF")
  return()
endif()
# FindMPI asks the mpicc of the machine that compiles, and stops where what that says is not there for the other one.
if(CREMA_MPI STREQUAL "AUTO" AND CMAKE_CROSSCOMPILING)
  message(STATUS "crema: compiled for another machine, so MPI is not looked for (CREMA_MPI=ON does)")
  return()
endif()

include(CheckLanguage)
check_language(C)  # what FindMPI asks with
if(CMAKE_C_COMPILER)
  enable_language(C)
  find_package(MPI 3.0 QUIET COMPONENTS C)
endif()
if(MPI_C_FOUND)
  set(CREMA_HAS_MPI ON)
elseif(CREMA_MPI STREQUAL "ON")
  message(FATAL_ERROR "CREMA_MPI=ON, but MPI is not found; install it with its headers (Debian and Ubuntu: "
                      "libopenmpi-dev openmpi-bin), put its mpicc on PATH, or configure with -DCREMA_MPI=OFF")
else()
  message(STATUS "crema: MPI is not found (libopenmpi-dev): distributed { engine: MPI } will be refused")
endif()
