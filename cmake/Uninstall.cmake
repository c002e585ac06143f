# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Removes the files that MANIFEST names, and the directories that are then empty and only ours.
# Files that are not there are passed over; one that cannot be removed is an error.
if(NOT EXISTS ${MANIFEST})
  message(FATAL_ERROR "${MANIFEST} is not there: nothing was installed from this build directory "
    "(a Debian package is removed with: apt-get remove libfabric-uet)")
endif()
file(STRINGS ${MANIFEST} files)
foreach(file IN LISTS files)
  set(file "$ENV{DESTDIR}${file}")
  if(EXISTS "${file}" OR IS_SYMLINK "${file}")
    message(STATUS "Removing ${file}")
    file(REMOVE "${file}")
    if(EXISTS "${file}")
      message(FATAL_ERROR "${file} cannot be removed; try again as root")
    endif()
  endif()
  # share/doc/libfabric-uet/examples, share/doc/libfabric-uet, share/uet/wireshark, share/uet, libfabric
  cmake_path(GET file PARENT_PATH directory)
  while(directory MATCHES "/(libfabric-)?uet(/[^/]+)?$|/libfabric$")
    file(GLOB left "${directory}/*")
    if(left OR NOT IS_DIRECTORY "${directory}")
      break()
    endif()
    file(REMOVE_RECURSE "${directory}")
    cmake_path(GET directory PARENT_PATH directory)
  endwhile()
endforeach()
