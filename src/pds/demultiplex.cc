// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an arriving packet to its PDC: steps 2 to 7 of the receive pipeline (PDS-210). A packet that
// no step accepts is counted and dropped, or refused with the NACK that the rule names.
#include <algorithm>
#include <new>

#include "uet/pds/manager.h"

namespace uet::pds {

namespace {

// Headers of a RUDI response with data: those of PDS and SES (RESPONSE_DATA).
constexpr std::size_t kRudiDataHeaders = sizeof(wire::PdsRudi) + 20;

bool is_request_header(wire::NextHdr next_hdr) {
  return next_hdr == wire::NextHdr::RequestSmall || next_hdr == wire::NextHdr::RequestMedium ||
         next_hdr == wire::NextHdr::RequestStd;
}

// PDS-149.
NackCode trim_code(const RxPacket& packet) {
  return packet.trimmed_last_hop ? NackCode::TrimmedLastHop : NackCode::Trimmed;
}

// CMS-712. It may have come after the pass began and read its clock.
Time arrival_of(const RxPacket& packet, Time now) {
  return packet.arrived == Time{} ? now : packet.arrived;
}

Incoming incoming_from(const RxPacket& packet, Time now) {
  Incoming request;
  request.meta.arrived = std::min(arrival_of(packet, now), now);
  request.nominal_bytes =
      cms::nominal_packet_bytes(static_cast<std::uint32_t>(packet.bytes.size()));
  request.meta.ce = packet.ecn == Ecn::Ce;
  request.meta.entropy = packet.entropy;
  if (packet.trimmed) request.trimmed = trim_code(packet);
  return request;
}

}  // namespace

// Where memory is short a packet is dropped, and its sender repeats it.
void Manager::on_packet(const RxPacket& packet, Time now) {
  try {
    take(packet, now);
  } catch (const std::bad_alloc&) {
    ++counters_.no_packet;
  }
}

void Manager::take(const RxPacket& packet, Time now) {
  ++counters_.packets_received;
  if (packet.trimmed) ++counters_.trimmed_received;
  if (packet.ecn == Ecn::Ce) ++counters_.marked_received;
  if (packet.bytes.size() < sizeof(wire::PdsPrologue)) {
    ++counters_.malformed;
    return;
  }
  switch (static_cast<wire::PdsType>(std::to_integer<std::uint8_t>(packet.bytes[0]) >> 3)) {
    case wire::PdsType::RudReq:
    case wire::PdsType::RodReq:
    case wire::PdsType::RudCcReq:
    case wire::PdsType::RodCcReq:
      return on_request_packet(packet, now);
    case wire::PdsType::Ack:
    case wire::PdsType::AckCc:
    case wire::PdsType::AckCcx:
      return on_ack_packet(packet, now);
    case wire::PdsType::Nack:
    case wire::PdsType::NackCcx:
      return on_nack_packet(packet, now);
    case wire::PdsType::Cp:
      return on_control_packet(packet, now);
    case wire::PdsType::RudiReq:
    case wire::PdsType::RudiResp:
      return on_rudi_packet(packet, now);
    case wire::PdsType::UudReq:
      return on_datagram_packet(packet, now);
    default:
      ++counters_.unsupported_type;
  }
}

// A NACK for a packet that no PDC here takes; `own` names the one it was for, SPDCID 0 says that
// there is none. No state is kept (PDS-66).
void Manager::refuse(const RxPacket& packet, NackCode code, PdcId spdcid, const PacketMeta& refused,
                     PdcId own) {
  wire::NackHeader nack;
  nack.ce = refused.ce;
  nack.retx = refused.retx;
  nack.nack_code = code;
  nack.nack_psn = refused.psn;
  nack.spdcid = own;
  nack.dpdcid = spdcid;
  emit_nack(environment_, environment_.peer_ports.reply_address(packet.source), nack,
            refused.entropy);
}

void Manager::on_request_packet(const RxPacket& packet, Time now) {
  wire::RequestHeader header;
  if (!wire::RequestHeader::decode(packet.bytes, header)) {
    ++counters_.malformed;
    return;
  }
  const DeliveryMode mode = header.rod() ? DeliveryMode::Rod : DeliveryMode::Rud;
  const bool with_credit =
      header.type == wire::PdsType::RudCcReq || header.type == wire::PdsType::RodCcReq;
  Incoming request = incoming_from(packet, now);
  request.meta.psn = header.psn;
  request.clear_psn = header.clear_psn();
  request.meta.retx = header.retx;
  request.meta.ar = header.ar;
  request.syn = header.syn;
  request.reserved_pool = header.syn && wire::wants_reserved_pool(header.pdc_info);
  request.view.next_hdr = header.next_hdr;
  request.view.bytes = packet.bytes.subspan(wire::pds_header_bytes(header.type));
  Pdc* pdc = header.syn ? resolve_syn(packet, header.spdcid, mode, header.start_psn(), request, now)
                        : resolve(packet, header.spdcid, header.dpdcid, request, now);
  if (pdc == nullptr) return;
  pdc->came_through(packet.connection);
  if (pdc->destination().mode != mode)
    return pdc->send_nack(NackCode::PdcModeMismatch, request.meta);
  if (with_credit && cms::uses_credit(cms_.algorithm)) {
    const std::uint32_t bytes = request.trimmed ? 0 : request.nominal_bytes;
    credits_.note_arrival(packet.ecn == Ecn::Ce, packet.trimmed, packet.trimmed_last_hop, now);
    credits_.on_request(*pdc, header.ccc_id, header.credit_target, bytes, now);
  }
  pdc->on_request(request, now);
  if (environment_.responses_short) relieve_responses(pdc->host(), now);
}

// PDS-24. A FEP at a port of its own sends from any, so that the copy of a SYN may come from
// another one than the first: a PDC that is known is found among all FEPs at that IP address.
Manager::PeerKey Manager::peer_of_syn(const FepAddress& source, PdcId spdcid, Psn start_psn) const {
  const auto opened_this = [&](const FepAddress& fep) {
    const auto entry = accepted_.find({fep, spdcid});
    if (entry == accepted_.end()) return false;
    const std::uint16_t slot = slot_of_id_[entry->second.value];
    if (slot != kNoSlot) return pdcs_[slot].start_psn() == start_psn;
    const std::uint16_t index = tombstone_of_id_[entry->second.value];
    return index != kNoSlot && tombstones_[index].start_psn == start_psn;
  };
  const FepAddress by_port = environment_.peer_ports.reply_address(source);
  const auto known = environment_.peer_ports.find_if(source, opened_this);
  return {known.value_or(by_port), spdcid};
}

// PDS-58 to 67.
Pdc* Manager::resolve_syn(const RxPacket& packet, PdcId spdcid, DeliveryMode mode, Psn start_psn,
                          const Incoming& request, Time now) {
  if (spdcid.value == 0) {  // PDS-27
    ++counters_.malformed;
    return nullptr;
  }
  const PeerKey peer = peer_of_syn(packet.source, spdcid, start_psn);
  const auto entry = accepted_.find(peer);
  Pdc* half_open = nullptr;
  if (entry != accepted_.end()) {
    if (Pdc* pdc = live(entry->second, now); pdc != nullptr) {
      if (pdc->start_psn() == start_psn) {
        pdc->allow_answers(request.nominal_bytes);
        return pdc;
      }
      if (pdc->proved()) {
        pdc->send_nack(NackCode::InvalidSyn, request.meta);  // PDS-67
        return nullptr;
      }
      half_open = pdc;  // its SYN may have been another host's
    }
    const Tombstone* tomb = tombstone(entry->second, now);
    if (tomb != nullptr && tomb->start_psn == start_psn) {  // PDS-175
      on_tombstone(*tomb, packet, peer, request);
      return nullptr;
    }
  }
  if (!request.ctl_type && !is_request_header(request.view.next_hdr)) {  // PDS-65
    refuse(packet, NackCode::PdcHdrMismatch, spdcid, request.meta);
    return nullptr;
  }
  if (request.trimmed) {  // PDS-62
    refuse(packet, *request.trimmed, spdcid, request.meta);
    return nullptr;
  }
  if (const auto ours = opened_.find(peer); ours != opened_.end()) {  // PDS-63
    refuse(packet, NackCode::InvalidSyn, spdcid, request.meta, ours->second);
    return nullptr;
  }
  if (mode == DeliveryMode::Rod && request.meta.psn != start_psn) {  // PDS-61
    refuse(packet, NackCode::RodOoo, spdcid, request.meta);
    return nullptr;
  }
  if (half_open != nullptr) {
    if (now - half_open->opened() < kUnprovedPatience) {
      refuse(packet, NackCode::NoPdcAvail, spdcid, request.meta);  // the peer comes again
      return nullptr;
    }
    drop_unproved(*half_open, now);
  }
  Pdc* pdc = accept(peer, mode, request, start_psn, now);
  if (pdc == nullptr) refuse(packet, shortage_, spdcid, request.meta);  // PDS-66
  return pdc;
}

namespace {

// A request, or a control packet that has a PSN of its own (PDS-155).
bool takes_psn(const Incoming& request) {
  return !request.ctl_type || *request.ctl_type == wire::CpType::Noop ||
         *request.ctl_type == wire::CpType::Close ||
         *request.ctl_type == wire::CpType::CloseRequest;
}

}  // namespace

// PDS-25, PDS-26, PDS-210 steps 4 and 5.
Pdc* Manager::resolve(const RxPacket& packet, PdcId spdcid, PdcId dpdcid, const Incoming& request,
                      Time now) {
  Pdc* pdc = live(dpdcid, now);
  if (pdc == nullptr) {
    const Tombstone* tomb = tombstone(dpdcid, now);
    if (tomb != nullptr) {
      on_tombstone(*tomb, packet, {environment_.peer_ports.reply_address(packet.source), spdcid},
                   request);
    } else {
      refuse(packet, NackCode::InvDpdcid, spdcid, request.meta);
    }
    return nullptr;
  }
  const bool known = pdc->peer_id() == spdcid || pdc->state() == PdcState::Creating;
  if (!known || spdcid.value == 0 ||
      !environment_.peer_ports.may_be_from(pdc->destination().address, packet.source)) {
    refuse(packet, NackCode::PdcHdrMismatch, spdcid, request.meta);
    return nullptr;
  }
  pdc->allow_answers(request.nominal_bytes);
  if (pdc->state() == PdcState::Creating) {  // a stranger may name our id, but knows no PSN
    const bool asks = request.ctl_type == wire::CpType::AckRequest;
    if (!asks && !takes_psn(request)) {  // it could not be answered
      ++counters_.stray_packets;
      return nullptr;
    }
    if (asks ? !pdc->has_sent(request.meta.psn) : !pdc->expects(request.meta.psn)) {
      refuse(packet, NackCode::PdcHdrMismatch, spdcid, request.meta);
      return nullptr;
    }
    pdc->learn_peer(spdcid);  // PDS-199: return data may overtake the first ACK
    note_peer(*pdc);
  }
  return pdc;
}

// PDS-175, PDS-176: a repeated Close Command has its ACK again, what follows it is refused, the
// rest is dropped.
void Manager::on_tombstone(const Tombstone& tomb, const RxPacket& packet, const PeerKey& from,
                           const Incoming& request) {
  ++counters_.stray_packets;
  if (tomb.role != Role::Target || tomb.peer != from) return;
  if (request.ctl_type == wire::CpType::Close && request.meta.psn == tomb.close_psn) {
    Packet* answer = environment_.packets.take();
    if (answer == nullptr) {
      ++counters_.no_packet;
      return;
    }
    answer->reset();
    wire::AckHeader ack;
    ack.retx = request.meta.retx;
    ack.cack_psn = tomb.close_psn;
    ack.spdcid = tomb.id;
    ack.dpdcid = tomb.peer.spdcid;
    ack.encode(answer->prepend(sizeof(wire::PdsAck)));
    emit_control(environment_, *answer, tomb.peer.address, request.meta.entropy);
    ++counters_.acks_sent;
  } else if (!request.ctl_type && request.meta.psn > tomb.close_psn) {
    refuse(packet, NackCode::Closing, tomb.peer.spdcid, request.meta, tomb.id);
  }
}

void Manager::on_ack_packet(const RxPacket& packet, Time now) {
  wire::AckHeader header;
  if (packet.trimmed) return;  // PDS-151: counted; the time-out of what it answers recovers
  if (!wire::AckHeader::decode(packet.bytes, header)) {
    ++counters_.malformed;
    return;
  }
  Pdc* pdc = live(header.dpdcid, now);
  if (pdc == nullptr ||
      !environment_.peer_ports.may_be_from(pdc->destination().address, packet.source)) {
    ++counters_.acks_invalid;  // PDS-108 step 1; PDS-136 swallows late ones
    return;
  }
  const bool creating = pdc->state() == PdcState::Creating;
  pdc->came_through(packet.connection);
  pdc->on_ack(header, packet.bytes.subspan(wire::pds_header_bytes(header.type)),
              arrival_of(packet, now), now);
  if (creating) note_peer(*pdc);
}

void Manager::on_nack_packet(const RxPacket& packet, Time now) {
  wire::NackHeader header;
  if (!wire::NackHeader::decode(packet.bytes, header)) {
    ++counters_.malformed;
    return;
  }
  if (header.nt) {
    RudiFlow* const refused = rudi_.on_nack(header, packet.source, now);
    if (refused != nullptr) prove_address(*refused, now);
    return;
  }
  Pdc* pdc = live(header.dpdcid, now);
  if (pdc == nullptr ||
      !environment_.peer_ports.may_be_from(pdc->destination().address, packet.source)) {
    ++counters_.nacks_ignored;
    return;
  }
  const bool creating = pdc->state() == PdcState::Creating;
  pdc->came_through(packet.connection);
  pdc->on_nack(header, now);
  if (creating) note_peer(*pdc);
}

// PDS-222: a target that refuses a request may need the proof that we hear it. The NOOP that opens
// a PDC is none: its source may be invented, too. One that names the peer's PDC id is.
void Manager::prove_address(RudiFlow& flow, Time now) {
  Destination destination = flow.destination;
  destination.mode = DeliveryMode::Rud;
  if (environment_.peer_limits.refuses(destination.address, wire::CpType::Noop)) return;
  const Result<PdcId> pdc = connect(destination, now);
  if (!pdc || pdc.value() == flow.proof) return;
  Pdc& open = pdcs_[slot_of_id_[pdc.value().value]];
  if (open.state() != PdcState::Creating && open.send_noop(now)) flow.proof = pdc.value();
}

void Manager::on_control_packet(const RxPacket& packet, Time now) {
  wire::ControlHeader header;
  if (!wire::ControlHeader::decode(packet.bytes, header)) {
    ++counters_.malformed;
    return;
  }
  Incoming request = incoming_from(packet, now);
  request.meta.psn = header.psn;
  request.meta.retx = header.retx;
  request.meta.ar = header.ar;
  request.syn = header.syn;
  request.reserved_pool = header.syn && wire::wants_reserved_pool(header.pdc_info);
  request.ctl_type = header.ctl_type;
  if (header.ctl_type == wire::CpType::Negotiation) {
    request.view.bytes = packet.bytes.subspan(wire::Negotiation::kOffset);
  }
  const bool idempotent =
      header.ctl_type == wire::CpType::Clear || header.ctl_type == wire::CpType::ClearRequest;
  if (idempotent && live(header.dpdcid, now) == nullptr) {  // PDS-159
    ++counters_.stray_packets;
    return;
  }
  Pdc* pdc = nullptr;
  if (header.syn) {
    const bool opens =
        header.ctl_type == wire::CpType::Noop || header.ctl_type == wire::CpType::Negotiation;
    if (!opens) {  // PDS-64
      return refuse(packet, NackCode::PdcModeMismatch, header.spdcid, request.meta);
    }
    pdc = resolve_syn(packet, header.spdcid, header.isrod ? DeliveryMode::Rod : DeliveryMode::Rud,
                      header.start_psn(), request, now);
  } else {
    pdc = resolve(packet, header.spdcid, header.dpdcid, request, now);
  }
  if (pdc == nullptr) return;
  pdc->came_through(packet.connection);
  pdc->heard(now);
  pdc->extend_close(now);
  switch (header.ctl_type) {
    case wire::CpType::Noop:
    case wire::CpType::Negotiation:
    case wire::CpType::Close:
    case wire::CpType::CloseRequest:
      return pdc->on_request(request, now);
    case wire::CpType::AckRequest:
      return pdc->on_ack_request(header.psn, MsgId{static_cast<std::uint16_t>(header.payload)},
                                 request.meta.entropy, now);
    case wire::CpType::Clear:
      return pdc->on_clear_command(Psn{header.payload}, now);
    case wire::CpType::ClearRequest:
      return pdc->on_clear_request();
    case wire::CpType::Probe:
      return pdc->on_probe(header.probe_opaque, Psn{header.payload}, request.meta, now);
    case wire::CpType::Credit:
    case wire::CpType::CreditRequest:
      return on_credit_packet(*pdc, header, now);
  }
  pdc->send_nack(NackCode::UnexpEvent, request.meta);  // PDS-157: no such control packet
}

// CMS-200, CMS-220.
void Manager::on_credit_packet(Pdc& pdc, const wire::ControlHeader& header, Time now) {
  const std::uint32_t units = header.payload & cms::kCreditMask;
  const bool credit = header.ctl_type == wire::CpType::Credit;
  ++(credit ? counters_.credits_received : counters_.credit_requests_received);
  if (credit) {
    if (pdc.ccc().credit != nullptr) return pdc.on_credit(units, now);
  } else if (cms::uses_credit(cms_.algorithm)) {
    if (credits_.on_credit_request(pdc, units, now)) return;
  }
  ++counters_.credit_ignored;
}

void Manager::on_rudi_packet(const RxPacket& packet, Time now) {
  wire::RudiHeader header;
  const bool parsed = wire::RudiHeader::decode(packet.bytes, header);
  const bool request = parsed && header.type == wire::PdsType::RudiReq;
  if (!parsed || (request ? !is_request_header(header.next_hdr) : packet.trimmed)) {
    ++counters_.malformed;
  } else if (request) {
    on_rudi_request(packet, header, now);
  } else {
    rudi_.on_response(header, packet.bytes.subspan(sizeof(wire::PdsRudi)), packet.source, now);
  }
}

// PDS-187: no PDC, the packet id in the place of the PSN.
void Manager::refuse_rudi(const RxPacket& packet, const wire::RudiHeader& header, NackCode code) {
  wire::NackHeader nack;
  nack.ce = packet.ecn == Ecn::Ce;
  nack.retx = header.retx;
  nack.nt = true;
  nack.nack_code = code;
  nack.nack_psn = Psn{header.pkt_id};
  emit_nack(environment_, environment_.peer_ports.reply_address(packet.source), nack,
            packet.entropy);
}

// PDS-184: delivered and answered each time it comes; nothing is remembered of it.
void Manager::on_rudi_request(const RxPacket& packet, const wire::RudiHeader& header, Time now) {
  if (packet.trimmed) return refuse_rudi(packet, header, trim_code(packet));  // PDS-149
  ++counters_.rudi_requests_received;
  rudi_request_ = &packet;
  rudi_response_ = {.type = wire::PdsType::RudiResp,
                    .ce = packet.ecn == Ecn::Ce,
                    .retx = header.retx,
                    .pkt_id = header.pkt_id};
  rudi_responded_ = false;
  const RequestView view{.pdc = {},
                         .source = environment_.peer_ports.reply_address(packet.source),
                         .mode = DeliveryMode::Rudi,
                         .next_hdr = header.next_hdr,
                         .psn = Psn{header.pkt_id},
                         .bytes = packet.bytes.subspan(sizeof(wire::PdsRudi))};
  const Response response = environment_.client.rx_req(view, now);
  rudi_request_ = nullptr;
  if (response.nack) return refuse_rudi(packet, header, *response.nack);
  if (!rudi_responded_) {
    Packet* answer = environment_.packets.take();
    if (answer == nullptr) {  // as if it was lost: the request comes again (PDS-185)
      ++counters_.no_packet;
      return;
    }
    answer->reset();
    std::copy_n(response.bytes.begin(), response.length, answer->append(response.length));
    rudi_response_.next_hdr = response.next_hdr;
    rudi_response_.encode(answer->prepend(sizeof(wire::PdsRudi)));
    emit_control(environment_, *answer, view.source, packet.entropy);
  }
  ++counters_.rudi_responses_sent;
}

// PDS-222.
Result<void> Manager::respond(Message& message, Time now) {
  if (rudi_request_ == nullptr) return Error::Invalid;
  const FepAddress to = environment_.peer_ports.reply_address(rudi_request_->source);
  const auto came = static_cast<std::uint32_t>(rudi_request_->bytes.size());
  const auto length = static_cast<std::uint32_t>(kRudiDataHeaders + message.backlog_bytes);
  if (!environment_.proved_hosts.may_answer(to.ip, cms::nominal_packet_bytes(came),
                                            cms::nominal_packet_bytes(length), now)) {
    ++counters_.rudi_unproved_refused;
    return Error::Again;
  }
  const auto queued = datagrams_.respond(message, rudi_response_, to, rudi_request_->entropy);
  rudi_responded_ = queued.ok();
  return queued;
}

// PDS-191: nothing is remembered of it and nothing answers it, whatever becomes of it (PDS-213).
void Manager::on_datagram_packet(const RxPacket& packet, Time now) {
  wire::UudHeader header;
  if (!wire::UudHeader::decode(packet.bytes, header) || !is_request_header(header.next_hdr)) {
    ++counters_.malformed;
    return;
  }
  if (packet.trimmed) {
    ++counters_.datagrams_trimmed;
    return;
  }
  ++counters_.datagrams_received;
  const RequestView view{.pdc = {},
                         .source = environment_.peer_ports.reply_address(packet.source),
                         .mode = DeliveryMode::Uud,
                         .next_hdr = header.next_hdr,
                         .psn = {},
                         .bytes = packet.bytes.subspan(sizeof(wire::PdsUud))};
  environment_.client.rx_req(view, now);
}

}  // namespace uet::pds
