// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The properties of CMS 8.4 that every run is held to, seen from outside the core: on the wire, in
// what a Fep tells of its congestion contexts, and at the end.
#pragma once

#include <cstdint>

#include "netsim/packet.h"

namespace uet::netsim {

class Network;

class Checks {
 public:
  // Violations are told to `network`, which outlives this.
  explicit Checks(Network& network) : network_(network) {}

  void on_sent(const NetPacket& packet);
  void on_delivered(const NetPacket& packet);
  // The host has ended its passes at this point of time.
  void after_pass(std::uint32_t host);
  // `finished`: all flows have completed.
  void at_end(bool finished);

 private:
  Network& network_;
};

}  // namespace uet::netsim
