// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The guard of a back end, which also counts what it drops.
#pragma once

#include "uet/base/pdc_guard.h"
#include "uet/nic/nic.h"

namespace uet::nic {

class NicGuard : public PdcGuard {
 public:
  // Adds the packets that were dropped so far.
  virtual void add_counts(NicCounters& counters) const = 0;
};

}  // namespace uet::nic
