// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of a simulated network, and the faults that happen to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fep/config.h"
#include "netsim/clock.h"
#include "netsim/garbage.h"
#include "netsim/port.h"
#include "netsim/topology.h"

namespace uet::netsim {

// Something that happens to a cable, both ways, at a point of time.
struct Fault {
  enum class Kind : std::uint8_t {
    Down,   // what is on it and what is sent to it vanishes
    Up,     // it carries packets again, and routing uses it
    Avoid,  // routing has learnt that it is down
    Rate,   // its rate changes to rate_bps
    // Of all cables of a plane.
    PlaneDown,  // as Down
    PlaneLost,  // hosts have learnt it, as from the carriers of their ports
    PlaneUp,    // as Up; hosts use it
  };
  Picoseconds at = 0;
  std::uint32_t port = 0;  // one end of the cable
  Kind kind{};
  std::uint64_t rate_bps = 0;
  std::uint32_t plane = 0;
};

inline constexpr std::uint32_t kMostPlanes = 16;

struct NetworkConfig {
  TopologyConfig topology;   // of each plane
  std::uint32_t planes = 1;  // independent networks; each host has a port in each
  QueueConfig queues;        // of switch ports
  std::uint64_t last_hop_limit_bytes = UINT64_MAX;  // data_limit_bytes of those to hosts (CMS-32)
  bool ecn_on_last_hop = true;                      // off where receivers give credit (CMS-33)
  std::uint32_t overhead_bytes = 8;                 // on the wire, beside what PDS counts (CMS-809)
  std::uint32_t least_wire_bytes = 64;              // of a short packet
  fep::Config fep;  // of every host; sizes and seed are set by the network
  DeliveryMode mode = DeliveryMode::Rud;
  std::uint64_t remote_rate_bps =
      0;                    // of the peers' links, as far as hosts know it; 0 = they do not
  double loss = 0;          // of every packet, on every link between switches
  double control_loss = 0;  // of those that are not data, besides
  Picoseconds jitter = 0;   // extra delay of a packet on links between switches
  double garbage = 0;       // of the ACKs and Credits that reach hosts, spoilt as ...
  Garbage garbage_kind{};   // ... this says
  // Rate at which hosts take up arrived packets, 0 = at once; waiting packets fill
  // receive_pool_bytes, and a full pool drops packets. From drain_until on: the rate of the link.
  std::uint64_t drain_rate_bps = 0;
  std::uint64_t receive_pool_bytes = 1'000'000;
  Picoseconds drain_until = kPsNever;
  std::vector<Fault> faults;
  // The parts of the run in which Meter counts rates, and packets on failed links.
  Picoseconds rates_from = 0, rates_until = 0;
  Picoseconds avoid_from = kPsNever;
  std::uint64_t seed = 1;

  // The bytes that a link carries for a packet of `pds_bytes`.
  std::uint32_t wire_bytes(std::uint32_t pds_bytes) const {
    return std::max(pds_bytes + overhead_bytes, least_wire_bytes);
  }
};

}  // namespace uet::netsim
