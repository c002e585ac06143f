// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The plots for traces, captures, statistics and measurements of the provider.
#pragma once

#include <string>
#include <vector>

#include "live/trace_dump.h"
#include "live_view/domain.h"
#include "uet_report/page.h"
#include "uet_report/svg.h"
#include "uet_trace/captures.h"

namespace uet::report {

// For each peer of each trace: window and bytes in flight, RTT, goodput, losses and marks over
// time; for each trace the latency of its operations.
std::vector<Section> trace_sections(const std::vector<live::TraceDump>& dumps);
// For each host and destination of each capture: RTT, goodput, retransmissions and marks over time.
std::vector<Section> capture_sections(const std::vector<tracing::Capture>& captures);
// Rates in Gb/s out of (second, acknowledged bytes), in 50 periods; empty if no time passes.
Series goodput_of(const std::vector<std::pair<double, double>>& acknowledged);
// Traffic and retransmissions of all domains and their peers, and for each domain its peers' RTT.
std::vector<Section> domain_sections(const std::vector<view::Domain>& domains);
// For each metric of results.json of scripts/bench a bar for each transport, with its spread, and
// the targets as lines. Throws std::runtime_error if `json` is something else.
std::vector<Section> bench_sections(const std::string& json);

}  // namespace uet::report
