// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// All that is known of a network after a run. Each rank of a divided network has a part of it;
// rank 0 puts the parts together, so that all that is printed is made from one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cms/counters.h"
#include "netsim/clock.h"
#include "netsim/flow_table.h"
#include "netsim/meter.h"
#include "netsim/network.h"
#include "netsim/traffic.h"

namespace uet::netsim {

struct QueueResult {  // data that waited in front of one link, bytes
  double max = 0;
  double mean = 0;  // over the time in which some waited, of the port with the largest

  // The larger of both. Of equal ones the larger mean counts.
  void add(const QueueResult& other);
};

// Of one host.
struct HostOutcome {
  std::uint64_t requests_sent = 0;  // first transmissions
  std::uint64_t rto_retransmissions = 0, nack_retransmissions = 0, inferred_retransmissions = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t acks_sent = 0;
  std::uint64_t pdcs = 0;
  std::uint64_t pend_sent = 0, restores_sent = 0;
  std::uint64_t blocked_by_window_ns = 0, blocked_by_credit_ns = 0;
  std::uint64_t receive_drops = 0;
  Picoseconds last_receive_drop = 0;
  std::uint64_t most_unread_bytes = 0;

  std::uint64_t retransmissions() const {
    return rto_retransmissions + nack_retransmissions + inferred_retransmissions;
  }
};

// Of all ports together.
struct PortsOutcome {
  std::uint64_t trims = 0, marks = 0, data_drops = 0, control_drops = 0, lost = 0;
  std::uint64_t unroutable = 0, spoilt = 0;
  std::uint64_t bytes = 0, control_bytes = 0;  // that links between switches and to hosts carried
  QueueResult switch_queue, last_hop_queue;

  void add(const PortsOutcome& other);
};

struct Outcome {
  const Traffic* traffic = nullptr;
  Picoseconds begin = 0, end = 0;
  std::vector<FlowRecord> flows;
  std::vector<HostOutcome> hosts;
  PortsOutcome ports;
  cms::Counters cms;  // of all contexts of all hosts
  Meter meter;
  std::uint64_t events = 0;
  std::uint64_t memory_bytes = 0;  // of the processes at their largest; a process counts once
  std::vector<Violation> violations;

  double simulated_us() const { return microseconds(end - begin); }
};

// The part that `network` has. The traffic must live longer.
Outcome outcome_of(const Network& network);
// After run(): rank 0 gets the whole, every other rank its own part. `own_process`: no other rank
// is in the process of this one.
Outcome gather_outcome(Network& network, bool own_process);
// Largest resident size of this process so far.
std::uint64_t peak_memory_bytes();

}  // namespace uet::netsim
