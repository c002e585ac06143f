// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Data of a PDC that the congestion window, the receiver's credit or the peer's window keeps from
// leaving: its place among the PDCs that wait for the same congestion context, and for how long
// what has been waited for (CMS 9.5).
#pragma once

#include "pds/pdc_core.h"
#include "uet/base/time.h"

namespace uet::pds {

class WindowWait {
 public:
  // The peer's window keeps data from leaving.
  void begin_for_peer(Time now) {
    if (outside_peer_window_since_ == Time{}) outside_peer_window_since_ = now;
  }
  // The congestion context does. The PDC keeps its place in the line until data of it has left.
  void begin_for_ccc(PdcCore& core, Time now) const;
  // Data leaves: its wait is over.
  void data_left(PdcCore& core, Time now);
  // Data has left: the PDC had its turn.
  static void leave_line(PdcCore& core);
  // Nothing waits any more: it was cancelled, or has arrived after all.
  void nothing_waits(PdcCore& core, Time now);

  // Since when data waits for the peer's window; Time{}: none does.
  Time outside_peer_window_since() const { return outside_peer_window_since_; }

 private:
  void note_end(PdcCore& core, Time now);

  Time outside_peer_window_since_{};  // Time{}: no data waits for the peer's window
};

// PDCs that wait for the context try again, before others of it. They keep their places until they
// have sent: with a window of one packet a PDC with small packets would else starve one with a
// large packet for ever.
void wake_waiters(SharedCcc& shared);

}  // namespace uet::pds
