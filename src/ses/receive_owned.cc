// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages to contexts whose receives belong to a ReceiveOwner, which also matches them. The owner
// hands a receive over when its message is here; the receive never waits in a list of SES. Without
// a receive, the message is kept among the claimed messages, where only the owner finds it.
#include "uet/ses/receive.h"
#include "uet/ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;

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
                  .length = request.request_length,
                  .source = view.source,
                  .initiator = request.initiator,
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

}  // namespace uet::ses
