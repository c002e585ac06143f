// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a FEP tells a NIC that can drop packets of strangers before they cost the process anything.
#pragma once

#include <cstdint>

#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet {

// Drops a packet without SYN for a PDC that is not open, and a packet with SYN beyond the share of
// new PDCs. A packet that the FEP would answer is dropped only above a rate; its repetition has a
// rate of its own, so that a host that repeats its packets is heard in a flood (PDS-236).
class PdcGuard {
 public:
  virtual ~PdcGuard() = default;
  // Dropping begins; before, every packet passes. The FEP takes `new_pdcs` new PDCs at once, and
  // one more after each `pace`.
  virtual void start(std::uint32_t new_pdcs, Duration pace) = 0;
  // The FEP takes packets for this PDC from now on.
  virtual void open(PdcId id) = 0;
  // The PDC is gone, and so is its tombstone.
  virtual void close(PdcId id) = 0;
};

}  // namespace uet
