// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides which PDCs may open, and which one ends first in a shortage of PDCs or stored responses
// (PDS-66, PDS-113, PDS-174, PDS-180, PDS-181, PDS-182). The one place in pds that decides it:
// Connections asks before it opens a PDC and acts on the answer.
//
// The source of a SYN may be invented. PDCs that are not proved (PdcCore::proved) get at most half
// of the table, enter at a limited pace once there are many, and are dropped first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/slot_list.h"
#include "pds/environment.h"
#include "pds/pdc_table.h"
#include "pds/quota.h"
#include "uet/base/time.h"

namespace uet::pds {

class Admission {
 public:
  // Both arguments outlive it. The table must have Parameters::pdc_count slots.
  Admission(Environment& environment, PdcTable& pdcs);

  // The share of new target PDCs: so many at once, and one more after each `pace`.
  struct Share {
    std::uint32_t at_once = 0;
    Duration pace{};
  };
  Share share() const;

  // ---- numbers kept for each use (PDS-182)

  // The NACK code for why no further PDC of this use may open; empty: one may.
  std::optional<NackCode> refusal(Use use) const;
  // A PDC is about to open in this slot: takes the memory that the calls below need. May throw
  // bad_alloc.
  void prepare(std::size_t slot) { unproved_.prepare(slot); }
  // A PDC of this use has opened.
  void enter(Use use);
  // The PDC ends.
  void leave(const Pdc& pdc);
  std::size_t open_pdcs() const { return open_.in_use(); }

  // ---- target PDCs that are not proved (PDS-66)

  // There are so many that they enter at a pace.
  bool is_paced() const { return env_.unproved >= unpaced_; }
  // Whether the pace allows one more at `now`.
  bool allows_unproved(Time now) const { return !is_paced() || now >= next_unproved_; }
  // They have their half: one must go before another one enters.
  bool is_full_of_unproved() const;
  // A peer has opened this PDC. `paced`: is_paced() before. Asks the peer for its proof if there
  // are many.
  void enter_unproved(Pdc& pdc, bool paced, Time now);
  // The unproved PDC that is to be dropped for another one: the oldest, if it is old enough. Else
  // nullptr, and the oldest one is asked for its proof: one that is proved and idle closes sooner.
  Pdc* droppable_unproved(Time now);
  // The peer of this PDC, which is not proved, has had the time to prove itself.
  static bool has_had_time(const Pdc& pdc, Time now);

  // ---- shortage

  // Closes the PDC that has been idle for longest. If none is idle, closes one that carries nothing
  // and is only watched (Delivery::watch), though few of these at a time (PDS-174, PDS-180).
  void close_idle(Time now);
  // Whether a SYN that finds no PDC may have close_idle() called: established PDCs close for a few
  // PDCs that are not proved, not for as many as an attacker can invent. Once a millisecond.
  bool may_close_for_syn(Time now);
  // A message finds no PDC. With PDCs that are never idle it would wait for ever: after
  // Pend_Timeout the oldest PDC takes no new messages, and one more after each further Pend_Timeout
  // (PDS-181).
  void note_message_waits(Time now);
  // A message has opened a PDC.
  void note_message_served() { short_since_ = kNever; }
  // The host has used up its share of stored responses. Of the PDCs whose hosts hold as much, the
  // one ends whose responses have waited longest for a CLEAR, if that is 30 s or more (PDS-113,
  // LongestWait).
  void end_uncleared(std::uint64_t host, Time now);

 private:
  bool may_close_watched(Time now);
  std::size_t part(std::size_t divisor) const;
  Duration pace() const;

  Environment& env_;
  PdcTable& pdcs_;
  Quota open_;                 // PDCs
  Quota bitmaps_;              // of them, receive windows: may be fewer
  SlotList unproved_;          // slots of target PDCs, oldest first; some are proved
  const std::size_t unpaced_;  // so many PDCs that are not proved enter without a pace
  Time next_unproved_{};       // when one more may enter, if there are many
  Time next_for_syn_{};        // when a SYN may have an idle PDC closed again
  Time next_watched_{};        // when one that is watched may be closed, whatever else closes
  Time next_uncleared_{};      // when stored responses may end a PDC again
  Time short_since_ = kNever;  // no message could open a PDC since
  Time short_at_{};            // the last time that one could not
};

}  // namespace uet::pds
