# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Installs BUILD under ROOT and demands that each of FILES lies there and that libfabric finds the
# provider in the installed directory of PLUGIN; then uninstalls, and nothing may be left.
file(REMOVE_RECURSE ${ROOT})
set(ENV{DESTDIR} ${ROOT})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(file IN LISTS PLUGIN FILES)
  if(NOT EXISTS ${ROOT}${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/ask_fi_info.cmake)
ask_fi_info(${ROOT}${PLUGIN})

file(WRITE ${ROOT}${PLUGIN}.of-another "")
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target uninstall OUTPUT_QUIET
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE left LIST_DIRECTORIES false ${ROOT}/*)
if(NOT left STREQUAL "${ROOT}${PLUGIN}.of-another")
  message(FATAL_ERROR "after uninstalling there should be the file of another and no more: ${left}")
endif()
file(REMOVE ${left})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target uninstall OUTPUT_QUIET
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE left LIST_DIRECTORIES true ${ROOT}/*)
list(FILTER left INCLUDE REGEX "/(libfabric-)?uet(/|$)|/libfabric$")
if(left)
  message(FATAL_ERROR "empty directories of ours are left: ${left}")
endif()
