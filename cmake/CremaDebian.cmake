# Run by cpack when all files of a Debian package are in place: the documents that Debian's policy asks for, and what the
# package depends on. Parts that are loaded when they are used make no dependencies but recommendations and, for MPI,
# which brings much along, suggestions; the GPU library none, since it looks for CUDA's libraries itself.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
if(CPACK_CREMA_BUNDLE)
  message(FATAL_ERROR "a build with CREMA_BUNDLE brings all libraries along, which a Debian package must not; "
                      "use the preset \"deb\"")
endif()
set(root "${CPACK_TEMPORARY_DIRECTORY}")
set(source "${CMAKE_CURRENT_LIST_DIR}/..")

# The system's loader finds MPI. libcrema keeps the path to the build of OpenBLAS that it wants (CremaDependencies.cmake).
file(GLOB_RECURSE suggesting "${root}/usr/lib/libcrema_mpi.so")
foreach(plugin IN LISTS suggesting)
  file(RPATH_REMOVE FILE "${plugin}")
endforeach()
file(WRITE "${root}/usr/share/lintian/overrides/crema"
     "# The build of OpenBLAS that computes on OpenMP's threads, whichever the system prefers.\n"
     "crema: custom-library-search-path RUNPATH */openblas-openmp *\n")

set(doc "${root}/usr/share/doc/crema")
file(READ "${source}/LICENSE" license)
file(WRITE "${doc}/copyright" "crema ${CPACK_PACKAGE_VERSION}\n\n${license}")
file(REMOVE "${doc}/LICENSE")
set(revision "${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${doc}/changelog.Debian" "crema (${revision}) unstable; urgency=medium

  * Packed by cpack from crema ${CPACK_PACKAGE_VERSION}, whose changes are in changelog.gz.

 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}
")
configure_file("${source}/CHANGELOG.md" "${doc}/changelog" COPYONLY)
file(GLOB pages "${root}/usr/share/man/man1/*.1")
execute_process(COMMAND gzip -9nf "${doc}/changelog" "${doc}/changelog.Debian" ${pages} COMMAND_ERROR_IS_FATAL ANY)

find_program(SHLIBDEPS dpkg-shlibdeps)
if(NOT SHLIBDEPS)
  message(FATAL_ERROR "dpkg-shlibdeps, which finds what a package depends on, is not installed (package dpkg-dev)")
endif()
file(GLOB programs "${root}/usr/bin/*")
file(GLOB_RECURSE library "${root}/usr/lib/libcrema.so.*.*")
file(GLOB_RECURSE recommending "${root}/usr/lib/libcrema_codecs.so" "${root}/usr/lib/libcrema_hdf5.so"
     "${root}/usr/lib/libcrema_leveldb.so")
# It wants the sources of a package.
set(work "${CPACK_TOPLEVEL_DIRECTORY}/shlibdeps")
file(WRITE "${work}/debian/control" "Source: crema\n\nPackage: crema\nArchitecture: any\n")
file(WRITE "${work}/debian/shlibs.local" "libcrema 0\n")
execute_process(
  COMMAND ${SHLIBDEPS} -O "-S${root}" -dDepends ${programs} ${library} -dRecommends ${recommending}
          -dSuggests ${suggesting}
  WORKING_DIRECTORY "${work}" OUTPUT_VARIABLE found ERROR_VARIABLE said RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "dpkg-shlibdeps failed (${status}): ${said}")
endif()
foreach(kind Depends Recommends Suggests)
  string(TOUPPER "${kind}" KIND)
  if(found MATCHES "shlibs:${kind}=([^\n]+)")
    set(CPACK_DEBIAN_PACKAGE_${KIND} "${CMAKE_MATCH_1}")
  endif()
endforeach()
# Not whichever build of OpenBLAS (CremaDependencies.cmake).
string(REGEX REPLACE "libopenblas0(,|$)" "libopenblas0-openmp\\1" CPACK_DEBIAN_PACKAGE_DEPENDS
       "${CPACK_DEBIAN_PACKAGE_DEPENDS}")
list(APPEND CPACK_DEBIAN_PACKAGE_SUGGESTS curl)  # which crema zoo get runs
list(JOIN CPACK_DEBIAN_PACKAGE_SUGGESTS ", " CPACK_DEBIAN_PACKAGE_SUGGESTS)

file(WRITE "${work}/shlibs" "libcrema 0 crema (>= ${CPACK_PACKAGE_VERSION})\n")
file(WRITE "${work}/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${work}/shlibs;${work}/triggers")
