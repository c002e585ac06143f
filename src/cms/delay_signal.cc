// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules of CMS 2.5 and CMS 7.2 for algorithms other than NSCC.
#include "cms/delay_signal.h"

#include <algorithm>
#include <cmath>

namespace uet::cms {
namespace {

Duration first_config(const Parameters& parameters, std::optional<Duration> base_rtt) {
  if (parameters.base_rtt) return *parameters.base_rtt;
  return base_rtt ? BaseRttMeasurement::config_base_rtt(*base_rtt) : parameters.default_base_rtt;
}

}  // namespace

DelaySignal::DelaySignal(const SharedParameters& parameters, Time now,
                         std::optional<Duration> base_rtt)
    : constants_(nscc_constants(parameters, first_config(*parameters, base_rtt))),
      base_us_(constants_.config_base_rtt_us),
      raise_since_(now),
      measuring_(!parameters->base_rtt && !base_rtt) {
  if (!base_rtt) return;
  const double limit_us = kRaiseLimitOfConfig * constants_.config_base_rtt_us;
  base_us_ = std::clamp(to_us(*base_rtt), 0.001, limit_us);
}

std::optional<double> DelaySignal::add(const AckFeedback& feedback, std::int64_t inflight_bytes,
                                       Time now) {
  const bool sampled = feedback.rtt && *feedback.rtt > Duration::zero();
  if (feedback.loop) {
    const double network_us = sampled ? to_us(*feedback.rtt) : base_us_;
    host_.add(std::max(0.0, to_us(*feedback.loop) - network_us), base_us_, now);
  }
  if (!sampled) return std::nullopt;
  known_ = true;
  if (measuring_ && !measure(*feedback.rtt)) return std::nullopt;
  const double rtt_us = to_us(*feedback.rtt);
  lower(rtt_us);
  raise(rtt_us, feedback.ce, now);
  if (feedback.ce) {
    noise_.restart();
  } else if (static_cast<double>(inflight_bytes) <= kLightLoadOfBdp * constants_.bdp_bytes()) {
    noise_.add(*feedback.rtt, base_us_ + kCloseOfTarget * constants_.target_qdelay_us, now);
  }
  noise_.expire(kNoiseAgeRtts * base_us_, now);
  return rtt_us;
}

void DelaySignal::lower(double rtt_us) {
  if (rtt_us >= base_us_) return;
  base_us_ = rtt_us;
  follow();
}

// Only while nothing else than a longer path explains the samples: no mark, no pause, no loss.
void DelaySignal::raise(double rtt_us, bool ce, Time now) {
  if (ce || rtt_us < base_us_ + target_qdelay_us()) return restart_raise(now);
  raise_rtt_us_ = raise_rtt_us_ == 0 ? rtt_us : std::min(raise_rtt_us_, rtt_us);
  if (to_us(now - raise_since_) < constants_.tuning().raise_after_rtts * base_us_) return;
  const double limit_us = std::max(base_us_, kRaiseLimitOfConfig * constants_.config_base_rtt_us);
  const double risen_us = std::min(raise_rtt_us_, limit_us);
  raised_ |= risen_us > base_us_;
  base_us_ = risen_us;
  restart_raise(now);
}

void DelaySignal::restart_raise(Time now) {
  raise_since_ = now;
  raise_rtt_us_ = 0;
}

bool DelaySignal::take_raised() { return std::exchange(raised_, false); }

void DelaySignal::set_config_base_rtt(Duration config) { nscc_set_base_rtt(constants_, config); }

bool DelaySignal::measure(Duration rtt) {
  const std::optional<Duration> measured = measurement_.add(rtt);
  if (!measured) return false;
  set_config_base_rtt(*measured);
  base_us_ = std::min(to_us(measurement_.smallest()), constants_.config_base_rtt_us);
  measuring_ = false;
  return true;
}

// A first measurement may include a queue: targets become smaller with a shorter base RTT, down to
// those for the usual RTT (CMS-143).
void DelaySignal::follow() {
  const Parameters& parameters = *constants_.parameters;
  if (parameters.base_rtt || measuring_) return;
  const Duration base(std::llround(base_us_ * 1000));
  const Duration config =
      std::max(BaseRttMeasurement::config_base_rtt(base), parameters.default_base_rtt);
  if (to_us(config) < constants_.config_base_rtt_us) set_config_base_rtt(config);
}

void DelaySignal::on_probe_answer(Duration rtt) {
  if (rtt <= Duration::zero()) return;
  known_ = true;
  if (measuring_) {
    measure(rtt);
  } else {
    lower(to_us(rtt));
  }
}

double DelaySignal::target_qdelay_us() const {
  return std::max(constants_.target_qdelay_us, kTargetOfJitter * noise_.jitter_us());
}

double DelaySignal::max_window_bytes() const { return constants_.max_window(loop_us()); }

std::optional<Duration> DelaySignal::base_rtt() const {
  if (measuring_ || !known_) return std::nullopt;
  return Duration(std::llround(base_us_ * 1000));
}

std::optional<RecoveryRules> DelaySignal::recovery(const Window& window, Time last_trim) const {
  return recovery_rules(constants_, window,
                        {.base_us = base_us_,
                         .loop_us = loop_us(),
                         .target_us = target_qdelay_us(),
                         .last_trim = last_trim});
}

}  // namespace uet::cms
