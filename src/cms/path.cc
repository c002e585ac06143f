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
  if (count_ > 1 && taken_ == 0 && policy_ == PathPolicy::Oblivious) {
    start_ = static_cast<std::uint16_t>(rng.below(count_));
  }
  const std::uint32_t index = (std::uint32_t{start_} + taken_) % count_;
  taken_ = static_cast<std::uint16_t>((taken_ + 1) % count_);
  return value(index);
}

// CMS-412. Of the bad ones on the way only the first is forgiven a little.
std::uint16_t PathSelector::least_bad() {
  bool forgiven = false;
  for (std::uint32_t step = 0; step < count_ && penalties_[current_] > 0; ++step) {
    if (!forgiven) --penalties_[current_];
    forgiven = true;
    current_ = static_cast<std::uint16_t>((current_ + 1) % count_);
  }
  const std::uint16_t chosen = current_;
  current_ = static_cast<std::uint16_t>((current_ + 1) % count_);
  return value(chosen);
}

std::uint16_t PathSelector::explore(Rng& rng) const {
  return value(static_cast<std::uint32_t>(rng.below(count_)));
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
    known = recycled_.take();
  }
  ++(known ? taken_recycled_ : taken_random_);
  return known ? *known : explore(rng);
}

std::uint16_t PathSelector::next(Rng& rng, Time now) {
  if (policy_ == PathPolicy::Reps) return reps(rng, now);
  if (policy_ == PathPolicy::Bitmap) return least_bad();
  if (policy_ == PathPolicy::Mixed) {  // CMS-415
    const std::optional<std::uint16_t> known = recycled_.take();
    taken_recycled_ += known ? 1 : 0;
    return known ? *known : least_bad();
  }
  return walk(rng);
}

std::uint16_t PathSelector::next_for_control(Rng& rng) {
  return count_ > 1 ? explore(rng) : walk(rng);
}

void PathSelector::on_feedback(std::uint16_t entropy, PathFeedback feedback, Time now) {
  if (!uses_feedback_) return;
  const std::optional<std::uint16_t> index = index_of(entropy);
  if (!index) return;
  if (!penalties_.empty()) {
    std::uint8_t& penalty = penalties_[*index];
    const int raised = penalty + penalty_of_[static_cast<std::size_t>(feedback)];
    penalty = static_cast<std::uint8_t>(std::min<int>(penalty_limit_, raised));
  }
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
  counters.paths_recycled += taken_recycled_;
  counters.paths_random += taken_random_;
  counters.paths_frozen += freezes_;
}

}  // namespace uet::cms
