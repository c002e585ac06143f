// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What happens to a message without a receive, and the answers that say so.
#include "ses/unexpected_messages.h"

#include <algorithm>

#include "ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;

UnexpectedMessages::UnexpectedMessages(const Parameters& parameters, ArrivingMessages& messages,
                                       Unexpected& memory, RendezvousTarget& rendezvous,
                                       DeferredReceives& deferred, Counters& counters)
    : answers_no_match_(parameters.no_match),
      messages_(messages),
      memory_(memory),
      rendezvous_(rendezvous),
      deferred_(deferred),
      counters_(counters) {}

// ---- packets -----------------------------------------------------------------------------------

Response UnexpectedMessages::accept(const pds::RequestView& view, const wire::SesRequest& request,
                                    Context& context, Time now) {
  const bool parks = deferred_.may_park(view, request, context);
  if (!parks && Unexpected::is_whole(request)) return keep_single(view, request, context);
  RxMessage* message = messages_.open(view, request, context, RxState::Unexpected);
  if (message == nullptr) return refuse(view, request, context, NackCode::NoSesMsgAvail);
  if (!memory_.admit(*message, parks)) {
    messages_.release(*message);
    return refuse(view, request, context, NackCode::NoResource);
  }
  if (message->must_read) rendezvous_.begin(*message);
  context.receives.of(message->tagged()).add(*message);
  if (parks) {
    ++counters_.unexpected_messages;
    return deferred_.park(request, *message, now);
  }
  const Response placed = place(view, request, *message);
  if (placed.nack) {
    drop(*message);
    messages_.release(*message);
    return refuse(view, request, context, *placed.nack);
  }
  ++counters_.unexpected_messages;
  return placed;
}

// The whole message is here; as place() of its last packet.
Response UnexpectedMessages::keep_single(const pds::RequestView& view,
                                         const wire::SesRequest& request, Context& context) {
  NackCode why{};
  SingleMessage* message = memory_.keep_single(view, request, context, why);
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
Response UnexpectedMessages::place(const pds::RequestView& view, const wire::SesRequest& request,
                                   RxMessage& message) {
  bool dropped = false;
  if (!request.payload.empty()) {
    const Unexpected::Fate fate = memory_.keep(request, message);
    if (fate == Unexpected::Fate::Refuse) return nack_response(NackCode::NoPktBuffer);
    dropped = fate == Unexpected::Fate::ReadLater;
    if (dropped) {
      message.read_from = std::min<std::uint64_t>(message.read_from, request.message_offset);
    }
  }
  ArrivingMessages::account(message, request);
  const bool tell =
      message.readable && !message.must_read && (dropped || message.delivery_complete);
  if (tell) rendezvous_.begin(message);
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

// Refuses an unexpected message for lack of memory. It comes again when PDS retransmits the refused
// packet (`code`), or when its sender restarts it: on ROD no message may overtake it (SES-52).
Response UnexpectedMessages::refuse(const pds::RequestView& view, const wire::SesRequest& request,
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

void UnexpectedMessages::enable_generations(ReceiveQueue& queue) {
  while (!queue.disabled.empty()) {
    Generation& generation = queue.disabled.pop_front().generation;
    ++generation.value.value;
    generation.enabled = true;
  }
}

// ---- the end of messages -----------------------------------------------------------------------

void UnexpectedMessages::release_memory(RxMessage& message) {
  memory_.release_memory(message);
  // A parked message would else keep its own restart from opening.
  if (!message.parked) messages_.count_in_progress(message);
}

void UnexpectedMessages::drop(RxMessage& message) {
  leave_queue(message);
  release_memory(message);
}

// The end of a message that goes to no receive and is on no list.
void UnexpectedMessages::release(SingleMessage& message, ReturnCode code) {
  messages_.answer(message, Placement{}, code);
  memory_.release(message);
}

void UnexpectedMessages::discard(Envelope& envelope) {
  if (envelope.single) {
    leave_queue(envelope);
    return release(static_cast<SingleMessage&>(envelope), ReturnCode::Ok);
  }
  auto& message = static_cast<RxMessage&>(envelope);
  drop(message);
  message.state = RxState::Error;
  message.return_code = ReturnCode::Ok;
  if (message.parked) return deferred_.want(message);  // its sender wants to finish
  if (message.complete()) rendezvous_.dismiss(message);
}

// Ends a message that no receive will get.
void UnexpectedMessages::dismiss(Envelope& envelope) {
  if (envelope.single) {
    leave_queue(envelope);
    return release(static_cast<SingleMessage&>(envelope), ReturnCode::Dropped);
  }
  auto& message = static_cast<RxMessage&>(envelope);
  if (message.parked) {
    deferred_.leave(message);
    return;
  }
  drop(message);
  if (!message.complete()) rendezvous_.stop(message);
  message.undelivered = message.delivery_complete;
  rendezvous_.dismiss(message);
}

void UnexpectedMessages::close_context(const Context& context) {
  ReceiveQueue& queue = context.receives;
  for (auto* list : {&queue.untagged.unexpected, &queue.tagged.unexpected, &queue.claimed}) {
    for (auto at = list->begin(); at != list->end();) {
      Envelope& message = *at;
      ++at;
      if (message.context == &context) dismiss(message);
    }
  }
}

}  // namespace uet::ses
