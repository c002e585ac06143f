// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Domains with the speed at which their numbers grow.
#pragma once

#include <vector>

#include "live_view/domain.h"

namespace uet::top {

struct Sample {
  view::Domain domain;
  // In the order of the domain's counters and of view::peer_columns(), per second; 0 for gauges and
  // as long as there is one reading.
  std::vector<double> counter_rates;
  std::vector<std::vector<double>> peer_rates;  // in the order of the domain's peers
};

// `elapsed_s`: seconds between the two readings.
std::vector<Sample> take_samples(const std::vector<Sample>& before,
                                 std::vector<view::Domain> domains, double elapsed_s);

}  // namespace uet::top
