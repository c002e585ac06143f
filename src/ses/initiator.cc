// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The life of an operation: it is checked and opened, starts or is held, PDS answers for each of
// its packets, and finish() ends it.
//
// A refused message (an error response came) makes no more packets but a MSG_ERROR, which ends the
// receive state at the target (SES-54, SES-113). After a return code that passes it is sent again
// (retries.h).
#include "ses/initiator.h"

#include <algorithm>
#include <utility>

#include "ses/atomic_request.h"
#include "ses/memory_release.h"
#include "ses/payload.h"
#include "ses/request_header.h"
#include "ses/return_code.h"

namespace uet::ses {
namespace {

// Has the context as many operations in progress as it may have?
bool is_full(const Context& context) {
  return context.transmitting_count >= context.config.tx_size;
}

// Atomics never come here (SES-95). ROD would lose its order, and immediate data would be told at
// the target as often as they come.
bool is_idempotent(const Context& context, const RmaOp& op) {
  return context.config.mode == DeliveryMode::Rud && op.peer->hpc && !op.data &&
         is_idempotent_safe(op.key);
}

// SES-47, SES-49: NO_RESPONSE ends an operation that is complete once the peer has it. One that
// waits for data or for delivery waits for the response that follows.
bool is_provisional(const TxMessage& message, std::uint32_t tag,
                    const wire::SesResponseHeader& header) {
  return header.opcode == wire::ResponseOpcode::NoResponse && is_success(header.return_code) &&
         message.mode != DeliveryMode::Rudi && (message.header.dc || is_piece(tag));
}

// The answer of most packets: they were taken, and the target waits for nothing.
bool says_nothing(const TxMessage& message, const wire::SesResponseHeader& header) {
  return header.list == wire::List::Expected && !message.cancelled;
}

// The operation that the data are for. Our requests always have a message id, so that data which
// name a PSN belong to none (SES-6).
TxMessage* find_reader(const OperationTable& operations, const pds::RequestView& request,
                       const wire::SesResponseHeader& header) {
  TxMessage* message = operations.find(header.read_request_message_id);
  const bool ours = header.next_hdr == wire::NextHdr::ResponseData && message != nullptr &&
                    returns_data(message->kind) && message->pdc == request.pdc;
  return ours ? message : nullptr;
}

// PDS has answered for every packet, so that nothing refers to the user's memory any more (SES-108,
// SES-109), no data are to come (SES-85, SES-87), and the target has read what it wants to
// (SES-61).
bool is_done(const TxMessage& message) {
  const bool unread = message.awaits_read && !message.read_out && !message.failed();
  return message.ended && message.packets_answered == message.packets_made &&
         message.pieces_awaited == 0 && !unread && !message.owes_error && message.answers.empty();
}

}  // namespace

Initiator::Initiator(const Parameters& parameters, PieceStore& pieces, Counters& counters)
    : limits_(OperationLimits::of(parameters, pieces.largest())),
      payload_mtu_(parameters.payload_mtu),
      uses_rudi_(parameters.rudi),
      short_headers_(parameters.short_headers),
      pieces_(pieces),
      counters_(counters),
      operations_(parameters.tx_messages, parameters.pulls, this),
      staging_(parameters, counters),
      reads_(parameters, counters),
      rendezvous_(parameters, operations_, watches_),
      deferred_(parameters, watches_),
      forms_(parameters.eager_bytes, deferred_),
      retries_(parameters,
               {operations_, generations_, watches_, rendezvous_, deferred_, forms_, fences_},
               counters),
      pulls_(operations_),
      packets_(parameters.payload_mtu, reads_) {}

Initiator::~Initiator() {
  staging_.detach();
  operations_.for_each([this](TxMessage& message) {
    watches_.drop(message);  // PDS may be gone
    release(message);
  });
}

void Initiator::attach(pds::Delivery& delivery) {
  delivery_ = &delivery;
  watches_.attach(delivery);
  staging_.attach(delivery);
  reads_.attach(delivery);
  retries_.attach(delivery);
  pulls_.attach(delivery);
}

// ---- start -------------------------------------------------------------------------------------

// One whose fence, or that of an earlier one, holds it back starts in progress().
template <class Op>
Result<void> Initiator::post(Context& context, const Op& op, Time now) {
  const auto possible = check_operation(op, context.config.mode, limits_);
  if (!possible) return possible;
  if (is_full(context)) return Error::Again;
  const Result<TxMessage*> made = make(context, op);
  if (!made) return made.error();
  TxMessage& message = *made.value();
  const bool cut = message.kind != Kind::Read && !is_atomic(message.kind);
  if (cut) {
    const Copying when{op.inject, limits_.inject_bytes, payload_mtu_};
    if (const auto held = hold_payload(message, when, pieces_, staging_); !held) {
      release(message);
      return held;
    }
  }
  if (op.peer->optimized && short_headers_) choose_header(message, payload_mtu_);
  message.posted = now;
  trace_.write_at(now, trace::Kind::Posted, static_cast<unsigned>(message.kind), {},
                  Psn{message.header.message_id.value}, message.length, message.sequence);
  if (Fences::must_wait(message)) {
    if (message.fence) request_acks_now(*message.context);
    fences_.hold(message);
    return {};
  }
  const auto started = delivery_->send(message, choose_way(message), now);
  if (!started) release(message);
  return started;
}

template Result<void> Initiator::post(Context&, const SendOp&, Time);
template Result<void> Initiator::post(Context&, const RmaOp&, Time);
template Result<void> Initiator::post(Context&, const AtomicOp&, Time);

// Each make() takes a message for an operation and fills in its header.
Result<TxMessage*> Initiator::make(Context& context, const SendOp& op) {
  const bool datagram = context.config.mode == DeliveryMode::Uud;
  TxMessage* message = open(context, op, op.tag ? Kind::TaggedSend : Kind::Send);
  if (message == nullptr) return Error::Again;
  wire::SesRequest& header = message->header;
  if (datagram) {
    header.opcode = wire::SesOpcode::DatagramSend;
    return message;
  }
  header.opcode = op.tag ? wire::SesOpcode::TaggedSend : wire::SesOpcode::Send;
  header.match_bits = op.tag.value_or(0);
  if (context.config.via != 0) return message;
  rendezvous_.offer(*message, *op.peer);
  deferred_.offer(*message, *op.peer);
  return message;
}

Result<TxMessage*> Initiator::make(Context& context, const RmaOp& op) {
  const bool is_read = op.kind == Kind::Read;
  TxMessage* message = open(context, op, op.kind);
  if (message == nullptr) return Error::Again;
  if (uses_rudi_ && is_idempotent(context, op)) message->mode = DeliveryMode::Rudi;
  message->header.opcode = is_read ? wire::SesOpcode::Read : wire::SesOpcode::Write;
  message->header.match_bits = op.key.value;
  message->header.buffer_offset = op.remote_offset;
  if (!is_read && !op.data) message->header.header_data = static_cast<std::uint64_t>(op.part);
  return message;
}

Result<TxMessage*> Initiator::make(Context& context, const AtomicOp& op) {
  TxMessage* message = open(context, op, op.kind);
  if (message == nullptr) return Error::Again;
  if (!write_operands(*message, op, pieces_)) {
    release(*message);
    return Error::Again;
  }
  return message;
}

TxMessage* Initiator::open(Context& context, const TxOp& op, Kind kind) {
  if ((kind == Kind::Read || returns_data(kind)) && !reads_.prepare()) return nullptr;
  TxMessage* message = operations_.take();
  if (message == nullptr) return nullptr;
  message->context = &context;
  message->kind = kind;
  message->fence = op.fence;
  message->to = op.peer->fep;
  message->to.via = context.config.via;
  message->mode = context.config.mode;
  message->operation = op.context;
  message->user_flags = op.user_flags;
  message->length = total_length(op.local);
  message->prompt_ack = op.prompt_ack;
  message->iov_count = static_cast<std::uint32_t>(op.local.size());
  std::copy(op.local.begin(), op.local.end(), message->iov.begin());
  message->has_data = op.data.has_value();

  wire::SesRequest& header = message->header;
  header.dc = op.delivery_complete;
  header.rel = op.peer->relative;
  header.ri_generation = op.peer->generation;
  header.job_id = op.peer->job.value_or(context.config.job);
  header.pid_on_fep = op.peer->pid_on_fep;
  header.resource_index = op.peer->resource_index;
  header.initiator = context.config.initiator;
  header.header_data = op.data.value_or(0);
  header.request_length = static_cast<std::uint32_t>(message->length);

  context.transmitting.push_back(*message);
  ++context.transmitting_count;
  return message;
}

// Chooses, as late as possible, what depends on the peer and on other operations: generation, form,
// prompt ACK. Returns where the message goes.
pds::Destination Initiator::choose_way(TxMessage& message) {
  message.header.ri_generation = generations_.of(message);
  forms_.choose(message);
  message.size_class = pds::size_class_of(message.length, payload_mtu_);
  const Context& context = *message.context;
  // Held operations may wait for this one.
  message.prompt_ack |=
      message.length > payload_mtu_ || is_crowded(context) || !context.held.empty();
  message.backlog_bytes = message.kind == Kind::Read ? 0 : message.eager_bytes();
  return destination_of(message);
}

// More than half of a resource is in use, so that the next operations may have to wait for it.
bool Initiator::is_crowded(const Context& context) const {
  return context.transmitting_count > context.config.tx_size / 2 || operations_.is_crowded() ||
         pieces_.in_use() > pieces_.capacity() / 2;
}

void Initiator::request_acks_now(Context& context) {
  for (TxMessage& message : context.transmitting) {
    if (std::exchange(message.prompt_ack, true) || Fences::is_held(message)) continue;
    delivery_->request_acks_now(message.pdc);
  }
}

// A piece of the message; or one packet that ends a failed message, or one that its target will
// read or has put off.
pds::PacketPlan Initiator::next_packet(pds::Message& message, Packet& packet,
                                       pds::PreparedPacket& prepared) {
  auto& operation = static_cast<TxMessage&>(message);
  forms_.choose_again(operation);
  if (operation.failed()) {
    staging_.pause(operation);
    return RequestPackets::end(operation, wire::SesOpcode::MsgError, packet, prepared);
  }
  if (operation.kind == Kind::Read) return packets_.read(operation, packet, prepared);
  if (is_atomic(operation.kind)) return packets_.atomic(operation, packet, prepared);
  if (operation.awaits_read || operation.deferred) {
    staging_.pause(operation);
    return RequestPackets::end(operation, operation.header.opcode, packet, prepared);
  }
  const std::uint32_t length = piece_length(operation, operation.offset, payload_mtu_);
  const bool last = operation.offset + length == operation.eager_bytes();
  prepared.tag = kNoPiece;
  if (operation.staging == nullptr) [[likely]] {
    point_next(operation, length, packet.payload);
    if (points_to_device(operation)) [[unlikely]]
      packet.device = operation.iov[0].device;
  } else if (!staging_.point_next(operation, length, packet.payload, prepared.tag)) {
    return pds::PacketPlan::NotNow;
  }
  append_piece_header(packet, operation, length, last);
  prepared.next_hdr = operation.header.next_hdr;
  operation.offset += length;
  return count_packet(operation, last);
}

// ---- time --------------------------------------------------------------------------------------

void Initiator::progress(Time now) {
  fences_.start_ready(now, [&](TxMessage& message) {
    return delivery_->send(message, choose_way(message), now).ok();
  });
  const auto give_up = [&](TxMessage& message) { abandon(message, now); };
  rendezvous_.expire(now, give_up);
  reads_.expire(now, [&](TxMessage& message) {
    if (message.ended) {
      finish_if_done(message);
    } else {
      abandon(message, now);
    }
  });
  deferred_.expire(now, give_up);
  if (now < watches_.deadline()) return;
  watches_.begin_round();
  rendezvous_.reconnect(now);
  deferred_.reconnect(now);
}

Time Initiator::next_deadline() {
  const bool watches = rendezvous_.waits() || deferred_.waits();
  return std::min({fences_.deadline(), rendezvous_.deadline(), reads_.deadline(),
                   deferred_.deadline(), watches ? watches_.deadline() : kNever});
}

// ---- answers -----------------------------------------------------------------------------------

pds::Verdict Initiator::rx_rsp(pds::Message& answered, std::uint32_t tag,
                               const pds::ResponseView& response, Time now) {
  auto& message = static_cast<TxMessage&>(answered);
  wire::SesResponseHeader header;  // a bare ACK is the default response
  if (response.next_hdr != wire::NextHdr::None &&
      !wire::SesResponseHeader::decode(response.next_hdr, response.bytes, header)) {
    ++counters_.malformed;
    header = {};
    header.return_code = wire::ReturnCode::Uncor;
  }
  if (is_provisional(message, tag, header)) return pds::Verdict::Provisional;
  ++message.packets_answered;
  if (!is_success(header.return_code)) retries_.refused(message, header, now);
  if (is_piece(tag)) {
    reads_.on_answer(message, std::uint64_t{tag} * payload_mtu_, header, now);
  } else {
    if (tag != kNoPiece) staging_.answered(message, tag);
    if (is_success(header.return_code) && !says_nothing(message, header)) {
      on_answer(message, header, now);
    }
  }
  // SES-164: no answer states that the rest is to be read.
  if (is_outsized(message) && message.ended && !message.failed()) {
    rendezvous_.await_read(message, now);
  }
  if (message.mode == DeliveryMode::Rudi) {
    finish_if_done(message);  // the target remembers nothing of it
  } else if (message.failed() && !message.ended) {
    abandon(message, now);
  } else if (ends_now(message, now)) {
    finish(message, message.status);
  }
  return pds::Verdict::Final;
}

// A packet that asked for no data was taken. The target may say that it has not kept the message.
void Initiator::on_answer(TxMessage& message, const wire::SesResponseHeader& header, Time now) {
  if (header.list == wire::List::Overflow) forms_.note_unexpected(message);
  const bool dropped =
      header.list == wire::List::Overflow && header.modified_length == 0 && message.length > 0;
  const bool to_be_read = dropped || header.list == wire::List::ToBeRead;
  const bool told = header.opcode == wire::ResponseOpcode::Response && to_be_read;
  if (told && message.readable) rendezvous_.await_read(message, now);
  if (told && message.restart_token != 0) deferred_.park(message, now);
  if (told) staging_.resume(message);
  if (message.cancelled && message.waits_for_target() && !message.failed()) {
    message.status = Status::Cancelled;
    message.owes_error = message.ended;
  }
}

// Answers with a default response, for which some targets keep the data (WIRE 3.12).
pds::Response Initiator::rx_data(const pds::RequestView& request, Time now) {
  wire::SesResponseHeader header;
  if (!wire::SesResponseHeader::decode(request.next_hdr, request.bytes, header)) {
    ++counters_.malformed;
    return {};
  }
  TxMessage* message = find_reader(operations_, request, header);
  if (message == nullptr) {
    ++counters_.stray_responses;
  } else if (is_success(header.return_code)) {
    reads_.place(*message, header.message_offset, header.payload, now);
    finish_if_done(*message);
  } else {
    retries_.refused(*message, header, now);
    reads_.resolve(*message, std::min<std::uint64_t>(header.message_offset, message->length));
    finish_if_done(*message);
  }
  return default_response({header.response_message_id, header.job_id});
}

// PDS-142: it is sent again if no packet of it may have been consumed. An error of a later packet
// that does not say so ends the message all the same.
void Initiator::pds_error(pds::Message& failed, std::uint32_t tag, pds::PdsError error, Time now) {
  auto& message = static_cast<TxMessage&>(failed);
  ++message.packets_answered;
  message.owes_error = false;
  if (error != pds::PdsError::NotConsumed) {
    message.fail(error);
  } else if (++message.packets_unconsumed != message.packets_answered) {
    message.fail(pds::PdsError::ProtocolError);
  } else if (message.packets_unconsumed == 1) {
    retries_.not_consumed(message, now);
  }
  if (is_piece(tag)) {
    reads_.resolve(message, std::uint64_t{tag} * payload_mtu_);
  } else if (tag != kNoPiece) {
    staging_.answered(message, tag);
  }
  finish_if_done(message);
}

void Initiator::message_failed(pds::Message& failed, pds::PdsError error, Time now) {
  auto& message = static_cast<TxMessage&>(failed);
  message.ended = true;
  if (error != pds::PdsError::NotConsumed) {
    message.fail(error);
  } else if (message.packets_made == 0) {
    retries_.not_consumed(message, now);
  } else if (!message.try_again) {  // else this is the rest of what is sent again
    message.fail(pds::PdsError::ProtocolError);
  }
  finish_if_done(message);
}

// If the peer closes the PDC in order while data of a read are missing, it has failed (SES-86). A
// send that only waits for the target goes on; its next PDC shows whether the target is alive.
void Initiator::pdc_closed(PdcId pdc, std::optional<pds::PdsError> error, Time now) {
  if (reads_.any(pdc) || watches_.any()) {
    operations_.for_each([&](TxMessage& message) {
      if (message.pdc != pdc || (message.pieces_awaited == 0 && !message.watched)) return;
      if (!error && message.pieces_awaited == 0) {
        watches_.go_on_without_pdc(message, now);
        return;
      }
      watches_.drop(message);
      message.fail(error.value_or(pds::PdsError::ClosedInError));
      message.owes_error = false;
      message.pieces_awaited = 0;
      message.bytes_awaited = 0;
      finish_if_done(message);
    });
  }
  reads_.pdc_closed(pdc);
}

// ---- what a target asks ------------------------------------------------------------------------

wire::ReturnCode Initiator::restart(const wire::SesRequest& request, const FepAddress& source,
                                    Time now) {
  const DeferredSends::Restart restart = deferred_.restart(request, source, now);
  if (restart.message != nullptr) finish_if_done(*restart.message);
  return restart.code;
}

// ---- end ---------------------------------------------------------------------------------------

// An operation that has begun ends with a MSG_ERROR (SES-113). One that has left whole may still
// succeed; if it fails, or its target puts it off, it counts as cancelled.
bool Initiator::cancel(Context& context, const void* operation, Time now) {
  TxMessage* left = nullptr;
  for (TxMessage& message : context.transmitting) {
    if (message.operation != operation) continue;
    if (message.try_again) {  // what was sent of it has been given up already
      message.try_again = false;
      message.status = Status::Cancelled;
      return true;
    }
    if (message.failed()) {
      left = left != nullptr || message.status == Status::Cancelled ? left : &message;
      continue;
    }
    if (Fences::is_held(message) || (message.withdrawable() && withdraw(message))) {
      finish(message, Status::Cancelled);
      return true;
    }
    if (message.packets_made == 0 || (message.ended && !message.waits_for_target())) {
      if (left == nullptr && !message.cancelled) left = &message;
      continue;
    }
    message.status = Status::Cancelled;
    abandon(message, now);
    return true;
  }
  if (left == nullptr || left->cancelled) return false;
  left->cancelled = true;
  return true;
}

// Packets that have left go on without the memory of the application, as other contexts use the
// same PDCs (SES-165).
void Initiator::close_context(Context& context, Time now) {
  context.closing = true;
  generations_.forget(context);
  while (!context.transmitting.empty()) {
    TxMessage& message = context.transmitting.front();
    if (Fences::is_held(message) || (message.withdrawable() && withdraw(message))) {
      release(message);
      continue;
    }
    if (!message.failed()) message.status = Status::Cancelled;  // refuse further reads of it
    if (release_memory(message, *delivery_)) {
      abandon(message, now);
    } else {
      finish_if_done(message);
    }
    if (context.transmitting.empty() || &context.transmitting.front() != &message) continue;
    // PDS will still answer for packets of it, but no context gets a completion.
    IntrusiveList<TxMessage, OutstandingTag>::remove(message);
    --context.transmitting_count;
    if (message.refused) --context.refused_count;
    message.context = nullptr;
    orphans_.push_back(message);
  }
}

// Takes the message out of PDS as if it had never been sent.
bool Initiator::withdraw(TxMessage& message) {
  if (!delivery_->cancel(message)) return false;
  reads_.drop(message);
  return true;
}

// Makes no more packets of a failed message and ends it at its target with a MSG_ERROR (SES-113).
// The MSG_ERROR is sent when all other packets are answered: it would not end the packets that the
// target accepts after it, because it had no memory for them before.
void Initiator::abandon(TxMessage& message, Time now) {
  if (!message.ended && !delivery_->cancel(message)) return;
  message.ended = true;
  message.owes_error = true;
  if (ends_now(message, now)) finish(message, message.status);
}

// PDS has answered for a packet of the message; the last answer may end it.
bool Initiator::ends_now(TxMessage& message, Time now) {
  if (message.packets_answered != message.packets_made) return false;
  if (message.owes_error && send_error(message, now)) return false;
  return is_over(message);
}

// The MSG_ERROR goes where the rest of the message has gone, or, if that PDC has closed or is about
// to, to its target on another one. False: neither is to be had, and the target learns nothing.
bool Initiator::send_error(TxMessage& message, Time now) {
  message.owes_error = false;
  message.ended = false;
  message.ends_message = true;
  Result<void> sent = Error::NotFound;
  if (message.pdc != PdcId{}) sent = delivery_->send_on(message.pdc, message, now);
  const bool needs_pdc = message.pdc == PdcId{} || (!sent && sent.error() == Error::Busy);
  if (needs_pdc && message.context != nullptr) {
    watches_.stop(message);
    sent = delivery_->send(message, destination_of(message), now);
  }
  message.ended = !sent;
  return sent.ok();
}

// Nothing more is to come of the message. If it is to be sent again, that begins here, and it is
// not over.
bool Initiator::is_over(TxMessage& message) {
  if (message.failed() && message.mode == DeliveryMode::Rudi) {
    withdraw(message);  // the peer keeps nothing that a MSG_ERROR could end
  } else {
    const bool read = message.ended && message.pieces_awaited == 0 && !message.failed();
    if (read) pulls_.report_end(message);
    if (!is_done(message)) return false;
  }
  const bool parked = message.deferred && !message.failed();
  const bool refused = message.try_again && message.context != nullptr && !message.context->closing;
  const bool again = parked ? message.restart : refused;
  if (again) {
    staging_.drop(message);
    retries_.rewind(message);
  }
  return !parked && !again;
}

// The end of every operation: nothing refers to the user's memory any more.
void Initiator::note_end_in_trace(const TxMessage& message, Status status) {
  const std::uint64_t why = status == Status::PdsError
                                ? static_cast<std::uint64_t>(message.pds_error)
                                : static_cast<std::uint64_t>(message.return_code);
  trace_.write(trace::Kind::Ended, static_cast<unsigned>(status), message.pdc,
               Psn{message.header.message_id.value}, why);
  if (status != Status::Ok && status != Status::Cancelled) trace_.note_failed_operation();
}

void Initiator::finish(TxMessage& message, Status status) {
  Completion completion;
  completion.kind = message.kind;
  completion.status = message.cancelled && status != Status::Ok ? Status::Cancelled : status;
  completion.return_code = message.return_code;
  completion.pds_error = message.pds_error;
  completion.context = message.operation;
  completion.user_flags = message.user_flags;
  completion.length = message.length;
  Context* context = message.context;
  if (message.kind == Kind::Read) reads_.end_run();
  pulls_.report_end(message);
  note_end_in_trace(message, completion.status);
  if (status == Status::Ok) forms_.note_plain_answer(message, true);
  const bool is_pull = message.pull;
  release(message);
  if (is_pull) return;
  if (context != nullptr) fences_.operation_ended(*context);
  if (status == Status::Ok) ++counters_.messages_sent;
  if (context != nullptr && !context->closing) context->sink.complete(completion);
}

void Initiator::release(TxMessage& message) {
  pieces_.give_back_all(message.gathered);
  if (message.staging != nullptr) staging_.drop(message);
  IntrusiveList<TxMessage, OutstandingTag>::remove(message);
  if (Fences::is_held(message)) fences_.unhold(message);
  rendezvous_.stop_awaiting(message);
  reads_.stop_awaiting(message);
  watches_.stop(message);
  deferred_.forget(message);
  forms_.end_trial(message);
  if (message.context != nullptr) {
    --message.context->transmitting_count;
    if (message.refused) --message.context->refused_count;
  }
  operations_.give_back(message);
}

}  // namespace uet::ses
