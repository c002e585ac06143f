// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the tests of back ends ask of the network that in_network has made.
#pragma once

#include <cstdlib>
#include <string>

#include "e2e/harness.h"

namespace uet::e2e {

inline bool hosts_say(const char* text) {
  const char* hosts = std::getenv("UET_E2E_HOSTS");
  return hosts != nullptr && std::string(hosts).find(text) != std::string::npos;
}

// Some host has this back end.
inline bool over(const std::string& back_end) { return hosts_say(("," + back_end).c_str()); }
inline bool over_udp() { return std::getenv("UET_E2E_HOSTS") == nullptr || hosts_say(",udp"); }
inline bool over_shared() { return over("shared"); }
inline bool over_shared_packet() { return over("shared:packet"); }
// Packets that come in another queue than the process has reach it through the kernel.
inline bool has_part_of_the_queues() { return hosts_say("queues="); }

// Not one of those in which the way to a neighbour is the matter.
inline bool ipv6() { return std::getenv("UET_E2E_IPV6") != nullptr; }
inline bool plain_network() { return std::getenv("UET_E2E_ARP") == nullptr && !ipv6(); }

inline std::string xdp_program_of_host_1() {
  return run_program("ip -n host-1 link show dev eth0 | grep xdp || true", {}).text;
}

}  // namespace uet::e2e
