// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/checks.h"

#include "netsim/network.h"

namespace uet::netsim {

void Checks::on_sent(const NetPacket&) {}
void Checks::on_delivered(const NetPacket&) {}
void Checks::after_pass(std::uint32_t) {}

void Checks::at_end(bool finished) {
  if (!finished) return;
  for (std::size_t i = 0; i < network_.host_count(); ++i) {
    if (!network_.host(i).fep().quiescent()) {
      network_.violation("host " + std::to_string(i) + " is not at rest after its last flow");
    }
  }
}

}  // namespace uet::netsim
