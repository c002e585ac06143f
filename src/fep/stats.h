// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of a FEP in one place, and the one table of their names and meanings: what the host
// shows, dumps and documents comes from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cms/counters.h"
#include "pds/counters.h"
#include "ses/counters.h"
#include "uet/nic/nic.h"

namespace uet::fep {

// Numbers of 64 bits and nothing else.
struct Stats {
  pds::Counters pds;
  cms::Counters cms;
  ses::Counters ses;
  nic::NicCounters nic;
};

// A name stays as it is once it has been released; its place in the table may change.
// The texts have a zero byte behind them and are never freed.
struct CounterName {
  std::string_view name;     // "pds_rto_retransmissions": the module, and the counted event
  std::string_view meaning;  // a few words, for people
  bool gauge = false;        // shows a state and may fall; else counts events and only grows
};

// All counters in the order in which they are shown. A NACK code has two, those without a name in
// the specification share "..._other". Built at the first call.
std::span<const CounterName> counter_names();

// The value of each counter, in the order of counter_names(); `values` is that long.
void read_counters(const Stats& stats, std::span<std::uint64_t> values);

}  // namespace uet::fep
