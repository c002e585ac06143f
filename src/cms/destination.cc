// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receiver's rate by what the fabric does to packets, in the order of CMS-230.
#include "cms/destination.h"

namespace uet::cms {

void OversubscriptionControl::on_period(const Arrivals& arrivals) {
  constexpr double kLeast = 0.01;
  constexpr std::uint32_t kMostRaises = 10;  // the step is as large as the whole rate long before
  if (arrivals.all == 0) return;
  const double all = arrivals.all;
  bool decreased = false;
  if (arrivals.trimmed_elsewhere > 0) {
    rate_ -= arrivals.trimmed_elsewhere / all;
    decreased = true;
  }
  const double whole = all - arrivals.trimmed_at_last_hop - arrivals.trimmed_elsewhere;
  const double gain = tuning_.oversubscription_gain;
  const double marked = whole > 0 ? std::min(1.0, arrivals.ce / whole) : 0;
  marked_ = (1 - gain) * marked_ + gain * marked;
  if (marked_ > tuning_.oversubscription_target) {
    const double excess = marked_ - tuning_.oversubscription_target;
    rate_ *= 1 - tuning_.oversubscription_cut * excess;
    decreased = true;
  }
  if (decreased) {
    raises_ = 0;
  } else {
    const double step = tuning_.oversubscription_step;
    rate_ += arrivals.ce == 0 ? step * std::exp2(raises_) : step;
    raises_ = std::min(raises_ + 1, kMostRaises);
  }
  rate_ = std::clamp(rate_, kLeast, 1.0);
}

Duration OversubscriptionControl::period(Duration rtt, Rng& rng) const {
  constexpr std::uint64_t kSteps = 1000;  // the factor is uniform in [0.75, 1.25]
  const double factor = 0.75 + 0.5 * static_cast<double>(rng.below(kSteps + 1)) / kSteps;
  const double ns = static_cast<double>(rtt.count()) * tuning_.oversubscription_period_rtts;
  return Duration(std::llround(ns * factor));
}

}  // namespace uet::cms
