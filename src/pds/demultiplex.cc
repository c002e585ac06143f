// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an arriving packet to its PDC: steps 2 to 7 of the receive pipeline (PDS-210). A packet that
// no step accepts is counted and dropped, or refused with the NACK that the rule names.
#include "pds/demultiplex.h"

#include <algorithm>
#include <new>

#include "pds/ack_intake.h"
#include "pds/credits.h"
#include "pds/start_psns.h"
#include "uet/wire/be.h"

namespace uet::pds {

namespace {

bool is_request_header(wire::NextHdr next_hdr) {
  return next_hdr == wire::NextHdr::RequestSmall || next_hdr == wire::NextHdr::RequestMedium ||
         next_hdr == wire::NextHdr::RequestStd;
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

bool Demultiplexer::send_later_acks(Time now) {
  if (env_.later_acks.empty()) return false;
  env_.later_acks.release([&](PdcId id) {
    Pdc* const pdc = pdcs_.find(id);
    if (pdc == nullptr) return;
    pdc->receive_side().send_waiting_ack(now);
    if (pdc->receive_side().ack_is_due()) pdc->make_ready();  // there was no packet for it
  });
  return true;
}

void Demultiplexer::set_guard(PdcGuard& guard) {
  const Admission::Share share = connections_.admission().share();
  pdcs_.set_guard(guard);
  guard.start(share.at_once, share.pace);
}

void Demultiplexer::on_packet(const RxPacket& packet, Time now) {
  ++env_.counters.packets_received;
  if (packet.trimmed) ++env_.counters.trimmed_received;
  if (packet.ecn == Ecn::Ce) ++env_.counters.marked_received;
  if (packet.bytes.size() < sizeof(wire::PdsPrologue)) {
    ++env_.counters.malformed;
    return;
  }
  try {
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
      case wire::PdsType::Tss:  // a FEP with transport security gets packets opened
        ++env_.counters.protected_dropped;
        return;
      default:
        ++env_.counters.unsupported_type;
    }
  } catch (const std::bad_alloc&) {
    ++env_.counters.no_packet;
  }
}

// A NACK for a packet that no PDC here takes; `own` names the one it was for, SPDCID 0 says that
// there is none. No state is kept (PDS-66).
void Demultiplexer::refuse(const RxPacket& packet, NackCode code, PdcId spdcid,
                           const PacketMeta& refused, PdcId own, std::uint32_t payload) {
  wire::NackHeader nack;
  nack.ce = refused.ce;
  nack.retx = refused.retx;
  nack.nack_code = code;
  nack.nack_psn = refused.psn;
  nack.spdcid = own;
  nack.dpdcid = spdcid;
  nack.payload = payload;
  emit_nack(env_, env_.peer_ports.reply_address(packet.source), nack, refused.entropy);
}

// A packet that was sent again, or a control packet with a PSN.
void Demultiplexer::note_in_trace(const Pdc& pdc, const Incoming& request) {
  const PacketMeta& meta = request.meta;
  const unsigned detail = (meta.retx ? 1U : 0U) | (request.ctl_type ? 2U : 0U);
  env_.trace.write(trace::Kind::Received, detail, pdc.id(), meta.psn,
                   std::uint64_t{1} << 32 | request.nominal_bytes,
                   std::uint64_t{meta.entropy} << 32);
}

void Demultiplexer::on_request_packet(const RxPacket& packet, Time now) {
  wire::RequestHeader header;
  if (!wire::RequestHeader::decode(packet.bytes, header)) {
    ++env_.counters.malformed;
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
  pdc->note_connection(packet.connection);
  if (pdc->destination().mode != mode)
    return pdc->send_nack(NackCode::PdcModeMismatch, request.meta);
  if (with_credit && cms::uses_credit(env_.cms.algorithm)) {
    const std::uint32_t bytes = request.trimmed ? 0 : request.nominal_bytes;
    const bool ce = packet.ecn == Ecn::Ce;
    env_.credits->note_arrival(ce, packet.trimmed, packet.trimmed_last_hop, now);
    const bool congested = ce || (packet.trimmed && !packet.trimmed_last_hop);
    env_.credits->on_request(*pdc, header.ccc_id,
                             {header.credit_target, bytes, congested, packet.trimmed}, now);
  }
  if (header.retx) {
    note_in_trace(*pdc, request);
  } else {
    env_.trace.received(pdc, pdc->id(), header.psn, request.nominal_bytes, packet.entropy);
  }
  pdc->on_request(request, now);
  if (!env_.responses_short) return;
  env_.responses_short = false;
  connections_.admission().end_uncleared(pdc->host(), now);
}

// PDS-24. A FEP at a port of its own sends from any, so that the copy of a SYN may come from
// another one than the first: a PDC that is known is found among all FEPs at that IP address.
PeerKey Demultiplexer::peer_of_syn(const FepAddress& source, PdcId spdcid, Psn start_psn) const {
  const auto opened_this = [&](const FepAddress& fep) {
    return pdcs_.has_accepted({fep, spdcid}, start_psn);
  };
  const FepAddress by_port = env_.peer_ports.reply_address(source);
  const auto known = env_.peer_ports.find_if(source, opened_this);
  return {known.value_or(by_port), spdcid};
}

// PDS-61 to 65, PDS-69 to 74: may this SYN open a PDC? Refuses it if not.
bool Demultiplexer::may_open(const RxPacket& packet, const PeerKey& peer, DeliveryMode mode,
                             Psn start_psn, const Incoming& request, Time now) {
  const PdcId spdcid = peer.spdcid;
  if (!request.ctl_type && !is_request_header(request.view.next_hdr)) {  // PDS-65
    refuse(packet, NackCode::PdcHdrMismatch, spdcid, request.meta);
    return false;
  }
  if (request.trimmed) {  // PDS-62
    refuse(packet, *request.trimmed, spdcid, request.meta);
    return false;
  }
  if (const PdcId ours = pdcs_.opened_to(peer); ours != PdcId{}) {  // PDS-63
    refuse(packet, NackCode::InvalidSyn, spdcid, request.meta, ours);
    return false;
  }
  if (mode == DeliveryMode::Rod && request.meta.psn != start_psn) {  // PDS-61
    refuse(packet, NackCode::RodOoo, spdcid, request.meta);
    return false;
  }
  if (env_.start_psns == nullptr) return true;
  const std::optional<Psn> demanded = env_.start_psns->demanded(peer, start_psn, now);
  if (demanded) refuse(packet, NackCode::NewStartPsn, spdcid, request.meta, {}, demanded->value);
  return !demanded;
}

namespace {

// PDS-77: a late SYN with the Start_PSN that its sender had before it took the one of the PDC. A
// NACK would name a PSN that may be outstanding there.
bool is_from_before_rebase(const Pdc& pdc, Psn psn) {
  const std::int32_t ahead = psn - pdc.start_psn();
  return ahead > -StartPsns::kAhead && ahead < StartPsns::kAhead;
}

}  // namespace

// PDS-58 to 67.
Pdc* Demultiplexer::resolve_syn(const RxPacket& packet, PdcId spdcid, DeliveryMode mode,
                                Psn start_psn, const Incoming& request, Time now) {
  if (spdcid.value == 0) {  // PDS-27
    ++env_.counters.malformed;
    return nullptr;
  }
  const PeerKey peer = peer_of_syn(packet.source, spdcid, start_psn);
  Pdc* half_open = nullptr;
  if (const PdcId id = pdcs_.accepted_from(peer); id != PdcId{}) {
    if (Pdc* pdc = connections_.live(id, now); pdc != nullptr) {
      if (pdc->start_psn() == start_psn) {
        pdc->allow_answers(request.nominal_bytes);
        return pdc;
      }
      if (env_.parameters.secured && is_from_before_rebase(*pdc, request.meta.psn)) {
        ++env_.counters.stray_packets;
        return nullptr;
      }
      if (pdc->proved()) {
        pdc->send_nack(NackCode::InvalidSyn, request.meta);  // PDS-67
        return nullptr;
      }
      half_open = pdc;  // its SYN may have been another host's
    }
    const Tombstone* tomb = pdcs_.tombstone(id, now);
    if (tomb != nullptr && tomb->start_psn == start_psn) {  // PDS-175
      on_tombstone(*tomb, packet, peer, request);
      return nullptr;
    }
  }
  const bool waits = half_open != nullptr && !Admission::has_had_time(*half_open, now);
  if (waits && env_.parameters.secured) {  // else its peer would be told another Start_PSN
    refuse(packet, NackCode::NoPdcAvail, spdcid, request.meta);
    return nullptr;
  }
  if (!may_open(packet, peer, mode, start_psn, request, now)) return nullptr;
  if (waits) {
    refuse(packet, NackCode::NoPdcAvail, spdcid, request.meta);  // the peer comes again
    return nullptr;
  }
  if (half_open != nullptr) connections_.drop_unproved(*half_open, now);
  Pdc* pdc = connections_.accept(peer, mode, request, start_psn, now);
  if (pdc == nullptr) refuse(packet, connections_.refusal(), spdcid, request.meta);  // PDS-66
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
Pdc* Demultiplexer::resolve(const RxPacket& packet, PdcId spdcid, PdcId dpdcid,
                            const Incoming& request, Time now) {
  Pdc* pdc = connections_.live(dpdcid, now);
  if (pdc == nullptr) {
    const Tombstone* tomb = pdcs_.tombstone(dpdcid, now);
    if (tomb != nullptr) {
      on_tombstone(*tomb, packet, {env_.peer_ports.reply_address(packet.source), spdcid}, request);
    } else {
      pdcs_.note_stray(dpdcid);
      refuse(packet, NackCode::InvDpdcid, spdcid, request.meta);
    }
    return nullptr;
  }
  if (!is_bound(env_, pdc->destination().address, packet.source)) return nullptr;
  const bool known = pdc->peer_id() == spdcid || pdc->state() == PdcState::Creating;
  if (!known || spdcid.value == 0 ||
      !env_.peer_ports.may_be_from(pdc->destination().address, packet.source)) {
    refuse(packet, NackCode::PdcHdrMismatch, spdcid, request.meta);
    return nullptr;
  }
  pdc->allow_answers(request.nominal_bytes);
  if (pdc->state() == PdcState::Creating) {  // a stranger may name our id, but knows no PSN
    const bool asks = request.ctl_type == wire::CpType::AckRequest;
    if (!asks && !takes_psn(request)) {  // it could not be answered
      ++env_.counters.stray_packets;
      return nullptr;
    }
    if (asks ? !pdc->send_side().has_sent(request.meta.psn)
             : pdc->receive_side().window().place(request.meta.psn) != RxWindow::Place::New) {
      refuse(packet, NackCode::PdcHdrMismatch, spdcid, request.meta);
      return nullptr;
    }
    pdc->send_side().learn_peer(spdcid, now);  // PDS-199: return data may overtake the first ACK
    pdcs_.note_peer(*pdc);
  }
  return pdc;
}

// PDS-175, PDS-176: a repeated Close Command has its ACK again, and so have packets that were
// delivered before the PDC failed; what follows them is refused, the rest is dropped.
void Demultiplexer::on_tombstone(const Tombstone& tomb, const RxPacket& packet, const PeerKey& from,
                                 const Incoming& request) {
  if (!is_bound(env_, tomb.peer.address, packet.source)) return;
  ++env_.counters.stray_packets;
  if (tomb.role != Role::Target || tomb.peer != from) return;
  const Psn psn = request.meta.psn;
  if (request.ctl_type == wire::CpType::Close && psn == tomb.close_psn) {
    acknowledge_late(tomb, psn, request.meta, {});
  } else if (request.ctl_type) {
    return;
  } else if (psn > tomb.close_psn) {
    refuse(packet, NackCode::Closing, tomb.peer.spdcid, request.meta, tomb.id);
  } else if (request.meta.retx && tomb.delivered && tomb.delivered->has(psn)) {  // PDS-206
    const std::optional<RequestName> name = env_.client.name_of(request.view);
    if (name)
      acknowledge_late(tomb, tomb.delivered->cack, request.meta, env_.client.default_rsp(*name));
  }
}

// The ACK of a packet whose PDC has ended, with the response to it.
void Demultiplexer::acknowledge_late(const Tombstone& tomb, Psn cack, const PacketMeta& asked,
                                     const Response& response) {
  Packet* answer = env_.packets.take();
  if (answer == nullptr) {
    ++env_.counters.no_packet;
    return;
  }
  answer->reset();
  if (response.length > 0) response.copy_bytes(answer->append(response.length));
  wire::AckHeader ack;
  ack.next_hdr = response.next_hdr;
  if (response.length == 0) {  // of the Close Command
    ack.expected = append_expected_psn(env_, tomb.peer.address.sdi, *answer);
  }
  ack.retx = asked.retx;
  ack.cack_psn = cack;
  ack.ack_psn_offset = static_cast<std::int16_t>(asked.psn - cack);
  ack.spdcid = tomb.id;
  ack.dpdcid = tomb.peer.spdcid;
  ack.encode(answer->prepend(sizeof(wire::PdsAck)));
  emit_control(env_, *answer, tomb.peer.address, asked.entropy);
  ++env_.counters.acks_sent;
}

// The PDC that an ACK or a NACK names, if it comes from the peer of that PDC; else it is counted,
// in `others` unless it is of another secure domain.
Pdc* Demultiplexer::answerer(PdcId id, const RxPacket& packet, Time now, std::uint64_t& others) {
  Pdc* pdc = connections_.live(id, now);
  if (pdc != nullptr) {
    const FepAddress& peer = pdc->destination().address;
    if (!is_bound(env_, peer, packet.source)) return nullptr;
    if (env_.peer_ports.may_be_from(peer, packet.source)) return pdc;
  }
  ++others;
  return nullptr;
}

// PDS-78: what the closing ACK of a secured PDC reports.
void Demultiplexer::on_expected_psn(const Pdc& pdc, const wire::AckHeader& header,
                                    std::span<const std::byte> payload) {
  const bool reported = env_.parameters.secured && header.next_hdr == wire::NextHdr::None &&
                        pdc.state() == PdcState::CloseAckWait &&
                        payload.size() >= sizeof(wire::be32);
  if (!reported) return;
  const Psn expected{wire::load<wire::be32>(payload)};
  connections_.destinations().note_expected(pdc, expected);
}

void Demultiplexer::on_ack_packet(const RxPacket& packet, Time now) {
  wire::AckHeader header;
  if (packet.trimmed) return;  // PDS-151: counted; the time-out of what it answers recovers
  if (!wire::AckHeader::decode(packet.bytes, header)) {
    ++env_.counters.malformed;
    return;
  }
  // PDS-108 step 1; PDS-136 swallows late ones
  Pdc* pdc = answerer(header.dpdcid, packet, now, env_.counters.acks_invalid);
  if (pdc == nullptr) return;
  const bool creating = pdc->state() == PdcState::Creating;
  const auto behind = packet.bytes.subspan(wire::pds_header_bytes(header.type));
  pdc->note_connection(packet.connection);
  if (header.expected) on_expected_psn(*pdc, header, behind);
  AckIntake(*pdc, now).apply(header, behind, arrival_of(packet, now));
  if (creating) pdcs_.note_peer(*pdc);
}

void Demultiplexer::on_nack_packet(const RxPacket& packet, Time now) {
  wire::NackHeader header;
  if (!wire::NackHeader::decode(packet.bytes, header)) {
    ++env_.counters.malformed;
    return;
  }
  if (header.nt) {
    RudiFlow* const refused = rudi_.on_nack(header, packet.source, now);
    if (refused != nullptr) prove_address(*refused, now);
    return;
  }
  Pdc* pdc = answerer(header.dpdcid, packet, now, env_.counters.nacks_ignored);
  if (pdc == nullptr) return;
  const bool creating = pdc->state() == PdcState::Creating;
  pdc->note_connection(packet.connection);
  pdc->on_nack(header, now);
  if (creating) pdcs_.note_peer(*pdc);
}

// PDS-222: a target that refuses a request may need the proof that we hear it. The NOOP that opens
// a PDC is none: its source may be invented, too. One that names the peer's PDC id is. If no
// ordinary PDC can be opened, one of the reserved pool serves: the flow itself may hold the last
// ordinary context, and would wait for its own end.
void Demultiplexer::prove_address(RudiFlow& flow, Time now) {
  Destination destination = flow.destination;
  destination.mode = DeliveryMode::Rud;
  if (env_.peer_limits.refuses(destination.address, wire::CpType::Noop)) return;
  Result<PdcId> pdc = connections_.connect(destination, now);
  if (!pdc) {
    destination.reserved_pool = true;
    pdc = connections_.connect(destination, now);
  }
  if (!pdc || pdc.value() == flow.proof) return;
  Pdc& open = *pdcs_.at(pdc.value());
  if (open.state() != PdcState::Creating && open.send_side().send_control(wire::CpType::Noop, now))
    flow.proof = pdc.value();
}

void Demultiplexer::on_control_packet(const RxPacket& packet, Time now) {
  wire::ControlHeader header;
  if (!wire::ControlHeader::decode(packet.bytes, header)) {
    ++env_.counters.malformed;
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
  if (idempotent && connections_.live(header.dpdcid, now) == nullptr) {  // PDS-159
    ++env_.counters.stray_packets;
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
  pdc->note_connection(packet.connection);
  if (takes_psn(request)) {
    note_in_trace(*pdc, request);
  } else {
    env_.trace.write(trace::Kind::ControlReceived, static_cast<unsigned>(header.ctl_type),
                     pdc->id(), header.psn != Psn{} ? header.psn : Psn{header.payload});
  }
  on_control(*pdc, header, request, now);
}

void Demultiplexer::on_control(Pdc& pdc, const wire::ControlHeader& header, Incoming& request,
                               Time now) {
  pdc.send_side().heard(now);
  pdc.extend_close(now);
  switch (header.ctl_type) {
    case wire::CpType::Noop:
    case wire::CpType::Negotiation:
    case wire::CpType::Close:
    case wire::CpType::CloseRequest:
      return pdc.on_request(request, now);
    case wire::CpType::AckRequest:
      return pdc.receive_side().on_ack_request(
          header.psn, MsgId{static_cast<std::uint16_t>(header.payload)}, request.meta.entropy, now);
    case wire::CpType::Clear:
      return pdc.receive_side().on_clear_command(Psn{header.payload}, now);
    case wire::CpType::ClearRequest:
      return pdc.send_side().clear_at_once();
    case wire::CpType::Probe:
      return pdc.receive_side().on_probe(header.probe_opaque, Psn{header.payload}, request.meta,
                                         now);
    case wire::CpType::Credit:
    case wire::CpType::CreditRequest:
      return on_credit_packet(pdc, header, now);
  }
  pdc.send_nack(NackCode::UnexpEvent, request.meta);  // PDS-157: no such control packet
}

// CMS-200, CMS-220.
void Demultiplexer::on_credit_packet(Pdc& pdc, const wire::ControlHeader& header, Time now) {
  const std::uint32_t units = header.payload & cms::kCreditMask;
  const bool credit = header.ctl_type == wire::CpType::Credit;
  ++(credit ? env_.counters.credits_received : env_.counters.credit_requests_received);
  if (credit) {
    if (pdc.ccc().credit != nullptr) return pdc.send_side().on_credit(units, now);
  } else if (cms::uses_credit(env_.cms.algorithm)) {
    if (env_.credits->on_credit_request(pdc, units, now)) return;
  }
  ++env_.counters.credit_ignored;
}

// TSS-50: RUDI and UUD do not tell a replayed packet from a new one.
bool Demultiplexer::refuses_replayable() {
  if (!env_.parameters.refuses_replayable) return false;
  ++env_.counters.replayable_refused;
  return true;
}

void Demultiplexer::on_rudi_packet(const RxPacket& packet, Time now) {
  if (refuses_replayable()) return;
  wire::RudiHeader header;
  const bool parsed = wire::RudiHeader::decode(packet.bytes, header);
  const bool request = parsed && header.type == wire::PdsType::RudiReq;
  if (!parsed || (request ? !is_request_header(header.next_hdr) : packet.trimmed)) {
    ++env_.counters.malformed;
  } else if (request) {
    rudi_target_.on_request(packet, header, now);
  } else {
    rudi_.on_response(header, packet.bytes.subspan(sizeof(wire::PdsRudi)), packet.source, now);
  }
}

// PDS-191: nothing is remembered of it and nothing answers it, whatever becomes of it (PDS-213).
void Demultiplexer::on_datagram_packet(const RxPacket& packet, Time now) {
  if (refuses_replayable()) return;
  wire::UudHeader header;
  if (!wire::UudHeader::decode(packet.bytes, header) || !is_request_header(header.next_hdr)) {
    ++env_.counters.malformed;
    return;
  }
  if (packet.trimmed) {
    ++env_.counters.datagrams_trimmed;
    return;
  }
  ++env_.counters.datagrams_received;
  const RequestView view{.pdc = {},
                         .source = env_.peer_ports.reply_address(packet.source),
                         .mode = DeliveryMode::Uud,
                         .next_hdr = header.next_hdr,
                         .psn = {},
                         .bytes = packet.bytes.subspan(sizeof(wire::PdsUud))};
  env_.client.rx_req(view, now);
}

}  // namespace uet::pds
