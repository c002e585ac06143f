// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Windows and queues over time, as numbers for a plot.
#pragma once

#include <cstdint>
#include <ostream>

#include "netsim/clock.h"
#include "netsim/network.h"

namespace uet::netsim {

// The windows of all congestion contexts that have something in flight (mean, smallest, largest),
// their sum of bytes in flight, and the longest queue of data at a last hop and inside the network;
// bytes.
struct Sample {
  double time_us = 0;
  std::uint64_t window_mean = 0, window_min = 0, window_max = 0;
  std::int64_t in_flight = 0;
  std::uint64_t queue_last_hop = 0, queue_inside = 0;
};
Sample sample_of(const Network& network);

// Writes a line of CSV for each moment it is asked for.
class Trace {
 public:
  explicit Trace(std::ostream& out);
  // A line with sample_of(network).
  void sample(const Network& network);

 private:
  std::ostream& out_;
};

}  // namespace uet::netsim
