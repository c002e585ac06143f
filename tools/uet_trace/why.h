// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why operations do not end: for each one that is outstanding the chain of causes, in words.
#pragma once

#include <span>
#include <string>

#include "live/trace_dump.h"

namespace uet::tracing {

// Explains `dump`. `others`: all traces at hand, to say what the peers do; `dump` may be among
// them.
std::string explain(const live::TraceDump& dump, std::span<const live::TraceDump> others);

}  // namespace uet::tracing
