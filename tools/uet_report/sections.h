// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The plots for traces and statistics of the provider.
#pragma once

#include <vector>

#include "live/trace_dump.h"
#include "live_view/domain.h"
#include "uet_report/page.h"

namespace uet::report {

// For each peer of each trace: window and bytes in flight, RTT, goodput, losses and marks over
// time; for each trace the latency of its operations.
std::vector<Section> trace_sections(const std::vector<live::TraceDump>& dumps);
// Traffic and retransmissions of all domains and their peers, and for each domain its peers' RTT.
std::vector<Section> domain_sections(const std::vector<view::Domain>& domains);

}  // namespace uet::report
