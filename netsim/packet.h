// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A packet on its way through the simulated network: its true headers, and of its payload only the
// length, because all payload is alike (CMS-806). The core writes and interprets the headers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "uet/base/types.h"

namespace uet::netsim {

// How switches treat it (CMS 1.4), in the order of precedence.
enum class TrafficClass : std::uint8_t { Control, Trimmed, Data };
inline constexpr std::size_t kTrafficClasses = 3;

struct NetPacket {
  // ACK_CC with the largest SES response (40 + 96) and a request with all its headers fit.
  static constexpr std::size_t kHeadBytes = 160;

  NetPacket* next = nullptr;  // in the queue of a port, or of the pool
  std::uint32_t source = 0;   // hosts
  std::uint32_t destination = 0;
  std::uint32_t pds_bytes = 0;   // from the PDS prologue on, payload included
  std::uint32_t wire_bytes = 0;  // what a link carries
  std::uint16_t entropy = 0;
  std::uint16_t head_bytes = 0;  // how much of `head` is in use
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::NotEct;
  TrafficClass traffic_class = TrafficClass::Data;
  bool trimmed = false;
  bool trimmed_last_hop = false;
  std::array<std::byte, kHeadBytes> head;
};

class NetPacketPool {
 public:
  NetPacket* take() {
    if (free_ == nullptr) grow();
    NetPacket* packet = free_;
    free_ = packet->next;
    packet->next = nullptr;
    ++in_use_;
    return packet;
  }
  void give_back(NetPacket* packet) {
    packet->next = free_;
    free_ = packet;
    --in_use_;
  }
  std::size_t in_use() const { return in_use_; }

 private:
  static constexpr std::size_t kChunk = 4096;

  void grow() {
    chunks_.push_back(std::make_unique<NetPacket[]>(kChunk));
    for (std::size_t i = 0; i < kChunk; ++i) {
      chunks_.back()[i].next = free_;
      free_ = &chunks_.back()[i];
    }
  }

  std::vector<std::unique_ptr<NetPacket[]>> chunks_;
  NetPacket* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace uet::netsim
