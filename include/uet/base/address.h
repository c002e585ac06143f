// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where a FEP is found: its fabric address (an IP address) and the UDP port it listens on; and the
// security context of the packets to and from it there.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace uet {

inline constexpr std::uint16_t kUetUdpPort = 4793;      // WIRE 1.1
inline constexpr std::uint16_t kUetLastUdpPort = 5816;  // last port of "port per process"
inline constexpr std::uint16_t kUetUdpPorts = kUetLastUdpPort - kUetUdpPort + 1;  // 1024

// Processes that share port 4793 of an address have a slot there each. Their packets leave from the
// port of the slot, which is a part of their address, and go to port 4793: no process receives at
// the port of a slot. PDCIDs and the ids of RUDI packets begin with the slot number, which is the
// PIDonFEP modulo kSharedSlots.
inline constexpr unsigned kSlotBits = 5;
inline constexpr std::uint16_t kSharedSlots = 1U << kSlotBits;
inline constexpr std::uint16_t kFirstSlotPort = kUetLastUdpPort + 1;
inline constexpr std::uint16_t kLastSlotPort = kUetLastUdpPort + kSharedSlots;

// IPv4 in the first 4 bytes, or IPv6 in all 16; network order.
struct FabricAddress {
  std::array<std::uint8_t, 16> bytes{};
  bool is_ipv6 = false;

  // Any address of the host, of either family.
  constexpr bool is_wildcard() const { return bytes == decltype(bytes){}; }

  // As words, since the source of every packet that arrives is compared with its PDC's peer.
  friend constexpr bool operator==(const FabricAddress& a, const FabricAddress& b) {
    using Words = std::array<std::uint64_t, 2>;
    const auto words_a = std::bit_cast<Words>(a.bytes);
    const auto words_b = std::bit_cast<Words>(b.bytes);
    return words_a[0] == words_b[0] && words_a[1] == words_b[1] && a.is_ipv6 == b.is_ipv6;
  }
};

struct FepAddress {
  FabricAddress ip;
  std::uint16_t port = kUetUdpPort;
  // The secure domain (SDI) that packets to and from there belong to (TSS-11): 0 is the security
  // context of this FEP itself, which is its own secure domain, or clear if it has none. The same
  // address under another SDI is another peer. No NIC that moves packets looks at it: what seals
  // and opens them (tss::SecureNic) uses it up.
  std::uint32_t sdi : 24 = 0;
  // The UDP port of this host that packets to and from there use: 0 is the NIC's own, others are
  // ports of further NICs of the process (Nic::borrow_port). The same address by another port is
  // another peer.
  std::uint32_t via : 8 = 0;

  friend constexpr bool operator==(const FepAddress&, const FepAddress&) = default;
};
static_assert(sizeof(FepAddress) == 24, "it is a part of every packet and of every peer");

// The slot that a port names, if any.
constexpr std::optional<std::uint8_t> slot_of_port(std::uint16_t port) {
  if (port < kFirstSlotPort || port > kLastSlotPort) return {};
  return static_cast<std::uint8_t>(port - kFirstSlotPort);
}

// Our processes send from such a port, which is also in their address (port per process, slot).
constexpr bool names_process(std::uint16_t port) {
  return port >= kUetUdpPort && port <= kLastSlotPort;
}

// Where packets to `address` go on the wire.
constexpr FepAddress wire_address(FepAddress address) {
  if (slot_of_port(address.port)) address.port = kUetUdpPort;
  address.sdi = 0;
  address.via = 0;
  return address;
}

// The same FEP, by whichever port of this host.
constexpr bool is_same_fep(FepAddress a, const FepAddress& b) {
  a.via = b.via;
  return a == b;
}

// A process may have so many addresses beside its first one, of IPv4, at the same port (rails).
inline constexpr std::size_t kMostFurtherAddresses = 3;

struct FepAddressHash {
  std::size_t operator()(const FepAddress& a) const noexcept {
    std::uint64_t words[2];
    std::memcpy(words, a.ip.bytes.data(), sizeof words);
    std::uint64_t h = (words[0] ^ (words[1] * 0x9E3779B97F4A7C15ULL)) + a.port +
                      (std::uint64_t{a.sdi} << 16) + (std::uint64_t{a.via} << 40);
    h = (h ^ (h >> 31)) * 0xBF58476D1CE4E5B9ULL;
    return static_cast<std::size_t>(h ^ (h >> 29));
  }
};

// Of the host alone, whichever of its ports.
inline std::uint64_t host_hash(const FabricAddress& ip) {
  return FepAddressHash{}(FepAddress{.ip = ip, .port = 0});
}

}  // namespace uet
