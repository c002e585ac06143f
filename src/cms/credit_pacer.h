// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RCCC at the receiver: who may send how much next (CMS 3.3). One pacer per FEP; the sources take
// turns, so that all that want to send get equal rates (CMS-225). Decides when and how much is
// granted; who carries the grant to its source is the owner's business.
#pragma once

#include <cstdint>

#include "cms/ccc.h"
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
};

// CMS-223: the units that a source is granted beyond its target at most; 0: none.
std::uint32_t unsolicited_units(const Parameters& parameters);

class CreditPacer {
 public:
  // CMS-228: the slower of link and Parameters::receive_rate_bps. `rto`: for CMS-226.
  CreditPacer(const Parameters& parameters, Duration rto);

  // CMS-220: a request, whole or trimmed, or a Credit Request. True if the target is newer.
  bool on_target(CreditSource& source, std::uint32_t target, Time now);
  // Nominal bytes of a packet that arrived whole.
  static void on_arrival(CreditSource& source, std::uint32_t bytes);
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
  Time next_turn() const { return active_.empty() && idle_.empty() ? kNever : next_turn_; }

  // Between two turns that grant so many units (CMS-222).
  Duration spacing(std::uint32_t units) const;
  std::uint32_t turn_units() const { return turn_units_; }

 private:
  bool silent(const CreditSource& source, Time now) const;
  void take_time(std::uint32_t units, Time now);
  void grant_units(CreditSource& source, std::uint32_t units, Time now);
  CreditSource* grant_unasked(Time now);
  void rest(CreditSource& source);

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
};

}  // namespace uet::cms
