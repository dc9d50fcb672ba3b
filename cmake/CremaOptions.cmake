# Language level, warnings, sanitizers and output folders shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(CREMA_BUNDLE)
  # Bundled libraries find each other by the paths of the program, which only the older kind of path gives them.
  set(CMAKE_INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR};\$ORIGIN")
  add_link_options(-Wl,--disable-new-dtags)
else()
  # OpenBLAS and CUDA lie in folders of their own.
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# -Wrestrict and -Wmaybe-uninitialized find mistakes in std::string that are not there, others in every version of GCC.
# Clang tells of each "omp simd" that it leaves a plain loop.
add_library(crema_options INTERFACE)
target_compile_options(crema_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unused-parameter -fno-math-errno -fno-trapping-math>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${CREMA_WERROR}>>:-Werror>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict -Wno-error=maybe-uninitialized>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${CREMA_WERROR}>>:-Werror=all-warnings>)
if(CREMA_SANITIZE)
  target_compile_options(crema_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CREMA_SANITIZE} -fno-omit-frame-pointer>)
  if(CREMA_SANITIZE MATCHES "undefined")
    target_compile_options(crema_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>)
  endif()
  target_link_options(crema_options INTERFACE -fsanitize=${CREMA_SANITIZE})
endif()

# Nearly every source reads the schema's classes and protobuf, which takes longer than compiling the rest of it: they are
# parsed once for all. And several sources are compiled as one, since they instantiate the same templates: half the time
# again. Sources include what they use nevertheless, compile alone (tests/compile_alone looks at the newest), and share no
# names with others of their folder. Alone and without is what compiler caches get, which recognise a source by what it
# includes.
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED CMAKE_DISABLE_PRECOMPILE_HEADERS)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# Takes what target_precompile_headers() takes. All targets that share headers are compiled with the same flags.
function(crema_compile_together target)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  target_precompile_headers(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # GCC forgets there which warnings its own headers are silent about.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()
set(CREMA_PRECOMPILED "${CMAKE_CURRENT_LIST_DIR}/../src/base/log.h" <crema/solver.pb.h>)
