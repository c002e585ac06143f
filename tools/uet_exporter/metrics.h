// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Domains in the text format of Prometheus (version 0.0.4): names, units and types by its
// conventions. Must not know how the text travels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "live_view/domain.h"

namespace uet::exporter {

enum class Type : std::uint8_t { Counter, Gauge };

// The name, unit and type under which the number `name` of a page is exported:
// "pds_blocked_by_nic_ns" is the counter "uet_pds_blocked_by_nic_seconds_total" with a factor of
// 1e-9; a NACK code becomes a label.
struct Metric {
  std::string name;
  Type type = Type::Counter;
  double factor = 1;
  std::string code;  // value of the label "code"; empty: no such label
};
// `prefix`: "uet_" for counters of a domain, "uet_peer_" for numbers of a peer.
Metric metric_for(const std::string& prefix, const std::string& name, bool gauge);

struct Choice {
  std::size_t peers = 50;  // of each domain at most: those with most traffic
};

// Domains of processes that have ended are left out, for they no longer change; of two pages with
// the same PID and address the newer one is shown.
std::string exposition(const view::Reading& reading, const Choice& choice);

}  // namespace uet::exporter
