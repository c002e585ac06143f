// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving: which message a request packet belongs to, and what is done once its checks are
// passed.
#include "ses/target.h"

#include <algorithm>

#include "ses/return_code.h"

namespace uet::ses {

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
      regions_(regions),
      checks_(parameters.payload_mtu, regions, contexts),
      initiator_(initiator),
      counters_(counters),
      messages_(parameters.rx_messages, pieces, parameters.seed),
      receiver_(parameters, pieces, messages_, initiator.pulls(), counters),
      answers_(parameters, pieces, initiator.staging(), this),
      errors_(messages_, counters),
      rma_(parameters, checks_, messages_, receiver_, answers_, errors_, counters),
      atomics_(parameters.payload_mtu, checks_, answers_, errors_, counters, parameters.host_copy),
      reads_(parameters.payload_mtu, checks_, initiator, answers_, errors_) {
  regions_.watch_removals(&answers_);
}

// Its owner has closed all contexts; read answers may still wait in a PDS that is gone.
Target::~Target() {
  regions_.watch_removals(nullptr);
  while (ReadAnswer* answer = answers_.any()) reads_.answer_done(*answer);
  receiver_.discard_all();
}

bool Target::idle() const { return messages_.in_use() == 0 && receiver_.idle() && answers_.idle(); }

// ---- read answers ------------------------------------------------------------------------------

pds::PacketPlan Target::next_packet(pds::Message& answer, Packet& packet,
                                    pds::PreparedPacket& prepared) {
  return ReadAnswers::next_packet(static_cast<ReadAnswer&>(answer), packet, prepared);
}

pds::Verdict Target::rx_rsp(pds::Message& answer, std::uint32_t, const pds::ResponseView&, Time) {
  reads_.answer_done(static_cast<ReadAnswer&>(answer));
  return pds::Verdict::Final;
}

void Target::pds_error(pds::Message& answer, std::uint32_t, pds::PdsError, Time) {
  reads_.answer_done(static_cast<ReadAnswer&>(answer));
}

void Target::message_failed(pds::Message& answer, pds::PdsError, Time) {
  reads_.answer_done(static_cast<ReadAnswer&>(answer));
}

// ---- request packets ---------------------------------------------------------------------------

Response Target::rx_req(const View& view, Time now) {
  if (view.mode == DeliveryMode::Uud) {
    if (!take_datagram(view, now)) ++counters_.datagrams_dropped;  // PDS-193
    return {};
  }
  Request request;
  if (!checks_.decode(view, request)) return errors_.malformed();  // step 1
  if (view.mode == DeliveryMode::Rudi) return rma_.rudi(view, request, now);
  messages_.set_time(now);
  ReturnCode code = check_opcode(request);  // 2
  if (code != ReturnCode::Ok) return errors_.answer(request, code);
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

  if (reads_.is_meant(request)) return reads_.serve(view, request, now);
  const RequestChecks::Addressed addressed = checks_.address(request);  // 3, 4
  if (addressed.code != ReturnCode::Ok) {
    Response refused = errors_.answer(request, addressed.code);
    refused.matches_no_endpoint = true;
    return refused;
  }
  Context& context = *addressed.context;
  code = check_context(context, request, payload_mtu_);  // 6 to 10
  if (code != ReturnCode::Ok) return errors_.refuse(view, request, context, code);
  if (request.opcode == SesOpcode::Write) return rma_.write(view, request, context);
  if (request.opcode == SesOpcode::Read) return rma_.read(view, request, context, now);
  if (wire::has_atomic_extension(request.opcode)) {
    return atomics_.execute(view, request, context, now);
  }
  return on_send(view, request, context, now);
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
  return errors_.answer(request, code);
}

Response Target::on_send(const View& view, const Request& request, Context& context, Time now) {
  ReturnCode code = checks_.send(request, context);
  if (code == ReturnCode::Ok && !context.takes(view.source, request.initiator)) {
    code = ReturnCode::PermViolation;
  }
  if (code != ReturnCode::Ok) return errors_.refuse(view, request, context, code);
  return receiver_.on_send(view, request, context, now);  // 11
}

// The region may have been closed since the first packet (SES-140).
Response Target::on_later_write(const Request& request, RxMessage& message) {
  const RequestChecks::Permission allowed = checks_.later_write(request, *message.context);
  if (allowed.code != ReturnCode::Ok) return fail(request, message, allowed.code);
  return rma_.place(request, message, allowed.memory);
}

// DATAGRAM_SEND (SES-77): a send of one packet that may get lost. The initiator hears nothing of
// it, so that the target drops the datagrams that it cannot take; matching is that of every other
// untagged send. Some initiators call it SEND and give it a message id, which says nothing here
// (WIRE 3.12). False: it is dropped.
bool Target::take_datagram(const View& view, Time now) {
  Request request;
  const bool parsed = Request::decode(view.next_hdr, view.bytes, request) && request.version == 0;
  const bool sends = request.opcode == SesOpcode::DatagramSend || request.opcode == SesOpcode::Send;
  if (!parsed || !sends || !is_single(request)) {
    ++counters_.malformed;
    return false;
  }
  const RequestChecks::Addressed addressed = checks_.address(request);  // 3, 4
  if (addressed.code != ReturnCode::Ok) return false;
  Context& context = *addressed.context;
  if (!checks_.datagram(request, context)) return false;
  return !on_send(view, request, context, now).nack;
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
  return code == ReturnCode::Ok ? default_response(request, 0) : errors_.answer(request, code);
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
