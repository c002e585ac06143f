// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The path schemes, one function for each.
#include "uet/cms/path.h"

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

// CMS-413: one BDP.
std::uint32_t explored_packets(const Parameters& parameters, Duration rtt) {
  const double bytes = static_cast<double>(parameters.link_rate_bps) / 8e6 * to_us(rtt);
  const double packets =
      parameters.tuning.reps_explore_bdp * bytes / std::max<std::uint32_t>(parameters.mtu_bytes, 1);
  return static_cast<std::uint32_t>(std::clamp(packets + 1, 1.0, 1e6));
}

}  // namespace

PathSelector::PathSelector(const Parameters& parameters, bool single, Rng& rng)
    : policy_(single ? PathPolicy::Single : parameters.paths),
      uses_feedback_(learns(policy_)),
      may_freeze_(policy_ == PathPolicy::Reps && parameters.trimming),
      base_(static_cast<std::uint16_t>(rng.below(kEntropyValues))),
      stride_(static_cast<std::uint16_t>(rng.below(kEntropyValues) | 1)),
      count_(policy_ == PathPolicy::Single
                 ? std::uint16_t{1}
                 : std::clamp(parameters.path_count, std::uint16_t{1}, kMaxPaths)),
      recycled_(uses_feedback_ ? static_cast<std::size_t>(parameters.tuning.reps_ring) : 0),
      explore_after_freeze_(static_cast<std::uint32_t>(parameters.tuning.reps_explore_packets)) {
  const Tuning& tuning = parameters.tuning;
  const Duration rtt = parameters.base_rtt.value_or(parameters.default_base_rtt);
  freeze_time_ = std::max<Duration>(kLeastFreeze, kFreezeRtts * rtt);
  if (tuning.reps_freeze_us != 0) {
    freeze_time_ = Duration(static_cast<std::int64_t>(tuning.reps_freeze_us * 1000));
  }
  penalty_of_ = {0, static_cast<std::uint8_t>(tuning.penalty_ecn),
                 static_cast<std::uint8_t>(tuning.penalty_nack),
                 static_cast<std::uint8_t>(tuning.penalty_timeout)};
  penalty_limit_ = static_cast<std::uint8_t>(tuning.penalty_limit);
  explore_left_ = explored_packets(parameters, rtt);
  if (policy_ == PathPolicy::RoundRobin) stride_ = 1;
  if (policy_ == PathPolicy::Bitmap || policy_ == PathPolicy::Mixed) penalties_.resize(count_);
  if (uses_feedback_) health_.emplace(parameters, count_, rtt);
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

// CMS-410, CMS-411. `oblivious` begins every round anew, so that senders do not march in step.
std::uint16_t PathSelector::walk(Rng& rng) {
  if (count_ == 1) return value(0);
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
  const auto advance = [&] { current_ = static_cast<std::uint16_t>((current_ + 1) % count_); };
  const auto take_current = [&] {
    const std::uint16_t chosen = current_;
    advance();
    return value(chosen);
  };
  bool forgiven = false;
  for (std::uint32_t step = 0; step < count_; ++step) {
    if (penalties_[current_] == 0 && health_->usable(current_, now)) return take_current();
    if (penalties_[current_] > 0 && !forgiven) {
      --penalties_[current_];
      forgiven = true;
    }
    advance();
  }
  // Rather one that rests than one that is bad.
  const auto at_worst_rests = [&](std::uint32_t index) {
    return penalties_[index] == 0 && !health_->banned(index, now);
  };
  bool some_rest = false;
  for (std::uint32_t index = 0; index < count_; ++index) some_rest |= at_worst_rests(index);
  const auto avoided = [&] {
    return some_rest ? !at_worst_rests(current_) : health_->banned(current_, now);
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
    if (health_->usable(index, now)) return value(index);
  }
  return value(first);
}

std::optional<std::uint16_t> PathSelector::recycled(Time now) {
  return recycled_.take(
      [&](std::uint16_t entropy) { return health_->usable(*index_of(entropy), now); });
}

// CMS-413, CMS-414.
std::uint16_t PathSelector::reps(Rng& rng, Time now) {
  if (frozen_until_ && now >= *frozen_until_) {
    frozen_until_.reset();
    explore_left_ = explore_after_freeze_;
  }
  std::optional<std::uint16_t> known;
  if (frozen_until_) {
    known = recycled_.cycle();
  } else if (explore_left_ > 0) {
    --explore_left_;
  } else {
    known = recycled(now);
  }
  ++(known ? taken_recycled_ : taken_random_);
  return known ? *known : explore(rng, now);
}

std::uint16_t PathSelector::choose(Rng& rng, Time now) {
  if (policy_ == PathPolicy::Reps) return reps(rng, now);
  if (policy_ == PathPolicy::Bitmap) return least_bad(now);
  const std::optional<std::uint16_t> known = recycled(now);  // CMS-415
  taken_recycled_ += known ? 1 : 0;
  return known ? *known : least_bad(now);
}

std::uint16_t PathSelector::next(Rng& rng, Time now) {
  if (!uses_feedback_) return walk(rng);
  const std::uint16_t entropy = choose(rng, now);
  health_->on_sent(*index_of(entropy), now);
  return entropy;
}

std::uint16_t PathSelector::next_for_control(Rng& rng) {
  return count_ > 1 ? explore(rng) : walk(rng);
}

void PathSelector::penalise(std::uint16_t index, PathFeedback feedback) {
  if (penalties_.empty()) return;
  std::uint8_t& penalty = penalties_[index];
  const int raised = penalty + penalty_of_[static_cast<std::size_t>(feedback)];
  penalty = static_cast<std::uint8_t>(std::min<int>(penalty_limit_, raised));
}

// CMS-423: a path that does not answer while others do counts as one that loses, for selection
// only.
void PathSelector::on_acknowledged(std::uint16_t entropy, Time now) {
  if (!uses_feedback_) return;
  const std::optional<std::uint16_t> index = index_of(entropy);
  if (index) health_->on_acknowledged(*index, now);
  const std::optional<std::size_t> silent = health_->find_silent(now);
  if (!silent) return;
  penalise(static_cast<std::uint16_t>(*silent), PathFeedback::Timeout);
  health_->rest(*silent, now);
}

void PathSelector::on_feedback(std::uint16_t entropy, PathFeedback feedback, Time now) {
  if (!uses_feedback_) return;
  const std::optional<std::uint16_t> index = index_of(entropy);
  if (!index) return;
  penalise(*index, feedback);
  if (feedback == PathFeedback::Ecn || feedback == PathFeedback::Nack) health_->rest(*index, now);
  if (feedback == PathFeedback::Nack) health_->on_gone(*index);
  if (feedback == PathFeedback::Timeout) health_->on_timeout(*index, now);
  if (feedback == PathFeedback::Good && !frozen_until_) recycled_.push(entropy);
  // Without trimming a loss may be congestion: then nothing is frozen.
  const bool freezes = may_freeze_ && feedback == PathFeedback::Timeout && explore_left_ == 0;
  if (freezes && !frozen_until_) {
    frozen_until_ = now + freeze_time_;
    recycled_.restart_cycle();
    ++freezes_;
  }
}

void PathSelector::count(Counters& counters) const {
  if (!uses_feedback_) return;
  counters.paths += count_;
  counters.paths_penalised += static_cast<std::uint64_t>(std::count_if(
      penalties_.begin(), penalties_.end(), [](auto penalty) { return penalty > 0; }));
  counters.paths_banned += health_->banned_count();
  counters.paths_recycled += taken_recycled_;
  counters.paths_random += taken_random_;
  counters.paths_frozen += freezes_;
}

}  // namespace uet::cms
