// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which paths are better left alone for now, whatever the scheme: those that drew a mark or a NACK
// rest until they answer unmarked (CMS-406), those that lose everything are banned (CMS-419), and
// those that have stopped answering are found (CMS-423). Paths are indices from 0; knows no entropy
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cms/ccc.h"
#include "uet/base/time.h"

namespace uet::cms {

class PathHealth {
 public:
  // `rtt`: base round trip time.
  PathHealth(const Parameters& parameters, std::size_t path_count, Duration rtt);

  // May it be taken? No: it rests, unless more than half of all do; it is banned; or its probe
  // after a ban is under way.
  bool usable(std::size_t path, Time now);
  bool banned(std::size_t path, Time now);

  // A packet took it.
  void on_sent(std::size_t path, Time now);
  // A packet of it was reported for the first time.
  void on_acknowledged(std::size_t path, Time now);
  // It drew a mark or a NACK.
  void rest(std::size_t path, Time now);
  // A packet of it came back unmarked: it need not rest any more, but counts as one that does until
  // its time is over.
  void on_good(std::size_t path) { paths_[path].good_since = true; }
  // The packet is no longer on its way: refused or lost.
  void on_gone(std::size_t path);
  // It lost a packet.
  void on_timeout(std::size_t path, Time now);

  // A path whose packets have waited too long while others were acknowledged; looks at one path
  // for each call. Each silence is reported once.
  std::optional<std::size_t> find_silent(Time now);

  // Banned at the moment, as far as it was looked at.
  std::size_t banned_count() const { return banned_count_; }

 private:
  // Times in units of 1024 ns, modulo 2^32: differences of up to half an hour tell.
  using Stamp = std::uint32_t;
  struct Path {
    Stamp rest_until = 0;
    Stamp ban_until = 0;
    Stamp silent_since = 0;  // if packets are out
    std::uint16_t out = 0;   // packets that nothing is known of
    std::uint8_t timeouts = 0;
    std::uint8_t bans = 0;  // in a row
    bool rests = false;
    bool good_since = false;  // it was last told to rest
    bool banned = false;
    bool on_probation = false;  // the ban is over, and one packet may show whether the path works
  };
  static Stamp stamp(Time now);
  static Stamp stamps(Duration span);
  // Has the time come? A time further away than `most` is one of an earlier turn of the counter.
  static bool over(Stamp until, Stamp now, Stamp most);
  void end_rests(Stamp now);

  std::vector<Path> paths_;
  std::vector<std::uint16_t> resting_;  // a ring, first to rest first
  std::size_t resting_begin_ = 0;
  std::size_t resting_count_ = 0;
  std::size_t banned_count_ = 0;
  std::size_t looked_at_ = 0;
  Stamp rest_time_;
  Stamp silence_;
  std::uint8_t ban_after_;
  double ban_s_;          // the first in a row
  double longest_ban_s_;  // of those that follow, each twice as long
};

}  // namespace uet::cms
