// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Matches sends with receives, keeps unexpected messages, and completes both.
#include "uet/ses/receive.h"

#include <algorithm>
#include <utility>

#include "uet/ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;

namespace {

MatchKey match_key(const pds::RequestView& view, const wire::SesRequest& request) {
  return {request.match_bits, request.initiator, view.source};
}

Envelope* find_claimed(ReceiveQueue& queue, const void* operation) {
  for (Envelope& message : queue.claimed) {
    if (message.claimed_by == operation) return &message;
  }
  return nullptr;
}

}  // namespace

Receiver::Receiver(const Parameters& parameters, PieceStore& pieces, ArrivingMessages& messages,
                   Initiator& initiator, Counters& counters)
    : answers_no_match_(parameters.no_match),
      retries_(parameters.retries),
      parks_(parameters.deferrable),
      parked_limit_messages_(parameters.parked_per_context),
      parked_timeout_(parameters.deferred_timeout),
      host_copy_(parameters.host_copy),
      messages_(messages),
      initiator_(initiator),
      counters_(counters),
      unexpected_(parameters, pieces),
      receives_(parameters.posted_receives, counters) {}

// ---- receives ----------------------------------------------------------------------------------

Result<void> Receiver::receive(ReceiveQueue& queue, const ReceiveOp& op) {
  if (!settle(queue)) return Error::Again;  // older receives come first
  const auto prepared = receives_.open(queue, op);
  if (!prepared) return prepared.error();
  PostedReceive& receive = *prepared.value();
  if (op.claim) return claim(receive);
  if (receive.multi && queue.shared && !queue.sink.reserve_receive()) {  // for its last entry
    receives_.release(receive);
    return Error::Again;
  }
  offer(receive);
  enable_generations(queue);
  return {};
}

Result<void> Receiver::claim(PostedReceive& receive) {
  Envelope* message = find_claimed(*receive.queue, receive.operation);
  const bool room =
      message != nullptr && (!receive.shared || message->context->sink.reserve_receive());
  if (room) {
    ReceiveQueue& queue = *receive.queue;  // the receive may be done
    take(*message, receive);
    enable_generations(queue);
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
    more = take(*message, receive);
  }
  return true;
}

// Repeats feed() for the receives that it could not serve before. True when all are served.
bool Receiver::settle(ReceiveQueue& queue) {
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

void Receiver::settle() {
  for (auto at = short_of_room_.begin(); at != short_of_room_.end();) {
    ReceiveQueue& queue = *at;
    ++at;
    settle(queue);
  }
}

void Receiver::bind(RxMessage& message, PostedReceive& receive) {
  message.state = RxState::Matched;
  receives_.bind(message, message, receive);
}

// Moves an unexpected message to its receive. True when the receive can take another one.
bool Receiver::take(Envelope& message, PostedReceive& receive) {
  MatchQueue::remove(message);
  return message.single ? take_single(static_cast<SingleMessage&>(message), receive)
                        : take_arriving(static_cast<RxMessage&>(message), receive);
}

bool Receiver::take_single(SingleMessage& message, PostedReceive& receive) {
  Placement placement;
  receives_.bind(message, placement, receive);
  const bool more = receive.multi && !receive.closed;
  placement.placed = scatter(receive.slices(), placement.base, message.payload(), host_copy_);
  messages_.answer(message, placement, ReturnCode::Ok);
  CompletionSink& sink = message.context->sink;
  const ReceiveEnd ended = receives_.end(message, placement, Status::Ok);
  unexpected_.release(message);
  ++counters_.messages_received;
  receives_.report(sink, ended);
  return more;
}

bool Receiver::take_arriving(RxMessage& message, PostedReceive& receive) {
  bind(message, receive);
  const bool more = receive.multi && !receive.closed;
  for (const Piece* piece = message.pieces; piece != nullptr; piece = piece->next) {
    message.placed += scatter(receive.slices(), message.base + piece->offset,
                              {piece->data, piece->length}, host_copy_);
  }
  messages_.answer(message, ReturnCode::Ok);  // what still comes is answered when it is there
  release_memory(message);
  if (message.parked) {
    unpark(message);
  } else if (message.complete()) {
    eager_part_is_here(message);
  }
  return more;
}

Result<void> Receiver::cancel(ReceiveQueue& queue, const void* operation) {
  PostedReceive* receive = queue.untagged.find_operation(operation);
  if (receive == nullptr) receive = queue.tagged.find_operation(operation);
  RxMessage* reserved = receive == nullptr ? find_reserved(queue, operation) : nullptr;
  if (reserved != nullptr) receive = reserved->receive;
  if (receive == nullptr) {
    mark_cancelled(queue, operation);
    return Error::NotFound;
  }
  if (receive->shared && !receive->multi && !queue.sink.reserve_receive()) return Error::Again;
  if (receive->linked()) MatchQueue::remove(*receive);
  if (reserved != nullptr) leave_parked(*reserved);
  receive->closed = receive->cancelled = true;
  if (receive->under_way == 0) receives_.give_back(*receive, Status::Cancelled);
  return {};
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
  for (RxMessage& message : waiting_) mark(message);
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
      discard(*message);
      enable_generations(queue);
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

// The application does not want the message; its later packets are accepted and dropped.
void Receiver::discard(Envelope& envelope) {
  if (envelope.single) {
    leave_queue(envelope);
    return release(static_cast<SingleMessage&>(envelope), ReturnCode::Ok);
  }
  auto& message = static_cast<RxMessage&>(envelope);
  drop_unexpected(message);
  message.state = RxState::Error;
  message.return_code = ReturnCode::Ok;
  if (message.parked) return unpark(message);  // its sender wants to finish
  if (message.complete()) dismiss(message);
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
    RxMessage* parked = find_restarting(view, request, context);
    if (parked != nullptr) return on_restarted(view, request, context, *parked);
  }
  ReceiveQueue& queue = context.receives;
  if (queue.owner != nullptr) return on_owned(view, request, context, now);
  if (!settle(queue)) return nack_response(NackCode::NoResource);  // older messages come first
  PostedReceive* receive = find_fitting(queue.of(is_tagged(request.opcode)),
                                        match_key(view, request), request.request_length);  // 11
  if (receive == nullptr) return on_unexpected(view, request, context, now);
  RxMessage* message = messages_.open(view, request, context, RxState::Matched);
  if (message == nullptr) return nack_response(NackCode::NoSesMsgAvail);  // 17
  if (receive->room_by_message() && !context.sink.reserve_receive()) {
    messages_.release(*message);
    return nack_response(NackCode::NoResource);
  }
  if (message->must_read) defer(*message);
  bind(*message, *receive);
  return place_matched(request, *message);
}

Response Receiver::on_later_send(const pds::RequestView& view, const wire::SesRequest& request,
                                 RxMessage& message) {
  if (message.parked) return on_later_parked(request, message);
  if (ends_eager_part(request)) return end_eager_part(request, message);
  return message.state == RxState::Matched ? place_matched(request, message)
                                           : place_unexpected(view, request, message);
}

Response Receiver::place_matched(const wire::SesRequest& request, RxMessage& message) {
  message.placed += scatter(message.receive->slices(), message.base + request.message_offset,
                            request.payload, host_copy_);
  ArrivingMessages::account(message, request);
  const Response response = default_response(request, modified_length(message));
  if (message.complete()) eager_part_is_here(message);
  return response;
}

// Frees what was kept of the message, whose state remains.
void Receiver::release_memory(RxMessage& message) {
  unexpected_.release_memory(message);
  // A parked message would else keep its own restart from opening.
  if (!message.parked) messages_.count_in_progress(message);
}

// Refuses an unexpected message for lack of memory. It comes again when PDS retransmits the refused
// packet (`code`), or when its sender restarts it: on ROD no message may overtake it (SES-52).
Response Receiver::refuse(const pds::RequestView& view, const wire::SesRequest& request,
                          Context& context, NackCode code) {
  ++counters_.unexpected_refused;
  // An owner does not announce the receives that would enable the generation again.
  const bool silent = view.mode == DeliveryMode::Uud || context.receives.owner != nullptr;
  if (!answers_no_match_ || silent) return nack_response(code);
  // A message that is sent again must not leave a part behind that a receive has taken meanwhile.
  if (!messages_.refuse(view, request, context, ReturnCode::NoMatch)) return nack_response(code);
  ++counters_.no_match_answered;
  if (view.mode == DeliveryMode::Rod) {
    context.generation.enabled = false;
    context.receives.disabled.push_back(context);
  }
  return explicit_response(request, ReturnCode::NoMatch, wire::List::Expected, 0,
                           context.generation.value, true);
}

// Memory for unexpected messages is free again: accepts the refused ones, which come in their order
// because the target refuses packets under way that still name the old generation.
void Receiver::enable_generations(ReceiveQueue& queue) {
  while (!queue.disabled.empty()) {
    Generation& generation = queue.disabled.pop_front().generation;
    ++generation.value.value;
    generation.enabled = true;
  }
}

Response Receiver::on_unexpected(const pds::RequestView& view, const wire::SesRequest& request,
                                 Context& context, Time now) {
  const bool parks = may_park(view, request, context);
  if (!parks && Unexpected::is_whole(request)) return keep_single(view, request, context);
  RxMessage* message = messages_.open(view, request, context, RxState::Unexpected);
  if (message == nullptr) return refuse(view, request, context, NackCode::NoSesMsgAvail);
  if (!unexpected_.admit(*message, parks)) {
    messages_.release(*message);
    return refuse(view, request, context, NackCode::NoResource);
  }
  if (message->must_read) defer(*message);
  context.receives.of(message->tagged()).add(*message);
  if (parks) {
    ++counters_.unexpected_messages;
    return park(request, *message, now);
  }
  const Response placed = place_unexpected(view, request, *message);
  if (placed.nack) {
    drop_unexpected(*message);
    messages_.release(*message);
    return refuse(view, request, context, *placed.nack);
  }
  ++counters_.unexpected_messages;
  return placed;
}

// The whole message is here; as place_unexpected of its last packet.
Response Receiver::keep_single(const pds::RequestView& view, const wire::SesRequest& request,
                               Context& context) {
  NackCode why{};
  SingleMessage* message = unexpected_.keep_single(view, request, context, why);
  if (message == nullptr) return refuse(view, request, context, why);
  context.receives.of(message->tagged()).add(*message);
  ++counters_.unexpected_messages;
  const RiGeneration generation = context.generation.value;
  if (!request.dc) {
    return explicit_response(request, ReturnCode::Ok, wire::List::Overflow, request.request_length,
                             generation, true);
  }
  message->answer_owed = true;
  message->answer_psn = view.psn;
  return provisional_response(request, generation);
}

// A message that can be read again is never refused: the answer to its first dropped packet says
// that the target will read it. A sender that asks for delivery gets that answer in any case and
// waits for our read, which comes when a receive has the message (SES-110, SES-111). A message that
// cannot be read is answered then (SES-46, SES-48).
Response Receiver::place_unexpected(const pds::RequestView& view, const wire::SesRequest& request,
                                    RxMessage& message) {
  bool dropped = false;
  if (!request.payload.empty()) {
    const Unexpected::Fate fate = unexpected_.keep(request, message);
    if (fate == Unexpected::Fate::Refuse) return nack_response(NackCode::NoPktBuffer);
    dropped = fate == Unexpected::Fate::ReadLater;
    if (dropped) {
      message.read_from = std::min<std::uint64_t>(message.read_from, request.message_offset);
    }
  }
  ArrivingMessages::account(message, request);
  const bool tell =
      message.readable && !message.must_read && (dropped || message.delivery_complete);
  if (tell) defer(message);
  if (message.complete()) messages_.arrived(message);  // it only waits for its receive now
  // Otherwise only the answer to the last packet says that no receive was posted (SES-45, SES-105):
  // an earlier guaranteed response would hold CACK, and with it the sender, until its CLEAR has
  // come; by then the application may have posted the receive and make no more progress.
  const bool kept_until_wanted = request.eom && !(message.readable && message.must_read);
  if (!tell && !kept_until_wanted) return default_response(request, modified_length(message));
  if (!tell && message.delivery_complete) {
    message.answer_owed = true;
    message.answer_psn = view.psn;
    return provisional_response(request, message.context->generation.value);
  }
  // Of a message without bytes OVERFLOW, 0 would say nothing that is not said of any unexpected
  // one.
  const bool told_later = tell && message.request_length == 0;
  const wire::List list = told_later ? wire::List::ToBeRead : wire::List::Overflow;
  return explicit_response(request, ReturnCode::Ok, list, tell ? 0 : modified_length(message),
                           message.context->generation.value, true);
}

// An unexpected message that goes to no receive leaves its list.
void Receiver::leave_queue(Envelope& message) {
  ReceiveOwner* owner = message.context->receives.owner;
  void* const token = std::exchange(message.claimed_by, nullptr);
  if (owner != nullptr && token != nullptr) owner->lost(token);
  MatchQueue::remove(message);
}

// Takes an unexpected message off its list and gives its memory back; its state remains.
void Receiver::drop_unexpected(RxMessage& message) {
  leave_queue(message);
  release_memory(message);
}

// The end of a message that goes to no receive and is on no list.
void Receiver::release(SingleMessage& message, ReturnCode code) {
  messages_.answer(message, Placement{}, code);
  unexpected_.release(message);
}

// ---- the end of messages -----------------------------------------------------------------------

void Receiver::complete_receive(RxMessage& message) {
  CompletionSink& sink = message.context->sink;
  const ReceiveEnd ended = receives_.end(message, message, Status::Ok);
  dismiss(message);
  ++counters_.messages_received;
  receives_.report(sink, ended);
}

void Receiver::end_message(RxMessage& message, ReturnCode code, Status status) {
  if (message.parked) return drop_parked(message, code);
  stop_reading(message);
  if (message.state == RxState::Unexpected) drop_unexpected(message);
  if (message.state != RxState::Matched) return messages_.abandon(message, code);
  const bool unused = status == Status::Abandoned && message.placed == 0;
  if (unused) {
    PostedReceive& receive = receives_.withdraw(message, message);
    messages_.abandon(message, code);
    return restore(receive);
  }
  fail_receive(message, code, status);
}

void Receiver::fail_receive(RxMessage& message, ReturnCode code, Status status) {
  Context& context = *message.context;
  const ReceiveEnd ended = receives_.end(message, message, status);
  messages_.abandon(message, code);
  receives_.report(context.sink, ended);
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

// ---- the end of contexts -----------------------------------------------------------------------

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

}  // namespace uet::ses
