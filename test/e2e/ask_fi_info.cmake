# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# ask_fi_info(PLUGIN): libfabric's fi_info must list the provider of that file. Not asked with
# SANITIZE, whose run time fi_info lacks, nor where fi_info is not installed. A plug-in that was
# built for LIBFABRIC, another one than the system's, needs the fi_info of that one.
function(ask_fi_info plugin)
  find_program(fi_info fi_info HINTS ${LIBFABRIC}/bin)
  if(NOT fi_info OR SANITIZE)
    message(STATUS "fi_info is not asked: it is not installed, or cannot load a plug-in with sanitizers")
    return()
  endif()
  get_filename_component(directory ${plugin} DIRECTORY)
  set(ENV{FI_PROVIDER_PATH} ${directory})
  set(ENV{FI_PROVIDER} uet)
  execute_process(COMMAND ${fi_info} OUTPUT_VARIABLE listed RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT listed MATCHES "provider: uet\n")
    message(FATAL_ERROR "fi_info does not list the provider in ${directory}:\n${listed}")
  endif()
endfunction()
