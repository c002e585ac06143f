// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The source's rules of RCCC in the order of CMS 3.2.
#include "cms/rccc.h"

#include <algorithm>

#include "cms/sird.h"

namespace uet::cms {
namespace {

constexpr std::int64_t kLeastShareMtus = 8;
constexpr std::uint32_t kUnansweredLimit = 3;  // CMS-241
constexpr std::uint32_t kIdleRtts = 10;        // CMS-216
constexpr Duration kRequestCap = std::chrono::milliseconds(100);

}  // namespace

void credit_start(CreditState& state, std::uint64_t allowance_bytes) {
  state.credit_bytes = static_cast<std::int64_t>(allowance_bytes);
  state.speculative = true;
}

void credit_end_speculation(CreditState& state) {
  if (!state.speculative) return;
  state.speculative = false;
  state.credit_bytes = std::min<std::int64_t>(state.credit_bytes, 0);
}

bool credit_on_update(CreditState& state, std::uint32_t credit, std::uint64_t max_bytes) {
  const std::uint32_t units = credit_ahead(credit, state.granted_units);
  if (units == 0) return false;
  state.credit_bytes = std::min(state.credit_bytes + std::int64_t{units} * kCreditUnit,
                                static_cast<std::int64_t>(max_bytes));
  state.granted_units = credit & kCreditMask;
  return true;
}

std::uint32_t credit_target(const CreditState& state, const TargetLimits& limits) {
  const std::uint64_t waiting = state.backlog_bytes + state.rtx_backlog_bytes;
  std::uint64_t bound = limits.max_bytes;
  if (limits.window_bytes) bound = std::min(bound, *limits.window_bytes + limits.mtu_bytes);
  std::int64_t want = static_cast<std::int64_t>(std::min(waiting, bound)) - state.credit_bytes;
  if (state.speculative && state.backlog_bytes > 0) {
    want = std::max<std::int64_t>(want, limits.mtu_bytes);
  }
  if (limits.active > 1) {
    // Two turns at least: one is used up, in turn with the others, while the next is on its way.
    const auto share = want / static_cast<std::int64_t>(limits.active);
    want = std::max(share, std::min<std::int64_t>(want, kLeastShareMtus * limits.mtu_bytes));
  }
  if (waiting > 0) want = std::max(want, 1 - state.credit_bytes);
  if (waiting == 0 || want <= 0) return state.granted_units;
  const auto units = static_cast<std::uint64_t>(want + kCreditUnit - 1) / kCreditUnit;
  const std::uint64_t most = kCreditMask / 2;  // more would read as an old message
  return static_cast<std::uint32_t>(state.granted_units + std::min(units, most)) & kCreditMask;
}

Rccc::Rccc(const SharedParameters& parameters, std::uint8_t ccc_id, Time now,
           std::optional<Duration> base_rtt)
    : parameters_(parameters),
      window_(parameters, now, base_rtt),
      ccc_id_(ccc_id),
      last_event_(now),
      last_credit_event_(now) {
  start_speculation();
}

std::unique_ptr<Ccc> make_rccc(const NewContext& context) {
  return std::make_unique<Rccc>(context.parameters, context.ccc_id.value(), context.now,
                                context.base_rtt);
}

// CMS-210.
void Rccc::start_speculation() {
  const double bdp_bytes = window_.state().max_bytes / parameters_->tuning.max_window_bdp;
  credit_start(state_, static_cast<std::uint64_t>(bdp_bytes * parameters_->tuning.speculative_bdp));
}

// CMS-211, CMS-240. Without both nothing limits what was granted.
bool Rccc::may_send(std::uint32_t bytes) const {
  if (fallen_back_) return window_.may_send(bytes);
  if (state_.credit_bytes <= 0) return false;
  return parameters_->algorithm != Algorithm::Both || window_.may_send(bytes);
}

void Rccc::on_sent(std::uint32_t bytes, Time now) {
  window_.on_sent(bytes, now);
  state_.credit_bytes -= fallen_back_ ? 0 : bytes;
  parameters_.counts().credit_spent_bytes += fallen_back_ ? 0 : bytes;
  last_event_ = last_credit_event_ = now;
}

void Rccc::on_answer(Time now) {
  last_event_ = now;
  if (state_.speculative && state_.credit_bytes > 0) {
    parameters_.counts().credit_dropped_bytes += static_cast<std::uint64_t>(state_.credit_bytes);
  }
  credit_end_speculation(state_);
}

bool Rccc::on_ack(const AckFeedback& feedback, Time now) {
  const bool raised = window_.on_ack(feedback, now);
  acked_ = true;
  on_answer(now);
  return raised;
}

// CMS-240: what the last hop trims is the credits' business.
void Rccc::on_nack(wire::NackCode code, std::uint32_t bytes, bool ce, std::optional<Duration> rtt,
                   Time now) {
  if (code == wire::NackCode::TrimmedLastHop && !fallen_back_) {
    window_.forget(bytes);
  } else {
    window_.on_nack(code, bytes, ce, rtt, now);
  }
  on_answer(now);
}

void Rccc::on_inferred_loss(std::uint32_t bytes, LossCause cause, Time now) {
  window_.on_inferred_loss(bytes, cause, now);
}

// CMS-150. The granted credit limits the bytes in flight, often to much less than a window: the
// bytes reported above a gap could never be enough for a whole window, so count those in flight.
// With both algorithms that would take late packets for lost and cut the window for them.
std::optional<RecoveryRules> Rccc::recovery() const {
  std::optional<RecoveryRules> rules = window_.recovery();
  if (!rules || rules->in_order || fallen_back_ || !needs_credit_alone(parameters_->algorithm))
    return rules;
  const Tuning& tuning = parameters_->tuning;
  const auto flight = static_cast<double>(std::max<std::int64_t>(window_.inflight_bytes(), 0));
  const double least = tuning.recovery_packets * parameters_->mtu_bytes;
  const double enough = std::max(tuning.recovery_windows * flight, least);
  rules->bytes = std::min(rules->bytes, static_cast<std::uint64_t>(enough));
  return rules;
}

void Rccc::on_spurious_loss(std::uint32_t bytes) { window_.on_spurious_loss(bytes); }

void Rccc::on_new_data(std::uint64_t bytes, Time now) {
  const bool idle = !has_data() && window_.inflight_bytes() <= 0;
  if (idle && now - last_event_ > kIdleRtts * rtt()) {  // CMS-216
    start_speculation();
    unanswered_ = requests_ = 0;
    last_event_ = now;
  }
  state_.backlog_bytes += bytes;
}

void Rccc::on_backlog_left(std::uint64_t bytes) {
  state_.backlog_bytes -= std::min(bytes, state_.backlog_bytes);
}

void Rccc::unmark_rtx(std::uint32_t bytes) {
  state_.rtx_backlog_bytes -= std::min<std::uint64_t>(bytes, state_.rtx_backlog_bytes);
}

void Rccc::on_credit(std::uint32_t credit, Time now) {
  on_answer(now);
  unanswered_ = 0;
  acked_ = false;
  fallen_back_ = false;
  const std::uint32_t units = credit_ahead(credit, state_.granted_units);
  if (units > 0) {  // ACKs repeat an old counter, also those of a keepalive
    requests_ = 0;
    last_credit_event_ = now;
  }
  parameters_.counts().credit_received_bytes += std::uint64_t{units} * kCreditUnit;
  credit_on_update(state_, credit, static_cast<std::uint64_t>(window_.state().max_bytes));
}

// The mark of SIRD.
bool Rccc::has_enough() const {
  return !state_.speculative && state_.credit_bytes >= sird_enough_bytes(*parameters_);
}

std::uint32_t Rccc::take_target(std::size_t active) {
  TargetLimits limits;
  limits.max_bytes = static_cast<std::uint64_t>(window_.state().max_bytes);
  if (parameters_->algorithm == Algorithm::Both) limits.window_bytes = window_.window_bytes();
  limits.mtu_bytes = parameters_->mtu_bytes;
  limits.active = active;
  if (parameters_->algorithm == Algorithm::Sird) {  // the mark takes the place of shares
    limits.active = 1;
  }
  const bool enough = parameters_->algorithm == Algorithm::Sird && has_enough();
  last_target_ = enough ? state_.granted_units : credit_target(state_, limits);
  return last_target_;
}

Duration Rccc::rtt() const {
  return Duration(static_cast<std::int64_t>(window_.state().base_rtt_us * 1000));
}

// CMS-215: at once if the receiver has not been told that something waits, else after 2 R, doubling
// until there is credit: a receiver with many sources makes them wait long.
Time Rccc::request_due(Time now) const {
  if (fallen_back_ || !has_data()) return kNever;
  if (state_.credit_bytes > 0 || window_.inflight_bytes() > 0) return kNever;
  if (unanswered_ == 0 && credit_ahead(last_target_, state_.granted_units) == 0) return now;
  const Duration first = std::min<Duration>(
      Duration(static_cast<std::int64_t>(parameters_->tuning.credit_request_rtts *
                                         static_cast<double>(rtt().count()))),
      kRequestCap);
  const Duration wait = std::min<Duration>(first * (1U << std::min(requests_, 10U)), kRequestCap);
  return std::max(last_credit_event_, last_request_) + wait;
}

bool Rccc::start_request(Time now) {
  last_request_ = now;
  if (unanswered_ >= kUnansweredLimit) {
    if (acked_) {  // CMS-241
      fallen_back_ = true;
      return false;
    }
    let_one_go();  // its ACK tells that the peer gives no credit, its time-outs that it is dead
  }
  ++requests_;
  if (unanswered_++ == 0) acked_ = false;  // what came before says nothing of the request
  return true;
}

void Rccc::let_one_go() { state_.credit_bytes = std::max<std::int64_t>(state_.credit_bytes, 1); }

void Rccc::on_request_impossible(Time now) {
  last_request_ = now;
  let_one_go();
}

}  // namespace uet::cms
