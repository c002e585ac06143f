// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cutting operations into packets and counting their answers.
//
// A refused message (an error response came) makes no more packets but a MSG_ERROR, which ends the
// receive state at the target (SES-54, SES-113).
// After a return code that passes it is sent again (initiator_retry.cc).
#include "uet/ses/initiator.h"

#include <algorithm>
#include <utility>

#include "uet/ses/return_code.h"

namespace uet::ses {
namespace {

constexpr std::size_t kIds = 1 << 16;          // values of a message id, and of a PDC id
constexpr std::size_t kMaxInjectBytes = 4096;  // section 12.1

}  // namespace

Initiator::Initiator(const Parameters& parameters, PieceStore& pieces, Counters& counters)
    : payload_mtu_(parameters.payload_mtu),
      host_copy_(parameters.host_copy),
      read_limit_bytes_(parameters.outstanding_reads_bytes),
      rendezvous_threshold_bytes_(parameters.rendezvous_threshold_bytes),
      eager_bytes_(parameters.eager_bytes),
      rendezvous_timeout_(parameters.rendezvous_timeout),
      read_timeout_(parameters.read_timeout),
      retries_(parameters.retries),
      retry_wait_(parameters.retry_wait),
      retry_wait_most_(parameters.retry_wait_most),
      operations_limit_(std::min(parameters.tx_messages, kIds - 1 - parameters.pulls)),
      pulls_limit_(parameters.pulls),
      uses_rudi_(parameters.rudi),
      short_headers_(parameters.short_headers),
      uses_rendezvous_(parameters.rendezvous),
      uses_deferral_(parameters.deferrable),
      deferrable_threshold_bytes_(
          std::max<std::uint64_t>(parameters.deferrable_threshold_bytes, 1)),
      deferred_timeout_(parameters.deferred_timeout),
      pieces_(pieces),
      counters_(counters),
      rng_(parameters.seed),
      key_secret_(parameters.key_secret),
      messages_(operations_limit_ + pulls_limit_),
      by_id_(kIds),
      learned_(kLearnedGenerations),
      reads_(kIds) {}

Initiator::~Initiator() {
  for (std::size_t id = 0; id < kIds && messages_.in_use() > 0; ++id) {
    if (by_id_[id] == nullptr) continue;
    by_id_[id]->watched = false;  // PDS may be gone
    release(*by_id_[id]);
  }
}

// ---- posting -----------------------------------------------------------------------------------

Result<void> Initiator::send(Context& context, const SendOp& op, Time now) {
  if (context.config.mode == DeliveryMode::Uud) return send_datagram(context, op, now);
  if (const auto checked = check(context, op); !checked) return checked;
  TxMessage* message = prepare(context, op, op.tag ? Kind::TaggedSend : Kind::Send);
  if (message == nullptr) return Error::Again;
  message->header.opcode = op.tag ? wire::SesOpcode::TaggedSend : wire::SesOpcode::Send;
  message->header.match_bits = op.tag.value_or(0);
  offer_reads(*message, *op.peer);
  offer_deferral(*message, *op.peer);
  return submit(*message, op, now);
}

Result<void> Initiator::write(Context& context, const RmaOp& op, Time now) {
  return rma(context, op, Kind::Write, now);
}

Result<void> Initiator::read(Context& context, const RmaOp& op, Time now) {
  if (op.inject || op.data) return Error::Invalid;
  return rma(context, op, Kind::Read, now);
}

Result<void> Initiator::rma(Context& context, const RmaOp& op, Kind kind, Time now) {
  if (context.config.mode == DeliveryMode::Uud) return Error::Invalid;  // PDS-191
  if (const auto checked = check(context, op); !checked) return checked;
  TxMessage* message = prepare(context, op, kind);
  if (message == nullptr) return Error::Again;
  const bool is_read = kind == Kind::Read;
  if (is_idempotent(context, op)) message->mode = DeliveryMode::Rudi;
  message->header.opcode = is_read ? wire::SesOpcode::Read : wire::SesOpcode::Write;
  message->header.match_bits = op.key.value;
  message->header.buffer_offset = op.remote_offset;
  return submit(*message, op, now);
}

Result<void> Initiator::check(const Context& context, const TxOp& op) const {
  if (op.peer == nullptr || op.local.size() > kMaxIoSlices) return Error::Invalid;
  for (const IoSlice& slice : op.local) {
    if (slice.data == nullptr && slice.length > 0) return Error::Invalid;
  }
  const std::uint64_t length = total_length(op.local);
  if (length > (op.inject ? max_inject_bytes() : kMaxMessageBytes)) return Error::TooLong;
  if (context.transmitting_count >= context.config.tx_size) return Error::Again;
  return {};
}

TxMessage* Initiator::prepare(Context& context, const TxOp& op, Kind kind) {
  if (messages_.in_use() - pulls_count_ >= operations_limit_) return nullptr;
  TxMessage* message = messages_.take();
  if (message == nullptr) return nullptr;
  message->context = &context;
  message->kind = kind;
  message->fence = op.fence;
  message->to = op.peer->fep;
  message->mode = context.config.mode;
  message->operation = op.context;
  message->user_flags = op.user_flags;
  message->length = total_length(op.local);
  message->awaited = op.awaited;
  message->iov_count = static_cast<std::uint32_t>(op.local.size());
  std::copy(op.local.begin(), op.local.end(), message->iov.begin());
  message->has_data = op.data.has_value();
  message->sequence = next_sequence_++;

  wire::SesRequest& header = message->header;
  header.dc = op.delivery_complete;
  header.rel = op.peer->relative;
  header.message_id = take_id(*message);
  header.ri_generation = op.peer->generation;
  header.job_id = context.config.job;
  header.pid_on_fep = op.peer->pid_on_fep;
  header.resource_index = op.peer->resource_index;
  header.initiator = context.config.initiator;
  header.header_data = op.data.value_or(0);
  header.request_length = static_cast<std::uint32_t>(message->length);

  context.transmitting.push_back(*message);
  ++context.transmitting_count;
  return message;
}

Result<void> Initiator::submit(TxMessage& message, const TxOp& op, Time now) {
  const bool cut = message.kind != Kind::Read && !is_atomic(message.kind);
  if (cut && !gather_pieces(message, op.inject)) {
    release(message);
    return Error::Again;
  }
  if (op.peer->optimized && short_headers_) choose_header(message);
  if (must_wait(message)) {
    if (message.fence) hurry(*message.context);
    hold(message);
    return {};
  }
  const auto started = start(message, now);
  if (!started) release(message);
  return started;
}

Result<void> Initiator::start(TxMessage& message, Time now) {
  if (has_learned_) message.header.ri_generation = generation_of(message);
  if (has_plain_form(message)) choose_form(message);
  message.is_long = message.length > kShortPackets * payload_mtu_;
  const Context& context = *message.context;
  // What is held may wait for it.
  message.awaited |= message.length > payload_mtu_ || is_crowded(context) || !context.held.empty();
  message.backlog_bytes = message.kind == Kind::Read ? 0 : message.length;
  return delivery_->send(message, destination_of(message), now);
}

// Whoever posts next may have to wait for room.
bool Initiator::is_crowded(const Context& context) const {
  return context.transmitting_count > context.config.tx_size / 2 ||
         messages_.in_use() > operations_limit_ / 2 || pieces_.in_use() > pieces_.capacity() / 2;
}

void Initiator::hurry(Context& context) {
  for (TxMessage& message : context.transmitting) {
    if (std::exchange(message.awaited, true) || is_held(message)) continue;
    delivery_->hurry(message.pdc);
  }
}

// Copies what cannot be pointed to with two slices (packets across several short slices, inject)
// now, so that making a packet never waits for a buffer. At most one packet per slice begins or
// ends inside it, so few packets have to be looked at.
bool Initiator::gather_pieces(TxMessage& message, bool inject) {
  if (message.length == 0 || (!inject && message.iov_count <= 2)) return true;
  Piece** end = &message.gathered;
  std::uint64_t slice_begin = 0;
  std::uint64_t packets_seen = 0;
  std::array<Slice, 2> unused;
  for (const IoSlice& slice : message.slices()) {
    const std::uint64_t packet = slice_begin / payload_mtu_;
    slice_begin += slice.length;
    const std::uint64_t offset = packet * payload_mtu_;
    if (packet < packets_seen || offset >= message.length) continue;
    packets_seen = packet + 1;
    const std::uint32_t length = piece_length(message, offset);
    if (!inject && point(message.slices(), offset, length, unused)) continue;
    Piece* piece = pieces_.take(length);
    if (piece == nullptr) return false;
    gather(message.slices(), offset, length, piece->data);
    piece->offset = static_cast<std::uint32_t>(offset);
    *end = piece;
    end = &piece->next;
  }
  message.next_gathered = message.gathered;
  if (inject) {  // the copy is what a target can read
    message.iov[0] = {message.gathered->data, message.gathered->length};
    message.iov_count = 1;
  }
  return true;
}

MsgId Initiator::take_id(TxMessage& message) {
  do {
    ++last_id_;
  } while (last_id_ == 0 || by_id_[last_id_] != nullptr);
  by_id_[last_id_] = &message;
  return MsgId{last_id_};
}

// What has begun ends with a MSG_ERROR (SES-113). What has left whole may still succeed; if it
// fails, or its target puts it off, it counts as cancelled.
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
    const bool held = is_held(message);
    if (held || (message.withdrawable() && withdraw(message))) {
      message.status = Status::Cancelled;
      message.ended = true;
      finish(message);
      return true;
    }
    const bool waits = message.deferred || (message.awaits_read && !message.read_out);
    if (message.packets_made == 0 || (message.ended && !waits)) {
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

void Initiator::close_context(Context& context, Time now) {
  context.closing = true;
  if (has_learned_) forget_generations(context);
  while (!context.transmitting.empty()) {
    TxMessage& message = context.transmitting.front();
    if (is_held(message) || (message.withdrawable() && withdraw(message))) {
      release(message);
      continue;
    }
    const auto gone = [&] {
      return context.transmitting.empty() || &context.transmitting.front() != &message;
    };
    if (!message.failed()) message.status = Status::Cancelled;  // nobody may read it any more
    while (!gone() && !message.answers.empty()) {
      const ReadAnswer* answer = &message.answers.front();
      delivery_->abort(answer->pdc, now);
      if (!gone() && !message.answers.empty() && &message.answers.front() == answer) break;
    }
    if (!gone()) finish_if_done(message);
    if (gone()) continue;
    delivery_->abort(message.pdc, now);
    if (gone()) continue;
    // PDS will still answer for packets of it, but to nobody.
    IntrusiveList<TxMessage, OutstandingTag>::remove(message);
    --context.transmitting_count;
    if (message.refused) --context.refused_count;
    message.context = nullptr;
    orphans_.push_back(message);
  }
}

void Initiator::progress(Time now) {
  start_all_held(now);
  expire_reads(now);
  expire_data(now);
  expire_deferred(now);
  if (now >= next_watch_) watch_on_other_pdcs(now);
}

Time Initiator::next_deadline() {
  const bool watches = !awaiting_read_.empty() || !deferred_.empty();
  return std::min({holding_.empty() ? kNever : next_try_, read_deadline(), data_deadline(),
                   deferred_deadline(), watches ? next_watch_ : kNever});
}

std::size_t Initiator::max_inject_bytes() const {
  return std::min<std::size_t>({payload_mtu_, pieces_.largest(), kMaxInjectBytes});
}

// ---- packets -----------------------------------------------------------------------------------

std::uint32_t Initiator::piece_length(const TxMessage& message, std::uint64_t offset) const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(payload_mtu_, message.length - offset));
}

pds::PacketPlan Initiator::made(TxMessage& message, bool last) {
  ++message.packets_made;
  message.ended = last;
  return last ? pds::PacketPlan::Last : pds::PacketPlan::More;
}

pds::PacketPlan Initiator::next_packet(TxMessage& message, Packet& packet,
                                       pds::PreparedPacket& prepared) {
  if (message.failed()) return next_end(message, wire::SesOpcode::MsgError, packet, prepared);
  if (message.kind == Kind::Read) return next_read(message, packet, prepared);
  if (is_atomic(message.kind)) return next_atomic(message, packet, prepared);
  if (message.awaits_read || message.deferred) {
    return next_end(message, message.header.opcode, packet, prepared);
  }
  if (message.packets_made == 0 && has_plain_form(message)) {  // a refusal may have come meanwhile
    message.plain = long_send_peers_.takes_plain_only(message.to);
    if (message.plain) make_plain(message);
  }
  const std::uint32_t length = piece_length(message, message.offset);
  const bool eom = message.offset + length == message.length;
  append_piece_header(packet, message, length, eom);

  Piece* piece = message.next_gathered;
  if (piece != nullptr && piece->offset == message.offset) {
    packet.payload = {Slice{piece->data, length}, Slice{}};
    message.next_gathered = piece->next;
  } else {
    const bool pointed = point(message.slices(), message.offset, length, packet.payload);
    UET_ASSERT(pointed);  // gather_pieces copied all others
    (void)pointed;
  }
  prepared.next_hdr = message.header.next_hdr;
  prepared.tag = kNoPiece;
  message.offset += length;
  return made(message, eom);
}

// One request packet per payload MTU of the answer (SES-81).
pds::PacketPlan Initiator::next_read(TxMessage& message, Packet& packet,
                                     pds::PreparedPacket& prepared) {
  const std::uint32_t length = piece_length(message, message.offset);
  if (!await_piece(message, length)) return pds::PacketPlan::NotNow;
  const bool eom = message.offset + length == message.length;
  append_piece_header(packet, message, length, eom);

  prepared.tag = static_cast<std::uint32_t>(message.offset / payload_mtu_);
  message.offset += length;
  return made(message, eom);
}

// A request packet is about to ask for `length` bytes; false: too many are on their way already.
bool Initiator::await_piece(TxMessage& message, std::uint32_t length) {
  PdcReads& reads = reads_[message.pdc.value];
  if (reads.pieces > 0 && reads.bytes + length > read_limit_bytes_) {
    reads.blocked = true;
    return false;
  }
  message.bytes_awaited += length;
  ++message.pieces_awaited;
  reads.bytes += length;
  ++reads.pieces;
  delivery_->lock(message.pdc);  // until its data or an error came (PDS-15, SES-84)
  return true;
}

// Ends the message where it stands, without payload: MSG_ERROR gives it up (SES-113), its own
// opcode ends the eager part (as SES-69).
pds::PacketPlan Initiator::next_end(TxMessage& message, wire::SesOpcode opcode, Packet& packet,
                                    pds::PreparedPacket& prepared) {
  wire::SesRequest header = message.header;
  header.opcode = opcode;
  header.som = false;
  header.eom = true;
  header.hd = false;
  header.payload_length = 0;
  header.message_offset = static_cast<std::uint32_t>(message.offset);
  append_header(packet, header);
  prepared.tag = kNoPiece;
  return made(message, true);
}

// ---- answers -----------------------------------------------------------------------------------

pds::Verdict Initiator::rx_rsp(TxMessage& message, std::uint32_t tag,
                               const pds::ResponseView& response, Time now) {
  wire::SesResponseHeader header;  // a bare ACK is the default response
  if (response.next_hdr != wire::NextHdr::None &&
      !wire::SesResponseHeader::decode(response.next_hdr, response.bytes, header)) {
    ++counters_.malformed;
    header = {};
    header.return_code = wire::ReturnCode::Uncor;
  }
  if (is_provisional(message, tag, header)) return pds::Verdict::Provisional;
  take_response(message, tag, header, now);
  return pds::Verdict::Final;
}

// SES-47, SES-49: NO_RESPONSE ends what is complete once the peer has it; who waits for data or for
// delivery waits for the response that follows.
bool Initiator::is_provisional(const TxMessage& message, std::uint32_t tag,
                               const wire::SesResponseHeader& header) {
  return header.opcode == wire::ResponseOpcode::NoResponse && is_success(header.return_code) &&
         message.mode != DeliveryMode::Rudi && (message.header.dc || tag != kNoPiece);
}

void Initiator::take_response(TxMessage& message, std::uint32_t tag,
                              const wire::SesResponseHeader& header, Time now) {
  ++message.packets_answered;
  const std::uint32_t awaited = message.pieces_awaited;
  on_response(message, tag, header, now);
  const bool unresolved = tag != kNoPiece && message.pieces_awaited == awaited;
  if (unresolved && message.mode == DeliveryMode::Rudi) fail(message, wire::ReturnCode::Uncor);
  if (message.mode == DeliveryMode::Rudi) return finish_if_done(message);  // nobody remembers it
  if (message.failed() && !message.ended) return abandon(message, now);
  if (message.packets_answered == message.packets_made) send_error(message, now);
}

void Initiator::on_response(TxMessage& message, std::uint32_t tag,
                            const wire::SesResponseHeader& header, Time now) {
  const bool asked = tag != kNoPiece;
  const std::uint64_t offset = asked ? std::uint64_t{tag} * payload_mtu_ : 0;
  if (!is_success(header.return_code)) {
    ++counters_.errors_received;
    refuse(message, header, now);
    if (asked) resolve_piece(message, offset);
    return;
  }
  if (!asked) {
    if (message.trial && header.list == wire::List::Overflow) {
      long_send_peers_.note_unexpected(message.to);
    }
    const bool dropped =
        header.list == wire::List::Overflow && header.modified_length == 0 && message.length > 0;
    const bool to_be_read = dropped || header.list == wire::List::ToBeRead;
    const bool told = header.opcode == wire::ResponseOpcode::Response && to_be_read;
    if (told && message.readable) await_read(message, now);
    if (told && message.restart_token != 0) park(message, now);
    const bool waits = message.deferred || (message.awaits_read && !message.read_out);
    if (message.cancelled && waits && !message.failed()) {
      message.status = Status::Cancelled;
      message.owes_error = message.ended;
    }
    return;
  }
  if (header.next_hdr == wire::NextHdr::Response) {
    if (message.length == 0) {
      resolve_piece(message, offset);  // no data will follow
    } else {
      await_data(message, now);
    }
    return;
  }
  place_data(message, offset, header.payload, now);  // data in the ACK (PDS-194)
}

// Answers with a default response, for which some targets keep the data (WIRE 3.12).
pds::Response Initiator::rx_data(const pds::RequestView& request, Time now) {
  wire::SesResponseHeader header;
  if (!wire::SesResponseHeader::decode(request.next_hdr, request.bytes, header)) {
    ++counters_.malformed;
    return {};
  }
  take_data(request, header, now);
  return default_response({header.response_message_id, header.job_id});
}

void Initiator::take_data(const pds::RequestView& request, const wire::SesResponseHeader& header,
                          Time now) {
  // Requests of ours always have a message id, so data that name a PSN are nobody's (SES-6).
  TxMessage* message = by_id_[header.read_request_message_id.value];
  const bool ours = header.next_hdr == wire::NextHdr::ResponseData && message != nullptr &&
                    returns_data(message->kind) && message->pdc == request.pdc;
  if (!ours) {
    ++counters_.stray_responses;
    return;
  }
  if (is_success(header.return_code)) {
    place_data(*message, header.message_offset, header.payload, now);
  } else {
    ++counters_.errors_received;
    refuse(*message, header, now);
    resolve_piece(*message, std::min<std::uint64_t>(header.message_offset, message->length));
  }
  finish_if_done(*message);
}

// Only a piece that was asked for in this form is taken (SES-88). One of another length comes from
// a peer with another payload MTU (SES-25): the right one never will.
void Initiator::place_data(TxMessage& message, std::uint64_t offset,
                           std::span<const std::byte> data, Time now) {
  const bool asked =
      message.pieces_awaited > 0 && offset < message.offset && offset % payload_mtu_ == 0;
  if (!asked || data.size() != piece_length(message, offset)) {
    ++counters_.stray_responses;
    if (!asked) return;
    fail(message, wire::ReturnCode::OpViolation);
  } else if (is_atomic(message.kind)) {
    place_results(message, data);
  } else {
    scatter(message.slices(), offset, data, host_copy_);
  }
  resolve_piece(message, offset);
  await_data(message, now);
}

bool Initiator::awaits_data(const TxMessage& message) {
  return static_cast<const ListNode<AwaitingDataTag>&>(message).linked();
}

// From now on, for Read_Timeout: the target lives, has accepted the read, and owes data.
void Initiator::await_data(TxMessage& message, Time now) {
  if (awaits_data(message)) awaiting_data_.remove(message);
  if (message.pieces_awaited == 0 || message.mode == DeliveryMode::Rudi) return;
  message.awaiting_since = now;
  awaiting_data_.push_back(message);
}

// SES-86.
void Initiator::expire_data(Time now) {
  while (data_deadline() <= now) {
    TxMessage& message = awaiting_data_.front();
    awaiting_data_.remove(message);
    fail(message, pds::PdsError::RtoExhausted);  // FI_ETIMEDOUT
    while (message.pieces_awaited > 0) resolve_piece(message, 0);
    if (message.ended) {
      finish_if_done(message);
    } else {
      abandon(message, now);
    }
  }
}

Time Initiator::data_deadline() {
  const bool none = awaiting_data_.empty() || read_timeout_ == Duration{0};
  return none ? kNever : awaiting_data_.front().awaiting_since + read_timeout_;
}

// The piece at `offset` needs no more waiting for.
void Initiator::resolve_piece(TxMessage& message, std::uint64_t offset) {
  if (message.pieces_awaited == 0) return;
  PdcReads& reads = reads_[message.pdc.value];
  --message.pieces_awaited;
  --reads.pieces;
  // With the last piece goes whatever a peer that answers twice has left in the count.
  const std::uint64_t bytes =
      message.pieces_awaited == 0
          ? message.bytes_awaited
          : std::min<std::uint64_t>(piece_length(message, offset), message.bytes_awaited);
  message.bytes_awaited -= bytes;
  reads.bytes -= bytes;
  delivery_->unlock(message.pdc);
  if (reads.blocked) {
    reads.blocked = false;
    delivery_->kick(message.pdc);
  }
}

// PDS-142: it is sent again if no packet of it may have been consumed. An error of a later packet
// that does not say so ends the message all the same.
void Initiator::pds_error(TxMessage& message, std::uint32_t tag, pds::PdsError error, Time now) {
  ++message.packets_answered;
  message.owes_error = false;
  if (error != pds::PdsError::NotConsumed) {
    fail(message, error);
  } else if (++message.packets_unconsumed != message.packets_answered) {
    fail(message, pds::PdsError::ProtocolError);
  } else if (message.packets_unconsumed == 1) {
    not_consumed(message, now);
  }
  if (tag != kNoPiece) resolve_piece(message, std::uint64_t{tag} * payload_mtu_);
  finish_if_done(message);
}

void Initiator::message_failed(TxMessage& message, pds::PdsError error, Time now) {
  message.ended = true;
  if (error != pds::PdsError::NotConsumed) {
    fail(message, error);
  } else if (message.packets_made == 0) {
    not_consumed(message, now);
  } else if (!message.try_again) {  // else this is the rest of what is sent again
    fail(message, pds::PdsError::ProtocolError);
  }
  finish_if_done(message);
}

// An orderly close with data still awaited is the peer's failure (SES-86). A send that only waits
// for the target goes on, and its next PDC tells whether the target lives.
void Initiator::pdc_closed(PdcId pdc, std::optional<pds::PdsError> error, Time now) {
  if (reads_[pdc.value].pieces > 0 || reads_[pdc.value].watched > 0) {
    for (std::size_t id = 0; id < kIds; ++id) {
      TxMessage* message = by_id_[id];
      if (message == nullptr || message->pdc != pdc) continue;
      if (message->pieces_awaited == 0 && !message->watched) continue;
      message->watched = false;
      if (!error && message->pieces_awaited == 0) {
        message->pdc = {};
        next_watch_ = std::min(next_watch_, now + kWatchAgain);
        continue;
      }
      fail(*message, error.value_or(pds::PdsError::ClosedInError));
      message->owes_error = false;
      message->pieces_awaited = 0;
      message->bytes_awaited = 0;
      finish_if_done(*message);
    }
  }
  reads_[pdc.value] = {};
}

// ---- completion --------------------------------------------------------------------------------

void Initiator::fail(TxMessage& message, wire::ReturnCode code) {
  if (message.failed()) return;  // the first error wins (SES-109)
  message.status = Status::ReturnCode;
  message.return_code = code;
}

void Initiator::fail(TxMessage& message, pds::PdsError error) {
  if (message.failed() && !message.try_again) return;
  message.try_again = false;  // to nobody
  message.status = Status::PdsError;
  message.pds_error = error;
}

// Complete when PDS has answered for every packet, so that nothing refers to the user's memory any
// more (SES-108, SES-109), no data are to come (SES-85, SES-87), and the target has read what it
// wants to (SES-61).
void Initiator::finish_if_done(TxMessage& message) {
  if (message.failed() && message.mode == DeliveryMode::Rudi) {
    withdraw(message);  // the peer keeps nothing that a MSG_ERROR could end
    return end(message);
  }
  const bool read = message.ended && message.pieces_awaited == 0 && !message.failed();
  if (read && message.pull_for != nullptr) tell_puller(message);
  const bool unread = message.awaits_read && !message.read_out && !message.failed();
  if (message.ended && message.packets_answered == message.packets_made &&
      message.pieces_awaited == 0 && !unread && !message.owes_error && message.answers.empty()) {
    end(message);
  }
}

// Nothing refers to the user's memory any more.
void Initiator::end(TxMessage& message) {
  if (message.deferred && !message.failed()) {
    if (message.restart) rewind(message);
    return;
  }
  const bool again = message.try_again && message.context != nullptr && !message.context->closing;
  if (again) {
    rewind(message);
  } else {
    finish(message);
  }
}

void Initiator::finish(TxMessage& message) {
  Completion completion;
  completion.kind = message.kind;
  completion.status = message.status;
  completion.return_code = message.return_code;
  completion.pds_error = message.pds_error;
  if (message.cancelled && message.failed()) completion.status = Status::Cancelled;
  completion.context = message.operation;
  completion.user_flags = message.user_flags;
  completion.length = message.length;
  Context* context = message.context;
  if (message.pull_for != nullptr) tell_puller(message);
  if (message.plain && message.status == Status::Ok) {
    long_send_peers_.note_plain_answer(message.to, true);  // it refused the other opcode
  }
  const bool is_pull = message.pull;
  release(message);
  if (is_pull) return;
  if (context != nullptr && !context->held.empty()) next_try_ = Time{};  // a fence may open
  if (completion.status == Status::Ok) ++counters_.messages_sent;
  if (context != nullptr && !context->closing) context->sink.complete(completion);
}

void Initiator::release(TxMessage& message) {
  by_id_[message.header.message_id.value] = nullptr;
  pieces_.give_back_all(message.gathered);
  IntrusiveList<TxMessage, OutstandingTag>::remove(message);
  if (is_held(message)) unhold(message);
  stop_awaiting_read(message);
  if (awaits_data(message)) awaiting_data_.remove(message);
  stop_watching(message);
  if (static_cast<const ListNode<DeferrableTag>&>(message).linked()) deferrable_.remove(message);
  if (message.pull) --pulls_count_;
  if (message.trial) long_send_peers_.end_trial(message.to);
  if (message.context != nullptr) {
    --message.context->transmitting_count;
    if (message.refused) --message.context->refused_count;
  }
  messages_.give_back(&message);
}

}  // namespace uet::ses
