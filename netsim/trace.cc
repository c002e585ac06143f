// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/trace.h"

namespace uet::netsim {

Trace::Trace(std::ostream& out) : out_(out) {
  out_ << "time_us,window_mean,window_min,window_max,in_flight,queue_last_hop,queue_inside\n";
}

void Trace::write(const Sample& s) {
  out_ << s.time_us << "," << s.window_mean << "," << s.window_min << "," << s.window_max << ","
       << s.in_flight << "," << s.queue_last_hop << "," << s.queue_inside << "\n";
}

}  // namespace uet::netsim
