// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where a FEP is found: its fabric address (an IP address) and the UDP port it listens on.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uet {

inline constexpr std::uint16_t kUetUdpPort = 4793;      // WIRE 1.1
inline constexpr std::uint16_t kUetLastUdpPort = 5816;  // end of the range of way B (design 9)

// IPv4 in the first 4 bytes, or IPv6 in all 16; network order.
struct FabricAddress {
  std::array<std::uint8_t, 16> bytes{};
  bool is_ipv6 = false;

  // As words, since every packet that arrives is compared with whom its PDC is with.
  friend constexpr bool operator==(const FabricAddress& a, const FabricAddress& b) {
    using Words = std::array<std::uint64_t, 2>;
    return std::bit_cast<Words>(a.bytes) == std::bit_cast<Words>(b.bytes) && a.is_ipv6 == b.is_ipv6;
  }
};

struct FepAddress {
  FabricAddress ip;
  std::uint16_t port = kUetUdpPort;

  friend constexpr bool operator==(const FepAddress&, const FepAddress&) = default;
};

// Where an answer to a packet from `source` goes: to its source port if that lies in the range in
// which our own processes listen (way B of the design), else to the port of the standard.
constexpr FepAddress reply_address(FepAddress source) {
  if (source.port < kUetUdpPort || source.port > kUetLastUdpPort) source.port = kUetUdpPort;
  return source;
}

struct FepAddressHash {
  std::size_t operator()(const FepAddress& a) const noexcept {
    std::uint64_t words[2];
    std::memcpy(words, a.ip.bytes.data(), sizeof words);
    std::uint64_t h = (words[0] ^ (words[1] * 0x9E3779B97F4A7C15ULL)) + a.port;
    h = (h ^ (h >> 31)) * 0xBF58476D1CE4E5B9ULL;
    return static_cast<std::size_t>(h ^ (h >> 29));
  }
};

}  // namespace uet
