// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/read_answers.h"

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

// Makes the response one that carries all that was asked for (PDS-194), guaranteed (SES-104).
// nullptr if the data do not fit.
std::byte* open_in_ack(const RequestView& view, const wire::SesRequest& request,
                       const ReadPiece& asked, Response& response) {
  const std::size_t header_bytes = request.next_hdr == wire::NextHdr::RequestStd
                                       ? sizeof(wire::SesResponseData)
                                       : sizeof(wire::SesResponseDataSmall);
  const bool fits = is_single(request) && header_bytes + asked.length <= Response::kMaxBytes;
  if (!fits || view.mode == DeliveryMode::Rudi) return nullptr;
  const wire::SesResponseHeader header = header_of(view, request, asked);
  response.next_hdr = header.next_hdr;
  response.guaranteed = true;
  response.length = static_cast<std::uint8_t>(header_bytes + asked.length);
  header.encode(response.bytes.data());
  return response.bytes.data() + header_bytes;
}

// Of the one packet of an answer.
class Refusal final : public pds::PacketEditor {
 public:
  explicit Refusal(const wire::SesResponseHeader& header) : header_(header) {}
  bool edit(Packet& packet, pds::PreparedPacket&) override {
    packet.payload = {};
    packet.drop_appended();
    header_.encode(packet.append(bytes_of(header_)));
    return true;
  }

 private:
  const wire::SesResponseHeader& header_;
};

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
  answer.payload = {};
  answer.header.return_code = wire::ReturnCode::BadMkey;
  answer.header.payload_length = 0;
  Refusal refusal(answer.header);
  delivery.edit_packets(answer, refusal);
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
