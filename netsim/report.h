// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A run as a page with plots: windows, queues and goodput over time, flow completion times, traffic
// and retransmissions between hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "netsim/outcome.h"
#include "netsim/sample.h"

namespace uet::netsim {

class Report {
 public:
  // A moment of the run, for the plots over time. Of a long run every second, fourth, ... sample is
  // kept, so that a plot has at most kMostSamples points.
  void keep(const Sample& sample);
  // The whole page, after the run. HTML without script (uet_report/page.h).
  std::string html(const Outcome& outcome) const;

 private:
  static constexpr std::size_t kMostSamples = 2000;

  std::uint64_t calls_ = 0;
  std::uint64_t stride_ = 1;  // calls for a sample that is kept
  std::vector<Sample> samples_;
};

}  // namespace uet::netsim
