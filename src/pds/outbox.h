// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets on their way to the NIC, in order. A packet that the NIC refuses stays first in line. A
// packet can be removed at any time, so that the owner of its payload may be told that it is free.
//
// NACKs have a queue of their own: if more packets are refused than the NIC can send NACKs for,
// NACKs in the common queue would delay the packets that end the shortage. They leave last, as the
// SACK that belongs to one must be there before it (PDS-166). Where the NIC has been full, the
// first few NACKs of a pass leave before all others, so that they leave at all; but not in two
// passes running if nothing else has left, as a short queue of the NIC takes no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"

namespace uet::pds {

class Outbox {
 public:
  static constexpr std::size_t kMostNacks = 64;  // as many as packets of one burst
  static constexpr std::size_t kNacksFirst = 2;

  explicit Outbox(PacketPool& pool) : pool_(pool) {}
  ~Outbox() {
    while (!queue_.empty()) withdraw(queue_.front());
    while (!nacks_.empty()) nack_left();
  }

  void push(Packet& packet) { queue_.push_back(packet); }
  static bool holds(const Packet& packet) { return packet.linked(); }
  // Removes the packet if it is queued; a packet without an owner goes back to the pool.
  void withdraw(Packet& packet) {
    if (!packet.linked()) return;
    queue_.remove(packet);
    if (packet.release_after_send) pool_.give_back(&packet);
  }
  // Except for NACKs.
  bool empty() const { return queue_.empty(); }
  IntrusiveList<Packet, OutboxTag>& queue() { return queue_; }

  // A pass begins: next_burst() until it is empty or the NIC is full. `nic_was_full`: when the last
  // one ended.
  void begin_pass(bool nic_was_full) {
    nacks_first_ = nic_was_full && !others_wait_ ? kNacksFirst : 0;
  }
  // The packets that leave next, as many as `memory` holds. Empty: none waits.
  std::span<const Packet* const> next_burst(std::span<const Packet*> memory) {
    nacks_first_ = std::min(nacks_first_, nack_count_);
    burst_has_nacks_ = nacks_first_ > 0 || queue_.empty();
    auto& from = burst_has_nacks_ ? nacks_ : queue_;
    const std::size_t most =
        nacks_first_ > 0 ? std::min(nacks_first_, memory.size()) : memory.size();
    std::size_t count = 0;
    for (auto it = from.begin(); it != from.end() && count < most; ++it) memory[count++] = &*it;
    if (nacks_first_ > 0) nacks_first_ -= count;
    return memory.first(count);
  }
  // The first `count` packets of the burst have left.
  void left(std::size_t count) {
    if (count > 0) others_wait_ = burst_has_nacks_ && !queue_.empty();
    for (; count > 0; --count) {
      if (burst_has_nacks_) {
        nack_left();
      } else {
        withdraw(queue_.front());
      }
    }
  }

  // Else a further NACK is as good as lost: a time-out recovers (PDS-123).
  bool has_room_for_nack() const { return nack_count_ < kMostNacks; }
  // Queues a NACK that has no owner.
  void push_nack(Packet& packet) {
    nacks_.push_back(packet);
    ++nack_count_;
  }
  // The first of them has left.
  void nack_left() {
    pool_.give_back(&nacks_.pop_front());
    --nack_count_;
  }
  IntrusiveList<Packet, OutboxTag>& nacks() { return nacks_; }
  bool has_nacks() const { return nack_count_ > 0; }

 private:
  PacketPool& pool_;
  IntrusiveList<Packet, OutboxTag> queue_;
  IntrusiveList<Packet, OutboxTag> nacks_;
  std::size_t nack_count_ = 0;
  std::size_t nacks_first_ = 0;   // so many leave before all other packets, in this pass
  bool burst_has_nacks_ = false;  // the last next_burst() took them
  bool others_wait_ = false;      // the last packet that left was a NACK before others
};

}  // namespace uet::pds
