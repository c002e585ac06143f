# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Read by cpack before it packs: files of a package bear the time of the last commit, so that two
# packages of one tree are the same, byte for byte. SOURCE_DATE_EPOCH of the environment has priority.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -C ${CPACK_UET_SOURCE_DIR} log -1 --format=%ct
    OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 AND time)
    set(ENV{SOURCE_DATE_EPOCH} ${time})
  else()
    message(STATUS "no commit to take the time from: set SOURCE_DATE_EPOCH for packages that can be made again")
  endif()
endif()
