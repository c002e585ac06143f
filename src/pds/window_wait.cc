// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The line of PDCs that wait for a congestion context, and how long data waited.
#include "pds/window_wait.h"

#include <algorithm>

#include "pds/credits.h"
#include "pds/pdc.h"

namespace uet::pds {

namespace {

trace::Wait wait_for(const SharedCcc& shared) {
  return shared.blocked_by_credit ? trace::Wait::Credit : trace::Wait::Window;
}

}  // namespace

void WindowWait::begin_for_ccc(PdcCore& core, Time now) const {
  SharedCcc& shared = core.ccc();
  if (shared.blocked_since == Time{}) {
    shared.blocked_since = now;
    shared.blocked_by_credit = shared.credit != nullptr && shared.credit->lacks_credit();
  }
  Pdc& pdc = static_cast<Pdc&>(core);
  if (!pdc.ListNode<WaitingForCccTag>::linked()) shared.waiting.push_back(pdc);
  if (shared.credit != nullptr) core.env().credits->await(shared, now);
}

void WindowWait::data_left(PdcCore& core, Time now) {
  if (core.ccc().blocked_since != Time{} || outside_peer_window_since_ != Time{}) {
    note_end(core, now);
  }
}

void WindowWait::nothing_waits(PdcCore& core, Time now) {
  if (!core.ListNode<WaitingForCccTag>::linked()) return;
  core.ccc().waiting.remove(static_cast<Pdc&>(core));
  if (core.ccc().waiting.empty()) note_end(core, now);
}

void WindowWait::leave_line(PdcCore& core) {
  if (core.ListNode<WaitingForCccTag>::linked()) {
    core.ccc().waiting.remove(static_cast<Pdc&>(core));
  }
}

void WindowWait::note_end(PdcCore& core, Time now) {
  SharedCcc& shared = core.ccc();
  Counters& counters = core.env().counters;
  const auto waited = [&](Time since) {
    return static_cast<std::uint64_t>(std::max(Duration::zero(), now - since).count());
  };
  if (shared.blocked_since != Time{}) {
    std::uint64_t& total =
        shared.blocked_by_credit ? counters.blocked_by_credit_ns : counters.blocked_by_window_ns;
    total += waited(shared.blocked_since);
    core.env().trace.waited(wait_for(shared), core.id(), now - shared.blocked_since);
    shared.blocked_since = Time{};
  }
  if (outside_peer_window_since_ != Time{}) {
    counters.blocked_by_peer_window_ns += waited(outside_peer_window_since_);
    core.env().trace.waited(trace::Wait::PeerWindow, core.id(), now - outside_peer_window_since_);
    outside_peer_window_since_ = Time{};
  }
}

void wake_waiters(SharedCcc& shared) {
  if (!shared.waiting.empty()) shared.waiting.front().env().turns.add_waiting(shared);
}

}  // namespace uet::pds
