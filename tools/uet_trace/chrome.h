// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Traces as JSON for Perfetto (ui.perfetto.dev) and chrome://tracing: the trace event format.
#pragma once

#include <span>
#include <string>

#include "live/trace_dump.h"
#include "uet_trace/captures.h"
#include "uet_trace/events.h"

namespace uet::tracing {

// Operations are spans from post to end, waits are spans, all else are instants; a row for each
// PDC. A capture is a process of its own with a row for each PDC id of the senders.
std::string to_chrome(std::span<const Event> events, std::span<const live::TraceDump> dumps,
                      std::span<const Capture> captures = {});

}  // namespace uet::tracing
