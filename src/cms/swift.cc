// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules of Swift in the order of the paper's Algorithm 1 (sections 3.1 to 3.3).
#include "cms/swift.h"

#include <algorithm>
#include <cmath>

namespace uet::cms {
namespace {

constexpr std::uint32_t kTimeoutsForLeast = 5;  // RETX_RESET_THRESHOLD of the paper

}  // namespace

double swift_flow_scaling_us(double range_us, double window_packets) {
  const double full = 1 / std::sqrt(kSwiftFullPackets);
  const double alpha = range_us / (1 / std::sqrt(kSwiftFewPackets) - full);
  const double scaling_us = alpha * (1 / std::sqrt(std::max(window_packets, 1e-6)) - full);
  return std::clamp(scaling_us, 0.0, range_us);
}

double swift_decrease(double rtt_us, double target_us, double beta, double least) {
  return std::max(1 - beta * (rtt_us - target_us) / rtt_us, least);
}

Swift::Swift(const SharedParameters& parameters, Time now, std::optional<Duration> base_rtt)
    : WindowCcc(parameters, static_cast<double>(parameters->max_window_bytes)),
      signal_(parameters, now, base_rtt),
      last_decrease_(now) {
  window_.least_bytes = parameters->tuning.min_window_bytes;
  resize();
  const double initial_bytes = parameters->tuning.initial_window_bytes;
  window_.set_cwnd(initial_bytes != 0 ? initial_bytes : window_.max_bytes);
}

std::unique_ptr<Ccc> make_swift(const NewContext& context) {
  return std::make_unique<Swift>(context.parameters, context.now, context.base_rtt);
}

// The largest window follows the loop. A window that nothing has cut stays the largest.
void Swift::resize() {
  const bool largest = window_.cwnd_bytes >= window_.max_bytes;
  window_.max_bytes = signal_.max_window_bytes();
  window_.set_cwnd(largest ? window_.max_bytes : window_.cwnd_bytes);
}

double Swift::target_us() const {
  const double base_target_us = signal_.base_us() + signal_.target_qdelay_us();
  const double range_us = parameters_->tuning.swift_scaling_range * base_target_us;
  return base_target_us + swift_flow_scaling_us(range_us, window_.cwnd_bytes / window_.mtu_bytes);
}

void Swift::on_sent(std::uint32_t bytes, Time now) {
  if (window_.inflight_bytes <= 0) signal_.restart_raise(now);
  WindowCcc::on_sent(bytes, now);
}

bool Swift::on_ack(const AckFeedback& feedback, Time now) {
  const std::int64_t inflight = window_.inflight_bytes;
  const bool limited = take_report(feedback);
  timeouts_ = 0;
  before_loss_bytes_ = 0;
  const std::optional<double> rtt_us = signal_.add(feedback, inflight, now);
  resize();
  Counters& counts = parameters_.counts();
  ++(rtt_us ? counts.rtt_samples : counts.rtt_invalid);
  if (rtt_us) {
    on_sample(*rtt_us, feedback.newly_received_bytes, limited, now);
  } else {
    ++counts.acks_without_sample;
  }
  return signal_.take_raised();
}

void Swift::on_sample(double rtt_us, std::uint64_t bytes, bool limited, Time now) {
  last_rtt_us_ = rtt_us;
  Counters& counts = parameters_.counts();
  const Tuning& tuning = parameters_->tuning;
  const double aim_us = target_us();
  if (rtt_us >= aim_us) {
    ++counts.acks_cut;
    if (may_decrease(now)) {
      decrease(swift_decrease(rtt_us, aim_us, tuning.gamma, tuning.max_md_jump), now);
    }
  } else if (limited) {
    ++counts.acks_limited;
  } else {
    ++counts.acks_rise;
    const double step_bytes = tuning.swift_increase_packets * window_.mtu_bytes;
    window_.set_cwnd(window_.cwnd_bytes +
                     step_bytes * static_cast<double>(bytes) / window_.cwnd_bytes);
  }
}

// Once per round trip, the time in hosts included: what a decrease does shows a loop later.
bool Swift::may_decrease(Time now) const {
  const double loop_us = signal_.loop_us() + std::max(0.0, last_rtt_us_ - signal_.base_us());
  return to_us(now - last_decrease_) >= parameters_->tuning.decrease_spacing_rtts * loop_us;
}

void Swift::decrease(double part, Time now) {
  window_.set_cwnd(window_.cwnd_bytes * part);
  ++parameters_.counts().cuts;
  last_decrease_ = now;
}

void Swift::on_loss(Time now) {
  signal_.restart_raise(now);
  if (!may_decrease(now)) return;
  if (before_loss_bytes_ == 0) before_loss_bytes_ = window_.cwnd_bytes;
  decrease(parameters_->tuning.max_md_jump, now);
}

// A trimmed packet met a full queue: to Swift a loss.
void Swift::on_nack(wire::NackCode code, std::uint32_t bytes, bool ce, std::optional<Duration> rtt,
                    Time now) {
  WindowCcc::on_nack(code, bytes, ce, rtt, now);
  if (code != wire::NackCode::Trimmed && code != wire::NackCode::TrimmedLastHop) return;
  last_trim_ = now;
  on_loss(now);
}

void Swift::on_inferred_loss(std::uint32_t bytes, LossCause cause, Time now) {
  WindowCcc::on_inferred_loss(bytes, cause, now);
  const bool timeout = cause == LossCause::Rto || cause == LossCause::RepeatedRto;
  if (timeout && ++timeouts_ >= kTimeoutsForLeast) {
    if (before_loss_bytes_ == 0) before_loss_bytes_ = window_.cwnd_bytes;
    return decrease(0, now);
  }
  on_loss(now);
}

void Swift::on_spurious_loss(std::uint32_t bytes) {
  WindowCcc::on_spurious_loss(bytes);
  window_.set_cwnd(std::max(window_.cwnd_bytes, before_loss_bytes_));
  before_loss_bytes_ = 0;
}

void Swift::on_probe_answer(Duration rtt) {
  signal_.on_probe_answer(rtt);
  resize();
}

std::optional<RecoveryRules> Swift::recovery() const {
  return signal_.recovery(window_, last_trim_);
}

Counters Swift::holdings() const {
  Counters counters = WindowCcc::holdings();
  counters.base_rtt_ns = static_cast<std::uint64_t>(signal_.base_us() * 1000);
  counters.avg_delay_ns =
      static_cast<std::uint64_t>(std::max(0.0, last_rtt_us_ - signal_.base_us()) * 1000);
  return counters;
}

}  // namespace uet::cms
