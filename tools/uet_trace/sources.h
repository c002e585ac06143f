// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where the traces come from: pages of running and ended processes, copies of pages, and texts that
// the provider has written.
#pragma once

#include <string>
#include <vector>

#include "live/trace_dump.h"

namespace uet::tracing {

struct Sources {
  std::vector<live::TraceDump> dumps;
  std::vector<std::string> problems;  // "SOURCE: reason" for each that cannot be read
};

// Each word is a PID, or a file: a page, or a text with dumps. No word: all pages of this user.
Sources read_sources(const std::vector<std::string>& words);

}  // namespace uet::tracing
