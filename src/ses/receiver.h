// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receives and the messages sent to them: posting, and which message goes to which receive. The
// target has checked each packet before it comes here. A message is then passed to the object of
// its case: matched, unexpected, to be read, or deferred.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ses/arriving.h"
#include "ses/context.h"
#include "ses/counters.h"
#include "ses/deferred_receives.h"
#include "ses/matched_messages.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "ses/posted_receives.h"
#include "ses/pull_queue.h"
#include "ses/pulls.h"
#include "ses/rendezvous_target.h"
#include "ses/unexpected.h"
#include "ses/unexpected_messages.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"

namespace uet::ses {

class Receiver final : public PullClient {
 public:
  // The referenced objects outlive this one.
  Receiver(const Parameters& parameters, PieceStore& pieces, ArrivingMessages& messages,
           Pulls& pulls, Counters& counters);

  // As in ses.h.
  Result<void> receive(ReceiveQueue& queue, const ReceiveOp& op);
  Result<void> receive_kept(Envelope& message, const ReceiveOp& op);
  void discard_kept(Envelope& message);
  Result<void> peek(ReceiveQueue& queue, const PeekOp& op);
  // Cancels the oldest waiting receive with this pointer. NotFound if there is none; Again if
  // the CQ of a shared queue has no entry for the completion.
  Result<void> cancel(ReceiveQueue& queue, const void* operation);
  // Cancels all receives that are posted to a queue that no contexts share.
  void cancel_all(ReceiveQueue& queue);
  // Ends the context's messages without completions. Receives of its own queue vanish, those of a
  // shared one wait again.
  void close_context(Context& context);
  // Drops the receives of a shared queue, whose contexts have been closed.
  void close_queue(ReceiveQueue& queue);
  // Repeats steps that failed for lack of a CQ entry, a PDC or a message.
  void progress(Time now);
  // There is something that progress() is for.
  bool waits() const { return !short_of_room_.empty() || !pulls_.empty() || deferred_.waits(); }
  Time next_deadline();
  // PullClient.
  void pulled(RxMessage& message, Status status, bool not_consumed) noexcept override;

  // The first packet that arrives of a send.
  pds::Response on_send(const pds::RequestView& view, const wire::SesRequest& request,
                        Context& context, Time now);
  // A later one; the message is Matched or Unexpected.
  pds::Response on_later_send(const pds::RequestView& view, const wire::SesRequest& request,
                              RxMessage& message);
  // The receive for the immediate data of a write (ContextConfig::data_takes_receive). It stays
  // posted, and the CQ has an entry for its completion. nullptr: none is there now.
  PostedReceive* find_for_data(const Envelope& message);
  // The data go to the receive that find_for_data has found: it is taken, or has had one more use,
  // and `completion` names it.
  void give_data(PostedReceive& receive, Completion& completion);
  // The message, of whatever kind, comes to nothing: a receive bound to it completes with `status`,
  // or waits again if nothing was placed (SES-113). Later packets of it are answered with `code`.
  void end_message(RxMessage& message, wire::ReturnCode code, Status status);
  // Nothing more comes of a message whose packets were dropped; its sender may wait for a read.
  void dismiss(RxMessage& message);
  // The sender gives up a message that has arrived but must still be read.
  void abandoned(const pds::RequestView& view, const wire::SesRequest& request);
  // Steps that progress() was not able to do before may succeed now.
  void try_now() { pulls_.try_now(); }
  // After the messages that were arriving on it have ended. `orderly`: both ends live.
  void pdc_closed(PdcId pdc, bool orderly);
  // Forgets all messages: PDS is gone.
  void discard_all();

  const Unexpected& unexpected() const { return memory_; }

  // No receive is bound to a message, and no message of one packet waits; receives may be posted.
  bool idle() const { return receives_.bound() == 0 && memory_.in_use() == 0; }

 private:
  Result<void> claim(PostedReceive& receive);
  PostedReceive* find_fitting(MatchQueue& lists, const MatchKey& key, std::uint64_t length);
  void offer(PostedReceive& receive);
  bool feed(PostedReceive& receive);
  bool serve(ReceiveQueue& queue);
  void serve_all();
  void restore(PostedReceive& receive);
  void mark_cancelled(ReceiveQueue& queue, const void* operation);
  pds::Response on_owned(const pds::RequestView& view, const wire::SesRequest& request,
                         Context& context, Time now);
  pds::Response on_restarted(const pds::RequestView& view, const wire::SesRequest& request,
                             Context& context, RxMessage& parked);
  pds::Response end_eager_part(const wire::SesRequest& request, RxMessage& message);
  void drop_deferred(RxMessage& message, wire::ReturnCode code);

  ArrivingMessages& messages_;
  Unexpected memory_;
  PostedReceives receives_;
  PullQueue pulls_;
  RendezvousTarget rendezvous_;
  DeferredReceives deferred_;
  UnexpectedMessages unexpected_;
  MatchedMessages matched_;
  IntrusiveList<ReceiveQueue, ShortOfRoomTag> short_of_room_;  // messages wait for receives there
};

}  // namespace uet::ses
