// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two NICs back to back: what one sends is copied into the other's ring. No loss, no delay, no
// system call, so that a benchmark over it measures the protocol alone.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "uet/nic/nic.h"

namespace uet::bench {

class MemoryNic final : public nic::Nic {
 public:
  MemoryNic(FepAddress own, std::size_t slots) : own_(own), slots_(slots) {
    caps_.ip_mtu = kSlotBytes;
    caps_.loopback = true;
  }
  // Both ways.
  static void join(MemoryNic& a, MemoryNic& b) {
    a.peer_ = &b;
    b.peer_ = &a;
  }

  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    head_ += lent_;
    lent_ = std::min(out.size(), tail_ - head_);
    for (std::size_t i = 0; i < lent_; ++i) {
      const Slot& slot = slots_[(head_ + i) % slots_.size()];
      out[i] = RxPacket{};
      out[i].bytes = std::span(slot.bytes).first(slot.length);
      out[i].source = peer_->own_;
    }
    return lent_;
  }

  std::size_t tx_burst(std::span<const Packet* const> in) override {
    std::size_t accepted = 0;
    for (const Packet* packet : in) {
      if (!peer_->take(*packet)) break;
      ++accepted;
    }
    return accepted;
  }

  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return own_; }

 private:
  static constexpr std::size_t kSlotBytes = 9000;
  struct Slot {
    std::array<std::byte, kSlotBytes> bytes;
    std::size_t length = 0;
  };

  bool take(const Packet& packet) {
    if (tail_ - head_ == slots_.size()) return false;
    Slot& slot = slots_[tail_++ % slots_.size()];
    slot.length = 0;
    append(slot, packet.head().data(), packet.head().size());
    for (const Slice& slice : packet.payload) append(slot, slice.data, slice.length);
    return true;
  }
  static void append(Slot& slot, const std::byte* data, std::size_t length) {
    if (length > 0) std::memcpy(slot.bytes.data() + slot.length, data, length);
    slot.length += length;
  }

  FepAddress own_;
  nic::NicCaps caps_;
  MemoryNic* peer_ = nullptr;
  std::vector<Slot> slots_;
  std::size_t head_ = 0;  // oldest packet not yet given back
  std::size_t lent_ = 0;  // from head_ on: what the last rx_burst returned
  std::size_t tail_ = 0;
};

}  // namespace uet::bench
