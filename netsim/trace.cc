// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looking at all contexts and ports.
#include "netsim/trace.h"

#include <algorithm>

namespace uet::netsim {

Sample sample_of(const Network& network) {
  std::uint64_t count = 0, sum = 0, least = UINT64_MAX, most = 0;
  std::int64_t in_flight = 0;
  for (std::size_t i = 0; i < network.host_count(); ++i) {
    network.host(i).fep().contexts().for_each([&](const pds::SharedCcc& shared) {
      const cms::Ccc& ccc = *shared.ccc;
      if (ccc.inflight_bytes() <= 0) return;
      ++count;
      sum += ccc.window_bytes();
      least = std::min(least, ccc.window_bytes());
      most = std::max(most, ccc.window_bytes());
      in_flight += ccc.inflight_bytes();
    });
  }
  std::uint64_t last_hop = 0, inside = 0;
  for (const Port& port : network.fabric().ports()) {
    if (port.link.from_host) continue;
    std::uint64_t& longest = port.link.last_hop ? last_hop : inside;
    longest = std::max<std::uint64_t>(longest, port.waiting_bytes(TrafficClass::Data));
  }
  return {.time_us = network.simulated_us(),
          .window_mean = count > 0 ? sum / count : 0,
          .window_min = count > 0 ? least : 0,
          .window_max = most,
          .in_flight = in_flight,
          .queue_last_hop = last_hop,
          .queue_inside = inside};
}

Trace::Trace(std::ostream& out) : out_(out) {
  out_ << "time_us,window_mean,window_min,window_max,in_flight,queue_last_hop,queue_inside\n";
}

void Trace::sample(const Network& network) {
  const Sample s = sample_of(network);
  out_ << s.time_us << "," << s.window_mean << "," << s.window_min << "," << s.window_max << ","
       << s.in_flight << "," << s.queue_last_hop << "," << s.queue_inside << "\n";
}

}  // namespace uet::netsim
