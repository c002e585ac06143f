// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets on their way to the NIC, in order. What the NIC refuses stays first in line. A packet can
// be taken out again at any time, so that its payload's owner may be told that it is free.
#pragma once

#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"

namespace uet::pds {

class Outbox {
 public:
  explicit Outbox(PacketPool& pool) : pool_(pool) {}
  ~Outbox() {
    while (!queue_.empty()) withdraw(queue_.front());
  }

  void push(Packet& packet) { queue_.push_back(packet); }
  static bool holds(const Packet& packet) { return packet.linked(); }
  // Takes the packet out if it is there; a packet nobody else keeps goes back to the pool.
  void withdraw(Packet& packet) {
    if (!packet.linked()) return;
    queue_.remove(packet);
    if (packet.release_after_send) pool_.give_back(&packet);
  }
  bool empty() const { return queue_.empty(); }
  IntrusiveList<Packet, OutboxTag>& queue() { return queue_; }

 private:
  PacketPool& pool_;
  IntrusiveList<Packet, OutboxTag> queue_;
};

}  // namespace uet::pds
