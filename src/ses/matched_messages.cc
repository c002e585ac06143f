// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/matched_messages.h"

#include "ses/return_code.h"

namespace uet::ses {

using pds::Response;
using wire::ReturnCode;

void MatchedMessages::bind(RxMessage& message, PostedReceive& receive) {
  message.state = RxState::Matched;
  parts_.receives.bind(message, message, receive);
}

bool MatchedMessages::take(Envelope& message, PostedReceive& receive) {
  MatchQueue::remove(message);
  return message.single ? take_single(static_cast<SingleMessage&>(message), receive)
                        : take_arriving(static_cast<RxMessage&>(message), receive);
}

bool MatchedMessages::take_single(SingleMessage& message, PostedReceive& receive) {
  Placement placement;
  parts_.receives.bind(message, placement, receive);
  const bool more = receive.multi && !receive.closed;
  placement.placed = scatter(receive.slices(), placement.base, message.payload(), host_copy_);
  end_run(host_copy_);
  parts_.messages.answer(message, placement, ReturnCode::Ok);
  CompletionSink& sink = message.context->sink;
  const ReceiveEnd ended = parts_.receives.end(message, placement, Status::Ok);
  parts_.memory.release(message);
  ++counters_.messages_received;
  parts_.receives.report(sink, ended);
  return more;
}

bool MatchedMessages::take_arriving(RxMessage& message, PostedReceive& receive) {
  bind(message, receive);
  const bool more = receive.multi && !receive.closed;
  for (const Piece* piece = message.pieces; piece != nullptr; piece = piece->next) {
    message.placed += scatter(receive.slices(), message.base + piece->offset,
                              {piece->data, piece->length}, host_copy_);
  }
  parts_.messages.answer(message, ReturnCode::Ok);  // what still comes is answered when it is there
  parts_.unexpected.release_memory(message);
  if (message.parked) {
    parts_.deferred.want(message);
  } else if (message.complete()) {
    eager_part_is_here(message);
  }
  return more;
}

Response MatchedMessages::place(const wire::SesRequest& request, RxMessage& message) {
  message.placed += scatter(message.receive->slices(), message.base + request.message_offset,
                            request.payload, host_copy_);
  ArrivingMessages::account(message, request);
  const Response response = default_response(request, modified_length(message));
  if (message.complete()) eager_part_is_here(message);
  return response;
}

void MatchedMessages::eager_part_is_here(RxMessage& message) {
  if (!parts_.rendezvous.read_rest(message)) complete(message);
}

void MatchedMessages::complete(RxMessage& message) {
  end_run(host_copy_);
  CompletionSink& sink = message.context->sink;
  const ReceiveEnd ended = parts_.receives.end(message, message, Status::Ok);
  parts_.rendezvous.dismiss(message);
  ++counters_.messages_received;
  parts_.receives.report(sink, ended);
}

void MatchedMessages::fail(RxMessage& message, ReturnCode code, Status status) {
  end_run(host_copy_);
  CompletionSink& sink = message.context->sink;
  const ReceiveEnd ended = parts_.receives.end(message, message, status);
  if (message.undelivered) {  // its sender waits for the read that has failed
    message.return_code = code;
    parts_.messages.answer(message, code);
    parts_.rendezvous.dismiss(message);
  } else {
    parts_.messages.abandon(message, code);
  }
  parts_.receives.report(sink, ended);
}

}  // namespace uet::ses
