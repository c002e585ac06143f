// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Parking messages, asking for them, and their ends.
#include "ses/deferred_receives.h"

#include <algorithm>

#include "ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;

DeferredReceives::DeferredReceives(const Parameters& parameters, ArrivingMessages& messages,
                                   Unexpected& memory, PostedReceives& receives, PullQueue& queue,
                                   Pulls& pulls, Counters& counters)
    : retries_(parameters.retries),
      parks_(parameters.deferrable),
      limit_per_context_(parameters.parked_per_context),
      timeout_(parameters.deferred_timeout),
      messages_(messages),
      memory_(memory),
      receives_(receives),
      queue_(queue),
      pulls_(pulls),
      counters_(counters) {}

// ---- parking -----------------------------------------------------------------------------------

bool DeferredReceives::may_park(const pds::RequestView& view, const wire::SesRequest& request,
                                const Context& context) const {
  return parks_ && wire::is_deferrable(request.opcode) && view.mode == DeliveryMode::Rud &&
         request.request_length > 0 && context.parked_count < limit_per_context_;
}

Response DeferredReceives::park(const wire::SesRequest& request, RxMessage& message, Time now) {
  message.parked = true;
  message.parked_since = now;
  message.relative = request.rel;
  ++message.context->parked_count;
  parked_.push_back(message);
  messages_.await(message);
  ++counters_.messages_parked;
  on_later(request, message);
  return explicit_response(request, ReturnCode::Ok, wire::List::Overflow, 0,
                           message.context->generation.value, true);  // SES-67
}

Response DeferredReceives::on_later(const wire::SesRequest& request, RxMessage& message) {
  if (ends_eager_part(request)) message.expected = request.message_offset;  // SES-69
  ArrivingMessages::account(message, request);
  if (message.complete()) messages_.arrived(message);
  return default_response(request, 0);
}

// ---- asking for a restart ----------------------------------------------------------------------

void DeferredReceives::want(RxMessage& message) {
  PullList::remove(message);
  queue_.push(message);
  queue_.try_now();
}

Result<void> DeferredReceives::ask(RxMessage& message, Time now) {
  if (++last_token_ == 0) ++last_token_;
  const Result<void> started = pulls_.request_restart(message, last_token_, now);
  if (!started) return started;
  message.restart_token = last_token_;
  message.parked_since = now;
  PullList::remove(message);
  restarting_.push_back(message);
  return started;
}

PostedReceive* DeferredReceives::asked(RxMessage& message, Status status, bool not_consumed) {
  const bool again = not_consumed && message.tries++ < retries_;
  if (!again || message.tries == 1) queue_.try_now();  // another message can be asked for
  if (!again) {
    const bool over = status != Status::Ok || message.leaving;
    return over ? drop(message, ReturnCode::Dropped) : nullptr;
  }
  message.restart_token = 0;
  PullList::remove(message);
  queue_.push(message);
  return nullptr;
}

RxMessage* DeferredReceives::find_restarting(const pds::RequestView& view,
                                             const wire::SesRequest& request,
                                             const Context& context) {
  RxMessage* found = find_in(restarting_, [&](const RxMessage& message) {
    return message.restart_token == request.target_restart_token();
  });
  if (found == nullptr) return nullptr;
  const RxMessage& message = *found;
  const bool same = message.context == &context && message.source == view.source &&
                    message.initiator == request.initiator && message.job == request.job_id &&
                    message.opcode == request.opcode && message.match_bits == request.match_bits &&
                    message.request_length == request.request_length &&
                    message.buffer_offset >> 32 == request.initiator_restart_token();
  return same ? found : nullptr;
}

RxMessage* DeferredReceives::take_over(const pds::RequestView& view,
                                       const wire::SesRequest& request, Context& context,
                                       RxMessage& parked) {
  RxMessage* message = messages_.open(view, request, context, RxState::Matched);
  if (message == nullptr) return nullptr;
  message->receive = parked.receive;
  message->base = parked.base;
  parked.receive = nullptr;
  drop(parked, ReturnCode::Ok);
  return message;
}

Response DeferredReceives::drop_restarted(const pds::RequestView& view,
                                          const wire::SesRequest& request, Context& context,
                                          RxMessage& parked) {
  if (!messages_.refuse(view, request, context, ReturnCode::Ok)) {
    return nack_response(NackCode::NoSesMsgAvail);
  }
  drop(parked, ReturnCode::Ok);
  return default_response(request, request.request_length);
}

// ---- the end -----------------------------------------------------------------------------------

// Takes the message off all lists; its state stays, because packets of it may still arrive.
// Returns its receive, if it had one, which is off its list.
PostedReceive* DeferredReceives::forget(RxMessage& message) {
  pulls_.forget_restart(message);
  PullList::remove(message);
  if (static_cast<const ListNode<UnexpectedTag>&>(message).linked()) {
    leave_queue(message);
    memory_.release_memory(message);
  }
  PostedReceive* receive =
      message.receive != nullptr ? &receives_.withdraw(message, message) : nullptr;
  if (message.context != nullptr) --message.context->parked_count;
  message.parked = false;
  return receive;
}

PostedReceive* DeferredReceives::drop(RxMessage& message, ReturnCode code) {
  PostedReceive* receive = forget(message);
  messages_.count_in_progress(message);
  messages_.abandon(message, code);
  return receive;
}

PostedReceive* DeferredReceives::leave(RxMessage& message) {
  const bool asked = message.restart_token != 0;
  PostedReceive* receive = forget(message);
  if (asked) {
    messages_.count_in_progress(message);
    messages_.abandon(message, ReturnCode::Ok);
    return receive;
  }
  message.state = RxState::Error;
  message.return_code = ReturnCode::Ok;
  messages_.leave_context(message);
  message.parked = true;
  message.leaving = true;
  queue_.push(message);
  queue_.try_now();
  return receive;
}

RxMessage* DeferredReceives::find_reserved(const ReceiveQueue& queue, const void* operation) {
  const auto is_reserved = [&](const RxMessage& message) {
    const PostedReceive* receive = message.parked ? message.receive : nullptr;
    return receive != nullptr && receive->queue == &queue && receive->operation == operation;
  };
  RxMessage* waiting = find_in(queue_.waiting(), is_reserved);
  return waiting != nullptr ? waiting : find_in(restarting_, is_reserved);
}

RxMessage* DeferredReceives::expired(Time now) {
  if (timeout_ == Duration{0}) return nullptr;
  for (PullList* list : {&parked_, &restarting_}) {
    if (!list->empty() && now - list->front().parked_since >= timeout_) return &list->front();
  }
  return nullptr;
}

Time DeferredReceives::deadline() {
  Time deadline = kNever;
  if (timeout_ == Duration{0}) return deadline;
  for (PullList* list : {&parked_, &restarting_}) {
    if (!list->empty()) deadline = std::min(deadline, list->front().parked_since + timeout_);
  }
  return deadline;
}

void DeferredReceives::discard_all() {
  release_all(parked_, messages_);
  release_all(restarting_, messages_);
}

}  // namespace uet::ses
