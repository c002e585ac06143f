// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The path schemes, one function for each.
#include "cms/path.h"

#include <algorithm>

namespace uet::cms {
namespace {

constexpr int kFreezeRtts = 8;  // CMS-414

// The inverse of an odd number modulo kEntropyValues: each step doubles the bits that are right.
constexpr std::uint32_t inverse(std::uint32_t odd) {
  std::uint32_t x = odd;  // right in 3 bits
  for (int i = 0; i < 3; ++i) x *= 2 - odd * x;
  return x % PathSelector::kEntropyValues;
}

bool learns(PathPolicy policy) {
  return policy == PathPolicy::Bitmap || policy == PathPolicy::Reps || policy == PathPolicy::Mixed;
}

Duration base_rtt(const Parameters& parameters) {
  return parameters.base_rtt.value_or(parameters.default_base_rtt);
}

// CMS-413: one BDP.
std::uint32_t explored_packets(const Parameters& parameters, Duration rtt) {
  const double bytes = static_cast<double>(parameters.path_rate_bps()) / 8e6 * to_us(rtt);
  const double packets =
      parameters.tuning.reps_explore_bdp * bytes / std::max<std::uint32_t>(parameters.mtu_bytes, 1);
  return static_cast<std::uint32_t>(std::clamp(packets + 1, 1.0, 1e6));
}

}  // namespace

PathSelector::Learnt::Learnt(const Parameters& parameters, PathPolicy policy, std::uint16_t count)
    : may_freeze(policy == PathPolicy::Reps && parameters.trimming),
      recycled(static_cast<std::size_t>(parameters.tuning.reps_ring)),
      health(parameters, count, base_rtt(parameters)),
      penalty_of{0, static_cast<std::uint8_t>(parameters.tuning.penalty_ecn),
                 static_cast<std::uint8_t>(parameters.tuning.penalty_nack),
                 static_cast<std::uint8_t>(parameters.tuning.penalty_timeout)},
      penalty_limit(static_cast<std::uint8_t>(parameters.tuning.penalty_limit)),
      explore_after_freeze(static_cast<std::uint32_t>(parameters.tuning.reps_explore_packets)),
      explore_left(explored_packets(parameters, base_rtt(parameters))),
      freeze_time(std::max<Duration>(kLeastFreeze, kFreezeRtts * base_rtt(parameters))) {
  const double tuned_us = parameters.tuning.reps_freeze_us;
  if (tuned_us != 0) freeze_time = Duration(static_cast<std::int64_t>(tuned_us * 1000));
  if (policy != PathPolicy::Reps) penalties.resize(count);
}

PathSelector::PathSelector(const Parameters& parameters, bool single, Rng& rng)
    : policy_(single ? PathPolicy::Single : parameters.paths),
      base_(static_cast<std::uint16_t>(rng.below(kEntropyValues))),
      stride_(static_cast<std::uint16_t>(rng.below(kEntropyValues) | 1)),
      count_(policy_ == PathPolicy::Single
                 ? std::uint16_t{1}
                 : std::clamp(parameters.path_count, std::uint16_t{1}, kMaxPaths)) {
  if (policy_ == PathPolicy::RoundRobin) stride_ = 1;
  if (learns(policy_)) learnt_ = std::make_unique<Learnt>(parameters, policy_, count_);
}

std::uint16_t PathSelector::value(std::uint32_t index) const {
  return static_cast<std::uint16_t>(kFirstEntropy + (base_ + index * stride_) % kEntropyValues);
}

std::optional<std::uint16_t> PathSelector::index_of(std::uint16_t entropy) const {
  const std::uint32_t distance = std::uint32_t{entropy} - kFirstEntropy - base_;
  const std::uint32_t index = distance * inverse(stride_) % kEntropyValues;
  if (entropy < kFirstEntropy || index >= count_) return std::nullopt;
  return static_cast<std::uint16_t>(index);
}

// CMS-410, CMS-411. `oblivious` draws a new start for every round, so that senders are not in step.
std::uint16_t PathSelector::walk(Rng& rng) {
  if (count_ <= 1) return value(0);
  if (taken_ == 0 && policy_ == PathPolicy::Oblivious) {
    start_ = static_cast<std::uint16_t>(rng.below(count_));
  }
  const std::uint32_t index = (std::uint32_t{start_} + taken_) % count_;
  taken_ = static_cast<std::uint16_t>((taken_ + 1) % count_);
  return value(index);
}

// CMS-412. Of the bad ones on the way only the first is forgiven a little. Where none is good, one
// that is not banned.
std::uint16_t PathSelector::least_bad(Time now) {
  std::uint16_t& current = learnt_->current;
  PathHealth& health = learnt_->health;
  std::vector<std::uint8_t>& penalties = learnt_->penalties;
  const auto advance = [&] { current = static_cast<std::uint16_t>((current + 1) % count_); };
  const auto take_current = [&] {
    const std::uint16_t chosen = current;
    advance();
    return value(chosen);
  };
  bool forgiven = false;
  for (std::uint32_t step = 0; step < count_; ++step) {
    if (penalties[current] == 0 && health.usable(current, now)) return take_current();
    if (penalties[current] > 0 && !forgiven) {
      --penalties[current];
      forgiven = true;
    }
    advance();
  }
  // Rather one that rests than one that is bad.
  const auto at_worst_rests = [&](std::uint32_t index) {
    return penalties[index] == 0 && !health.banned(index, now);
  };
  bool some_rest = false;
  for (std::uint32_t index = 0; index < count_; ++index) some_rest |= at_worst_rests(index);
  const auto avoided = [&] {
    return some_rest ? !at_worst_rests(current) : health.banned(current, now);
  };
  for (std::uint32_t step = 0; step < count_ && avoided(); ++step) advance();
  return take_current();
}

std::uint16_t PathSelector::explore(Rng& rng) const {
  return value(static_cast<std::uint32_t>(rng.below(count_)));
}

std::uint16_t PathSelector::explore(Rng& rng, Time now) {
  const auto first = static_cast<std::uint32_t>(rng.below(count_));
  for (std::uint32_t step = 0; step < count_; ++step) {
    const std::uint32_t index = (first + step) % count_;
    if (learnt_->health.usable(index, now)) return value(index);
  }
  return value(first);
}

std::optional<std::uint16_t> PathSelector::recycled(Time now) {
  return learnt_->recycled.take(
      [&](std::uint16_t entropy) { return learnt_->health.usable(*index_of(entropy), now); });
}

// CMS-413, CMS-414.
std::uint16_t PathSelector::reps(Rng& rng, Time now) {
  Learnt& learnt = *learnt_;
  if (learnt.frozen_until && now >= *learnt.frozen_until) {
    learnt.frozen_until.reset();
    learnt.explore_left = learnt.explore_after_freeze;
  }
  std::optional<std::uint16_t> known;
  if (learnt.frozen_until) {
    known = learnt.recycled.cycle();
  } else if (learnt.explore_left > 0) {
    --learnt.explore_left;
  } else {
    known = recycled(now);
  }
  ++(known ? learnt.taken_recycled : learnt.taken_random);
  return known ? *known : explore(rng, now);
}

std::uint16_t PathSelector::choose(Rng& rng, Time now) {
  if (policy_ == PathPolicy::Reps) return reps(rng, now);
  if (policy_ == PathPolicy::Bitmap) return least_bad(now);
  const std::optional<std::uint16_t> known = recycled(now);  // CMS-415
  learnt_->taken_recycled += known ? 1 : 0;
  return known ? *known : least_bad(now);
}

std::uint16_t PathSelector::begin_train(Rng& rng, Time now) {
  train_packets_ = 0;
  since_ = now;
  return train_entropy_ = uses_feedback() ? choose(rng, now) : walk(rng);
}

std::uint16_t PathSelector::next(Rng& rng, Time now, std::uint32_t train) {
  if (policy_ == PathPolicy::Single) {
    if (since_ == Time{}) since_ = now;
    return value(0);
  }
  const bool goes_on = train_packets_ != 0 && train_packets_ < train && now == since_;
  const std::uint16_t entropy = goes_on ? train_entropy_ : begin_train(rng, now);
  ++train_packets_;
  if (uses_feedback()) learnt_->health.on_sent(*index_of(entropy), now);
  return entropy;
}

std::uint16_t PathSelector::next_answered(Rng& rng, Time now) {
  if (!uses_feedback() || !learnt_->answered) return next(rng, now);
  learnt_->health.on_sent(*index_of(*learnt_->answered), now);
  return *learnt_->answered;
}

bool PathSelector::reroute(Rng& rng, Time now, Duration spacing) {
  if (policy_ != PathPolicy::Single || now - since_ < spacing) return false;
  since_ = now;
  base_ = static_cast<std::uint16_t>(rng.below(kEntropyValues));
  return true;
}

std::uint16_t PathSelector::next_for_control(Rng& rng) {
  return count_ > 1 ? explore(rng) : walk(rng);
}

void PathSelector::penalise(std::uint16_t index, PathFeedback feedback) {
  Learnt& learnt = *learnt_;
  if (learnt.penalties.empty()) return;
  std::uint8_t& penalty = learnt.penalties[index];
  const int raised = penalty + learnt.penalty_of[static_cast<std::size_t>(feedback)];
  penalty = static_cast<std::uint8_t>(std::min<int>(learnt.penalty_limit, raised));
}

// Where a fabric is full, most paths draw a mark now and then. To keep off one that has answered
// unmarked since crowds the others, and those all senders leave at once (docs/decisions/034).
void PathSelector::forgive(std::uint16_t index) {
  learnt_->health.on_good(index);
  if (!learnt_->penalties.empty()) learnt_->penalties[index] = 0;
}

// CMS-423: a path that does not answer while others do counts as one that loses, for selection
// and bans (CMS-419) only.
void PathSelector::on_acknowledged(std::uint16_t entropy, Time now) {
  if (!uses_feedback()) return;
  const std::optional<std::uint16_t> index = index_of(entropy);
  if (index) learnt_->health.on_acknowledged(*index, now);
  const std::optional<std::size_t> silent = learnt_->health.find_silent(now);
  if (!silent) return;
  penalise(static_cast<std::uint16_t>(*silent), PathFeedback::Timeout);
  learnt_->health.rest(*silent, now);
  learnt_->health.on_timeout(*silent, now);
}

void PathSelector::on_answered(std::uint16_t entropy) {
  if (uses_feedback() && index_of(entropy)) learnt_->answered = entropy;
}

void PathSelector::on_feedback(std::uint16_t entropy, PathFeedback feedback, Time now) {
  if (!uses_feedback()) return;
  const std::optional<std::uint16_t> index = index_of(entropy);
  if (!index) return;
  Learnt& learnt = *learnt_;
  penalise(*index, feedback);
  if (feedback == PathFeedback::Good) forgive(*index);
  if (feedback == PathFeedback::Ecn || feedback == PathFeedback::Nack)
    learnt.health.rest(*index, now);
  if (feedback == PathFeedback::Nack) learnt.health.on_gone(*index);
  if (feedback == PathFeedback::Timeout) learnt.health.on_timeout(*index, now);
  if (feedback == PathFeedback::Good && !learnt.frozen_until) learnt.recycled.push(entropy);
  // Without trimming a loss may be congestion: then nothing is frozen.
  const bool freezes =
      learnt.may_freeze && feedback == PathFeedback::Timeout && learnt.explore_left == 0;
  if (freezes && !learnt.frozen_until) {
    learnt.frozen_until = now + learnt.freeze_time;
    learnt.recycled.restart_cycle();
    ++learnt.freezes;
  }
}

void PathSelector::count(Counters& counters) const {
  if (!uses_feedback()) return;
  const Learnt& learnt = *learnt_;
  counters.paths += count_;
  counters.paths_penalised += static_cast<std::uint64_t>(std::count_if(
      learnt.penalties.begin(), learnt.penalties.end(), [](auto penalty) { return penalty > 0; }));
  counters.paths_banned += learnt.health.banned_count();
  counters.paths_recycled += learnt.taken_recycled;
  counters.paths_random += learnt.taken_random;
  counters.paths_frozen += learnt.freezes;
}

}  // namespace uet::cms
