// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Matching sends with receives, keeping what nobody waits for yet, and completing.
#include "uet/ses/receive.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "uet/ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;

namespace {

// What an unexpected message is charged besides its data.
constexpr std::size_t kUnexpectedMessageBytes = sizeof(RxMessage);
// Unexpected messages leave 1/8 of the payload buffers to traffic that somebody waits for.
constexpr std::size_t kBufferReserve = 8;
// Of a message that can be read again nothing is kept when this part of the memory, of the context
// or of the peer, is full: the rest is for those that must be kept or refused.
constexpr std::size_t kReadableShare = 2;
constexpr std::size_t kShareWeight = 3;  // one host has 3/4 of the memory at most

MatchKey match_key(const pds::RequestView& view, const wire::SesRequest& request) {
  return {request.match_bits, request.initiator, view.source};
}

// What the message takes of a multi-receive buffer.
std::uint64_t room_taken(const RxMessage& message, const PostedReceive& receive) {
  return std::min<std::uint64_t>(message.request_length, receive.capacity - message.base);
}

// Only a message that no buffer of this size could hold is truncated.
bool fits(const PostedReceive& receive, std::uint64_t length) {
  return !receive.multi || receive.used == 0 || length <= receive.capacity - receive.used;
}

// What the last entry of a multi-receive says.
Status last_status(const PostedReceive& receive) {
  return receive.cancelled ? Status::Cancelled : Status::Ok;
}

std::byte* address_at(std::span<const IoSlice> slices, std::uint64_t offset) {
  for (const IoSlice& slice : slices) {
    if (offset < slice.length || offset == 0) return slice.data + offset;
    offset -= slice.length;
  }
  return nullptr;
}

void describe(const RxMessage& message, Completion& completion) {
  completion.tag = message.tagged() ? message.match_bits : 0;
  completion.has_data = message.has_data;
  completion.data = message.data;
  completion.source = message.source;
  completion.source_initiator = message.initiator;
}

RxMessage* find_claimed(ReceiveQueue& queue, const void* operation) {
  for (RxMessage& message : queue.claimed) {
    if (message.claimed_by == operation) return &message;
  }
  return nullptr;
}

template <class Op>
void set_criteria(MatchCriteria& criteria, const ReceiveQueue& queue, const Op& op) {
  criteria.tag = op.tag;
  criteria.ignore = op.ignore;
  criteria.tagged = op.tagged;
  if (op.source == nullptr || !queue.directed) return;
  criteria.directed = true;
  criteria.source = op.source->fep;
  criteria.source_initiator = op.source->initiator;
}

}  // namespace

Receiver::Receiver(const Parameters& parameters, PieceStore& pieces, ArrivingMessages& messages,
                   Initiator& initiator, Counters& counters)
    : unexpected_limit_bytes_(parameters.unexpected_bytes_per_context),
      unpressed_bytes_(parameters.rendezvous ? unexpected_limit_bytes_ / kReadableShare : 0),
      peer_limit_bytes_(parameters.unexpected_bytes_per_peer),
      eager_bytes_(parameters.eager_bytes),
      answers_no_match_(parameters.no_match),
      retries_(parameters.retries),
      parks_(parameters.deferrable),
      parked_limit_messages_(parameters.parked_per_context),
      parked_timeout_(parameters.deferred_timeout),
      host_copy_(parameters.host_copy),
      pieces_(pieces),
      messages_(messages),
      initiator_(initiator),
      counters_(counters),
      shares_(kShareWeight, parameters.seed),
      receives_(parameters.posted_receives),
      more_slices_(std::max<std::size_t>(parameters.posted_receives / 8, kMaxIoSlices)) {}

// ---- receives ----------------------------------------------------------------------------------

// A descriptor of the receive, which is on no list yet.
Result<PostedReceive*> Receiver::prepare(ReceiveQueue& queue, const ReceiveOp& op) {
  if (op.local.size() > kMaxIoSlices || (op.multi && op.claim)) return Error::Invalid;
  for (const IoSlice& slice : op.local) {
    if (slice.data == nullptr && slice.length > 0) return Error::Invalid;
  }
  if (queue.count >= queue.size) return Error::Again;
  MoreSlices* more = nullptr;
  if (op.local.size() > 1 && (more = more_slices_.take()) == nullptr) return Error::Again;
  PostedReceive* receive = receives_.take();
  if (receive == nullptr) {
    if (more != nullptr) more_slices_.give_back(more);
    return Error::Again;
  }
  set_criteria(*receive, queue, op);
  receive->multi = op.multi;
  receive->shared = queue.shared;
  receive->min_free = op.min_free;
  receive->queue = &queue;
  receive->slice_count = static_cast<std::uint32_t>(op.local.size());
  receive->more = more;
  std::copy(op.local.begin(), op.local.end(),
            more != nullptr ? more->slices.data() : &receive->slice);
  receive->capacity = total_length(op.local);
  receive->sequence = next_sequence_++;
  receive->operation = op.context;
  receive->user_flags = op.user_flags;
  ++queue.count;
  return receive;
}

Result<void> Receiver::receive(ReceiveQueue& queue, const ReceiveOp& op) {
  if (!settle(queue)) return Error::Again;  // older receives come first
  const auto prepared = prepare(queue, op);
  if (!prepared) return prepared.error();
  PostedReceive& receive = *prepared.value();
  if (op.claim) return claim(receive);
  if (receive.multi && queue.shared && !queue.sink.reserve_receive()) {  // for its last entry
    release(receive);
    return Error::Again;
  }
  offer(receive);
  enable_generations(queue);
  return {};
}

Result<void> Receiver::claim(PostedReceive& receive) {
  RxMessage* message = find_claimed(*receive.queue, receive.operation);
  const bool room =
      message != nullptr && (!receive.shared || message->context->sink.reserve_receive());
  if (room) {
    ReceiveQueue& queue = *receive.queue;  // the receive may be done
    take(*message, receive);
    enable_generations(queue);
    return {};
  }
  release(receive);
  return message == nullptr ? Error::NotFound : Error::Again;
}

// Posts the receive and gives it the unexpected messages that it matches.
void Receiver::offer(PostedReceive& receive) {
  ReceiveQueue& queue = *receive.queue;
  queue.of(receive.tagged).put(receive);
  if (!feed(receive) && !queue.linked()) short_of_room_.push_back(queue);
}

// Gives a posted receive the oldest unexpected message that it matches; a multi-receive all of
// them, as far as they fit. False when a completion finds no room.
bool Receiver::feed(PostedReceive& receive) {
  MatchQueue& lists = receive.queue->of(receive.tagged);
  for (bool more = true; more;) {
    RxMessage* message = lists.find_unexpected(receive);
    if (message == nullptr) return true;
    if (!fits(receive, message->request_length)) {
      close(receive);
      return true;
    }
    if (receive.room_by_message() && !message->context->sink.reserve_receive()) return false;
    more = take(*message, receive);
  }
  return true;
}

// What feed could not do before. True when nothing is left of it.
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

// Moves an unexpected message to its receive. True when the receive can take another one.
bool Receiver::take(RxMessage& message, PostedReceive& receive) {
  MatchQueue::remove(message);
  bind(message, receive);
  const bool more = receive.multi && !receive.closed;
  for (const Piece* piece = message.pieces; piece != nullptr; piece = piece->next) {
    message.placed += scatter(receive.slices(), message.base + piece->offset,
                              {piece->data, piece->length}, host_copy_);
  }
  messages_.answer(message, ReturnCode::Ok);  // what still comes is answered when it is there
  pieces_.give_back_all(message.pieces);
  refund(message);
  if (message.parked) {
    unpark(message);
  } else if (message.complete()) {
    eager_part_is_here(message);
  }
  return more;
}

// The message takes the receive off its list, or room in the buffer of a multi-receive.
void Receiver::bind(RxMessage& message, PostedReceive& receive) {
  message.state = RxState::Matched;
  message.receive = &receive;
  ++bound_receives_;
  if (receive.multi) {
    ++receive.under_way;
    message.base = receive.used;
    receive.used += room_taken(message, receive);
    const std::uint64_t left = receive.capacity - receive.used;
    if (left >= std::max<std::uint64_t>(receive.min_free, 1)) return;
    receive.closed = true;
  }
  if (receive.linked()) MatchQueue::remove(receive);
}

// Ends the tie; whoever calls decides what becomes of the receive.
PostedReceive& Receiver::unbind(RxMessage& message) {
  PostedReceive& receive = *message.receive;
  message.receive = nullptr;
  --bound_receives_;
  if (receive.multi) --receive.under_way;
  return receive;
}

// A multi-receive takes no more messages.
void Receiver::close(PostedReceive& receive) {
  receive.closed = true;
  MatchQueue::remove(receive);
  if (receive.under_way == 0) give_back(receive, Status::Ok);
}

// The end of a receive that no message is bound to: cancelled, or a multi-receive given back.
void Receiver::give_back(PostedReceive& receive, Status status) {
  CompletionSink& sink = receive.queue->sink;
  Completion completion;
  completion.kind = receive.tagged ? Kind::TaggedReceive : Kind::Receive;
  completion.status = status;
  completion.released = receive.multi;
  completion.context = receive.operation;
  completion.user_flags = receive.user_flags;
  completion.tag = receive.tag;
  release(receive);
  sink.complete(completion);
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
  if (receive->under_way == 0) give_back(*receive, Status::Cancelled);
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
  RxMessage* message = op.claimed ? find_claimed(queue, op.context)
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

// Nobody wants the message; what is still to come of it is accepted and dropped.
void Receiver::discard(RxMessage& message) {
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
  while (receive != nullptr && !fits(*receive, length)) {
    close(*receive);
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

// Charges memory to the message, its context and its host. False, and nothing charged, when a share
// is used up.
bool Receiver::charge(RxMessage& message, std::size_t bytes) {
  Context& context = *message.context;
  const std::uint64_t host = host_hash(message.source.ip);
  if (context.unexpected_bytes >= unexpected_limit_bytes_) return false;
  const std::size_t available = unexpected_limit_bytes_ - context.unexpected_bytes;
  if (!shares_.allows(host, bytes, available)) return false;
  if (shares_.held(host) + bytes > peer_limit_bytes_) return false;
  context.unexpected_bytes += bytes;
  unexpected_bytes_ += bytes;
  shares_.take(host, bytes);
  message.charged += bytes;
  return true;
}

void Receiver::refund(RxMessage& message) {
  message.context->unexpected_bytes -= message.charged;
  unexpected_bytes_ -= message.charged;
  shares_.give_back(host_hash(message.source.ip), message.charged);
  message.charged = 0;
  // A parked message would else keep its own restart from opening.
  if (!message.parked) messages_.count_in_progress(message);
}

double Receiver::occupancy(const Context& context) const {
  if (context.unexpected_bytes <= unpressed_bytes_) return 0;
  return static_cast<double>(context.unexpected_bytes - unpressed_bytes_) /
         static_cast<double>(unexpected_limit_bytes_ - unpressed_bytes_);
}

bool Receiver::worth_keeping(const wire::SesRequest& request, const RxMessage& message) const {
  if (!message.readable) return true;
  return request.message_offset + request.payload.size() <= eager_bytes_ &&
         message.context->unexpected_bytes < unexpected_limit_bytes_ / kReadableShare &&
         shares_.held(host_hash(message.source.ip)) < peer_limit_bytes_ / kReadableShare;
}

// A copy of the packet's payload, charged to the message. nullptr, and nothing charged, when memory
// or a share of it is used up, or when the message can as well be read again.
Piece* Receiver::keep(const wire::SesRequest& request, RxMessage& message) {
  if (!worth_keeping(request, message)) return nullptr;
  const bool full = request.payload.size() > PieceStore::kSmallBytes;
  if (full &&
      !shares_.allows(host_hash(message.source.ip), pieces_.largest(), pieces_.available_bytes())) {
    return nullptr;
  }
  Piece* piece = pieces_.take(static_cast<std::uint32_t>(request.payload.size()),
                              pieces_.capacity() / kBufferReserve);
  if (piece == nullptr) return nullptr;
  if (!charge(message, pieces_.cost(*piece))) {
    pieces_.give_back(piece);
    return nullptr;
  }
  std::memcpy(piece->data, request.payload.data(), request.payload.size());
  piece->offset = request.message_offset;
  return piece;
}

// No room for an unexpected message. It comes again when PDS repeats the refused packet (`code`),
// or when its sender sends it again: on ROD nothing may overtake it meanwhile (SES-52).
Response Receiver::refuse(const pds::RequestView& view, const wire::SesRequest& request,
                          Context& context, NackCode code) {
  ++counters_.unexpected_refused;
  // An owner does not tell of the receives that would enable the generation again.
  const bool silent = view.mode == DeliveryMode::Uud || context.receives.owner != nullptr;
  if (!answers_no_match_ || silent) return nack_response(code);
  // A message that is sent anew must not leave a part behind that a receive has taken meanwhile.
  if (!messages_.refuse(view, request, context, ReturnCode::NoMatch)) return nack_response(code);
  ++counters_.no_match_answered;
  if (view.mode == DeliveryMode::Rod) {
    context.generation.enabled = false;
    context.receives.disabled.push_back(context);
  }
  return explicit_response(request, ReturnCode::NoMatch, wire::List::Expected, 0,
                           context.generation.value, true);
}

// What made room for unexpected messages lets the refused ones come again, in their order: packets
// under way still name the old generation.
void Receiver::enable_generations(ReceiveQueue& queue) {
  while (!queue.disabled.empty()) {
    Generation& generation = queue.disabled.pop_front().generation;
    ++generation.value.value;
    generation.enabled = true;
  }
}

Response Receiver::on_unexpected(const pds::RequestView& view, const wire::SesRequest& request,
                                 Context& context, Time now) {
  RxMessage* message = messages_.open(view, request, context, RxState::Unexpected);
  if (message == nullptr) return refuse(view, request, context, NackCode::NoSesMsgAvail);
  if (!charge(*message, kUnexpectedMessageBytes)) {
    messages_.release(*message);
    return refuse(view, request, context, NackCode::NoResource);
  }
  if (message->must_read) defer(*message);
  context.receives.of(message->tagged()).add(*message);
  if (may_park(view, request, context)) {
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

// What can be read again is never refused: the first packet that is dropped is answered in a way
// that tells so. A sender that wants to know about delivery is told in any case; it waits for our
// read, which comes when a receive has the message (SES-110, SES-111); one that cannot be read is
// answered then (SES-46, SES-48).
Response Receiver::place_unexpected(const pds::RequestView& view, const wire::SesRequest& request,
                                    RxMessage& message) {
  bool dropped = false;
  if (!request.payload.empty()) {
    Piece* piece = keep(request, message);
    dropped = piece == nullptr;
    if (dropped && !message.readable) return nack_response(NackCode::NoPktBuffer);
    if (dropped) {
      message.read_from = std::min<std::uint64_t>(message.read_from, request.message_offset);
    } else {
      piece->next = message.pieces;
      message.pieces = piece;
    }
  }
  ArrivingMessages::account(message, request);
  const bool tell =
      message.readable && !message.must_read && (dropped || message.delivery_complete);
  if (tell) defer(message);
  if (message.complete()) messages_.arrived(message);  // it only waits for its receive now
  // Otherwise only the last packet says that nobody waited (SES-45, SES-105): an earlier guaranteed
  // response would hold CACK, and with it the sender, until its CLEAR has come, and we may have the
  // receive by then and make no more progress.
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

// Takes an unexpected message off its list and gives its memory back; its state remains.
void Receiver::drop_unexpected(RxMessage& message) {
  if (message.kept_for != nullptr) {
    message.context->receives.owner->lost(message.kept_for);
    message.kept_for = nullptr;
  }
  MatchQueue::remove(message);
  pieces_.give_back_all(message.pieces);
  refund(message);
}

// ---- the end of messages -----------------------------------------------------------------------

// The completion of a message that is bound to a receive, which is given back; one that must be
// told of for itself afterwards is left in `buffer`.
Completion Receiver::end_receive(RxMessage& message, Status status, PostedReceive*& buffer) {
  PostedReceive& receive = unbind(message);
  Completion completion;
  completion.kind = receive.tagged ? Kind::TaggedReceive : Kind::Receive;
  completion.status = status;
  completion.context = receive.operation;
  completion.user_flags = receive.user_flags;
  completion.length = message.placed;
  if (status == Status::Ok && message.request_length > receive.capacity) {
    completion.status = Status::Truncated;  // SES-42
    completion.excess = message.request_length - receive.capacity;
    ++counters_.truncated;
  }
  if (status != Status::Ok && receive.cancelled) completion.status = Status::Cancelled;
  completion.buffer = address_at(receive.slices(), message.base);
  describe(message, completion);
  if (!receive.multi) {
    release(receive);
    return completion;
  }
  completion.multi = true;
  if (!receive.closed || receive.under_way > 0) return completion;
  if (completion.status != Status::Ok || receive.cancelled || receive.shared) {
    buffer = &receive;
  } else {
    completion.released = true;
    release(receive);
  }
  return completion;
}

void Receiver::complete_receive(RxMessage& message) {
  CompletionSink& sink = message.context->sink;
  PostedReceive* buffer = nullptr;
  const Completion completion = end_receive(message, Status::Ok, buffer);
  dismiss(message);
  ++counters_.messages_received;
  sink.complete(completion);
  if (buffer != nullptr) give_back(*buffer, last_status(*buffer));
}

void Receiver::end_message(RxMessage& message, ReturnCode code, Status status) {
  if (message.parked) return drop_parked(message, code);
  stop_reading(message);
  if (message.state == RxState::Unexpected) drop_unexpected(message);
  if (message.state != RxState::Matched) return messages_.abandon(message, code);
  const bool unused = status == Status::Abandoned && message.placed == 0;
  if (unused) {
    PostedReceive& receive = withdraw(message);
    messages_.abandon(message, code);
    return restore(receive);
  }
  fail_receive(message, code, status);
}

void Receiver::fail_receive(RxMessage& message, ReturnCode code, Status status) {
  Context& context = *message.context;
  PostedReceive* buffer = nullptr;
  const Completion completion = end_receive(message, status, buffer);
  messages_.abandon(message, code);
  context.sink.complete(completion);
  if (buffer != nullptr) give_back(*buffer, last_status(*buffer));
}

// Undoes bind and the reservation of room: as if the message had never come.
PostedReceive& Receiver::withdraw(RxMessage& message) {
  PostedReceive& receive = unbind(message);
  if (receive.room_by_message()) message.context->sink.release_receive();
  // Room at the end of what is used can be used again.
  if (receive.multi && message.base + room_taken(message, receive) == receive.used) {
    receive.used = message.base;
  }
  return receive;
}

// Lets a receive that lost its message wait again, at its old place.
// That of an owner has left its list for good.
void Receiver::restore(PostedReceive& receive) {
  const bool over = receive.cancelled && !receive.multi &&
                    (!receive.shared || receive.queue->sink.reserve_receive());
  if (over || receive.queue->owner != nullptr) {
    give_back(receive, over ? Status::Cancelled : Status::Abandoned);
  } else if (!receive.multi) {
    offer(receive);
  } else if (receive.closed && receive.under_way == 0) {
    give_back(receive, last_status(receive));
  }
}

// ---- the end of contexts -----------------------------------------------------------------------

void Receiver::close_queue(ReceiveQueue& queue) {
  for (MatchQueue* lists : {&queue.untagged, &queue.tagged}) {
    while (!lists->posted.empty()) {
      PostedReceive& receive = lists->posted.front();
      MatchQueue::remove(receive);
      release(receive);
    }
  }
  if (queue.linked()) short_of_room_.remove(queue);
}

void Receiver::release(PostedReceive& receive) {
  --receive.queue->count;
  if (receive.more != nullptr) more_slices_.give_back(receive.more);
  receives_.give_back(&receive);
}

}  // namespace uet::ses
