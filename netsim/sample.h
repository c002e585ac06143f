// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Windows and queues at one moment.
#pragma once

#include <algorithm>
#include <cstdint>

#include "netsim/clock.h"

namespace uet::netsim {

class Network;

// The windows of all congestion contexts that have something in flight (mean, smallest, largest),
// their sum of bytes in flight, and the longest queue of data at a last hop and inside the network;
// bytes.
struct Sample {
  double time_us = 0;
  std::uint64_t window_mean = 0, window_min = 0, window_max = 0;
  std::int64_t in_flight = 0;
  std::uint64_t queue_last_hop = 0, queue_inside = 0;
};

// The share of one rank's part of a network in a sample.
struct SamplePart {
  std::uint64_t contexts = 0, window_sum = 0, window_min = UINT64_MAX, window_max = 0;
  std::int64_t in_flight = 0;
  std::uint64_t queue_last_hop = 0, queue_inside = 0;

  void add(const SamplePart& other);
  Sample whole(double time_us) const;
};
SamplePart sample_of(const Network& network);
// All ranks call it; rank 0 gets the sample of the whole network, at `at`.
Sample gather_sample(Network& network, Picoseconds at);

}  // namespace uet::netsim
