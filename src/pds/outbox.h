// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets on their way to the NIC in three queues, each in order. A packet that the NIC refuses
// stays first in its queue. A packet can be removed at any time, so that the owner of its payload
// may be told that it is free.
//
//   control  Packet::control: ACKs and control packets that follow no data (PDS-226). Before data
//            that the NIC has refused: what peers wait for does not wait behind it. After
//            kControlAhead of them one packet of data leaves, so that a peer which causes ACKs
//            without end does not stop all data.
//   data     requests, and control packets that must not overtake them.
//   NACKs    If more packets are refused than the NIC can send NACKs for, NACKs in another queue
//            would delay the packets that end the shortage. They leave last, as the SACK that
//            belongs to one must be there before it (PDS-166). Where the NIC has been full, the
//            first few NACKs of a pass leave before data, so that they leave at all; but not in two
//            passes running if no data has left, as a short queue of the NIC takes no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"

namespace uet::pds {

class Outbox {
 public:
  using Queue = IntrusiveList<Packet, OutboxTag>;
  static constexpr std::size_t kMostNacks = 64;  // as many as packets of one burst
  static constexpr std::size_t kNacksFirst = 2;
  static constexpr std::size_t kControlAhead = 64;

  explicit Outbox(PacketPool& pool) : pool_(pool) {}
  ~Outbox() {
    while (!control_.empty()) withdraw(control_.front());
    while (!data_.empty()) withdraw(data_.front());
    while (!nacks_.empty()) nack_left();
  }

  void push(Packet& packet) { (packet.control ? control_ : data_).push_back(packet); }
  static bool holds(const Packet& packet) { return packet.linked(); }
  // Removes the packet if it is queued; a packet without an owner goes back to the pool.
  void withdraw(Packet& packet) {
    if (!packet.linked()) return;
    Queue::remove(packet);
    if (packet.release_after_send) pool_.give_back(&packet);
  }
  // Except for NACKs.
  bool empty() const { return data_.empty() && control_.empty(); }
  Queue& control() { return control_; }
  Queue& data() { return data_; }

  // A pass begins: next_burst() until it is empty or the NIC is full. `nic_was_full`: when the last
  // one ended.
  void begin_pass(bool nic_was_full) {
    nacks_first_ = nic_was_full && !data_waits_ ? kNacksFirst : 0;
  }
  // The packets that leave next, as many as `memory` holds. Empty: none waits.
  std::span<const Packet* const> next_burst(std::span<const Packet*> memory) {
    if (empty() && nack_count_ == 0) return {};  // most passes
    nacks_first_ = std::min(nacks_first_, nack_count_);
    const std::size_t ahead = data_.empty() ? memory.size() : kControlAhead - control_run_;
    std::size_t count = 0;
    const auto add = [&](Queue& from, std::size_t most) {
      const std::size_t begin = count;
      const std::size_t end = std::min(memory.size(), begin + most);
      for (auto it = from.begin(); it != from.end() && count < end; ++it) memory[count++] = &*it;
      return count - begin;
    };
    burst_.control = add(control_, ahead);
    burst_.nacks = add(nacks_, data_.empty() ? memory.size() : nacks_first_);
    burst_.data = add(data_, memory.size());
    nacks_first_ -= std::min(nacks_first_, burst_.nacks);
    return memory.first(count);
  }
  // The first `count` packets of the burst have left.
  void left(std::size_t count) {
    const std::size_t control = std::min(count, burst_.control);
    const std::size_t nacks = std::min(count - control, burst_.nacks);
    const std::size_t data = count - control - nacks;
    for (std::size_t i = 0; i < control; ++i) withdraw(control_.front());
    for (std::size_t i = 0; i < nacks; ++i) nack_left();
    for (std::size_t i = 0; i < data; ++i) withdraw(data_.front());
    const bool waits = data == 0 && !data_.empty();
    control_run_ = waits ? control_run_ + control : 0;
    data_waits_ = waits && (nacks > 0 || data_waits_);
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
  Queue& nacks() { return nacks_; }
  bool has_nacks() const { return nack_count_ > 0; }

 private:
  // The packets of the last next_burst(), in this order.
  struct Burst {
    std::size_t control = 0;
    std::size_t nacks = 0;
    std::size_t data = 0;
  };

  PacketPool& pool_;
  Queue control_;
  Queue data_;
  Queue nacks_;
  std::size_t nack_count_ = 0;
  Burst burst_;
  std::size_t nacks_first_ = 0;  // so many leave before data, in this pass
  std::size_t control_run_ = 0;  // so many control packets have left since data waits
  bool data_waits_ = false;      // NACKs have left before data, and no data since then
};

}  // namespace uet::pds
