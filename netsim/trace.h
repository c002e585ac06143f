// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Windows and queues over time, as numbers for a plot.
#pragma once

#include <ostream>

#include "netsim/clock.h"
#include "netsim/network.h"

namespace uet::netsim {

// Writes a line of CSV for each moment it is asked for.
class Trace {
 public:
  explicit Trace(std::ostream& out);
  // The windows of all congestion contexts that have something in flight (mean, smallest, largest),
  // their sum of bytes in flight, and the longest queue of data at a last hop and inside the
  // network; bytes.
  void sample(const Network& network);

 private:
  std::ostream& out_;
};

}  // namespace uet::netsim
