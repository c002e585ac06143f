// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages whose sender waits until the target has read them to their end (SES-57, SES-61 to 63).
// The target reads the data that it dropped while it had no receive, and the remainder behind a
// shorter eager part. A read of no bytes at the end informs the sender that all data have arrived.
//
// Such a message is on eager_ until its eager part is here and a receive is bound to it. Then it
// waits its turn (PullQueue) and is read (reading_). A message that no receive will get takes the
// same steps without a receive, so that its sender can finish.
#pragma once

#include <cstdint>

#include "ses/arriving.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "ses/pull_queue.h"
#include "ses/pulls.h"
#include "uet/base/result.h"
#include "uet/base/time.h"

namespace uet::ses {

class RendezvousTarget {
 public:
  // The effect of the end of a read on the receive of the message.
  enum class Outcome : std::uint8_t {
    None,    // the message has no receive, or it is read again
    Whole,   // all bytes are in place
    Failed,  // SES-64: the rest will not come, and the sender is to be informed (dismiss)
  };

  // The referenced objects outlive this one.
  RendezvousTarget(const Parameters& parameters, ArrivingMessages& messages, PullQueue& queue,
                   Pulls& pulls)
      : retries_(parameters.retries),
        piece_bytes_(parameters.rma_piece_bytes),
        messages_(messages),
        queue_(queue),
        pulls_(pulls) {}

  // From now on the sender waits for the target, and the target watches whether the sender lives.
  void begin(RxMessage& message);
  // The eager part of a message with a receive is in place. True: the rest will be read. False: all
  // of it is here, and the receive can complete.
  bool read_rest(RxMessage& message);
  // Nothing more is done with a message that is on no list of receives. Frees its state, at once or
  // when its sender has been informed.
  void dismiss(RxMessage& message);
  // The sender of the message waits no longer.
  void stop(RxMessage& message);

  // For PullQueue::ask_all: starts the read of the rest. Again: no operation or PDC is free.
  Result<void> ask(RxMessage& message, Time now);
  // The read of the message has ended (PullClient).
  Outcome pulled(RxMessage& message, Status status, bool not_consumed);

  // Messages whose eager part or receive is still to come.
  PullList& eager() { return eager_; }
  // Follows Target's end of the messages that were arriving on the PDC. `orderly`: both ends live.
  // Calls end(message) for each other message that cannot be read any more.
  template <class End>
  void pdc_closed(PdcId pdc, bool orderly, End end);
  // The context closes: takes its messages off their receives, calls release(message) for each to
  // take the receive, and informs the senders.
  template <class Release>
  void close_context(const Context& context, Release release);
  // Forgets all messages except those in the PullQueue.
  void discard_all();

 private:
  const std::uint16_t retries_;      // of a read that its peer did not consume
  const std::uint64_t piece_bytes_;  // the most that one read asks for (SES-164)
  ArrivingMessages& messages_;
  PullQueue& queue_;
  Pulls& pulls_;
  PullList eager_;
  PullList reading_;
};

template <class End>
void RendezvousTarget::pdc_closed(PdcId pdc, bool orderly, End end) {
  for_each(eager_, [&](RxMessage& message) {
    if (message.pdc != pdc) return;
    message.holds_pdc = false;
    if (orderly && message.complete()) {  // it can be read all the same
      message.pdc = {};
      return;
    }
    stop(message);
    // If all of it is here, only the sender, which wants to know, remains without an answer.
    const bool whole = message.complete() && message.read_from == message.request_length;
    if (!whole) end(message);
  });
  for (PullList* list : {&queue_.waiting(), &reading_}) {
    for (RxMessage& message : *list) {
      if (message.pdc != pdc) continue;
      message.holds_pdc = false;
      if (orderly) message.pdc = {};
    }
  }
}

template <class Release>
void RendezvousTarget::close_context(const Context& context, Release release) {
  for (PullList* list : {&queue_.waiting(), &reading_}) {
    for_each(*list, [&](RxMessage& message) {
      if (message.context != &context) return;
      release(message);
      message.undelivered = message.delivery_complete;
      if (list != &reading_) return dismiss(message);
      pulls_.forget_memory(message);
      messages_.leave_context(message);
    });
  }
}

}  // namespace uet::ses
