// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving. The order of the checks is that of SES-115, except that the extent of the payload (13)
// is looked at before a send is matched (11), so that a refused packet takes no receive.
#include "uet/ses/target.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "uet/ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;
using wire::SesOpcode;

namespace {

// What an unexpected message is charged besides its data.
constexpr std::size_t kUnexpectedMessageBytes = sizeof(RxMessage);
// Unexpected messages leave 1/8 of the payload buffers and 1/4 of the message states to traffic
// that somebody waits for, else two peers that only send could block each other for good.
constexpr std::size_t kBufferReserve = 8;
constexpr std::size_t kMessageReserve = 4;

bool is_arriving(const RxMessage& message) {
  return static_cast<const ListNode<ArrivingTag>&>(message).linked();
}

Kind kind_of(SesOpcode opcode) {
  if (opcode == SesOpcode::Write) return Kind::Write;
  return is_tagged(opcode) ? Kind::TaggedSend : Kind::Send;
}

// An error remembered of an earlier message with the same id, whose end never came.
bool is_stale(const RxMessage& message, const wire::SesRequest& request) {
  return message.state == RxState::Error &&
         check_same_message(message, request) == ReturnCode::PermViolation;
}

MatchKey match_key(const pds::RequestView& view, const wire::SesRequest& request) {
  return {request.match_bits, request.initiator, view.source};
}

}  // namespace

// ---- messages that arrive ----------------------------------------------------------------------

ArrivingMessages::ArrivingMessages(std::size_t capacity)
    : mask_(std::bit_ceil(std::max<std::size_t>(capacity, 1)) - 1),
      buckets_(std::make_unique<RxMessage*[]>(mask_ + 1)) {}

RxMessage** ArrivingMessages::bucket(PdcId pdc, MsgId id) {
  const std::uint32_t key = std::uint32_t{pdc.value} << 16 | id.value;
  return &buckets_[(key * 0x9E3779B1U >> 8) & mask_];
}

RxMessage* ArrivingMessages::find(PdcId pdc, MsgId id) {
  if (last_ != nullptr && last_->pdc == pdc && last_->message_id == id) return last_;
  for (RxMessage* at = *bucket(pdc, id); at != nullptr; at = at->next_in_bucket) {
    if (at->pdc == pdc && at->message_id == id) return last_ = at;
  }
  return nullptr;
}

void ArrivingMessages::insert(RxMessage& message) {
  RxMessage** head = bucket(message.pdc, message.message_id);
  message.next_in_bucket = *head;
  *head = &message;
  all.push_back(message);
  last_ = &message;
}

void ArrivingMessages::remove(RxMessage& message) {
  RxMessage** at = bucket(message.pdc, message.message_id);
  while (*at != &message) at = &(*at)->next_in_bucket;
  *at = message.next_in_bucket;
  all.remove(message);
  if (last_ == &message) last_ = nullptr;
}

// ---- construction ------------------------------------------------------------------------------

Target::Target(const Parameters& parameters, PieceStore& pieces, ri::MrTable& regions,
               const ri::RiTable& contexts, Counters& counters)
    : payload_mtu_(parameters.payload_mtu),
      unexpected_limit_bytes_(parameters.unexpected_bytes_per_context),
      pieces_(pieces),
      regions_(regions),
      contexts_(contexts),
      counters_(counters),
      messages_(parameters.rx_messages),
      arriving_(parameters.rx_messages),
      receives_(parameters.posted_receives),
      more_slices_(std::max<std::size_t>(parameters.posted_receives / 8, kMaxIoSlices)),
      answers_(parameters.return_messages) {}

// Its owner has closed all contexts; read answers may still wait in a PDS that is gone.
Target::~Target() {
  while (!answering_.empty()) answer_done(answering_.front());
}

bool Target::idle() const {
  return messages_.in_use() == 0 && bound_receives_ == 0 && answers_.in_use() == 0;
}

// ---- receives ----------------------------------------------------------------------------------

Result<void> Target::receive(Context& context, const ReceiveOp& op) {
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
void Target::offer(Context& context, PostedReceive& receive) {
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

void Target::bind(RxMessage& message, PostedReceive& receive) {
  message.state = RxState::Matched;
  message.receive = &receive;
  ++bound_receives_;
}

bool Target::cancel(Context& context, const void* operation) {
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

void Target::close_context(Context& context) {
  context.closing = true;
  for (MatchQueue* queue : {&context.untagged, &context.tagged}) {
    while (!queue->posted.empty()) release(queue->posted.pop_front());
    while (!queue->unexpected.empty()) release(queue->unexpected.front());
  }
  for (auto at = arriving_.all.begin(); at != arriving_.all.end();) {
    RxMessage& message = *at;
    ++at;
    if (message.context != &context) continue;
    if (message.state == RxState::Matched) unbind(message);
    release(message);
  }
  context.receive_count = 0;
  context.unexpected_bytes = 0;
}

// ---- request packets ---------------------------------------------------------------------------

Response Target::rx_req(const View& view, Time now) {
  Request request;
  if (!Request::decode(view.next_hdr, view.bytes, request) || request.version != 0) {
    ++counters_.malformed;
    return error(Request{}, ReturnCode::Uncor);  // step 1
  }
  ReturnCode code = check_opcode(request);  // 2
  if (code != ReturnCode::Ok) return error(request, code);
  if (request.opcode == SesOpcode::NoOp) return default_response(request, 0);
  if (request.opcode == SesOpcode::MsgError) return on_msg_error(view, request);
  if (!is_single(request) && request.opcode != SesOpcode::Read) {
    RxMessage* message = arriving_.find(view.pdc, request.message_id);
    if (message != nullptr && !is_stale(*message, request)) {
      return on_later_packet(request, *message);
    }
    if (message != nullptr) release(*message);
  }

  const ri::RiKey key{request.rel, request.job_id, request.pid_on_fep, request.resource_index};
  const bool by_process =
      request.next_hdr == wire::NextHdr::RequestSmall && !is_send(request.opcode);
  const ri::RiLookup found = by_process ? contexts_.find_process(key) : contexts_.find(key);
  code = check_address(found.verdict);  // 3, 4
  if (code != ReturnCode::Ok) return error(request, code);
  Context& context = *static_cast<Context*>(found.context);
  code = check_context(context.config, context.enabled, request, payload_mtu_);  // 6 to 10
  if (code != ReturnCode::Ok) return refuse(view, request, context, code);
  if (request.opcode == SesOpcode::Write) return on_write(view, request, context);
  if (request.opcode == SesOpcode::Read) return on_read(view, request, context, now);
  return on_send(view, request, context);
}

Response Target::error(const Request& request, ReturnCode code, RiGeneration generation) {
  ++counters_.errors_answered;
  return explicit_response(request, code, wire::List::Expected, 0, generation, true);
}

// Answers with an error, and remembers it for the rest of the message (SES-35). Reads need no
// memory: each of their packets is judged alike.
Response Target::refuse(const View& view, const Request& request, Context& context,
                        ReturnCode code) {
  if (!is_single(request) && request.opcode != SesOpcode::Read) {
    RxMessage* message = messages_.available() > messages_.capacity() / kMessageReserve
                             ? open(view, request, context, RxState::Error)
                             : nullptr;
    if (message != nullptr) {
      message->return_code = code;
      account(*message, request);
      if (message->received >= message->expected) release(*message);
    }
  }
  return error(request, code, context.config.generation);
}

RxMessage* Target::open(const View& view, const Request& request, Context& context, RxState state) {
  RxMessage* message = messages_.take();
  if (message == nullptr) return nullptr;
  message->pdc = view.pdc;
  message->message_id = request.message_id;
  message->state = state;
  message->kind = kind_of(request.opcode);
  message->context = &context;
  message->expected = request.request_length;
  message->source = view.source;
  message->opcode = request.opcode;
  message->job = request.job_id;
  message->initiator = request.initiator;
  message->match_bits = request.match_bits;
  message->buffer_offset = request.buffer_offset;
  message->request_length = request.request_length;
  if (is_single(request)) return message;
  arriving_.insert(*message);
  if (state != RxState::Error) {  // its sender must be seen to live until the rest is here
    message->awaited = true;
    delivery_->lock(message->pdc);
  }
  return message;
}

// No further packet of the message is missed if it does not come.
void Target::stop_awaiting(RxMessage& message) {
  if (!message.awaited) return;
  message.awaited = false;
  delivery_->unlock(message.pdc);
}

void Target::account(RxMessage& message, const Request& request) {
  message.received += request.payload.size();
  if (!request.som) return;
  message.som_seen = true;
  message.has_data = request.hd;
  message.data = request.header_data;
}

Response Target::on_later_packet(const Request& request, RxMessage& message) {
  ReturnCode code = check_same_message(message, request);  // 15
  if (message.state == RxState::Error) {                   // 5
    account(message, request);
    const ReturnCode remembered = message.return_code;
    if (message.received >= message.expected) release(message);
    return explicit_response(request, remembered, wire::List::Expected, 0, {}, false);  // SES-105
  }
  if (code == ReturnCode::Ok) code = check_first_packet(request, payload_mtu_);
  if (code == ReturnCode::Ok && request.ie) code = ReturnCode::InitiatorErr;
  if (code == ReturnCode::Ok) code = check_extent(request, payload_mtu_);
  if (code == ReturnCode::Ok && message.kind == Kind::Write) {
    code = check_data(message.context->config, request);
  }
  if (code == ReturnCode::Ok) {
    switch (message.state) {
      case RxState::Matched:
        return place_matched(request, message);
      case RxState::Unexpected:
        return place_unexpected(request, message);
      default:
        return on_later_write(request, message);
    }
  }
  return fail(request, message, code);
}

// A later packet breaks the message: this answer is the one that must not get lost (SES-105).
Response Target::fail(const Request& request, RxMessage& message, ReturnCode code) {
  account(message, request);
  end_message(message, code, Status::Abandoned);
  return error(request, code);
}

// ---- sends -------------------------------------------------------------------------------------

Response Target::on_send(const View& view, const Request& request, Context& context) {
  const ReturnCode code = check_extent(request, payload_mtu_);  // 13
  if (code != ReturnCode::Ok) return refuse(view, request, context, code);
  MatchQueue& queue = context.queue(is_tagged(request.opcode));
  PostedReceive* receive = queue.take_receive(match_key(view, request));  // 11
  if (receive == nullptr) return on_unexpected(view, request, context);
  RxMessage* message = open(view, request, context, RxState::Matched);
  if (message == nullptr) {
    queue.put(*receive);
    return nack_response(NackCode::NoSesMsgAvail);  // 17
  }
  bind(*message, *receive);
  return place_matched(request, *message);
}

Response Target::place_matched(const Request& request, RxMessage& message) {
  message.placed += scatter(message.receive->slices(), request.message_offset, request.payload);
  account(message, request);
  const Response response = default_response(request, message.placed);
  if (message.complete()) complete_receive(message);
  return response;
}

// A copy of the packet's payload, charged to the message and its context. nullptr, and nothing
// charged, when memory or the context's share of it is used up.
Piece* Target::keep(const Request& request, RxMessage& message) {
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

Response Target::on_unexpected(const View& view, const Request& request, Context& context) {
  if (context.unexpected_bytes + kUnexpectedMessageBytes > unexpected_limit_bytes_) {
    ++counters_.unexpected_refused;
    return nack_response(NackCode::NoResource);
  }
  const bool room = messages_.available() > messages_.capacity() / kMessageReserve;
  RxMessage* message = room ? open(view, request, context, RxState::Unexpected) : nullptr;
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
    release(*message);
    return placed;
  }
  ++counters_.unexpected_messages;
  return explicit_response(request, ReturnCode::Ok, wire::List::Overflow, request.payload.size(),
                           context.config.generation, true);  // SES-45
}

Response Target::place_unexpected(const Request& request, RxMessage& message) {
  if (!request.payload.empty()) {
    Piece* piece = keep(request, message);
    if (piece == nullptr) {
      ++counters_.unexpected_refused;
      return nack_response(NackCode::NoPktBuffer);
    }
    piece->next = message.pieces;
    message.pieces = piece;
  }
  account(message, request);
  // Once complete it only waits for its receive; its id may come again.
  if (message.complete() && is_arriving(message)) {
    stop_awaiting(message);
    arriving_.remove(message);
  }
  return default_response(request, message.received);
}

// Takes an unexpected message off its list and gives its memory back; its state remains.
void Target::drop_unexpected(RxMessage& message) {
  Context& context = *message.context;
  IntrusiveList<RxMessage, UnexpectedTag>::remove(message);
  pieces_.give_back_all(message.pieces);
  context.unexpected_bytes -= message.charged;
  message.charged = 0;
}

// The completion of a bound receive, whose descriptor is given back.
Completion Target::end_receive(RxMessage& message, Status status) {
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

void Target::complete_receive(RxMessage& message) {
  CompletionSink& sink = message.context->sink;
  const Completion completion = end_receive(message, Status::Ok);
  release(message);
  ++counters_.messages_received;
  sink.complete(completion);
}

// ---- RMA ---------------------------------------------------------------------------------------

Response Target::on_write(const View& view, const Request& request, Context& context) {
  const ri::MrAccess access = access_memory(request, context, ri::kRemoteWrite);
  ReturnCode code = check_access(access.verdict);                          // 12
  if (code == ReturnCode::Ok) code = check_extent(request, payload_mtu_);  // 13
  if (code == ReturnCode::Ok) code = check_data(context.config, request);  // 14
  if (code != ReturnCode::Ok) return refuse(view, request, context, code);
  RxMessage* message = open(view, request, context, RxState::Writing);
  if (message == nullptr) return nack_response(NackCode::NoSesMsgAvail);  // 17
  const Response response = place_write(request, *message, access.address);
  if (response.nack) release(*message);
  return response;
}

ri::MrAccess Target::access_memory(const Request& request, const Context& context,
                                   std::uint8_t access) const {
  return regions_.check(memory_key(request), request.job_id, context.config.resource_index, access,
                        request.buffer_offset, request.request_length);
}

// The region may have been closed since the first packet (SES-140).
Response Target::on_later_write(const Request& request, RxMessage& message) {
  const ri::MrAccess access = access_memory(request, *message.context, ri::kRemoteWrite);
  const ReturnCode code = check_access(access.verdict);
  if (code != ReturnCode::Ok) return fail(request, message, code);
  return place_write(request, message, access.address);
}

// `base`: where byte 0 of the message lies. With immediate data the last byte is taken only when
// its completion can be taken too (SES-79).
Response Target::place_write(const Request& request, RxMessage& message, std::byte* base) {
  CompletionSink& sink = message.context->sink;
  const bool has_data = request.som ? request.hd : message.has_data;
  const bool ends = (message.som_seen || request.som) &&
                    message.received + request.payload.size() == message.expected;
  if (ends && has_data && !sink.can_take_event()) return nack_response(NackCode::NoResource);
  if (!request.payload.empty()) {
    std::memcpy(base + request.message_offset, request.payload.data(), request.payload.size());
  }
  account(message, request);
  const Response response = default_response(request, message.received);
  if (!ends) return response;

  Completion completion;
  completion.kind = Kind::RemoteWrite;
  completion.length = message.request_length;
  completion.has_data = true;
  completion.data = message.data;
  completion.source = message.source;
  completion.source_initiator = message.initiator;
  release(message);
  ++counters_.messages_received;
  if (has_data) {
    sink.complete(completion);
  } else {
    sink.remote_access(Kind::Write, completion.length);
  }
  return response;
}

// Executed at once, so that a write that follows cannot change what is read (SES-126). The data go
// in the return direction; the response only accepts the request (PDS-195).
Response Target::on_read(const View& view, const Request& request, Context& context, Time now) {
  const ri::MrAccess access = access_memory(request, context, ri::kRemoteRead);
  const ReturnCode code = check_access(access.verdict);
  if (code != ReturnCode::Ok) return refuse(view, request, context, code);
  const ReadPiece asked = read_piece(request, payload_mtu_);
  if (asked.code != ReturnCode::Ok) return refuse(view, request, context, asked.code);
  if (asked.length > 0) {
    Piece* piece = pieces_.take(asked.length);
    ReadAnswer* answer = piece != nullptr ? answers_.take() : nullptr;
    if (answer == nullptr) {
      if (piece != nullptr) pieces_.give_back(piece);
      return nack_response(NackCode::NoResource);
    }
    std::memcpy(piece->data, access.address + asked.offset, asked.length);
    answer->piece = piece;
    answer->header = answer_header(view, request, asked);
    answering_.push_back(*answer);
    if (!delivery_->send_on(view.pdc, *answer, now)) {
      answer_done(*answer);
      return nack_response(NackCode::NoResource);
    }
  }
  const Response response = default_response(request, asked.length);
  if (request.eom) context.sink.remote_access(Kind::Read, request.request_length);
  return response;
}

wire::SesResponseHeader Target::answer_header(const View& view, const Request& request,
                                              const ReadPiece& asked) {
  if (++last_answer_id_ == 0) ++last_answer_id_;
  wire::SesResponseHeader header;
  header.next_hdr = wire::NextHdr::ResponseData;
  header.opcode = wire::ResponseOpcode::ResponseWData;
  header.return_code = ReturnCode::Ok;
  header.job_id = request.job_id;
  header.response_message_id = MsgId{last_answer_id_};
  header.read_request_message_id = request.message_id;
  header.payload_length = asked.length;
  header.modified_length = asked.length;
  header.message_offset = asked.offset;
  if (request.next_hdr != wire::NextHdr::RequestStd) {
    header.next_hdr = wire::NextHdr::ResponseDataSmall;  // no message id to name (SES-6)
    header.original_request_psn = view.psn;
  }
  return header;
}

pds::PacketPlan Target::next_packet(ReadAnswer& answer, Packet& packet,
                                    pds::PreparedPacket& prepared) {
  const bool small = answer.header.next_hdr == wire::NextHdr::ResponseDataSmall;
  answer.header.encode(
      packet.append(small ? sizeof(wire::SesResponseDataSmall) : sizeof(wire::SesResponseData)));
  packet.payload = {Slice{answer.piece->data, answer.piece->length}, Slice{}};
  prepared.next_hdr = answer.header.next_hdr;
  return pds::PacketPlan::Last;
}

void Target::answer_done(ReadAnswer& answer) {
  pieces_.give_back(answer.piece);
  IntrusiveList<ReadAnswer, AnsweringTag>::remove(answer);
  answers_.give_back(&answer);
}

// ---- the end of messages -----------------------------------------------------------------------

// The initiator gives the message up where it stands. Packets made before may still come (RUD).
Response Target::on_msg_error(const View& view, const Request& request) {
  const Response response = default_response(request, 0);
  RxMessage* message = arriving_.find(view.pdc, request.message_id);
  if (message == nullptr) return response;
  message->expected = std::min<std::uint64_t>(message->expected, request.message_offset);
  end_message(*message, ReturnCode::Dropped, Status::Abandoned);
  return response;
}

// The message comes to nothing. What still arrives of it is dropped and answered with `code`.
void Target::end_message(RxMessage& message, ReturnCode code, Status status) {
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
  if (state != RxState::Error) message.return_code = code;
  message.state = RxState::Error;
  stop_awaiting(message);
  if (message.received >= message.expected) release(message);
  if (unused != nullptr) offer(context, *unused);
  if (completion) context.sink.complete(*completion);
}

void Target::pdc_closed(PdcId pdc) {
  for (auto at = arriving_.all.begin(); at != arriving_.all.end();) {
    RxMessage& message = *at;
    ++at;
    if (message.pdc != pdc) continue;
    message.expected = 0;  // nothing more will come
    end_message(message, ReturnCode::Dropped, Status::PeerLost);
  }
}

void Target::release(RxMessage& message) {
  pieces_.give_back_all(message.pieces);
  stop_awaiting(message);
  if (is_arriving(message)) arriving_.remove(message);
  if (static_cast<ListNode<UnexpectedTag>&>(message).linked()) {
    IntrusiveList<RxMessage, UnexpectedTag>::remove(message);
  }
  messages_.give_back(&message);
}

void Target::unbind(RxMessage& message) {
  release(*message.receive);
  message.receive = nullptr;
  --bound_receives_;
}

void Target::release(PostedReceive& receive) {
  if (receive.more != nullptr) more_slices_.give_back(receive.more);
  receives_.give_back(&receive);
}

}  // namespace uet::ses
