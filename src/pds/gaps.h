// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets that peers have sent and that are missing here: a later packet of the same PDC has come.
// An endpoint that closes waits for them (PDS-235), since an application that has heard the last
// word of its peer may close at once. Must not know who waits.
#pragma once

#include <chrono>
#include <vector>

#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::pds {

class PdcTable;

class Gaps {
 public:
  // A packet that is missing for so long is waited for no more, however many endpoints close.
  static constexpr Duration kPatience = std::chrono::milliseconds(250);

  // `pdcs` outlives it.
  explicit Gaps(PdcTable& pdcs) : pdcs_(pdcs) {}

  // Notes the packets that are missing now. If memory is short, some are not noted.
  void note(Time now) noexcept;
  // Each noted packet has come, or its PDC has ended, or it was waited for long enough.
  bool over(Time now) const;

 private:
  struct Gap {
    PdcId pdc;
    Psn last;  // the highest packet that had come
    Time noted;
  };

  bool is_open(const Gap& gap) const;

  PdcTable& pdcs_;
  std::vector<Gap> gaps_;
};

}  // namespace uet::pds
