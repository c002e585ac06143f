// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One HTML file out of traces and statistics. It is well-formed XML, has no script and loads
// nothing.
#pragma once

#include <string>
#include <vector>

#include "live/trace_dump.h"
#include "live_view/domain.h"

namespace uet::report {

struct Section {
  std::string heading;
  std::vector<std::string> figures;  // of svg.h
};

std::string page(const std::string& title, const std::vector<Section>& sections);

// For each peer of each trace: window and bytes in flight, RTT, goodput, losses and marks over
// time; for each trace the latency of its operations.
std::vector<Section> trace_sections(const std::vector<live::TraceDump>& dumps);
// Traffic and retransmissions of all domains and their peers, and for each domain its peers' RTT.
std::vector<Section> domain_sections(const std::vector<view::Domain>& domains);

}  // namespace uet::report
