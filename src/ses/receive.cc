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

MatchKey match_key(const pds::RequestView& view, const wire::SesRequest& request) {
  return {request.match_bits, request.initiator, view.source};
}

}  // namespace

Receiver::Receiver(const Parameters& parameters, PieceStore& pieces, ArrivingMessages& messages,
                   Counters& counters)
    : unexpected_limit_bytes_(parameters.unexpected_bytes_per_context),
      pieces_(pieces),
      messages_(messages),
      counters_(counters),
      receives_(parameters.posted_receives),
      more_slices_(std::max<std::size_t>(parameters.posted_receives / 8, kMaxIoSlices)) {}

// ---- receives ----------------------------------------------------------------------------------

Result<void> Receiver::receive(Context& context, const ReceiveOp& op) {
  if (op.local.size() > kMaxIoSlices) return Error::Invalid;
  for (const IoSlice& slice : op.local) {
    if (slice.data == nullptr && slice.length > 0) return Error::Invalid;
  }
  if (context.receive_count >= context.config.rx_size) return Error::Again;
  MoreSlices* more = nullptr;
  if (op.local.size() > 1 && (more = more_slices_.take()) == nullptr) return Error::Again;
  PostedReceive* receive = receives_.take();
  if (receive == nullptr) {
    if (more != nullptr) more_slices_.give_back(more);
    return Error::Again;
  }
  receive->tag = op.tag;
  receive->ignore = op.ignore;
  receive->tagged = op.tagged;
  if (op.source != nullptr && context.config.directed_receive) {
    receive->directed = true;
    receive->source = op.source->fep;
    receive->source_initiator = op.source->initiator;
  }
  receive->slice_count = static_cast<std::uint32_t>(op.local.size());
  receive->more = more;
  std::copy(op.local.begin(), op.local.end(),
            more != nullptr ? more->slices.data() : &receive->slice);
  receive->capacity = total_length(op.local);
  receive->sequence = next_sequence_++;
  receive->operation = op.context;
  receive->user_flags = op.user_flags;
  ++context.receive_count;
  offer(context, *receive);
  return {};
}

// Gives the receive the oldest unexpected message that it matches, or posts it.
void Receiver::offer(Context& context, PostedReceive& receive) {
  MatchQueue& queue = context.queue(receive.tagged);
  RxMessage* message = queue.take_unexpected(receive);
  if (message == nullptr) {
    queue.put(receive);
    return;
  }
  bind(*message, receive);
  for (const Piece* piece = message->pieces; piece != nullptr; piece = piece->next) {
    message->placed += scatter(receive.slices(), piece->offset, {piece->data, piece->length});
  }
  pieces_.give_back_all(message->pieces);
  context.unexpected_bytes -= message->charged;
  message->charged = 0;
  if (message->complete()) complete_receive(*message);
}

void Receiver::bind(RxMessage& message, PostedReceive& receive) {
  message.state = RxState::Matched;
  message.receive = &receive;
  ++bound_receives_;
}

bool Receiver::cancel(Context& context, const void* operation) {
  PostedReceive* receive = context.untagged.take_operation(operation);
  if (receive == nullptr) receive = context.tagged.take_operation(operation);
  if (receive == nullptr) return false;
  Completion completion;
  completion.kind = receive->tagged ? Kind::TaggedReceive : Kind::Receive;
  completion.status = Status::Cancelled;
  completion.context = receive->operation;
  completion.user_flags = receive->user_flags;
  completion.tag = receive->tag;
  release(*receive);
  --context.receive_count;
  context.sink.complete(completion);
  return true;
}

void Receiver::close_context(Context& context) {
  context.closing = true;
  for (MatchQueue* queue : {&context.untagged, &context.tagged}) {
    while (!queue->posted.empty()) release(queue->posted.pop_front());
    while (!queue->unexpected.empty()) messages_.release(queue->unexpected.front());
  }
  messages_.for_each([&](RxMessage& message) {
    if (message.context != &context) return;
    if (message.state == RxState::Matched) unbind(message);
    messages_.release(message);
  });
  context.receive_count = 0;
  context.unexpected_bytes = 0;
}

// ---- sends -------------------------------------------------------------------------------------

Response Receiver::on_send(const pds::RequestView& view, const wire::SesRequest& request,
                           Context& context) {
  MatchQueue& queue = context.queue(is_tagged(request.opcode));
  PostedReceive* receive = queue.take_receive(match_key(view, request));  // 11
  if (receive == nullptr) return on_unexpected(view, request, context);
  RxMessage* message = messages_.open(view, request, context, RxState::Matched);
  if (message == nullptr) {
    queue.put(*receive);
    return nack_response(NackCode::NoSesMsgAvail);  // 17
  }
  bind(*message, *receive);
  return place_matched(request, *message);
}

Response Receiver::on_later_send(const wire::SesRequest& request, RxMessage& message) {
  return message.state == RxState::Matched ? place_matched(request, message)
                                           : place_unexpected(request, message);
}

Response Receiver::place_matched(const wire::SesRequest& request, RxMessage& message) {
  message.placed += scatter(message.receive->slices(), request.message_offset, request.payload);
  ArrivingMessages::account(message, request);
  const Response response = default_response(request, message.placed);
  if (message.complete()) complete_receive(message);
  return response;
}

// A copy of the packet's payload, charged to the message and its context. nullptr, and nothing
// charged, when memory or the context's share of it is used up.
Piece* Receiver::keep(const wire::SesRequest& request, RxMessage& message) {
  Context& context = *message.context;
  Piece* piece = pieces_.take(static_cast<std::uint32_t>(request.payload.size()),
                              pieces_.capacity() / kBufferReserve);
  if (piece == nullptr) return nullptr;
  const std::size_t cost = pieces_.cost(*piece);
  if (context.unexpected_bytes + cost > unexpected_limit_bytes_) {
    pieces_.give_back(piece);
    return nullptr;
  }
  std::memcpy(piece->data, request.payload.data(), request.payload.size());
  piece->offset = request.message_offset;
  context.unexpected_bytes += cost;
  message.charged += cost;
  return piece;
}

Response Receiver::on_unexpected(const pds::RequestView& view, const wire::SesRequest& request,
                                 Context& context) {
  if (context.unexpected_bytes + kUnexpectedMessageBytes > unexpected_limit_bytes_) {
    ++counters_.unexpected_refused;
    return nack_response(NackCode::NoResource);
  }
  RxMessage* message = messages_.open_spare(view, request, context, RxState::Unexpected);
  if (message == nullptr) {
    ++counters_.unexpected_refused;
    return nack_response(NackCode::NoSesMsgAvail);
  }
  message->charged = kUnexpectedMessageBytes;
  context.unexpected_bytes += message->charged;
  context.queue(message->tagged()).unexpected.push_back(*message);
  const Response placed = place_unexpected(request, *message);
  if (placed.nack) {
    drop_unexpected(*message);
    messages_.release(*message);
    return placed;
  }
  ++counters_.unexpected_messages;
  return explicit_response(request, ReturnCode::Ok, wire::List::Overflow, request.payload.size(),
                           context.config.generation, true);  // SES-45
}

Response Receiver::place_unexpected(const wire::SesRequest& request, RxMessage& message) {
  if (!request.payload.empty()) {
    Piece* piece = keep(request, message);
    if (piece == nullptr) {
      ++counters_.unexpected_refused;
      return nack_response(NackCode::NoPktBuffer);
    }
    piece->next = message.pieces;
    message.pieces = piece;
  }
  ArrivingMessages::account(message, request);
  if (message.complete()) messages_.arrived(message);  // it only waits for its receive now
  return default_response(request, message.received);
}

// Takes an unexpected message off its list and gives its memory back; its state remains.
void Receiver::drop_unexpected(RxMessage& message) {
  Context& context = *message.context;
  IntrusiveList<RxMessage, UnexpectedTag>::remove(message);
  pieces_.give_back_all(message.pieces);
  context.unexpected_bytes -= message.charged;
  message.charged = 0;
}

// The completion of a bound receive, whose descriptor is given back.
Completion Receiver::end_receive(RxMessage& message, Status status) {
  const PostedReceive& receive = *message.receive;
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
  completion.buffer = receive.slice_count > 0 ? receive.slices().front().data : nullptr;
  completion.tag = message.tagged() ? message.match_bits : 0;
  completion.has_data = message.has_data;
  completion.data = message.data;
  completion.source = message.source;
  completion.source_initiator = message.initiator;
  unbind(message);
  --message.context->receive_count;
  return completion;
}

void Receiver::complete_receive(RxMessage& message) {
  CompletionSink& sink = message.context->sink;
  const Completion completion = end_receive(message, Status::Ok);
  messages_.release(message);
  ++counters_.messages_received;
  sink.complete(completion);
}

// The message comes to nothing. What still arrives of it is dropped and answered with `code`.
void Receiver::end_message(RxMessage& message, ReturnCode code, Status status) {
  Context& context = *message.context;
  const RxState state = message.state;
  if (state == RxState::Unexpected) drop_unexpected(message);
  std::optional<Completion> completion;
  PostedReceive* unused = nullptr;
  if (state == RxState::Matched && status == Status::Abandoned && message.placed == 0) {
    unused = message.receive;  // as if the message had never come (SES-113)
    message.receive = nullptr;
    --bound_receives_;
  } else if (state == RxState::Matched) {
    completion = end_receive(message, status);
  }
  messages_.abandon(message, code);
  if (unused != nullptr) offer(context, *unused);
  if (completion) context.sink.complete(*completion);
}

void Receiver::unbind(RxMessage& message) {
  release(*message.receive);
  message.receive = nullptr;
  --bound_receives_;
}

void Receiver::release(PostedReceive& receive) {
  if (receive.more != nullptr) more_slices_.give_back(receive.more);
  receives_.give_back(&receive);
}

}  // namespace uet::ses
