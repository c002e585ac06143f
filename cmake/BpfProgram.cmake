# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# uet_bpf_program(SOURCE HEADER NAME): compiles SOURCE for the kernel's virtual machine, and makes
# bpf/HEADER of the build directory, which holds the object file as uet::nic::NAME; target HEADER.
# Needs UET_BPF_CLANG. -g is for BTF, which describes the maps.
function(uet_bpf_program source header name)
  set(directory ${PROJECT_BINARY_DIR}/bpf)
  set(object ${directory}/${name}.o)
  set(flags -O2 -g -target bpf -Wall -Wextra -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  if(UET_WERROR)
    list(APPEND flags -Werror)
  endif()
  if(CMAKE_LIBRARY_ARCHITECTURE)  # where Debian has <asm/types.h>
    list(APPEND flags -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  file(MAKE_DIRECTORY ${directory})
  add_custom_command(OUTPUT ${directory}/${header}
    COMMAND ${UET_BPF_CLANG} ${flags} -MD -MF ${object}.d -MT ${directory}/${header}
      -c ${PROJECT_SOURCE_DIR}/${source} -o ${object}
    COMMAND ${CMAKE_COMMAND} -DFILE=${object} -DHEADER=${directory}/${header} -DNAME=${name}
      -P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/${source} ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
    DEPFILE ${object}.d
    VERBATIM)
  add_custom_target(${header} DEPENDS ${directory}/${header})
endfunction()
