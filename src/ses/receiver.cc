// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting and matching, and the ends of messages, receives and contexts.
#include "ses/receiver.h"

#include <algorithm>
#include <utility>

#include "ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;

namespace {

MatchKey match_key(const pds::RequestView& view, const wire::SesRequest& request) {
  return {request.match_bits, request.initiator, view.source, request.job_id};
}

Envelope* find_claimed(ReceiveQueue& queue, const void* operation) {
  for (Envelope& message : queue.claimed) {
    if (message.claimed_by == operation) return &message;
  }
  return nullptr;
}

}  // namespace

Receiver::Receiver(const Parameters& parameters, PieceStore& pieces, ArrivingMessages& messages,
                   Pulls& pulls, Counters& counters)
    : messages_(messages),
      memory_(parameters, pieces),
      receives_(parameters.posted_receives, counters),
      pulls_(messages),
      rendezvous_(parameters, messages, pulls_, pulls),
      deferred_(parameters, messages, memory_, receives_, pulls_, pulls, counters),
      unexpected_(parameters, messages, memory_, rendezvous_, deferred_, counters),
      matched_({messages, memory_, receives_, rendezvous_, deferred_, unexpected_},
               parameters.host_copy, counters) {}

// ---- receives ----------------------------------------------------------------------------------

Result<void> Receiver::receive(ReceiveQueue& queue, const ReceiveOp& op) {
  if (!serve(queue)) return Error::Again;  // older receives come first
  const auto prepared = receives_.open(queue, op);
  if (!prepared) return prepared.error();
  PostedReceive& receive = *prepared.value();
  if (op.claim) return claim(receive);
  if (receive.multi && queue.shared && !queue.sink.reserve_receive()) {  // for its last entry
    receives_.release(receive);
    return Error::Again;
  }
  offer(receive);
  UnexpectedMessages::enable_generations(queue);
  return {};
}

Result<void> Receiver::claim(PostedReceive& receive) {
  Envelope* message = find_claimed(*receive.queue, receive.operation);
  const bool room =
      message != nullptr && (!receive.shared || message->context->sink.reserve_receive());
  if (room) {
    ReceiveQueue& queue = *receive.queue;  // the receive may be done
    matched_.take(*message, receive);
    UnexpectedMessages::enable_generations(queue);
    return {};
  }
  receives_.release(receive);
  return message == nullptr ? Error::NotFound : Error::Again;
}

// Posts the receive and gives it the unexpected messages that it matches.
void Receiver::offer(PostedReceive& receive) {
  ReceiveQueue& queue = *receive.queue;
  queue.of(receive.tagged).put(receive);
  if (!feed(receive) && !queue.linked()) short_of_room_.push_back(queue);
}

// Gives a posted receive the oldest unexpected message that it matches; a multi-receive all of
// them, as far as they fit. False when no CQ entry is free for a completion.
bool Receiver::feed(PostedReceive& receive) {
  MatchQueue& lists = receive.queue->of(receive.tagged);
  for (bool more = true; more;) {
    Envelope* message = lists.find_unexpected(receive);
    if (message == nullptr) return true;
    if (!receive.fits(message->request_length)) {
      receives_.close(receive);
      return true;
    }
    if (receive.room_by_message() && !message->context->sink.reserve_receive()) return false;
    more = matched_.take(*message, receive);
  }
  return true;
}

// Repeats feed() for the receives that it could not serve before. True when all are served.
bool Receiver::serve(ReceiveQueue& queue) {
  if (!queue.linked()) return true;
  for (MatchQueue* lists : {&queue.untagged, &queue.tagged}) {
    for (auto at = lists->posted.begin(); at != lists->posted.end();) {
      PostedReceive& receive = *at;
      ++at;
      if (!feed(receive)) return false;
    }
  }
  short_of_room_.remove(queue);
  return true;
}

void Receiver::serve_all() {
  for (auto at = short_of_room_.begin(); at != short_of_room_.end();) {
    ReceiveQueue& queue = *at;
    ++at;
    serve(queue);
  }
}

Result<void> Receiver::cancel(ReceiveQueue& queue, const void* operation) {
  PostedReceive* receive = queue.untagged.find_operation(operation);
  if (receive == nullptr) receive = queue.tagged.find_operation(operation);
  RxMessage* reserved = receive == nullptr ? deferred_.find_reserved(queue, operation) : nullptr;
  if (reserved != nullptr) receive = reserved->receive;
  if (receive == nullptr) {
    mark_cancelled(queue, operation);
    return Error::NotFound;
  }
  if (receive->shared && !receive->multi && !queue.sink.reserve_receive()) return Error::Again;
  if (receive->linked()) MatchQueue::remove(*receive);
  if (reserved != nullptr) deferred_.leave(*reserved);
  receive->closed = receive->cancelled = true;
  if (receive->under_way == 0) receives_.give_back(*receive, Status::Cancelled);
  return {};
}

void Receiver::cancel_all(ReceiveQueue& queue) {
  for (MatchQueue* lists : {&queue.untagged, &queue.tagged}) {
    while (!lists->posted.empty()) {
      PostedReceive& receive = lists->posted.front();
      MatchQueue::remove(receive);
      receive.closed = receive.cancelled = true;
      if (receive.under_way == 0) receives_.give_back(receive, Status::Cancelled);
    }
  }
}

// A receive that a message is under way to may still succeed; else it ends as cancelled.
void Receiver::mark_cancelled(ReceiveQueue& queue, const void* operation) {
  const auto mark = [&](RxMessage& message) {
    PostedReceive* receive = message.state == RxState::Matched ? message.receive : nullptr;
    const bool asked = receive != nullptr && !receive->multi && receive->queue == &queue &&
                       receive->operation == operation;
    if (asked) receive->cancelled = true;
  };
  messages_.for_each(mark);
  for (RxMessage& message : pulls_.waiting()) mark(message);
}

// ---- peeks -------------------------------------------------------------------------------------

Result<void> Receiver::peek(ReceiveQueue& queue, const PeekOp& op) {
  if (op.discard && op.claim) return Error::Invalid;
  if (queue.shared && !queue.sink.reserve_receive()) return Error::Again;
  MatchCriteria criteria;
  set_criteria(criteria, queue, op);
  Envelope* message = op.claimed ? find_claimed(queue, op.context)
                                 : queue.of(op.tagged).find_unexpected(criteria, true);
  Completion completion;
  completion.kind = op.tagged ? Kind::TaggedReceive : Kind::Receive;
  completion.context = op.context;
  completion.user_flags = op.user_flags;
  if (message == nullptr) {
    completion.status = Status::NoMessage;
    completion.tag = op.tag;
  } else {
    completion.length = message->request_length;
    describe(*message, completion);
    if (op.discard) {
      unexpected_.discard(*message);
      UnexpectedMessages::enable_generations(queue);
    }
    if (op.claim && !op.claimed) {
      MatchQueue::remove(*message);
      queue.claimed.push_back(*message);
      message->claimed_by = op.context;
    }
  }
  queue.sink.complete(completion);
  return {};
}

// ---- sends -------------------------------------------------------------------------------------

// The oldest receive that the message may go to. Buffers that it finds too full are closed: a later
// and shorter message must not overtake it there.
PostedReceive* Receiver::find_fitting(MatchQueue& lists, const MatchKey& key,
                                      std::uint64_t length) {
  PostedReceive* receive = lists.find_receive(key);
  while (receive != nullptr && !receive->fits(length)) {
    receives_.close(*receive);
    receive = lists.find_receive(key);
  }
  return receive;
}

Response Receiver::on_send(const pds::RequestView& view, const wire::SesRequest& request,
                           Context& context, Time now) {
  if (wire::is_deferrable(request.opcode) && request.target_restart_token() != 0) {
    RxMessage* parked = deferred_.find_restarting(view, request, context);
    if (parked != nullptr) return on_restarted(view, request, context, *parked);
  }
  ReceiveQueue& queue = context.receives;
  if (queue.owner != nullptr) return on_owned(view, request, context, now);
  if (!serve(queue)) return nack_response(NackCode::NoResource);  // older messages come first
  PostedReceive* receive = find_fitting(queue.of(is_tagged(request.opcode)),
                                        match_key(view, request), whole_length(request));  // 11
  if (receive == nullptr) return unexpected_.accept(view, request, context, now);
  RxMessage* message = messages_.open(view, request, context, RxState::Matched);
  if (message == nullptr) return nack_response(NackCode::NoSesMsgAvail);  // 17
  if (receive->room_by_message() && !context.sink.reserve_receive()) {
    messages_.release(*message);
    return nack_response(NackCode::NoResource);
  }
  if (message->must_read) rendezvous_.begin(*message);
  matched_.bind(*message, *receive);
  return matched_.place(request, *message);
}

Response Receiver::on_later_send(const pds::RequestView& view, const wire::SesRequest& request,
                                 RxMessage& message) {
  if (message.parked) return deferred_.on_later(request, message);
  if (ends_eager_part(request)) return end_eager_part(request, message);
  return message.state == RxState::Matched ? matched_.place(request, message)
                                           : unexpected_.place(view, request, message);
}

PostedReceive* Receiver::find_for_data(const Envelope& message) {
  ReceiveQueue& queue = message.context->receives;
  if (!serve(queue)) return nullptr;  // older messages come first
  PostedReceive* receive = queue.untagged.find_receive(key_of(message));
  if (receive == nullptr || !receive->room_by_message()) return receive;
  return message.context->sink.reserve_receive() ? receive : nullptr;
}

void Receiver::give_data(PostedReceive& receive, Completion& completion) {
  completion.took_receive = true;
  completion.context = receive.operation;
  completion.user_flags = receive.user_flags;
  if (receive.multi) return;
  MatchQueue::remove(receive);
  receives_.release(receive);
}

// The sender saw that we drop what comes and ends the eager part where it stands (as SES-69).
Response Receiver::end_eager_part(const wire::SesRequest& request, RxMessage& message) {
  message.expected = request.message_offset;
  message.read_from = std::min<std::uint64_t>(message.read_from, request.message_offset);
  const Response response = default_response(request, modified_length(message));
  if (message.complete()) {
    if (message.state == RxState::Matched) {
      matched_.eager_part_is_here(message);
    } else {
      messages_.arrived(message);
    }
  }
  return response;
}

// The restart of a parked message: it goes to the receive of that one, if the application has not
// discarded the message.
Response Receiver::on_restarted(const pds::RequestView& view, const wire::SesRequest& request,
                                Context& context, RxMessage& parked) {
  if (parked.receive == nullptr) return deferred_.drop_restarted(view, request, context, parked);
  RxMessage* message = deferred_.take_over(view, request, context, parked);
  if (message == nullptr) return nack_response(NackCode::NoSesMsgAvail);
  return matched_.place(request, *message);
}

// ---- receives of an owner -----------------------------------------------------------------------
// A ReceiveOwner matches the messages to its contexts. It hands a receive over when its message is
// here; the receive never waits in a list of SES. Without a receive, the message is kept among the
// claimed messages, where only the owner finds it.

// A receive cannot be given back to its owner. Therefore the resources for it are checked before
// the owner is asked for it.
Response Receiver::on_owned(const pds::RequestView& view, const wire::SesRequest& request,
                            Context& context, Time now) {
  ReceiveQueue& queue = context.receives;
  const bool room = messages_.may_open(view) && receives_.may_open(queue);
  if (!room) return nack_response(NackCode::NoSesMsgAvail);
  if (!context.sink.reserve_receive()) return nack_response(NackCode::NoResource);
  Arrival arrival{.tagged = is_tagged(request.opcode),
                  .tag = request.match_bits,
                  .length = whole_length(request),
                  .source = view.source,
                  .initiator = request.initiator,
                  .job = request.job_id,
                  .data = {}};
  if (request.som && request.hd) arrival.data = request.header_data;
  ReceiveOp op;
  void* token = nullptr;
  const ReceiveOwner::Found found = queue.owner->find(arrival, op, token);
  if (found == ReceiveOwner::Found::Receive) {
    const auto receive = receives_.open(queue, op);
    UET_ASSERT(receive.ok());
    RxMessage* message = messages_.open(view, request, context, RxState::Matched);
    if (message->must_read) rendezvous_.begin(*message);
    matched_.bind(*message, *receive.value());
    return matched_.place(request, *message);
  }
  context.sink.release_receive();
  if (found == ReceiveOwner::Found::NotNow) return nack_response(NackCode::NoResource);
  const Response response = unexpected_.accept(view, request, context, now);
  if (response.nack) {
    queue.owner->refused(token);
    return response;
  }
  Envelope& message = queue.of(arrival.tagged).unexpected.back();
  MatchQueue::remove(message);
  queue.claimed.push_back(message);
  message.claimed_by = token;
  queue.owner->kept(token, message);
  return response;
}

Result<void> Receiver::receive_kept(Envelope& message, const ReceiveOp& op) {
  const auto receive = receives_.open(message.context->receives, op);
  if (!receive) return receive.error();
  if (!message.context->sink.reserve_receive()) {
    receives_.release(*receive.value());
    return Error::Again;
  }
  message.claimed_by = nullptr;
  matched_.take(message, *receive.value());
  return {};
}

void Receiver::discard_kept(Envelope& message) {
  message.claimed_by = nullptr;
  unexpected_.discard(message);
}

// ---- asking senders ----------------------------------------------------------------------------

void Receiver::progress(Time now) {
  serve_all();
  while (RxMessage* late = deferred_.expired(now)) drop_deferred(*late, ReturnCode::Dropped);
  pulls_.ask_all(now, [&](RxMessage& message) {
    return message.parked ? deferred_.ask(message, now) : rendezvous_.ask(message, now);
  });
}

Time Receiver::next_deadline() {
  const bool repeats = !short_of_room_.empty() || !pulls_.empty();
  return std::min(repeats ? pulls_.next_try() : kNever, deferred_.deadline());
}

void Receiver::pulled(RxMessage& message, Status status, bool not_consumed) noexcept {
  if (message.parked) {
    PostedReceive* receive = deferred_.asked(message, status, not_consumed);
    if (receive != nullptr) restore(*receive);
    return;
  }
  switch (rendezvous_.pulled(message, status, not_consumed)) {
    case RendezvousTarget::Outcome::None:
      return;
    case RendezvousTarget::Outcome::Whole:
      return matched_.complete(message);
    case RendezvousTarget::Outcome::Failed:
      return matched_.fail(message, ReturnCode::Dropped,
                           status == Status::PdsError ? Status::PeerLost : Status::Abandoned);
  }
}

// ---- the end of messages -----------------------------------------------------------------------

void Receiver::dismiss(RxMessage& message) {
  if (message.parked) return messages_.arrived(message);
  rendezvous_.dismiss(message);
}

void Receiver::drop_deferred(RxMessage& message, ReturnCode code) {
  PostedReceive* receive = deferred_.drop(message, code);
  if (receive != nullptr) restore(*receive);
}

void Receiver::end_message(RxMessage& message, ReturnCode code, Status status) {
  if (message.parked) return drop_deferred(message, code);
  rendezvous_.stop(message);
  if (message.state == RxState::Unexpected) unexpected_.drop(message);
  if (message.state != RxState::Matched) return messages_.abandon(message, code);
  const bool unused = status == Status::Abandoned && message.placed == 0;
  if (unused) {
    PostedReceive& receive = receives_.withdraw(message, message);
    messages_.abandon(message, code);
    return restore(receive);
  }
  matched_.fail(message, code, status);
}

// Puts a receive that lost its message back into its old place in the queue.
// A receive of an owner has left the list of the owner for good.
void Receiver::restore(PostedReceive& receive) {
  const bool over = receive.cancelled && !receive.multi &&
                    (!receive.shared || receive.queue->sink.reserve_receive());
  if (over || receive.queue->owner != nullptr) {
    receives_.give_back(receive, over ? Status::Cancelled : Status::Abandoned);
  } else if (!receive.multi) {
    offer(receive);
  } else if (receive.closed && receive.under_way == 0) {
    receives_.give_back(receive, last_status(receive));
  }
}

// On the PDC that the message came on, or, if that has closed meanwhile, on any of its sender.
void Receiver::abandoned(const pds::RequestView& view, const wire::SesRequest& request) {
  const auto is_meant = [&](const RxMessage& message) {
    if (message.message_id != request.message_id || message.leaving) return false;
    if (message.pdc != PdcId{}) return message.pdc == view.pdc;
    return message.source == view.source && message.initiator == request.initiator &&
           message.job == request.job_id;
  };
  RxMessage* message = find_in(rendezvous_.eager(), is_meant);
  if (message == nullptr) message = find_in(pulls_.waiting(), is_meant);
  if (message == nullptr) message = deferred_.find(is_meant);
  if (message != nullptr) end_message(*message, ReturnCode::Dropped, Status::Abandoned);
}

void Receiver::pdc_closed(PdcId pdc, bool orderly) {
  deferred_.pdc_closed(pdc, orderly, [&](RxMessage& message) {  //
    drop_deferred(message, ReturnCode::Dropped);
  });
  rendezvous_.pdc_closed(pdc, orderly, [&](RxMessage& message) {
    end_message(message, ReturnCode::Dropped, Status::PeerLost);
  });
}

// ---- the end of contexts -----------------------------------------------------------------------

void Receiver::close_context(Context& context) {
  context.closing = true;
  ReceiveQueue& queue = context.receives;
  unexpected_.close_context(context);
  const auto release_receive = [&](PostedReceive& receive) {
    if (queue.owner != nullptr) {
      queue.owner->vanished(receive.operation);
      receives_.release(receive);
    } else if (queue.shared) {
      restore(receive);
    } else if (!receive.linked() && receive.under_way == 0) {
      receives_.release(receive);
    }
  };
  deferred_.close_context(context, release_receive);
  rendezvous_.close_context(
      context, [&](RxMessage& message) { release_receive(receives_.withdraw(message, message)); });
  messages_.for_each([&](RxMessage& message) {
    if (message.context != &context) return;
    PostedReceive* receive =
        message.state == RxState::Matched ? &receives_.withdraw(message, message) : nullptr;
    messages_.release(message);
    if (receive != nullptr) release_receive(*receive);
  });
  if (!context.generation.enabled) queue.disabled.remove(context);
  if (!queue.shared) close_queue(queue);
  UET_ASSERT(context.unexpected_bytes == 0);
}

void Receiver::close_queue(ReceiveQueue& queue) {
  for (MatchQueue* lists : {&queue.untagged, &queue.tagged}) {
    while (!lists->posted.empty()) {
      PostedReceive& receive = lists->posted.front();
      MatchQueue::remove(receive);
      receives_.release(receive);
    }
  }
  if (queue.linked()) short_of_room_.remove(queue);
}

void Receiver::discard_all() {
  rendezvous_.discard_all();
  release_all(pulls_.waiting(), messages_);
  deferred_.discard_all();
}

}  // namespace uet::ses
