// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of transport security as FI_UET_STATS and fi_open_ops show them, behind those of the
// Fep: the one table of their names and meanings.
#pragma once

#include <cstdint>
#include <span>

#include "fep/stats.h"
#include "tss/sd_table.h"

namespace uet::prov {

// In the order in which they are shown. Built at the first call.
std::span<const fep::CounterName> security_counter_names();

// The value of each, in that order, of secure domain `sdi`; all 0 if `table` is nullptr. `values`
// is as long as the names.
void read_security_counters(const tss::SdTable* table, std::uint32_t sdi,
                            std::span<std::uint64_t> values);

}  // namespace uet::prov
