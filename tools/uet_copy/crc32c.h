// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC-32C (Castagnoli), by the instruction of x86-64 where the processor has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uet::copy {

// The CRC of all bytes so far; `before` is that of the bytes in front of `bytes` (0: none).
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
// The same by a table, on every processor.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace uet::copy
