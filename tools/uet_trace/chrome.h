// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Traces as JSON for Perfetto (ui.perfetto.dev) and chrome://tracing: the trace event format.
#pragma once

#include <span>
#include <string>

#include "live/trace_dump.h"
#include "uet_trace/events.h"

namespace uet::tracing {

// Operations are spans from post to end, waits are spans, all else are instants; a row for each
// PDC.
std::string to_chrome(std::span<const Event> events, std::span<const live::TraceDump> dumps);

}  // namespace uet::tracing
