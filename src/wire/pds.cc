// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDS headers between bytes and values (WIRE 2).
#include "uet/wire/pds.h"

namespace uet::wire {

namespace {

std::uint16_t to_wire(std::int16_t offset) { return static_cast<std::uint16_t>(offset); }
std::int16_t to_signed(std::uint16_t word) { return static_cast<std::int16_t>(word); }

// Whether `bytes` hold a whole header of one of `types`; says which.
template <class... Types>
bool begins_with(std::span<const std::byte> bytes, PdsType& found, Types... types) {
  if (bytes.size() < sizeof(PdsPrologue)) return false;
  found = static_cast<PdsType>(PdsPrologue::Type::get(load<PdsPrologue>(bytes)));
  return ((found == types) || ...) && bytes.size() >= pds_header_bytes(found);
}

// Requests and control packets with SYN have pdc_info and psn_offset instead of dpdcid.
template <class Raw, class Header>
void encode_dpdcid(Raw& raw, const Header& header) {
  if (header.syn) {
    raw.dpdcid = static_cast<std::uint16_t>(Raw::PdcInfo::bits(header.pdc_info) |
                                            Raw::PsnOffset::bits(header.psn_offset));
  } else {
    raw.dpdcid = header.dpdcid.value;
  }
}

template <class Raw, class Header>
void decode_dpdcid(const Raw& raw, Header& header) {
  if (header.syn) {
    header.pdc_info = static_cast<std::uint8_t>(Raw::PdcInfo::get(raw));
    header.psn_offset = Raw::PsnOffset::get(raw);
  } else {
    header.dpdcid = PdcId{raw.dpdcid};
  }
}

std::uint64_t load_state(const AckHeader& header, std::size_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8; ++i) word = word << 8 | header.ccx_state[at + i];
  return word;
}

void store_state(AckHeader& header, std::size_t at, std::uint64_t word) {
  for (std::size_t i = 8; i-- > 0; word >>= 8) {
    header.ccx_state[at + i] = static_cast<std::uint8_t>(word);
  }
}

std::uint64_t encode_cc_state(const AckHeader& header) {
  using C = PdsAckCc;
  if (header.type == PdsType::AckCcx) return load_state(header, 0);
  switch (header.cc_type) {
    case CcType::Nscc:
      return C::ServiceTime::bits(header.service_time) | C::Rc::bits(header.rc) |
             C::RcvCwndPend::bits(header.rcv_cwnd_pend) | C::RcvdBytes::bits(header.rcvd_bytes) |
             C::OooCount::bits(header.ooo_count);
    case CcType::Credit:
      return C::Credit::bits(header.credit) | C::OooCount::bits(header.ooo_count);
    default:
      return load_state(header, 0);
  }
}

void encode_ack_cc(const AckHeader& header, PdsAckCc& raw) {
  using C = PdsAckCc;
  raw.cc_type_flags = static_cast<std::uint8_t>(
      C::CcTypeField::bits(to_underlying(header.cc_type)) | C::CcFlags::bits(header.cc_flags));
  raw.mpr = header.mpr;
  raw.sack_psn_offset = to_wire(header.sack_psn_offset);
  raw.sack_bitmap = header.sack_bitmap;
  raw.ack_cc_state = encode_cc_state(header);
}

void decode_ack_cc(const PdsAckCc& raw, AckHeader& header) {
  header.cc_type = static_cast<CcType>(PdsAckCc::CcTypeField::get(raw));
  header.cc_flags = PdsAckCc::CcFlags::get(raw);
  header.mpr = raw.mpr;
  header.sack_psn_offset = to_signed(raw.sack_psn_offset);
  header.sack_bitmap = raw.sack_bitmap;
  if (header.type == PdsType::AckCcx) {
    store_state(header, 0, raw.ack_cc_state);
    return;
  }
  switch (header.cc_type) {
    case CcType::Nscc:
      header.service_time = static_cast<std::uint16_t>(PdsAckCc::ServiceTime::get(raw));
      header.rc = PdsAckCc::Rc::get(raw) != 0;
      header.rcv_cwnd_pend = static_cast<std::uint8_t>(PdsAckCc::RcvCwndPend::get(raw));
      header.rcvd_bytes = static_cast<std::uint32_t>(PdsAckCc::RcvdBytes::get(raw));
      header.ooo_count = static_cast<std::uint16_t>(PdsAckCc::OooCount::get(raw));
      break;
    case CcType::Credit:
      header.credit = static_cast<std::uint32_t>(PdsAckCc::Credit::get(raw));
      header.ooo_count = static_cast<std::uint16_t>(PdsAckCc::OooCount::get(raw));
      break;
    default:
      store_state(header, 0, raw.ack_cc_state);
  }
}

}  // namespace

std::size_t RequestHeader::encode(std::byte* out) const {
  using R = PdsRequest;
  auto& raw = overlay<PdsRequest>(out);
  raw.prologue = static_cast<std::uint16_t>(
      R::Type::bits(to_underlying(type)) | R::NextHdrField::bits(to_underlying(next_hdr)) |
      R::Retx::bits(retx) | R::Ar::bits(ar) | R::Syn::bits(syn));
  raw.clear_psn_offset = to_wire(clear_psn_offset);
  raw.psn = psn.value;
  raw.spdcid = spdcid.value;
  encode_dpdcid(raw, *this);
  if (type == PdsType::RudReq || type == PdsType::RodReq) return sizeof raw;
  auto& cc = overlay<PdsCcRequest>(out);
  cc.ccc_id = ccc_id;
  cc.credit_target = credit_target;
  return sizeof cc;
}

bool RequestHeader::decode(std::span<const std::byte> bytes, RequestHeader& header) {
  PdsType type{};
  if (!begins_with(bytes, type, PdsType::RudReq, PdsType::RodReq, PdsType::RudCcReq,
                   PdsType::RodCcReq)) {
    return false;
  }
  const auto& raw = load<PdsRequest>(bytes);
  header = {};
  header.type = type;
  header.next_hdr = static_cast<NextHdr>(PdsRequest::NextHdrField::get(raw));
  header.retx = PdsRequest::Retx::get(raw) != 0;
  header.ar = PdsRequest::Ar::get(raw) != 0;
  header.syn = PdsRequest::Syn::get(raw) != 0;
  header.clear_psn_offset = to_signed(raw.clear_psn_offset);
  header.psn = Psn{raw.psn};
  header.spdcid = PdcId{raw.spdcid};
  decode_dpdcid(raw, header);
  if (type == PdsType::RudCcReq || type == PdsType::RodCcReq) {
    const auto& cc = load<PdsCcRequest>(bytes);
    header.ccc_id = cc.ccc_id;
    header.credit_target = cc.credit_target;
  }
  return true;
}

void set_next_hdr(std::byte* header, NextHdr next_hdr) {
  PdsRequest::NextHdrField::set(overlay<PdsRequest>(header), to_underlying(next_hdr));
}

std::size_t AckHeader::encode(std::byte* out) const {
  using A = PdsAck;
  auto& raw = overlay<PdsAck>(out);
  raw.prologue = static_cast<std::uint16_t>(
      A::Type::bits(to_underlying(type)) | A::NextHdrField::bits(to_underlying(next_hdr)) |
      A::Expected::bits(expected) | A::M::bits(ce) | A::Retx::bits(retx) | A::P::bits(p) |
      A::Req::bits(to_underlying(req)));
  raw.ack_psn_offset = p ? probe_opaque : to_wire(ack_psn_offset);
  raw.cack_psn = cack_psn.value;
  raw.spdcid = spdcid.value;
  raw.dpdcid = dpdcid.value;
  if (type == PdsType::Ack) return sizeof raw;
  encode_ack_cc(*this, overlay<PdsAckCc>(out));
  if (type == PdsType::AckCc) return sizeof(PdsAckCc);
  overlay<PdsAckCcx>(out).ack_ccx_state_low = load_state(*this, 8);
  return sizeof(PdsAckCcx);
}

bool AckHeader::decode(std::span<const std::byte> bytes, AckHeader& header) {
  PdsType type{};
  if (!begins_with(bytes, type, PdsType::Ack, PdsType::AckCc, PdsType::AckCcx)) return false;
  const auto& raw = load<PdsAck>(bytes);
  header = {};
  header.type = type;
  header.next_hdr = static_cast<NextHdr>(PdsAck::NextHdrField::get(raw));
  header.expected = PdsAck::Expected::get(raw) != 0;
  header.ce = PdsAck::M::get(raw) != 0;
  header.retx = PdsAck::Retx::get(raw) != 0;
  header.p = PdsAck::P::get(raw) != 0;
  header.req = static_cast<AckRequestCode>(PdsAck::Req::get(raw));
  if (header.p) {
    header.probe_opaque = raw.ack_psn_offset;
  } else {
    header.ack_psn_offset = to_signed(raw.ack_psn_offset);
  }
  header.cack_psn = Psn{raw.cack_psn};
  header.spdcid = PdcId{raw.spdcid};
  header.dpdcid = PdcId{raw.dpdcid};
  if (type != PdsType::Ack) decode_ack_cc(load<PdsAckCc>(bytes), header);
  if (type == PdsType::AckCcx) store_state(header, 8, load<PdsAckCcx>(bytes).ack_ccx_state_low);
  return true;
}

std::size_t NackHeader::encode(std::byte* out) const {
  PdsNack raw{.prologue = {},
              .nack_code = to_underlying(nack_code),
              .vendor_code = vendor_code,
              .nack_psn = nack_psn.value,
              .spdcid = spdcid.value,
              .dpdcid = dpdcid.value,
              .payload = payload};
  PdsNack::Type::set(raw, to_underlying(type));
  PdsNack::M::set(raw, ce);
  PdsNack::Retx::set(raw, retx);
  PdsNack::Nt::set(raw, nt);
  if (type == PdsType::Nack) return store(out, raw);
  PdsNackCcx ccx{.nack = raw, .nccx_word1 = {}, .nccx_state2 = nccx_state2};
  PdsNackCcx::NccxType::set(ccx, nccx_type);
  PdsNackCcx::NccxState1::set(ccx, nccx_state1);
  return store(out, ccx);
}

bool NackHeader::decode(std::span<const std::byte> bytes, NackHeader& header) {
  PdsType type{};
  if (!begins_with(bytes, type, PdsType::Nack, PdsType::NackCcx)) return false;
  const auto& raw = load<PdsNack>(bytes);
  header = {};
  header.type = type;
  header.ce = PdsNack::M::get(raw) != 0;
  header.retx = PdsNack::Retx::get(raw) != 0;
  header.nt = PdsNack::Nt::get(raw) != 0;
  header.nack_code = static_cast<NackCode>(raw.nack_code);
  header.vendor_code = raw.vendor_code;
  header.nack_psn = Psn{raw.nack_psn};
  header.spdcid = PdcId{raw.spdcid};
  header.dpdcid = PdcId{raw.dpdcid};
  header.payload = raw.payload;
  if (type == PdsType::NackCcx) {
    const auto& ccx = load<PdsNackCcx>(bytes);
    header.nccx_type = static_cast<std::uint8_t>(PdsNackCcx::NccxType::get(ccx));
    header.nccx_state1 = PdsNackCcx::NccxState1::get(ccx);
    header.nccx_state2 = ccx.nccx_state2;
  }
  return true;
}

std::size_t ControlHeader::encode(std::byte* out) const {
  PdsControl raw{.prologue = {},
                 .probe_opaque = probe_opaque,
                 .psn = psn.value,
                 .spdcid = spdcid.value,
                 .dpdcid = {},
                 .payload = payload};
  PdsControl::Type::set(raw, to_underlying(PdsType::Cp));
  PdsControl::CtlType::set(raw, to_underlying(ctl_type));
  PdsControl::Isrod::set(raw, isrod);
  PdsControl::Retx::set(raw, retx);
  PdsControl::Ar::set(raw, ar);
  PdsControl::Syn::set(raw, syn);
  encode_dpdcid(raw, *this);
  return store(out, raw);
}

bool ControlHeader::decode(std::span<const std::byte> bytes, ControlHeader& header) {
  PdsType type{};
  if (!begins_with(bytes, type, PdsType::Cp)) return false;
  const auto& raw = load<PdsControl>(bytes);
  header = {};
  header.ctl_type = static_cast<CpType>(PdsControl::CtlType::get(raw));
  header.isrod = PdsControl::Isrod::get(raw) != 0;
  header.retx = PdsControl::Retx::get(raw) != 0;
  header.ar = PdsControl::Ar::get(raw) != 0;
  header.syn = PdsControl::Syn::get(raw) != 0;
  header.probe_opaque = raw.probe_opaque;
  header.psn = Psn{raw.psn};
  header.spdcid = PdcId{raw.spdcid};
  decode_dpdcid(raw, header);
  header.payload = raw.payload;
  return true;
}

std::size_t Negotiation::encode(std::byte* out) const {
  return store(
      out, PdsNegotiation{
               .type = type, .length_words = length_words, .reserved = {}, .features = features});
}

bool Negotiation::decode(std::span<const std::byte> bytes, Negotiation& negotiation) {
  if (bytes.size() < sizeof(PdsNegotiation)) return false;
  const auto& raw = load<PdsNegotiation>(bytes);
  negotiation = {.type = raw.type, .length_words = raw.length_words, .features = raw.features};
  return true;
}

std::size_t RudiHeader::encode(std::byte* out) const {
  PdsRudi raw{.prologue = {}, .reserved = {}, .pkt_id = pkt_id};
  PdsRudi::Type::set(raw, to_underlying(type));
  PdsRudi::NextHdrField::set(raw, to_underlying(next_hdr));
  PdsRudi::M::set(raw, ce);
  PdsRudi::Retx::set(raw, retx);
  return store(out, raw);
}

bool RudiHeader::decode(std::span<const std::byte> bytes, RudiHeader& header) {
  PdsType type{};
  if (!begins_with(bytes, type, PdsType::RudiReq, PdsType::RudiResp)) return false;
  const auto& raw = load<PdsRudi>(bytes);
  header = {};
  header.type = type;
  header.next_hdr = static_cast<NextHdr>(PdsRudi::NextHdrField::get(raw));
  header.ce = type == PdsType::RudiResp && PdsRudi::M::get(raw) != 0;
  header.retx = PdsRudi::Retx::get(raw) != 0;
  header.pkt_id = raw.pkt_id;
  return true;
}

std::size_t UudHeader::encode(std::byte* out) const {
  PdsUud raw{};
  PdsUud::Type::set(raw, to_underlying(PdsType::UudReq));
  PdsUud::NextHdrField::set(raw, to_underlying(next_hdr));
  return store(out, raw);
}

bool UudHeader::decode(std::span<const std::byte> bytes, UudHeader& header) {
  PdsType type{};
  if (!begins_with(bytes, type, PdsType::UudReq)) return false;
  header.next_hdr = static_cast<NextHdr>(PdsUud::NextHdrField::get(load<PdsUud>(bytes)));
  return true;
}

std::size_t SecurityHeader::encode(std::byte* out) const {
  TssHeader raw{.flags = 0, .sdi = sdi, .epoch = epoch, .counter = counter};
  TssHeader::Type::set(raw, to_underlying(PdsType::Tss));
  TssHeader::Sp::set(raw, sp);
  TssHeader::An::set(raw, an);
  if (!sp) return store(out, raw);
  return store(
      out,
      TssHeaderSsi{.flags = raw.flags, .sdi = sdi, .ssi = ssi, .epoch = epoch, .counter = counter});
}

bool SecurityHeader::decode(std::span<const std::byte> bytes, SecurityHeader& header) {
  if (bytes.size() < sizeof(TssHeader)) return false;
  const auto& raw = load<TssHeader>(bytes);
  if (TssHeader::Type::get(raw) != to_underlying(PdsType::Tss)) return false;
  header = {};
  header.sp = TssHeader::Sp::get(raw) != 0;
  header.an = TssHeader::An::get(raw) != 0;
  header.sdi = raw.sdi;
  header.epoch = raw.epoch;
  header.counter = raw.counter;
  if (!header.sp) return true;
  if (bytes.size() < sizeof(TssHeaderSsi)) return false;
  const auto& with_ssi = load<TssHeaderSsi>(bytes);
  header.ssi = with_ssi.ssi;
  header.epoch = with_ssi.epoch;
  header.counter = with_ssi.counter;
  return true;
}

}  // namespace uet::wire
