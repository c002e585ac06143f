// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A domain with two counters, a gauge and a peer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "live_view/domain.h"

namespace uet::view {

inline Peer make_peer(const std::string& name) {
  return {name, std::vector<std::uint64_t>(peer_columns().size())};
}

inline std::uint64_t& value_of(Peer& peer, std::string_view column) {
  return peer.values.at(peer_column(column));
}

inline Domain make_domain() {
  Domain domain{
      .file = "/dev/shm/uet-stats.0.4711.1",
      .pid = 4711,
      .start_time = 99,
      .opened_ns = 1'000,
      .updated_ns = 5'000'000'000,
      .monotonic_ns = 1'000'000'000,
      .owner = live::Owner::Running,
      .torn = false,
      .program = "solver",
      .interface = "eth0",
      .nic = "udp",
      .address = "10.0.0.1:4793",
      .peers_known = 1,
      .counters = {{"pds_acks_sent", "ACKs sent", false, 7},
                   {"pds_probes_sent", "Probes sent", false, 0},
                   {"cms_window_bytes", "windows", true, 9'000}},
      .peers = {make_peer("10.0.0.2:4793")},
  };
  value_of(domain.peers[0], "rtt_ns") = 12'340;
  value_of(domain.peers[0], "bytes_sent") = 2'500'000;
  return domain;
}

}  // namespace uet::view
