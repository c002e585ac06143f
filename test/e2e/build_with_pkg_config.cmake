# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# build_with_pkg_config(ROOT FILES): FILES lie below ROOT, and a C program that includes the installed
# headers and calls the job library is built by what pkg-config says of them alone.
function(build_with_pkg_config root files)
  foreach(file IN LISTS files)
    if(NOT EXISTS ${root}${file})
      message(FATAL_ERROR "${file} is not in the package for developers")
    endif()
  endforeach()
  find_program(pkg_config pkg-config REQUIRED)
  find_program(compiler NAMES cc gcc clang REQUIRED)
  list(FILTER files INCLUDE REGEX "/uet-job\\.pc$")
  get_filename_component(directory ${root}${files} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${directory})
  execute_process(COMMAND ${pkg_config} --cflags --libs uet uet-job OUTPUT_VARIABLE flags
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  file(WRITE ${root}/of_pkg_config.c "#include <rdma/fi_ext_uet.h>
#include <uet/uet_job.h>
int main(void) { return (void*)&uet_job_join == (void*)0; }
")
  execute_process(COMMAND ${compiler} -o ${root}/of_pkg_config ${root}/of_pkg_config.c ${flags}
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()
