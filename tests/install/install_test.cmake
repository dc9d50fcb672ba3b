# Run by ctest; see CMakeLists.txt for the variables.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "failed (${status}): ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect_installed)
  foreach(path IN LISTS ARGN)
    if(NOT EXISTS "${prefix}/${path}")
      message(FATAL_ERROR "not installed: ${path}")
    endif()
  endforeach()
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run(${CMAKE_COMMAND} --install "${BUILD_DIR}" --prefix "${WORK_DIR}/first")

# An installed tree must not depend on where it was installed.
file(RENAME "${WORK_DIR}/first" "${WORK_DIR}/moved")
set(prefix "${WORK_DIR}/moved")

expect_installed("${MANDIR}/man1/crema-predict.1" include/crema/net.h include/crema/layer.h include/crema/net.pb.h include/crema/layers/vision.pb.h
  ${DATADIR}/crema/proto/crema/net.proto ${DATADIR}/crema/model_zoo/lenet/deploy.prototxt
  ${DATADIR}/crema/configs/fashion_mnist/solver.prototxt)

# Libraries that are loaded from beside libcrema.
foreach(plugin libcrema_codecs.so libcrema_cuda.so libcrema_hdf5.so libcrema_leveldb.so libcrema_mpi.so)
  file(GLOB_RECURSE installed "${prefix}/*/${plugin}")
  if(EXISTS "${BUILD_DIR}/lib/${plugin}" AND NOT installed)
    message(FATAL_ERROR "not installed: ${plugin}")
  endif()
endforeach()

file(GLOB_RECURSE package_files "${prefix}/*.cmake")
list(LENGTH package_files count)
if(count LESS 4)
  message(FATAL_ERROR "the CMake package is incomplete: ${package_files}")
endif()
foreach(file IN LISTS package_files)
  file(READ "${file}" text)
  foreach(path "${BUILD_DIR}" "${SOURCE_DIR}" "${WORK_DIR}")
    # At a path's beginning: with the sources in /crema, share/crema names no folder of theirs.
    string(REGEX REPLACE "([][+.*?^$()|\\])" "\\\\\\1" pattern "${path}")
    if(text MATCHES "(-[IL]|[^]A-Za-z0-9_.})>/-])${pattern}")
      message(FATAL_ERROR "${file} names ${path}, which other machines do not have")
    endif()
  endforeach()
endforeach()

# Documents name each other, and files of the model zoo, by their place.
cmake_policy(SET CMP0009 NEW)  # links are not followed
file(GLOB_RECURSE pages "${prefix}/${DATADIR}/crema/*.md" "${prefix}/${DOCDIR}/*.md")
list(LENGTH pages count)
if(count LESS 30)
  message(FATAL_ERROR "documents are missing: ${pages}")
endif()
set(links 0)
foreach(page IN LISTS pages)
  get_filename_component(folder "${page}" DIRECTORY)
  file(READ "${page}" text)
  # Brackets and semicolons would take part in lists.
  string(REPLACE "](" "\nLINK(" text "${text}")
  string(REGEX REPLACE "[][;]" "" text "${text}")
  string(REGEX MATCHALL "\nLINK\\([^)# \n]+" targets "${text}")
  foreach(target IN LISTS targets)
    string(SUBSTRING "${target}" 6 -1 target)
    math(EXPR links "${links} + 1")
    if(NOT target MATCHES "^[a-z]+:" AND NOT EXISTS "${folder}/${target}")
      message(FATAL_ERROR "${page} links to ${target}, which is not installed there")
    endif()
  endforeach()
endforeach()

if(links LESS 100)
  message(FATAL_ERROR "only ${links} links were found in ${pages}")
endif()

# Every program finds its libraries: --help gets past the loader.
file(GLOB programs "${prefix}/${BINDIR}/*")
foreach(program IN LISTS programs)
  get_filename_component(name "${program}" NAME)
  set(completion "${DATADIR}/bash-completion/completions/${name}")
  expect_installed("${completion}" "${MANDIR}/man1/${name}.1")
  file(READ "${prefix}/${completion}" text)
  if(NOT text MATCHES "\ncomplete -F _crema [a-z_ ]*${name}[ \n]")
    message(FATAL_ERROR "${completion} does not complete ${name}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH "${program}" --help
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status MATCHES "^[012]$" OR output MATCHES "error while loading shared libraries")
    message(FATAL_ERROR "${program} does not start (${status}): ${output}")
  endif()
endforeach()

set(flags)
if(SANITIZE)
  set(flags "-DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} -S "${prefix}/${DATADIR}/crema/examples/embed" -B "${WORK_DIR}/embed" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}" ${flags})
run(${CMAKE_COMMAND} --build "${WORK_DIR}/embed")
run(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH "${WORK_DIR}/embed/embed"
    "${prefix}/${DATADIR}/crema/model_zoo/lenet/deploy.prototxt"
    "${prefix}/${DATADIR}/crema/model_zoo/lenet/lenet.caffemodel")
message(STATUS "${output}")

# The same without CMake.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG AND NOT SANITIZE)
  file(GLOB_RECURSE package "${prefix}/*/crema.pc")
  get_filename_component(folder "${package}" DIRECTORY)
  run(${CMAKE_COMMAND} -E env "PKG_CONFIG_PATH=${folder}" ${PKG_CONFIG} --cflags --libs crema)
  separate_arguments(flags UNIX_COMMAND "${output}")
  get_filename_component(libraries "${folder}" DIRECTORY)
  file(GLOB sources "${prefix}/${DATADIR}/crema/examples/embed/*.cc")
  run(${CXX_COMPILER} -std=c++20 ${sources} ${flags} "-Wl,-rpath,${libraries}" -o "${WORK_DIR}/embedded")
  run("${WORK_DIR}/embedded" "${prefix}/${DATADIR}/crema/model_zoo/lenet/deploy.prototxt"
      "${prefix}/${DATADIR}/crema/model_zoo/lenet/lenet.caffemodel")
endif()
file(REMOVE_RECURSE "${WORK_DIR}")
