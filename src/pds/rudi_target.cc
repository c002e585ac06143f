// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RUDI requests and their responses.
#include "pds/rudi_target.h"

#include <algorithm>

#include "pds/incoming.h"

namespace uet::pds {

namespace {

// Headers of a RUDI response with data: those of PDS and SES (RESPONSE_DATA).
constexpr std::size_t kDataHeaders = sizeof(wire::PdsRudi) + 20;

}  // namespace

// PDS-187: no PDC, the packet id instead of the PSN.
void RudiTarget::refuse(const RxPacket& packet, const wire::RudiHeader& header, NackCode code) {
  wire::NackHeader nack;
  nack.ce = packet.ecn == Ecn::Ce;
  nack.retx = header.retx;
  nack.nt = true;
  nack.nack_code = code;
  nack.nack_psn = Psn{header.pkt_id};
  emit_nack(env_, env_.peer_ports.reply_address(packet.source), nack, packet.entropy);
}

void RudiTarget::on_request(const RxPacket& packet, const wire::RudiHeader& header, Time now) {
  if (packet.trimmed) return refuse(packet, header, trim_code(packet));  // PDS-149
  ++env_.counters.rudi_requests_received;
  request_ = &packet;
  response_ = {.type = wire::PdsType::RudiResp,
               .ce = packet.ecn == Ecn::Ce,
               .retx = header.retx,
               .pkt_id = header.pkt_id};
  responded_ = false;
  const RequestView view{.pdc = {},
                         .source = env_.peer_ports.reply_address(packet.source),
                         .mode = DeliveryMode::Rudi,
                         .next_hdr = header.next_hdr,
                         .psn = Psn{header.pkt_id},
                         .bytes = packet.bytes.subspan(sizeof(wire::PdsRudi))};
  const Response response = env_.client.rx_req(view, now);
  request_ = nullptr;
  if (response.nack) return refuse(packet, header, *response.nack);
  if (!responded_) return send(response, view.source, packet.entropy);
  ++env_.counters.rudi_responses_sent;
}

void RudiTarget::send(const Response& response, const FepAddress& to, std::uint16_t entropy) {
  Packet* answer = env_.packets.take();
  if (answer == nullptr) {  // as if it was lost: the request comes again (PDS-185)
    ++env_.counters.no_packet;
    return;
  }
  answer->reset();
  std::copy_n(response.bytes.begin(), response.length, answer->append(response.length));
  response_.next_hdr = response.next_hdr;
  response_.encode(answer->prepend(sizeof(wire::PdsRudi)));
  emit_control(env_, *answer, to, entropy);
  ++env_.counters.rudi_responses_sent;
}

Result<void> RudiTarget::respond(Message& message, Time now) {
  if (request_ == nullptr) return Error::Invalid;
  const FepAddress to = env_.peer_ports.reply_address(request_->source);
  const auto came = static_cast<std::uint32_t>(request_->bytes.size());
  const auto length = static_cast<std::uint32_t>(kDataHeaders + message.backlog_bytes);
  if (!env_.proved_hosts.may_answer(to.ip, cms::nominal_packet_bytes(came),
                                    cms::nominal_packet_bytes(length), now)) {
    ++env_.counters.rudi_unproved_refused;
    return Error::Again;
  }
  const auto queued = datagrams_.respond(message, response_, to, request_->entropy);
  responded_ = queued.ok();
  return queued;
}

}  // namespace uet::pds
