// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The optional CRC-32C trailer of a packet (WIRE 1.4). Knows the polynomial and the byte order, not
// where IP headers lie: the caller passes what is covered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace uet::wire {

inline constexpr std::size_t kCrcTrailerBytes = 4;

// CRC-32C of `bytes`, appended to what `previous` covers (the value of an earlier call; 0 =
// nothing), so that addresses, headers and payload need not be contiguous.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

// The trailer as it is sent: least significant byte first.
constexpr std::array<std::byte, kCrcTrailerBytes> crc_trailer(std::uint32_t crc) {
  return {static_cast<std::byte>(crc), static_cast<std::byte>(crc >> 8),
          static_cast<std::byte>(crc >> 16), static_cast<std::byte>(crc >> 24)};
}

// True when the last 4 bytes of `bytes` are the CRC of all before them. `bytes` begins at the IP
// source address; fewer than 4 bytes are never right.
bool crc_trailer_matches(std::span<const std::byte> bytes);

}  // namespace uet::wire
