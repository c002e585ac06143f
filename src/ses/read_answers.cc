// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/read_answers.h"

#include <cstring>

#include "ses/payload.h"

namespace uet::ses {
namespace {

using pds::RequestView;
using pds::Response;

constexpr std::size_t kWeight = 3;  // one host has 3/4 of the answers at most

wire::SesResponseHeader header_of(const RequestView& view, const wire::SesRequest& request,
                                  const ReadPiece& asked) {
  wire::SesResponseHeader header;
  header.next_hdr = wire::NextHdr::ResponseData;
  header.opcode = wire::ResponseOpcode::ResponseWData;
  header.return_code = wire::ReturnCode::Ok;
  header.job_id = request.job_id;
  header.response_message_id = request.message_id;  // some initiators look for it here (WIRE 3.10)
  header.read_request_message_id = request.message_id;
  header.payload_length = asked.length;
  header.modified_length = request.request_length;  // in each packet of the answer (WIRE 3.9)
  header.message_offset = asked.offset;
  if (request.next_hdr != wire::NextHdr::RequestStd) {
    header.next_hdr = wire::NextHdr::ResponseDataSmall;  // no message id to name (SES-6)
    header.original_request_psn = view.psn;
  }
  return header;
}

std::size_t bytes_of(const wire::SesResponseHeader& header) {
  return header.next_hdr == wire::NextHdr::ResponseDataSmall ? sizeof(wire::SesResponseDataSmall)
                                                             : sizeof(wire::SesResponseData);
}

std::size_t header_bytes_of(const wire::SesRequest& request) {
  return request.next_hdr == wire::NextHdr::RequestStd ? sizeof(wire::SesResponseData)
                                                       : sizeof(wire::SesResponseDataSmall);
}

// Makes the response one that carries all that was asked for (PDS-194), guaranteed (SES-104).
// nullptr if the data do not fit.
std::byte* open_in_ack(const RequestView& view, const wire::SesRequest& request,
                       const ReadPiece& asked, Response& response) {
  if (!ReadAnswers::fits_in_ack(view, request, asked)) return nullptr;
  const std::size_t header_bytes = header_bytes_of(request);
  const wire::SesResponseHeader header = header_of(view, request, asked);
  response.next_hdr = header.next_hdr;
  response.guaranteed = true;
  response.length = static_cast<std::uint8_t>(header_bytes + asked.length);
  header.encode(response.bytes.data());
  return response.bytes.data() + header_bytes;
}

// Gives the one packet of an answer its present header and payload.
class Rewriting final : public pds::PacketEditor {
 public:
  explicit Rewriting(const ReadAnswer& answer) : answer_(answer) {}
  bool edit(Packet& packet, pds::PreparedPacket&) override {
    packet.payload = answer_.payload;
    packet.drop_appended();
    answer_.header.encode(packet.append(bytes_of(answer_.header)));
    return true;
  }

 private:
  const ReadAnswer& answer_;
};

void become_refusal(ReadAnswer& answer) {
  answer.payload = {};
  answer.header.return_code = wire::ReturnCode::BadMkey;
  answer.header.payload_length = 0;
}

}  // namespace

ReadAnswers::ReadAnswers(const Parameters& parameters, PieceStore& pieces, Staging& staging,
                         pds::MessageOwner* owner)
    : pieces_(pieces),
      staging_(staging),
      owner_(owner),
      answers_(parameters.return_messages),
      shares_(kWeight, parameters.seed) {}

std::byte* ReadAnswers::open(const RequestView& view, const wire::SesRequest& request,
                             const ReadPiece& asked, Response& response, Time now) {
  std::byte* data = open_in_ack(view, request, asked, response);
  if (data != nullptr) return data;
  Piece* piece = pieces_.take(asked.length);
  if (piece == nullptr) return nullptr;
  ReadAnswer* answer = take(view);
  if (answer == nullptr) {
    pieces_.give_back(piece);
    return nullptr;
  }
  answer->piece = piece;
  answer->payload = {Slice{piece->data, piece->length}, Slice{}};
  return send(*answer, view, request, asked, now) ? piece->data : nullptr;
}

bool ReadAnswers::fits_in_ack(const RequestView& view, const wire::SesRequest& request,
                              const ReadPiece& asked) {
  const bool fits =
      is_single(request) && header_bytes_of(request) + asked.length <= Response::kMaxBytes;
  return fits && view.mode != DeliveryMode::Rudi;
}

bool ReadAnswers::answer_from(const std::byte* data, Rkey region, const RequestView& view,
                              const wire::SesRequest& request, const ReadPiece& asked, Time now) {
  ReadAnswer* answer = fits_in_ack(view, request, asked) ? nullptr : take(view);
  if (answer == nullptr) return false;
  answer->region = region;
  answer->payload = {Slice{data, asked.length}, Slice{}};
  return send(*answer, view, request, asked, now);
}

bool ReadAnswers::answer_from(TxMessage& source, const RequestView& view,
                              const wire::SesRequest& request, const ReadPiece& asked, Time now) {
  ReadAnswer* answer = take(view);
  if (answer == nullptr) return false;
  answer->source = &source;
  source.answers.push_back(*answer);
  const std::uint64_t offset = request.buffer_offset + asked.offset;
  if (!point(*answer, offset, asked.length)) {
    answer->piece = pieces_.take(asked.length);
    if (answer->piece == nullptr) {
      done(*answer);
      return false;
    }
    gather(source.slices(), offset, asked.length, answer->piece->data);
    answer->payload = {Slice{answer->piece->data, asked.length}, Slice{}};
  }
  return send(*answer, view, request, asked, now);
}

// Points the answer at these bytes of its source, or at a train that holds them. False: neither.
bool ReadAnswers::point(ReadAnswer& answer, std::uint64_t offset, std::uint32_t length) {
  TxMessage& source = *answer.source;
  if (source.staging == nullptr) {
    if (!point_at(source, offset, length, answer.payload)) return false;
    if (points_to_device(source)) answer.device = source.iov[0].device;
    return true;
  }
  answer.train = staging_.point_at(source, offset, length, answer.payload);
  return answer.train != nullptr;
}

pds::PacketPlan ReadAnswers::next_packet(ReadAnswer& answer, Packet& packet,
                                         pds::PreparedPacket& prepared) {
  answer.header.encode(packet.append(bytes_of(answer.header)));
  packet.payload = answer.payload;
  packet.device = answer.device;
  prepared.next_hdr = answer.header.next_hdr;
  return pds::PacketPlan::Last;
}

void ReadAnswers::refuse(ReadAnswer& answer, pds::Delivery& delivery) {
  answer.source->answers.remove(answer);
  answer.source = nullptr;
  answer.train = nullptr;  // ends with the message
  if (answer.piece != nullptr) return;
  become_refusal(answer);
  Rewriting rewriting(answer);
  delivery.edit_packets(answer, rewriting);
}

void ReadAnswers::removing(Rkey region) noexcept {
  for (ReadAnswer& answer : answering_) {
    if (answer.region != region) continue;
    answer.region.reset();
    const Slice from = answer.payload[0];
    answer.piece = pieces_.take(from.length);
    if (answer.piece != nullptr) {
      std::memcpy(answer.piece->data, from.data, from.length);
      answer.payload = {Slice{answer.piece->data, from.length}, Slice{}};
    } else {
      become_refusal(answer);
    }
    Rewriting rewriting(answer);
    delivery_->edit_packets(answer, rewriting);
  }
}

TxMessage* ReadAnswers::done(ReadAnswer& answer) {
  if (answer.piece != nullptr) pieces_.give_back(answer.piece);
  TxMessage* source = answer.source;
  if (answer.train != nullptr) staging_.read(*source, *answer.train);
  if (source != nullptr) source->answers.remove(answer);
  answering_.remove(answer);
  shares_.give_back(answer.host, 1);
  answers_.give_back(&answer);
  return source;
}

// A state for an answer to this host, which counts in its share. nullptr if there is none.
ReadAnswer* ReadAnswers::take(const RequestView& view) {
  const std::uint64_t host = host_hash(view.source.ip);
  if (!shares_.allows(host, 1, answers_.available())) return nullptr;
  ReadAnswer* answer = answers_.take();
  if (answer == nullptr) return nullptr;
  answer->owner = owner_;
  answer->host = host;
  shares_.take(host, 1);
  answering_.push_back(*answer);
  return answer;
}

// Queues the packet of the return direction. False: it is gone.
bool ReadAnswers::send(ReadAnswer& answer, const RequestView& view, const wire::SesRequest& request,
                       const ReadPiece& asked, Time now) {
  answer.header = header_of(view, request, asked);
  answer.backlog_bytes = asked.length;
  const bool rudi = view.mode == DeliveryMode::Rudi;
  if (rudi ? delivery_->respond(answer, now) : delivery_->send_on(view.pdc, answer, now))
    return true;
  done(answer);
  return false;
}

}  // namespace uet::ses
