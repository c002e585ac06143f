// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What uet_stats prints for people.
#pragma once

#include <cstdint>
#include <string>

#include "live_view/change.h"
#include "live_view/domain.h"

namespace uet::stats {

struct Choice {
  bool all = false;       // numbers that are 0, too
  bool meanings = false;  // the meaning behind each counter
};

// "PROGRAM PID, domain ADDRESS on INTERFACE (NIC)", and what is to be known about its process and
// the age of its numbers. `now_ns`: CLOCK_REALTIME.
std::string title(const view::Domain& domain, std::uint64_t now_ns);
// Title, counters, and a table of the peers.
std::string describe(const view::Domain& domain, const Choice& choice, std::uint64_t now_ns);
// The counters and numbers of peers that have changed: for a count the growth and what that is in a
// second, for a gauge both values. Empty if nothing has.
std::string describe(const view::Change& change);

}  // namespace uet::stats
