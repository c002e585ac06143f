// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Deferrable sends at their target (SES-65 to 76): one that finds no receive is parked. It waits
// among the unexpected messages without any data; when a receive has it, its sender is asked to
// send it again, and what comes goes straight into that receive.
//
// Such a message is parked_ until a receive matches it or it is discarded. Then it waits until its
// sender can be asked to restart it (waiting_), and for the restarted message (restarting_). Until
// that arrives, no data are placed: if anything fails meanwhile, the receive waits again.
#include <algorithm>

#include "uet/ses/initiator.h"
#include "uet/ses/receive.h"
#include "uet/ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;

// ---- putting off -------------------------------------------------------------------------------

// Never on an ordered stream, where the others would overtake it (SES-74), nor without bytes, where
// the answer would say nothing (SES-68).
bool Receiver::may_park(const pds::RequestView& view, const wire::SesRequest& request,
                        const Context& context) const {
  return parks_ && wire::is_deferrable(request.opcode) && view.mode == DeliveryMode::Rud &&
         request.request_length > 0 && context.parked_count < parked_limit_messages_;
}

// Its PDC is kept, and asks whether the sender still lives.
Response Receiver::park(const wire::SesRequest& request, RxMessage& message, Time now) {
  message.parked = true;
  message.parked_since = now;
  message.relative = request.rel;
  ++message.context->parked_count;
  parked_.push_back(message);
  messages_.await(message);
  ++counters_.messages_parked;
  on_later_parked(request, message);
  return explicit_response(request, ReturnCode::Ok, wire::List::Overflow, 0,
                           message.context->generation.value, true);  // SES-67
}

// A packet that was under way before the sender learned that its message is parked.
Response Receiver::on_later_parked(const wire::SesRequest& request, RxMessage& message) {
  if (ends_eager_part(request)) message.expected = request.message_offset;  // SES-69
  ArrivingMessages::account(message, request);
  if (message.complete()) messages_.arrived(message);
  return default_response(request, 0);
}

// ---- asking for it -----------------------------------------------------------------------------

// The message can be asked for: a receive is bound to it, or its data shall be dropped.
void Receiver::unpark(RxMessage& message) {
  PullList::remove(message);
  waiting_.push_back(message);
  next_try_ = Time{};
}

Result<void> Receiver::request_restart(RxMessage& message, Time now) {
  if (++last_token_ == 0) ++last_token_;
  const auto asked = initiator_.pulls().request_restart(message, last_token_, now);
  if (!asked) return asked;
  message.restart_token = last_token_;
  message.parked_since = now;
  return {};
}

// The sender has answered, is out of reach, or has freed its end of our PDC (PDS-142).
void Receiver::restart_requested(RxMessage& message, Status status, bool not_consumed) {
  const bool again = not_consumed && message.tries++ < retries_;
  if (!again || message.tries == 1) next_try_ = Time{};  // another message can be asked for
  if (again) {
    message.restart_token = 0;
    PullList::remove(message);
    waiting_.push_back(message);
  } else if (status != Status::Ok || message.leaving) {
    drop_parked(message, ReturnCode::Dropped);
  }
}

RxMessage* Receiver::find_restarting(const pds::RequestView& view, const wire::SesRequest& request,
                                     const Context& context) {
  for (RxMessage& message : restarting_) {
    if (message.restart_token != request.target_restart_token()) continue;
    const bool same = message.context == &context && message.source == view.source &&
                      message.initiator == request.initiator && message.job == request.job_id &&
                      message.opcode == request.opcode &&
                      message.match_bits == request.match_bits &&
                      message.request_length == request.request_length &&
                      message.buffer_offset >> 32 == request.initiator_restart_token();
    return same ? &message : nullptr;
  }
  return nullptr;
}

// A new message that takes over the receive of the parked one, whatever matching would say
// (SES-71). Discarded data are dropped as they come.
Response Receiver::on_restarted(const pds::RequestView& view, const wire::SesRequest& request,
                                Context& context, RxMessage& parked) {
  if (parked.receive == nullptr) {
    if (!messages_.refuse(view, request, context, ReturnCode::Ok)) {
      return nack_response(NackCode::NoSesMsgAvail);
    }
    drop_parked(parked, ReturnCode::Ok);
    return default_response(request, request.request_length);
  }
  RxMessage* message = messages_.open(view, request, context, RxState::Matched);
  if (message == nullptr) return nack_response(NackCode::NoSesMsgAvail);
  message->receive = parked.receive;
  message->base = parked.base;
  parked.receive = nullptr;
  drop_parked(parked, ReturnCode::Ok);
  return place_matched(request, *message);
}

// ---- its end -----------------------------------------------------------------------------------

// Takes the message off all lists; its state stays, because packets of it may still arrive.
// Returns its receive, if it had one, which is off its list.
PostedReceive* Receiver::forget_parked(RxMessage& message) {
  initiator_.pulls().forget_restart(message);
  PullList::remove(message);
  if (static_cast<const ListNode<UnexpectedTag>&>(message).linked()) drop_unexpected(message);
  PostedReceive* receive =
      message.receive != nullptr ? &receives_.withdraw(message, message) : nullptr;
  if (message.context != nullptr) --message.context->parked_count;
  message.parked = false;
  return receive;
}

// Later packets of the message are answered with `code`. Its receive waits again (SES-113).
void Receiver::drop_parked(RxMessage& message, ReturnCode code) {
  PostedReceive* receive = forget_parked(message);
  messages_.count_in_progress(message);
  messages_.abandon(message, code);
  if (receive != nullptr) restore(*receive);
}

// Its receive, which is returned, or its context does not wait for it any more. Its sender is asked
// to restart it all the same: it comes as a new message (SES-76), or the sender gets an error.
PostedReceive* Receiver::leave_parked(RxMessage& message) {
  const bool asked = message.restart_token != 0;
  PostedReceive* receive = forget_parked(message);
  if (asked) {
    messages_.count_in_progress(message);
    messages_.abandon(message, ReturnCode::Ok);
    return receive;
  }
  message.state = RxState::Error;
  message.return_code = ReturnCode::Ok;
  message.context = nullptr;
  message.parked = true;
  message.leaving = true;
  waiting_.push_back(message);
  next_try_ = Time{};
  return receive;
}

// The message that is asked for and has the receive with this operation context, or nullptr.
RxMessage* Receiver::find_reserved(const ReceiveQueue& queue, const void* operation) {
  for (PullList* list : {&waiting_, &restarting_}) {
    for (RxMessage& message : *list) {
      const PostedReceive* receive = message.parked ? message.receive : nullptr;
      if (receive != nullptr && receive->queue == &queue && receive->operation == operation) {
        return &message;
      }
    }
  }
  return nullptr;
}

// Called after the messages that were arriving on the PDC have ended. If the PDC closed in the
// usual way, the parked messages stay: the target asks for a restart, and the sender uses another
// PDC.
void Receiver::drop_parked(PdcId pdc, bool orderly) {
  for (PullList* list : {&parked_, &waiting_, &restarting_}) {
    for (auto at = list->begin(); at != list->end();) {
      RxMessage& message = *at;
      ++at;
      if (!message.parked || message.pdc != pdc) continue;
      message.awaited = false;
      if (orderly) {
        message.pdc = {};
      } else {
        drop_parked(message, ReturnCode::Dropped);
      }
    }
  }
}

void Receiver::expire_parked(Time now) {
  if (parked_timeout_ == Duration{0} || (parked_.empty() && restarting_.empty())) return;
  for (PullList* list : {&parked_, &restarting_}) {
    while (!list->empty() && now - list->front().parked_since >= parked_timeout_) {
      drop_parked(list->front(), ReturnCode::Dropped);
    }
  }
}

Time Receiver::parked_deadline() {
  Time deadline = kNever;
  if (parked_timeout_ == Duration{0}) return deadline;
  for (PullList* list : {&parked_, &restarting_}) {
    if (!list->empty()) deadline = std::min(deadline, list->front().parked_since + parked_timeout_);
  }
  return deadline;
}

}  // namespace uet::ses
