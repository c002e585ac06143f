// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A packet on its way through the simulated network: its true headers, and of its payload only the
// length, because all payload is alike (CMS-806). The core writes and interprets the headers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "uet/base/types.h"

namespace uet::netsim {

// How switches treat it (CMS 1.4), in the order of precedence.
enum class TrafficClass : std::uint8_t { Control, Trimmed, Data };
inline constexpr std::size_t kTrafficClasses = 3;

// Two lines of the cache, of which switches read the first.
struct alignas(64) NetPacket {
  // ACK_CC with the largest SES response (40 + 96) and a request with all its headers fit.
  static constexpr std::size_t kHeadBytes = 160;
  using LongHead = std::array<std::byte, kHeadBytes>;

  std::span<const std::byte> head() const { return {head_memory(), head_bytes}; }
  std::span<std::byte> head() { return {const_cast<std::byte*>(head_memory()), head_bytes}; }
  // Space for a head of `bytes`, kHeadBytes at most; to be written.
  std::span<std::byte> new_head(std::size_t bytes) {
    head_bytes = static_cast<std::uint16_t>(bytes);
    if (bytes > kShortHead && long_head == nullptr) long_head = std::make_unique<LongHead>();
    return head();
  }
  // Only the first `most` bytes of the head stay.
  void cut_head(std::size_t most) {
    if (head_bytes <= most) return;
    const std::byte* const from = head_memory();
    head_bytes = static_cast<std::uint16_t>(most);
    if (head_memory() != from) std::copy_n(from, most, short_head.begin());
  }

  NetPacket* next = nullptr;  // in the queue of a port, or of the pool
  std::uint32_t source = 0;   // hosts
  std::uint32_t destination = 0;
  std::uint32_t pds_bytes = 0;   // from the PDS prologue on, payload included
  std::uint32_t wire_bytes = 0;  // what a link carries
  std::uint16_t entropy = 0;
  std::uint16_t head_bytes = 0;  // how much of the head is in use
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::NotEct;
  TrafficClass traffic_class = TrafficClass::Data;
  bool trimmed = false;
  bool trimmed_last_hop = false;

 private:
  // Heads of data and of ACKs are as short.
  static constexpr std::size_t kShortHead = 80;

  const std::byte* head_memory() const {
    return head_bytes > kShortHead ? long_head->data() : short_head.data();
  }

  std::array<std::byte, kShortHead> short_head;
  std::unique_ptr<LongHead> long_head;  // taken when first needed, and kept
};
static_assert(sizeof(NetPacket) == 128);

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
