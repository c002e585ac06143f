// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations that must wait before they start. A fenced operation waits until all earlier ones of
// its context to the same peer have completed, and all later ones to that peer wait behind it
// (fi_endpoint(3), FI_FENCE). On ROD, operations wait behind a refused one in the same way
// (SES-54).
#pragma once

#include <algorithm>

#include "ses/context.h"
#include "ses/message.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/time.h"

namespace uet::ses {

class Fences {
 public:
  static bool is_held(const TxMessage& message) {
    return static_cast<const ListNode<HeldTag>&>(message).linked();
  }
  // Whether a message that is posted now, or is held, has to wait for others. It becomes a fence if
  // it follows a refused one on ROD.
  static bool must_wait(TxMessage& message);

  // Keeps the message in its place in the order of posting, until start_ready() starts it.
  void hold(TxMessage& message);
  void unhold(TxMessage& message);
  // An operation of the context has ended: a fence may open.
  void operation_ended(const Context& context) {
    if (!context.held.empty()) next_try_ = Time{};
  }
  // start_ready() has something to do at this time.
  void try_at(Time when) { next_try_ = std::min(next_try_, when); }

  // Calls start(message) for each held message that need not wait any more; on success the message
  // is no longer held, else it is tried again a little later.
  template <class Start>
  void start_ready(Time now, Start start) {
    if (now < next_try_) return;
    next_try_ = kNever;
    for (auto at = holding_.begin(); at != holding_.end();) {
      Context& context = *at;
      ++at;
      start_ready(context, now, start);
    }
  }
  bool waits() const { return !holding_.empty(); }
  Time deadline() const { return holding_.empty() ? kNever : next_try_; }

 private:
  // How soon to try again when PDS had no PDC: no event tells when it has.
  static constexpr Duration kRetry = std::chrono::milliseconds(1);

  template <class Start>
  void start_ready(Context& context, Time now, Start& start) {
    for (auto at = context.held.begin(); at != context.held.end();) {
      TxMessage& message = *at;
      ++at;
      if (must_wait(message)) continue;
      if (now < message.not_before) {
        try_at(message.not_before);
      } else if (start(message)) {
        unhold(message);
      } else {
        try_at(now + kRetry);
      }
    }
  }

  IntrusiveList<Context, HoldingTag> holding_;  // contexts with messages that wait
  Time next_try_ = kNever;
};

}  // namespace uet::ses
