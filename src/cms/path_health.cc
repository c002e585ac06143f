// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rests and bans of paths, and the search for those that have fallen silent.
#include "cms/path_health.h"

#include <algorithm>
#include <cmath>

namespace uet::cms {
namespace {

constexpr int kMostDoublings = 31;  // more than any ban needs

Duration seconds(double count) { return Duration(static_cast<std::int64_t>(count * 1e9)); }

}  // namespace

PathHealth::PathHealth(const Parameters& parameters, std::size_t path_count, Duration rtt)
    : paths_(path_count),
      resting_(path_count),
      // The paths of switches that choose by themselves are not ours to ban.
      ban_after_(parameters.path_inference
                     ? static_cast<std::uint8_t>(parameters.tuning.path_ban_after)
                     : std::uint8_t{0}),
      ban_s_(parameters.tuning.path_ban_s),
      longest_ban_s_(parameters.tuning.path_ban_longest_s) {
  const auto rtts = [&](double count) {
    return stamps(Duration(static_cast<std::int64_t>(count * static_cast<double>(rtt.count()))));
  };
  rest_time_ = rtts(parameters.tuning.path_rest_rtts);
  silence_ = rtts(parameters.tuning.path_silence_rtts);
}

PathHealth::Stamp PathHealth::stamp(Time now) {
  return static_cast<Stamp>(static_cast<std::uint64_t>(to_ns(now)) >> 10);
}

PathHealth::Stamp PathHealth::stamps(Duration span) {
  return static_cast<Stamp>((static_cast<std::uint64_t>(span.count()) + 1023) >> 10);
}

bool PathHealth::over(Stamp until, Stamp now, Stamp most) {
  const Stamp left = until - now;
  return left == 0 || left > most;
}

void PathHealth::end_rests(Stamp now) {
  while (resting_count_ > 0) {
    Path& path = paths_[resting_[resting_begin_]];
    if (!over(path.rest_until, now, rest_time_)) return;
    path.rests = false;
    resting_begin_ = (resting_begin_ + 1) % resting_.size();
    --resting_count_;
  }
}

bool PathHealth::banned(std::size_t index, Time now) {
  Path& path = paths_[index];
  if (path.banned && over(path.ban_until, stamp(now), stamps(seconds(longest_ban_s_)))) {
    path.banned = false;
    path.on_probation = true;
    path.out = 0;
    --banned_count_;
  }
  return path.banned;
}

bool PathHealth::usable(std::size_t index, Time now) {
  if (banned(index, now)) return false;
  const Path& path = paths_[index];
  if (path.on_probation && path.out > 0) return false;
  if (!path.rests || path.good_since) return true;
  end_rests(stamp(now));
  return !path.rests || resting_count_ * 2 > paths_.size();
}

void PathHealth::on_sent(std::size_t index, Time now) {
  Path& path = paths_[index];
  if (path.out == 0) path.silent_since = stamp(now);
  if (path.out < UINT16_MAX) ++path.out;
}

void PathHealth::on_gone(std::size_t index) {
  Path& path = paths_[index];
  if (path.out > 0) --path.out;
}

void PathHealth::on_acknowledged(std::size_t index, Time now) {
  Path& path = paths_[index];
  on_gone(index);
  path.silent_since = stamp(now);
  path.timeouts = path.bans = 0;
  path.on_probation = false;
}

void PathHealth::rest(std::size_t index, Time now) {
  Path& path = paths_[index];
  end_rests(stamp(now));
  path.rest_until = stamp(now) + rest_time_;
  path.good_since = false;
  if (path.rests || rest_time_ == 0) return;  // what rests again keeps its place in line
  path.rests = true;
  resting_[(resting_begin_ + resting_count_++) % resting_.size()] =
      static_cast<std::uint16_t>(index);
}

// CMS-419.
void PathHealth::on_timeout(std::size_t index, Time now) {
  Path& path = paths_[index];
  on_gone(index);
  if (path.timeouts < UINT8_MAX) ++path.timeouts;
  const bool enough = path.on_probation || (ban_after_ > 0 && path.timeouts >= ban_after_);
  if (path.banned || ban_after_ == 0 || !enough) return;
  if ((banned_count_ + 1) * 2 > paths_.size()) return;  // never more than half
  const int doublings = std::min<int>(path.bans, kMostDoublings);
  path.ban_until =
      stamp(now) + stamps(seconds(std::min(std::ldexp(ban_s_, doublings), longest_ban_s_)));
  if (path.bans < UINT8_MAX) ++path.bans;
  path.banned = true;
  path.on_probation = false;
  path.timeouts = 0;
  ++banned_count_;
}

// CMS-423.
std::optional<std::size_t> PathHealth::find_silent(Time now) {
  if (silence_ == 0) return std::nullopt;
  const std::size_t index = looked_at_;
  looked_at_ = (looked_at_ + 1) % paths_.size();
  Path& path = paths_[index];
  if (path.out == 0 || path.banned || stamp(now) - path.silent_since <= silence_) {
    return std::nullopt;
  }
  path.out = 0;
  return index;
}

}  // namespace uet::cms
