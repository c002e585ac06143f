// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of a FEP in one place, for the host to show.
#pragma once

#include "uet/pds/counters.h"
#include "uet/ses/counters.h"

namespace uet::fep {

struct Stats {
  pds::Counters pds;
  ses::Counters ses;
};

}  // namespace uet::fep
