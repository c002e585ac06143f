// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ways of moving packets without uet: the least code that the system calls or the library of a path
// need. Their performance is the ceiling of the back ends that use the same path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "uet/base/address.h"

namespace uet::bench {

inline constexpr std::size_t kRawBurst = 64;
inline constexpr std::size_t kRawHeaderBytes = 72;  // PDS and SES headers of a tagged send, about
inline constexpr std::uint16_t kRawPort = 4793;

enum class RawKind : std::uint64_t { Data, Answer, End };

// The first bytes of a packet.
struct RawMessage {
  RawKind kind = RawKind::Data;
  std::uint64_t number = 0;  // Data: its own; Answer: how many have arrived
};

struct RawChoice {
  std::string nic;        // as FI_UET_NIC
  std::string interface;  // that holds `self`
  FabricAddress self;     // IPv4
  FabricAddress peer;
  std::size_t bytes = 0;  // payload of a packet
  // Size of the memory that payload comes from and goes to, piece by piece; 0: the buffers of the
  // calls. A multiple of `bytes`; kernel UDP alone.
  std::size_t memory_bytes = 0;
};

class RawWire {
 public:
  virtual ~RawWire() = default;
  // Sends a prefix of up to kRawBurst messages, with the payload or the header alone, and returns
  // its length.
  virtual std::size_t send(std::span<const RawMessage> messages, bool with_payload) = 0;
  // Fills `out`, of at least kRawBurst places, from the front.
  virtual std::size_t receive(std::span<RawMessage> out) = 0;
};

// All return nullptr, and say why, if the path cannot be opened.
std::unique_ptr<RawWire> open_raw_udp(const RawChoice& choice);     // sendmmsg and recvmmsg
std::unique_ptr<RawWire> open_raw_uring(const RawChoice& choice);   // the same by io_uring
std::unique_ptr<RawWire> open_raw_packet(const RawChoice& choice);  // rings of packet sockets
std::unique_ptr<RawWire> open_raw_dpdk(const RawChoice& choice);    // rte_eth_tx_burst, rx_burst
std::unique_ptr<RawWire> open_raw_xdp(const RawChoice& choice);     // rings of AF_XDP
std::unique_ptr<RawWire> open_raw_verbs(const RawChoice& choice);   // ibv_post_send, ibv_poll_cq

// Writes the packet of this message behind UDP: `out` holds at least the header and the payload.
inline std::size_t write_raw(std::byte* out, const RawMessage& message, std::size_t payload) {
  std::memcpy(out, &message, sizeof message);
  std::memset(out + sizeof message, 0x5A, kRawHeaderBytes - sizeof message + payload);
  return kRawHeaderBytes + payload;
}

}  // namespace uet::bench
