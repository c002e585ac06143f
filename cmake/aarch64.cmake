# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Toolchain for arm64 on Debian (g++-aarch64-linux-gnu): scripts/arm64 uses it. UET_ARM64_ROOT of the
# environment: a directory with the arm64 packages that the build needs. Tests run in qemu-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH $ENV{UET_ARM64_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu
  -E LD_LIBRARY_PATH=$ENV{UET_ARM64_ROOT}/usr/lib/aarch64-linux-gnu:/usr/aarch64-linux-gnu/lib)
# Debian's headers and libraries of one architecture.
set(CMAKE_CXX_FLAGS_INIT "-idirafter $ENV{UET_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
foreach(kind IN ITEMS EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,-rpath-link,$ENV{UET_ARM64_ROOT}/usr/lib/aarch64-linux-gnu")
endforeach()
