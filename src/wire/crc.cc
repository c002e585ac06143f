// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC-32C by table, eight bytes a step (one table per byte position), so that the trailer does not
// dominate the cost of a packet.
#include "wire/crc.h"

#include <cstring>

namespace uet::wire {

namespace {

constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

// kTable[k][b]: what byte b does to the register when k more bytes follow it in the step.
constexpr Table make_table() {
  Table table{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kReflectedPolynomial : 0);
    table[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t before = table[k - 1][b];
      table[k][b] = before >> 8 ^ table[0][before & 0xFF];
    }
  }
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) {
  std::uint32_t crc = ~previous;
  while (bytes.size() >= 8) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::uint32_t fed = i < 4 ? crc >> (8 * i) : 0;
      next ^= kTable[7 - i][(fed ^ std::to_integer<std::uint32_t>(bytes[i])) & 0xFF];
    }
    crc = next;
    bytes = bytes.subspan(8);
  }
  for (std::byte b : bytes) {
    crc = crc >> 8 ^ kTable[0][(crc ^ std::to_integer<std::uint32_t>(b)) & 0xFF];
  }
  return ~crc;
}

bool crc_trailer_matches(std::span<const std::byte> bytes) {
  if (bytes.size() < kCrcTrailerBytes) return false;
  const std::size_t covered = bytes.size() - kCrcTrailerBytes;
  const auto expected = crc_trailer(crc32c(bytes.first(covered)));
  return std::memcmp(bytes.data() + covered, expected.data(), kCrcTrailerBytes) == 0;
}

}  // namespace uet::wire
