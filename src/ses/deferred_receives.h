// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Deferrable sends at their target (SES-65 to 76): one that finds no receive is parked. It waits
// among the unexpected messages without any data; when a receive has it, its sender is asked to
// send it again, and the restarted message goes straight into that receive.
//
// Such a message is on parked_ until a receive matches it or it is discarded. Then it waits until
// its sender can be asked to restart it (PullQueue), and for the restarted message (restarting_).
// Until that arrives, no data are placed: if anything fails meanwhile, the receive waits again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ses/arriving.h"
#include "ses/context.h"
#include "ses/counters.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "ses/posted_receives.h"
#include "ses/pull_queue.h"
#include "ses/pulls.h"
#include "ses/unexpected.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::ses {

class DeferredReceives {
 public:
  // The referenced objects outlive this one.
  DeferredReceives(const Parameters& parameters, ArrivingMessages& messages, Unexpected& memory,
                   PostedReceives& receives, PullQueue& queue, Pulls& pulls, Counters& counters);

  // A message without a receive, of which this is the first packet, can be parked. Never on an
  // ordered stream, where others would overtake it (SES-74), nor without bytes, where the answer
  // would say nothing (SES-68).
  bool may_park(const pds::RequestView& view, const wire::SesRequest& request,
                const Context& context) const;
  // Parks the message, which lies among the unexpected ones. Its PDC stays and asks whether the
  // sender lives.
  pds::Response park(const wire::SesRequest& request, RxMessage& message, Time now);
  // A packet that was under way before the sender learned that its message is parked.
  pds::Response on_later(const wire::SesRequest& request, RxMessage& message);

  // The parked message can be asked for: a receive is bound to it, or its data shall be dropped.
  void want(RxMessage& message);
  // For PullQueue::ask_all: asks the sender to restart the message. Again: no operation or PDC is
  // free.
  Result<void> ask(RxMessage& message, Time now);
  // The sender has answered, is out of reach, or has freed its end of our PDC (PDS-142). Returns
  // the receive that has lost its message; nullptr if none has.
  PostedReceive* asked(RxMessage& message, Status status, bool not_consumed);

  // The parked message of which this is the restart; nullptr if it is none.
  RxMessage* find_restarting(const pds::RequestView& view, const wire::SesRequest& request,
                             const Context& context);
  // The state of the restarted message, which takes over the receive of `parked`, whatever matching
  // would say (SES-71). nullptr: no state is free.
  RxMessage* take_over(const pds::RequestView& view, const wire::SesRequest& request,
                       Context& context, RxMessage& parked);
  // The restarted message of one that was discarded: its data are dropped as they come.
  pds::Response drop_restarted(const pds::RequestView& view, const wire::SesRequest& request,
                               Context& context, RxMessage& parked);

  // The message comes to nothing; its later packets are answered with `code`. Returns its receive,
  // which waits again (SES-113), or nullptr.
  PostedReceive* drop(RxMessage& message, wire::ReturnCode code);
  // Its receive or its context does not wait for the message any more. Its sender is asked to
  // restart it all the same: it comes as a new message (SES-76), or the sender gets an error.
  // Returns its receive, which is on no list, or nullptr.
  PostedReceive* leave(RxMessage& message);
  // The message that is asked for and has the receive with this operation context, or nullptr.
  RxMessage* find_reserved(const ReceiveQueue& queue, const void* operation);

  // A message for which is_meant(message), among those that are on no PullQueue; or nullptr.
  template <class Predicate>
  RxMessage* find(Predicate is_meant) {
    RxMessage* parked = find_in(parked_, is_meant);
    return parked != nullptr ? parked : find_in(restarting_, is_meant);
  }
  // Follows Target's end of the messages that were arriving on the PDC. If it closed in the usual
  // way (`orderly`), parked messages stay: the target asks for a restart, and the sender uses
  // another PDC. Calls drop(message) for each that comes to nothing.
  template <class Drop>
  void pdc_closed(PdcId pdc, bool orderly, Drop drop);
  // The context closes: leave() for each of its messages that is asked for; calls release(receive)
  // for their receives.
  template <class Release>
  void close_context(const Context& context, Release release);

  // A message that has waited for deferred_timeout, or nullptr.
  RxMessage* expired(Time now);
  // When expired() returns the next one; kNever if none waits.
  Time deadline();
  bool waits() const { return !parked_.empty() || !restarting_.empty(); }
  // Forgets all messages except those in the PullQueue.
  void discard_all();

 private:
  PostedReceive* forget(RxMessage& message);

  const std::uint16_t retries_;
  const bool parks_;
  const std::size_t limit_per_context_;
  const Duration timeout_;  // 0: none
  ArrivingMessages& messages_;
  Unexpected& memory_;
  PostedReceives& receives_;
  PullQueue& queue_;
  Pulls& pulls_;
  Counters& counters_;
  PullList parked_;      // in order of time
  PullList restarting_;  // in order of time
  std::uint32_t last_token_ = 0;
};

template <class Drop>
void DeferredReceives::pdc_closed(PdcId pdc, bool orderly, Drop drop) {
  for (PullList* list : {&parked_, &queue_.waiting(), &restarting_}) {
    for_each(*list, [&](RxMessage& message) {
      if (!message.parked || message.pdc != pdc) return;
      message.holds_pdc = false;
      if (orderly) {
        message.pdc = {};
      } else {
        drop(message);
      }
    });
  }
}

template <class Release>
void DeferredReceives::close_context(const Context& context, Release release) {
  for (PullList* list : {&queue_.waiting(), &restarting_}) {
    for_each(*list, [&](RxMessage& message) {
      if (!message.parked || message.context != &context) return;
      PostedReceive* receive = leave(message);
      if (receive != nullptr) release(*receive);
    });
  }
}

}  // namespace uet::ses
