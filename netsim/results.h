// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a run has come to, in numbers and as text (CMS-807).
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "netsim/outcome.h"

namespace uet::netsim {

struct FctResult {  // of the flows that finished, us
  double min = 0, mean = 0, p99 = 0, worst = 0;
};

struct Results {
  std::size_t flows = 0;
  std::size_t finished = 0;
  FctResult fct;
  double makespan_us = 0;    // first start to last end
  double jain = 0;           // over size / FCT of the flows
  double context_jain = 0;   // the same of congestion contexts: bytes over first start to last end
  double dead_share = 0;     // of packets: take a failed link 10 RTTs later (Meter)
  double last_dead_us = 0;   // when the last data packet took a failed link
  double interval_gbps = 0;  // data that arrived in the interval of --rates-us, as on the wire
  double goodput_gbps = 0;   // all bytes over the makespan
  double flow_goodput_gbps = 0;    // mean of size / FCT
  std::uint64_t data_packets = 0;  // first transmissions
  std::uint64_t retransmissions = 0;
  std::uint64_t rto_retransmissions = 0, nack_retransmissions = 0, inferred_retransmissions = 0;
  std::uint64_t duplicates = 0;  // arrived a second time: spurious retransmissions
  std::uint64_t acks = 0;
  std::uint64_t trims = 0, marks = 0, data_drops = 0, control_drops = 0, lost = 0, unroutable = 0;
  std::uint64_t spoilt = 0;             // --garbage
  std::uint64_t receive_drops = 0;      // at hosts that do not keep up ...
  double last_receive_drop_us = 0;      // ... the last of them
  std::uint64_t most_unread_bytes = 0;  // at one of them
  cms::Counters cms;                    // of all contexts of all hosts
  std::uint64_t pend_sent = 0, restores_sent = 0;
  std::uint64_t blocked_by_window_ns = 0, blocked_by_credit_ns = 0;
  double control_share = 0;  // of the bytes that links between switches and to hosts carried
  QueueResult switch_queue, last_hop_queue;
  std::uint64_t events = 0;
  double simulated_us = 0;
  double wall_s = 0;
  std::uint64_t memory_bytes = 0;  // of the process at its largest, or of all ranks' processes
  std::uint64_t pdcs = 0;
  double bytes_per_pdc = 0;  // memory that came with the hosts and their traffic, per PDC end
  std::vector<std::string> violations;
};

// `wall_s`: how long it took. `idle_memory_bytes`: of the process before the network was built.
Results results_of(const Outcome& outcome, double wall_s, std::uint64_t idle_memory_bytes);

void print_text(const Results& results, std::ostream& out);
void print_json(const Results& results, std::ostream& out);
// One line for each flow: id, source, destination, bytes, start_us, fct_us, gbps; then of its
// source and all that it sends: data packets and retransmissions; and the rate between both in the
// interval of the Meter.
void print_csv(const Outcome& outcome, std::ostream& out);

}  // namespace uet::netsim
