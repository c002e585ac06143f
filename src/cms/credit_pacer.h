// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RCCC at the receiver: who may send how much next (CMS 3.3). One pacer per FEP; the sources take
// turns, so that all that want to send get equal rates (CMS-225). Decides when and how much is
// granted; who carries the grant to its source is the owner's business.
#pragma once

#include <cstdint>
#include <optional>

#include "cms/ccc.h"
#include "cms/sird.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"

namespace uet::cms {

struct ActiveSourceTag;

// A sending CCC of a peer, as the receiver sees it. Counters in units of 256 bytes modulo 2^24.
struct CreditSource : ListNode<ActiveSourceTag> {
  std::uint32_t target_units = 0;   // T: the highest asked for
  std::uint32_t granted_units = 0;  // Gr
  std::uint64_t unseen_bytes = 0;   // granted, and not arrived
  Time last_heard{};
  Time first_granted{};  // since then nothing was heard, if it is later than last_heard
  bool idle = false;     // in line for unsolicited credit (CMS-223)
  OutstandingCredit outstanding;
  SirdSource sird;  // with Algorithm::Sird
};

// A request that arrived.
struct CreditArrival {
  std::uint32_t target = 0;  // credit_target
  std::uint32_t bytes = 0;   // nominal; 0 if it was trimmed
  bool ce = false;           // ECN mark, or trimmed before the last hop
  bool trimmed = false;
};

// CMS-223: the units that a source is granted beyond its target at most; 0: none.
std::uint32_t unsolicited_units(const Parameters& parameters);

class CreditPacer {
 public:
  // CMS-228: the slower of link and Parameters::receive_rate_bps. `rto`: for CMS-226.
  CreditPacer(const Parameters& parameters, Duration rto);

  // CMS-220: a request, whole or trimmed, or a Credit Request. True if the target is newer.
  bool on_target(CreditSource& source, std::uint32_t target, Time now);
  // After on_target with the same target.
  void on_arrival(CreditSource& source, const CreditArrival& arrival, Time now);
  // The source is gone.
  void remove(CreditSource& source);

  // The next turn, if it is time for one: its source has been granted more (CMS-221).
  CreditSource* grant(Time now);
  // A Credit left that grants nothing new. If no source waits for a turn, it takes up its time, too
  // (CMS-223).
  void on_zero_grant(Time now);
  std::uint64_t last_grant_bytes() const { return last_grant_bytes_; }
  // CMS-232: grants at this part of the rate from the next turn on; above 0, 1 at most.
  void set_rate_factor(double factor) { rate_factor_ = factor; }
  // When the next turn is; kNever if no source asks for credit or may get it unsolicited.
  Time next_turn() const {
    if (active_.empty() && idle_.empty()) return kNever;
    return blocked_until_ ? std::max(next_turn_, *blocked_until_) : next_turn_;
  }

  // Between two turns that grant so many units (CMS-222).
  Duration spacing(std::uint32_t units) const;
  std::uint32_t turn_units() const { return turn_units_; }

 private:
  bool silent(const CreditSource& source, Time now) const;
  void take_time(std::uint32_t units, Time now);
  void grant_units(CreditSource& source, std::uint32_t units, Time now);
  bool has_used(CreditSource& source, std::uint32_t beyond, Time now) const;
  CreditSource* grant_unasked(Time now);
  void rest(CreditSource& source);
  bool may_have(CreditSource& source, std::uint32_t units, Time now);
  std::int64_t period(Time now) const { return now.time_since_epoch() / period_; }

  double bytes_per_ns_;  // of grants, before rate_factor_
  double rate_factor_ = 1;
  std::uint32_t turn_units_;
  std::uint32_t zero_grant_units_;
  Duration rto_;
  std::uint32_t unsolicited_units_;  // granted beyond a target at most; 0 = never
  IntrusiveList<CreditSource, ActiveSourceTag> active_;
  IntrusiveList<CreditSource, ActiveSourceTag> idle_;  // those that have had what they asked for
  Time next_turn_{};
  std::uint64_t last_grant_bytes_ = 0;
  std::uint32_t mtu_bytes_;
  Duration period_;                   // of OutstandingCredit
  std::optional<SirdLimits> limits_;  // with Algorithm::Sird
  OutstandingCredit outstanding_;     // of all sources
  // All that ask have as much credit as they may: until data arrive, or so long.
  std::optional<Time> blocked_until_;
};

}  // namespace uet::cms
