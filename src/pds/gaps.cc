// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which PDCs have gaps, and which gaps are still open.
#include "pds/gaps.h"

#include <algorithm>
#include <new>

#include "pds/pdc.h"
#include "pds/pdc_table.h"

namespace uet::pds {

bool Gaps::is_open(const Gap& gap) const {
  const Pdc* pdc = pdcs_.find(gap.pdc);
  return pdc != nullptr && pdc->receive_side().window().misses_up_to(gap.last);
}

// A PDC whose gap stays open for longer than kPatience is not waited for again before it is closed.
void Gaps::note(Time now) noexcept {
  std::erase_if(gaps_, [&](const Gap& gap) { return !is_open(gap); });
  try {
    pdcs_.for_each([&](const Pdc& pdc) {
      const RxWindow& window = pdc.receive_side().window();
      const Psn last = window.highest_psn();
      if (pdc.finished() || !window.misses_up_to(last)) return;
      if (std::ranges::find(gaps_, pdc.id(), &Gap::pdc) != gaps_.end()) return;
      gaps_.push_back({pdc.id(), last, now});
    });
  } catch (const std::bad_alloc&) {
    return;
  }
}

bool Gaps::over(Time now) const {
  return std::ranges::none_of(
      gaps_, [&](const Gap& gap) { return now - gap.noted < kPatience && is_open(gap); });
}

}  // namespace uet::pds
