// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Windows and queues over time, as numbers for a plot.
#pragma once

#include <ostream>

#include "netsim/sample.h"

namespace uet::netsim {

// Writes a line of CSV for each moment it is asked for.
class Trace {
 public:
  explicit Trace(std::ostream& out);
  void write(const Sample& sample);

 private:
  std::ostream& out_;
};

}  // namespace uet::netsim
