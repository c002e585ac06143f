// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looking at all contexts and ports.
#include "netsim/sample.h"

#include <utility>
#include <vector>

#include "netsim/network.h"

namespace uet::netsim {

void SamplePart::add(const SamplePart& other) {
  contexts += other.contexts;
  window_sum += other.window_sum;
  window_min = std::min(window_min, other.window_min);
  window_max = std::max(window_max, other.window_max);
  in_flight += other.in_flight;
  queue_last_hop = std::max(queue_last_hop, other.queue_last_hop);
  queue_inside = std::max(queue_inside, other.queue_inside);
}

Sample SamplePart::whole(double time_us) const {
  return {.time_us = time_us,
          .window_mean = contexts > 0 ? window_sum / contexts : 0,
          .window_min = contexts > 0 ? window_min : 0,
          .window_max = window_max,
          .in_flight = in_flight,
          .queue_last_hop = queue_last_hop,
          .queue_inside = queue_inside};
}

SamplePart sample_of(const Network& network) {
  SamplePart part;
  for (std::size_t i = 0; i < network.host_count(); ++i) {
    if (!network.has_host(i)) continue;
    network.host(i).fep().contexts().for_each([&](const pds::SharedCcc& shared) {
      const cms::Ccc& ccc = *shared.ccc;
      if (ccc.inflight_bytes() <= 0) return;
      ++part.contexts;
      part.window_sum += ccc.window_bytes();
      part.window_min = std::min(part.window_min, ccc.window_bytes());
      part.window_max = std::max(part.window_max, ccc.window_bytes());
      part.in_flight += ccc.inflight_bytes();
    });
  }
  for (std::uint32_t plane = 0; plane < network.config().planes; ++plane) {
    for (const Port& port : network.fabric(plane).ports()) {
      if (port.link.from_host) continue;
      std::uint64_t& longest = port.link.last_hop ? part.queue_last_hop : part.queue_inside;
      longest = std::max<std::uint64_t>(longest, port.waiting_bytes(TrafficClass::Data));
    }
  }
  return part;
}

Sample gather_sample(Network& network, Picoseconds at) {
  SamplePart whole = sample_of(network);
  Lockstep& lockstep = network.lockstep();
  Bytes part;
  if (lockstep.rank() > 0) append(part, whole);
  const std::vector<Bytes> parts = lockstep.gather(std::move(part));
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    whole.add(Reader(parts[rank]).take<SamplePart>());
  }
  return whole.whole(microseconds(at - network.begin()));
}

}  // namespace uet::netsim
