// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages whose senders are to be asked for something, in their order: for the rest of the
// message (rendezvous_target.h), or to send it again (deferred_receives.h). A message waits here
// for a proved source, a PDC and an operation; nothing reports when there is one, so that the queue
// tries again by time.
#pragma once

#include "ses/arriving.h"
#include "ses/message.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/result.h"
#include "uet/base/time.h"

namespace uet::ses {

using PullList = IntrusiveList<RxMessage, PullTag>;

// Calls visit(message) for each message of the list; visit may take the message off.
template <class Visit>
void for_each(PullList& list, Visit visit) {
  for (auto at = list.begin(); at != list.end();) {
    RxMessage& message = *at;
    ++at;
    visit(message);
  }
}

// The first message of the list for which is_meant(message); nullptr if there is none.
template <class Predicate>
RxMessage* find_in(PullList& list, Predicate is_meant) {
  for (RxMessage& message : list) {
    if (is_meant(message)) return &message;
  }
  return nullptr;
}

// Frees the states of all messages of the list: PDS is gone.
void release_all(PullList& list, ArrivingMessages& messages);

class PullQueue {
 public:
  static constexpr Duration kRetry = std::chrono::milliseconds(1);
  static constexpr int kTries = 8;  // that may fail in one pass

  // `messages` outlives this object.
  explicit PullQueue(ArrivingMessages& messages) : messages_(messages) {}

  // Puts the message, which is on no PullList, behind all others.
  void push(RxMessage& message) { waiting_.push_back(message); }
  // The next pass of ask_all() does not wait for next_try().
  void try_now() { next_try_ = Time{}; }
  // When ask_all() is due, if anything waits.
  Time next_try() const { return next_try_; }
  bool empty() const { return waiting_.empty(); }
  // The messages that wait, oldest first.
  PullList& waiting() { return waiting_; }

  // If next_try() has come: calls ask(message) for the messages that wait, in order, until kTries
  // calls have failed. On success `ask` has taken the message off this queue. A message whose
  // source is not proved goes behind all others instead and counts as a failure.
  template <class Ask>
  void ask_all(Time now, Ask ask) {
    if (now < next_try_) return;
    int failures = 0;
    for (auto at = waiting_.begin(); at != waiting_.end() && failures < kTries;) {
      RxMessage& message = *at;
      ++at;
      if (!messages_.source_is_proved(message)) {
        ++failures;
        PullList::remove(message);
        push(message);
      } else if (!ask(message)) {
        ++failures;
      }
    }
    next_try_ = now + kRetry;
  }

 private:
  ArrivingMessages& messages_;
  PullList waiting_;
  Time next_try_{};
};

}  // namespace uet::ses
