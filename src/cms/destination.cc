// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receiver's rate by what the fabric does to packets, in the order of CMS-230.
#include "cms/destination.h"

namespace uet::cms {

void OversubscriptionControl::on_period(const Arrivals& arrivals) {
  constexpr double kLeast = 0.01;
  if (arrivals.all == 0) return;
  const double all = arrivals.all;
  const double cut = tuning_.oversubscription_cut;
  const double whole = all - arrivals.trimmed_at_last_hop - arrivals.trimmed_elsewhere;
  const double gain = tuning_.oversubscription_gain;
  const double marked = whole > 0 ? std::min(1.0, arrivals.ce / whole) : 0;
  marked_ = (1 - gain) * marked_ + gain * marked;
  const double excess = std::max(0.0, marked_ - tuning_.oversubscription_target);
  if (arrivals.trimmed_elsewhere > 0 || excess > 0) {
    rate_ *= (1 - cut * arrivals.trimmed_elsewhere / all) * (1 - cut * excess);
  } else {
    rate_ += tuning_.oversubscription_step;
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
