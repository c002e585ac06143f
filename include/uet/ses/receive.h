// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receives and the messages sent to them: which message goes to which receive, where its bytes go
// meanwhile, and what completes when. The target has checked each packet before it comes here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/ses/api.h"
#include "uet/ses/arriving.h"
#include "uet/ses/context.h"
#include "uet/ses/counters.h"
#include "uet/ses/initiator.h"
#include "uet/ses/message.h"
#include "uet/ses/parameters.h"
#include "uet/ses/posted_receives.h"
#include "uet/ses/unexpected.h"

namespace uet::ses {

class Receiver final : public PullClient {
 public:
  // The referenced objects outlive this one.
  Receiver(const Parameters& parameters, PieceStore& pieces, ArrivingMessages& messages,
           Initiator& initiator, Counters& counters);

  // As in ses.h.
  Result<void> receive(ReceiveQueue& queue, const ReceiveOp& op);
  Result<void> receive_kept(Envelope& message, const ReceiveOp& op);
  void discard_kept(Envelope& message);
  Result<void> peek(ReceiveQueue& queue, const PeekOp& op);
  // Cancels the oldest waiting receive with this pointer. NotFound if there is none; Again if
  // the CQ of a shared queue has no entry for the completion.
  Result<void> cancel(ReceiveQueue& queue, const void* operation);
  // Ends the context's messages without completions. Receives of its own queue vanish, those of a
  // shared one wait again.
  void close_context(Context& context);
  // Drops the receives of a shared queue, whose contexts have been closed.
  void close_queue(ReceiveQueue& queue);
  // Repeats steps that failed for lack of a CQ entry, a PDC or a message.
  void progress(Time now);
  // There is something that progress() is for.
  bool waits() const {
    return !short_of_room_.empty() || !waiting_.empty() || !parked_.empty() || !restarting_.empty();
  }
  Time next_deadline();
  // PullClient.
  void pulled(RxMessage& message, Status status, bool not_consumed) noexcept override;

  // The first packet that arrives of a send.
  pds::Response on_send(const pds::RequestView& view, const wire::SesRequest& request,
                        Context& context, Time now);
  // A later one; the message is Matched or Unexpected.
  pds::Response on_later_send(const pds::RequestView& view, const wire::SesRequest& request,
                              RxMessage& message);
  // The message, of whatever kind, comes to nothing: a receive bound to it completes with `status`,
  // or waits again if nothing was placed (SES-113). Later packets of it are answered with `code`.
  void end_message(RxMessage& message, wire::ReturnCode code, Status status);
  // Nothing more comes of a message whose packets were dropped; its sender may wait for a read.
  void dismiss(RxMessage& message);
  // The sender gives up a message that has arrived but must still be read.
  void abandoned(const pds::RequestView& view, const wire::SesRequest& request);
  // Steps that progress() was not able to do before may succeed now.
  void try_now() { next_try_ = Time{}; }
  // After the messages that were arriving on it have ended. `orderly`: both ends live.
  void pdc_closed(PdcId pdc, bool orderly);
  // Forgets all messages: PDS is gone.
  void discard_all();

  const Unexpected& unexpected() const { return unexpected_; }

  // No receive is bound to a message, and no message of one packet waits; receives may be posted.
  bool idle() const { return receives_.bound() == 0 && unexpected_.in_use() == 0; }

 private:
  using PullList = IntrusiveList<RxMessage, PullTag>;

  void settle();
  void defer(RxMessage& message);
  void eager_part_is_here(RxMessage& message);
  pds::Response end_eager_part(const wire::SesRequest& request, RxMessage& message);
  void stop_reading(RxMessage& message);
  Result<void> read(RxMessage& message, Time now);
  void fail_receive(RxMessage& message, wire::ReturnCode code, Status status);
  void dismiss_unexpected(Envelope& message);
  template <class ReleaseReceive>
  void dismiss_reads(Context& context, ReleaseReceive release_receive);
  pds::Response refuse(const pds::RequestView& view, const wire::SesRequest& request,
                       Context& context, pds::NackCode code);
  static void enable_generations(ReceiveQueue& queue);
  pds::Response on_unexpected(const pds::RequestView& view, const wire::SesRequest& request,
                              Context& context, Time now);
  pds::Response on_owned(const pds::RequestView& view, const wire::SesRequest& request,
                         Context& context, Time now);
  pds::Response place_matched(const wire::SesRequest& request, RxMessage& message);
  pds::Response place_unexpected(const pds::RequestView& view, const wire::SesRequest& request,
                                 RxMessage& message);
  pds::Response keep_single(const pds::RequestView& view, const wire::SesRequest& request,
                            Context& context);
  void release_memory(RxMessage& message);
  void leave_queue(Envelope& message);
  void release(SingleMessage& message, wire::ReturnCode code);
  Result<void> claim(PostedReceive& receive);
  PostedReceive* find_fitting(MatchQueue& lists, const MatchKey& key, std::uint64_t length);
  void offer(PostedReceive& receive);
  bool feed(PostedReceive& receive);
  bool settle(ReceiveQueue& queue);
  bool take(Envelope& message, PostedReceive& receive);
  bool take_single(SingleMessage& message, PostedReceive& receive);
  bool take_arriving(RxMessage& message, PostedReceive& receive);
  void bind(RxMessage& message, PostedReceive& receive);
  void restore(PostedReceive& receive);
  void complete_receive(RxMessage& message);
  void mark_cancelled(ReceiveQueue& queue, const void* operation);
  void discard(Envelope& message);
  void drop_unexpected(RxMessage& message);
  // target_deferrable.cc
  bool may_park(const pds::RequestView& view, const wire::SesRequest& request,
                const Context& context) const;
  pds::Response park(const wire::SesRequest& request, RxMessage& message, Time now);
  pds::Response on_later_parked(const wire::SesRequest& request, RxMessage& message);
  void unpark(RxMessage& message);
  Result<void> request_restart(RxMessage& message, Time now);
  void restart_requested(RxMessage& message, Status status, bool not_consumed);
  RxMessage* find_restarting(const pds::RequestView& view, const wire::SesRequest& request,
                             const Context& context);
  pds::Response on_restarted(const pds::RequestView& view, const wire::SesRequest& request,
                             Context& context, RxMessage& parked);
  PostedReceive* forget_parked(RxMessage& message);
  void drop_parked(RxMessage& message, wire::ReturnCode code);
  void drop_parked(PdcId pdc, bool orderly);
  PostedReceive* leave_parked(RxMessage& message);
  template <class ReleaseReceive>
  void leave_parked(Context& context, ReleaseReceive release_receive);
  RxMessage* find_reserved(const ReceiveQueue& queue, const void* operation);
  void expire_parked(Time now);
  Time parked_deadline();

  const bool answers_no_match_;
  const std::uint16_t retries_;
  const bool parks_;
  const std::size_t parked_limit_messages_;
  const Duration parked_timeout_;
  HostCopy* const host_copy_;
  ArrivingMessages& messages_;
  Initiator& initiator_;
  Counters& counters_;
  Unexpected unexpected_;
  PostedReceives receives_;
  IntrusiveList<ReceiveQueue, ShortOfRoomTag> short_of_room_;  // messages wait for receives there
  PullList deferred_;
  PullList waiting_;
  PullList reading_;
  PullList parked_;      // in order of time
  PullList restarting_;  // in order of time
  Time next_try_{};      // for those that wait
  std::uint32_t last_token_ = 0;
};

}  // namespace uet::ses
