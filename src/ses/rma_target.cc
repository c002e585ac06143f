// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes and reads of registered memory, packet by packet.
#include "ses/rma_target.h"

#include "ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;
using wire::SesOpcode;

namespace {

// SES-162. Values that we do not know are those of a whole operation.
Part part_of(const RxMessage& message, bool has_data) {
  if (has_data || message.data > static_cast<std::uint64_t>(Part::RegionEnd)) return Part::Whole;
  return static_cast<Part>(message.data);
}

bool takes_receives(const Context& context) {
  return context.config.data_takes_receive && context.receives.owner == nullptr;
}

// May the answer to a read be sent from where the bytes lie, without a copy? Not if what comes next
// could change them too early: an ordered write behind the read, or the application, which hears of
// the read now. All other changes race with the read.
bool may_point(const pds::RequestView& view, const Context& context, const ri::MrAccess& memory) {
  return view.mode == DeliveryMode::Rud && memory.device == nullptr && !memory.counts_reads() &&
         !context.sink.counts_reads();
}

}  // namespace

RmaTarget::RmaTarget(const Parameters& parameters, const RequestChecks& checks,
                     ArrivingMessages& messages, Receiver& receiver, ReadAnswers& answers,
                     TargetErrors& errors, Counters& counters)
    : payload_mtu_(parameters.payload_mtu),
      host_copy_(parameters.host_copy),
      checks_(checks),
      messages_(messages),
      receiver_(receiver),
      answers_(answers),
      errors_(errors),
      counters_(counters) {}

Response RmaTarget::write(const pds::RequestView& view, const wire::SesRequest& request,
                          Context& context) {
  const RequestChecks::Permission allowed = checks_.write(request, context);
  if (allowed.code != ReturnCode::Ok) return errors_.refuse(view, request, context, allowed.code);
  RxMessage* message = messages_.open(view, request, context, RxState::Writing);
  if (message == nullptr) return nack_response(NackCode::NoSesMsgAvail);  // 17
  const Response response = place(request, *message, allowed.memory);
  if (response.nack) messages_.release(*message);
  return response;
}

Response RmaTarget::place(const wire::SesRequest& request, RxMessage& message,
                          const ri::MrAccess& memory) {
  const Context& context = *message.context;
  const bool has_data = request.som ? request.hd : message.has_data;
  const bool ends = (message.som_seen || request.som) &&
                    message.received + request.payload.size() == message.expected;
  PostedReceive* receive = nullptr;
  if (ends && has_data) {
    const bool takes_receive = takes_receives(context);
    if (takes_receive) receive = receiver_.find_for_data(message);
    const bool ready = takes_receive ? receive != nullptr : context.sink.can_take_event();
    if (!ready) return nack_response(NackCode::NoResource);
  }
  if (!request.payload.empty()) {
    memory.place(host_copy_, request.message_offset, request.payload);
  }
  ArrivingMessages::account(message, request);
  if (ends) complete_write(message, has_data, receive, memory);
  return default_response(request, request.request_length);
}

// The last byte of a write has been placed. `receive`: what its data take, or nullptr.
void RmaTarget::complete_write(RxMessage& message, bool has_data, PostedReceive* receive,
                               const ri::MrAccess& memory) {
  end_run(host_copy_);
  CompletionSink& sink = message.context->sink;
  Completion completion;
  completion.kind = Kind::RemoteWrite;
  completion.length = message.request_length;
  completion.has_data = true;
  completion.data = message.data;
  completion.source = message.source;
  completion.source_initiator = message.initiator;
  completion.source_job = message.job;
  const Part part = part_of(message, has_data);
  messages_.release(message);
  ++counters_.messages_received;
  if (receive != nullptr) receiver_.give_data(*receive, completion);
  if (part == Part::Inside) {
    memory.executed_part(ri::kRemoteWrite, completion.length);
  } else {
    memory.executed(ri::kRemoteWrite, completion.length);
  }
  if (part != Part::Whole) {
    sink.remote_part(Kind::Write, completion.length);
  } else if (has_data) {
    sink.complete(completion);
  } else {
    sink.remote_access(Kind::Write, completion.length);
  }
}

Response RmaTarget::read(const pds::RequestView& view, const wire::SesRequest& request,
                         Context& context, Time now) {
  const RequestChecks::Permission allowed = checks_.read(request, context);
  if (allowed.code != ReturnCode::Ok) return errors_.refuse(view, request, context, allowed.code);
  const ri::MrAccess& memory = allowed.memory;
  const ReadPiece asked = read_piece(request, payload_mtu_);
  Response response = default_response(request, request.request_length);
  if (asked.length > 0) {
    end_run(host_copy_);  // what came before the read is what it finds
    const bool pointed = may_point(view, context, memory) &&
                         answers_.answer_from(memory.address + asked.offset, checks_.key(request),
                                              view, request, asked, now);
    std::byte* data = pointed ? nullptr : answers_.open(view, request, asked, response, now);
    if (data == nullptr && !pointed) return nack_response(NackCode::NoResource);
    if (data != nullptr) memory.fetch({data, asked.length}, asked.offset);
  }
  if (request.eom && view.mode != DeliveryMode::Rudi) {  // RUDI may come again: not counted
    memory.executed(ri::kRemoteRead, request.request_length);
    context.sink.remote_access(Kind::Read, request.request_length);
  }
  return response;
}

Response RmaTarget::rudi(const pds::RequestView& view, const wire::SesRequest& request, Time now) {
  const bool is_read = request.opcode == SesOpcode::Read;
  if (!is_read && request.opcode != SesOpcode::Write) {  // SES-95, SES-137
    return errors_.answer(request, ReturnCode::UnsupportedOp);
  }
  ReturnCode code = check_opcode(request);
  const RequestChecks::Addressed addressed = checks_.address(request);
  if (code == ReturnCode::Ok) code = addressed.code;
  if (code != ReturnCode::Ok) return errors_.answer(request, code);
  Context& context = *addressed.context;
  const RequestChecks::Permission allowed = checks_.rudi(request, context);
  if (allowed.code != ReturnCode::Ok) {
    return errors_.answer(request, allowed.code, context.generation.value);
  }
  if (is_read) return read(view, request, context, now);
  if (!request.payload.empty()) {
    allowed.memory.place(host_copy_, request.message_offset, request.payload);
  }
  return default_response(request, request.request_length);
}

}  // namespace uet::ses
