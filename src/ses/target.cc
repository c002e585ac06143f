// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving: which message a request packet belongs to, and what is done once its checks are
// passed.
#include "uet/ses/target.h"

#include <algorithm>

#include "uet/ses/rendezvous.h"
#include "uet/ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;
using wire::SesOpcode;

namespace {

// An error remembered of an earlier message with the same id, whose end never came.
bool is_stale(const RxMessage& message, const wire::SesRequest& request) {
  return message.state == RxState::Error &&
         check_same_message(message, request) == ReturnCode::PermViolation;
}

}  // namespace

// ---- construction ------------------------------------------------------------------------------

Target::Target(const Parameters& parameters, PieceStore& pieces, ri::MrTable& regions,
               const ri::RiTable& contexts, Initiator& initiator, Counters& counters)
    : payload_mtu_(parameters.payload_mtu),
      host_copy_(parameters.host_copy),
      checks_(parameters.payload_mtu, regions, contexts),
      initiator_(initiator),
      counters_(counters),
      messages_(parameters.rx_messages, pieces, parameters.seed),
      receiver_(parameters, pieces, messages_, initiator.pulls(), counters),
      answers_(parameters, pieces) {}

// Its owner has closed all contexts; read answers may still wait in a PDS that is gone.
Target::~Target() {
  while (ReadAnswer* answer = answers_.any()) answer_done(*answer);
  receiver_.discard_all();
}

bool Target::idle() const { return messages_.in_use() == 0 && receiver_.idle() && answers_.idle(); }

// ---- request packets ---------------------------------------------------------------------------

Response Target::rx_req(const View& view, Time now) {
  if (view.mode == DeliveryMode::Uud) {
    if (!take_datagram(view, now)) ++counters_.datagrams_dropped;  // PDS-193
    return {};
  }
  if (view.mode == DeliveryMode::Rudi) return on_rudi(view, now);
  messages_.set_time(now);
  Request request;
  if (!decode(view, request)) return error(Request{}, ReturnCode::Uncor);  // step 1
  ReturnCode code = check_opcode(request);                                 // 2
  if (code != ReturnCode::Ok) return error(request, code);
  if (request.opcode == SesOpcode::NoOp) return default_response(request, 0);
  if (request.opcode == SesOpcode::MsgError) return on_msg_error(view, request);
  if (request.opcode == SesOpcode::DeferrableRtr) return on_restart(view, request, now);
  if (!is_single(request) && request.opcode != SesOpcode::Read) {
    RxMessage* message = messages_.find(view.pdc, request.message_id);
    if (message != nullptr && !is_stale(*message, request)) {
      message->heard = now;
      return on_later_packet(view, request, *message);
    }
    if (message != nullptr) messages_.release(*message);
  }

  if (request.opcode == SesOpcode::Read && is_message_key(checks_.key(request))) {
    return on_message_read(view, request, now);
  }
  const RequestChecks::Addressed addressed = checks_.address(request);  // 3, 4
  if (addressed.code != ReturnCode::Ok) {
    Response nobody = error(request, addressed.code);
    nobody.to_nobody = true;
    return nobody;
  }
  Context& context = *addressed.context;
  code = check_context(context, request, payload_mtu_);  // 6 to 10
  if (code != ReturnCode::Ok) return refuse(view, request, context, code);
  if (request.opcode == SesOpcode::Write) return on_write(view, request, context);
  if (request.opcode == SesOpcode::Read) return on_read(view, request, context, now);
  if (wire::has_atomic_extension(request.opcode)) return on_atomic(view, request, context, now);
  return on_send(view, request, context, now);
}

// Step 1. Some initiators leave EOM out of a READ that is one packet (WIRE 3.12).
bool Target::decode(const View& view, Request& request) {
  if (!Request::decode(view.next_hdr, view.bytes, request) || request.version != 0) {
    ++counters_.malformed;
    return false;
  }
  const bool one_packet = request.som && request.request_length <= payload_mtu_;
  if (request.opcode == SesOpcode::Read && one_packet) request.eom = true;
  return true;
}

Response Target::error(const Request& request, ReturnCode code, RiGeneration generation) {
  ++counters_.errors_answered;
  return explicit_response(request, code, wire::List::Expected, 0, generation, true);
}

// Answers with an error, and remembers it for the rest of the message.
Response Target::refuse(const View& view, const Request& request, Context& context,
                        ReturnCode code) {
  (void)messages_.refuse(view, request, context, code);  // else each packet is judged again
  return error(request, code, context.generation.value);
}

Response Target::on_later_packet(const View& view, const Request& request, RxMessage& message) {
  if (message.state == RxState::Error) {  // 5
    if (ends_eager_part(request)) {
      message.expected = std::min<std::uint64_t>(message.expected, request.message_offset);
    }
    ArrivingMessages::account(message, request);
    const ReturnCode remembered = message.return_code;
    const RiGeneration generation =
        message.context != nullptr ? message.context->generation.value : RiGeneration{};
    if (message.received >= message.expected) receiver_.dismiss(message);
    if (remembered == ReturnCode::Ok) return default_response(request, request.request_length);
    return explicit_response(request, remembered, wire::List::Expected, 0, generation,
                             false);  // SES-105
  }
  const ReturnCode code = checks_.later(request, message);  // 15
  if (code != ReturnCode::Ok) return fail(request, message, code);
  if (message.state == RxState::Writing) return on_later_write(request, message);
  return receiver_.on_later_send(view, request, message);
}

// A later packet breaks the message: this answer is the one that must not get lost (SES-105).
Response Target::fail(const Request& request, RxMessage& message, ReturnCode code) {
  ArrivingMessages::account(message, request);
  receiver_.end_message(message, code, Status::Abandoned);
  return error(request, code);
}

Response Target::on_send(const View& view, const Request& request, Context& context, Time now) {
  const ReturnCode code = checks_.send(request, context);
  if (code != ReturnCode::Ok) return refuse(view, request, context, code);
  return receiver_.on_send(view, request, context, now);  // 11
}

// ---- RMA ---------------------------------------------------------------------------------------

Response Target::on_write(const View& view, const Request& request, Context& context) {
  const RequestChecks::Permission allowed = checks_.write(request, context);
  if (allowed.code != ReturnCode::Ok) return refuse(view, request, context, allowed.code);
  RxMessage* message = messages_.open(view, request, context, RxState::Writing);
  if (message == nullptr) return nack_response(NackCode::NoSesMsgAvail);  // 17
  const Response response = place_write(request, *message, allowed.memory);
  if (response.nack) messages_.release(*message);
  return response;
}

// The region may have been closed since the first packet (SES-140).
Response Target::on_later_write(const Request& request, RxMessage& message) {
  const RequestChecks::Permission allowed = checks_.later_write(request, *message.context);
  if (allowed.code != ReturnCode::Ok) return fail(request, message, allowed.code);
  return place_write(request, message, allowed.memory);
}

// `access`: where byte 0 of the message lies. With immediate data the last byte is taken only when
// its completion can be taken too (SES-79).
Response Target::place_write(const Request& request, RxMessage& message,
                             const ri::MrAccess& access) {
  CompletionSink& sink = message.context->sink;
  const bool has_data = request.som ? request.hd : message.has_data;
  const bool ends = (message.som_seen || request.som) &&
                    message.received + request.payload.size() == message.expected;
  if (ends && has_data && !sink.can_take_event()) return nack_response(NackCode::NoResource);
  if (!request.payload.empty()) {
    access.place(host_copy_, request.message_offset, request.payload);
  }
  ArrivingMessages::account(message, request);
  if (ends) complete_write(message, has_data, access);
  return default_response(request, request.request_length);
}

// The last byte of a write has been placed.
void Target::complete_write(RxMessage& message, bool has_data, const ri::MrAccess& access) {
  CompletionSink& sink = message.context->sink;
  Completion completion;
  completion.kind = Kind::RemoteWrite;
  completion.length = message.request_length;
  completion.has_data = true;
  completion.data = message.data;
  completion.source = message.source;
  completion.source_initiator = message.initiator;
  messages_.release(message);
  ++counters_.messages_received;
  access.executed(ri::kRemoteWrite, completion.length);
  if (has_data) {
    sink.complete(completion);
  } else {
    sink.remote_access(Kind::Write, completion.length);
  }
}

// Executed at once, so that a write that follows cannot change what is read (SES-126). Few data
// ride in the ACK, others in the return direction; the response then only accepts the request
// (PDS-195).
Response Target::on_read(const View& view, const Request& request, Context& context, Time now) {
  const RequestChecks::Permission allowed = checks_.read(request, context);
  if (allowed.code != ReturnCode::Ok) return refuse(view, request, context, allowed.code);
  const ri::MrAccess& access = allowed.memory;
  const ReadPiece asked = read_piece(request, payload_mtu_);
  Response response = default_response(request, request.request_length);
  if (asked.length > 0) {
    std::byte* data = answers_.open(view, request, asked, response, now);
    if (data == nullptr) return nack_response(NackCode::NoResource);
    access.fetch({data, asked.length}, asked.offset);
  }
  if (request.eom && view.mode != DeliveryMode::Rudi) {  // RUDI may come again: not counted
    access.executed(ri::kRemoteRead, request.request_length);
    context.sink.remote_access(Kind::Read, request.request_length);
  }
  return response;
}

void Target::answer_done(ReadAnswer& answer) {
  TxMessage* source = answers_.done(answer);
  if (source != nullptr) initiator_.answer_done(*source);
}

// ---- the end of messages -----------------------------------------------------------------------

// The initiator gives the message up where it stands. Packets made before may still come (RUD).
Response Target::on_msg_error(const View& view, const Request& request) {
  const Response response = default_response(request, 0);
  RxMessage* message = messages_.find(view.pdc, request.message_id);
  if (message == nullptr) {
    receiver_.abandoned(view, request);
    return response;
  }
  message->expected = std::min<std::uint64_t>(message->expected, request.message_offset);
  receiver_.end_message(*message, ReturnCode::Dropped, Status::Abandoned);
  return response;
}

// A target that had deferred a message of this FEP wants it now. The tokens say which one.
Response Target::on_restart(const View& view, const Request& request, Time now) {
  const ReturnCode code =
      is_single(request) ? initiator_.restart(request, view.source, now) : ReturnCode::OpViolation;
  return code == ReturnCode::Ok ? default_response(request, 0) : error(request, code);
}

void Target::pdc_closed(PdcId pdc, bool orderly) {
  messages_.for_each([&](RxMessage& message) {
    if (message.pdc != pdc) return;
    message.expected = 0;  // nothing more will come
    receiver_.end_message(message, ReturnCode::Dropped, Status::PeerLost);
  });
  receiver_.pdc_closed(pdc, orderly);
}

}  // namespace uet::ses
