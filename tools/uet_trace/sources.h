// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where the traces come from: pages of running and ended processes, copies of pages, and texts that
// the provider has written.
#pragma once

#include <string>
#include <vector>

#include "live/trace_dump.h"
#include "uet_trace/captures.h"

namespace uet::tracing {

struct Sources {
  std::vector<live::TraceDump> dumps;
  std::vector<Capture> captures;
  std::vector<std::string> problems;  // "SOURCE: reason" for each that cannot be read
};

// Each word is a PID, or a file: a page, a capture, or a text with dumps. No word: all pages of
// this user. A capture that is damaged is taken up to that place and named among the problems.
Sources read_sources(const std::vector<std::string>& words);

}  // namespace uet::tracing
