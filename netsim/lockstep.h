// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A network that is divided over ranks: which rank has which part of it, packets on links that
// cross from one part to another, and the meetings of the ranks.
//
// Time goes in windows. A window begins with the earliest event of any rank, and is as long as a
// link between switches takes: packets that leave in it reach other ranks after it. So each rank
// takes the events of a window alone. Between two windows all ranks meet.
//
// A network of one rank has the same windows, since a run ends between two of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "netsim/clock.h"
#include "netsim/event_queue.h"
#include "netsim/exchange.h"
#include "netsim/network_config.h"
#include "netsim/packet.h"
#include "netsim/topology.h"
#include "netsim/traffic.h"

namespace uet::netsim {

// Why the network and its traffic cannot be divided over so many ranks, with a remedy; empty if
// they can.
std::string complaint_about_division(const NetworkConfig& config, const Traffic& traffic,
                                     std::uint32_t ranks);

// Where a rank, or all of them together, stand between two windows.
struct Standing {
  Picoseconds next = kPsNever;  // the earliest event that is to come
  Picoseconds now = 0;          // the latest event that was taken
  std::uint64_t finished = 0;   // flows
  std::uint64_t events = 0;     // taken
  bool empty = true;            // no packet is under way
  bool violated = false;        // a property does not hold

  void add(const Standing& other);
};

class Lockstep {
 public:
  // nullptr: one rank. An exchange must live longer.
  explicit Lockstep(Exchange* exchange);

  std::uint32_t rank() const { return exchange_ == nullptr ? 0 : exchange_->rank(); }
  std::uint32_t ranks() const { return exchange_ == nullptr ? 1 : exchange_->ranks(); }
  // Has this rank the node?
  bool has(const Topology& topology, std::uint32_t node) const {
    return exchange_ == nullptr || topology.part_of(node, ranks()) == rank();
  }
  // How long a window is.
  static Picoseconds window(const TopologyConfig& topology);

  // The packet will reach the far end of a port, `subject` of the event, at `at`. That end belongs
  // to another rank, which has a copy from the next meeting on.
  void send(std::uint32_t rank, Picoseconds at, std::uint32_t subject, const NetPacket& packet);
  // The ranks meet: packets that other ranks sent to this one go to `events`. Returns where all
  // ranks together stand.
  Standing meet(Standing own, NetPacketPool& pool, EventQueue& events);
  // Is it so on every rank?
  bool everywhere(bool here);
  // Rank 0 gets the bytes of each rank, in the order of ranks, the others get none.
  std::vector<Bytes> gather(Bytes own);

 private:
  Exchange* exchange_;
  std::vector<Bytes> out_, in_;  // by rank
  Picoseconds earliest_sent_ = kPsNever;
};

}  // namespace uet::netsim
