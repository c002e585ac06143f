# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cmake -DFILE=... -DHEADER=... -DNAME=... -P Embed.cmake: writes a header with the file's bytes as
# uet::nic::NAME, a std::array.
file(READ ${FILE} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE ${HEADER} "#pragma once
#include <array>
namespace uet::nic {
// Read as an ELF file, which wants this alignment.
alignas(8) inline constexpr std::array<unsigned char, ${size}> ${NAME} = {${bytes}};
}
")
