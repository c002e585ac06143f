// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A run as a page with plots: windows, queues and goodput over time, flow completion times, traffic
// and retransmissions between hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "netsim/network.h"
#include "netsim/trace.h"

namespace uet::netsim {

class Report {
 public:
  // The state of the network now, for the plots over time. Of a long run every second, fourth, ...
  // call is kept, so that a plot has at most kMostSamples points.
  void sample(const Network& network);
  // The whole page, after the run. HTML without script (uet_report/page.h).
  std::string html(const Network& network) const;

 private:
  static constexpr std::size_t kMostSamples = 2000;

  std::uint64_t calls_ = 0;
  std::uint64_t stride_ = 1;  // calls for a sample that is kept
  std::vector<Sample> samples_;
};

}  // namespace uet::netsim
