// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ranks that are threads of one process.
#pragma once

#include <cstdint>
#include <functional>

#include "netsim/exchange.h"

namespace uet::netsim {

// Calls `rank` in `ranks` threads, of which this one is rank 0, and returns when all have returned.
// If one throws, so do the others at their next exchange; the first exception is thrown again here.
void run_in_threads(std::uint32_t ranks, const std::function<void(Exchange&)>& rank);

}  // namespace uet::netsim
