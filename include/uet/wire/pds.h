// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every PDS header (WIRE 2) twice: as it lies on the wire (PdsRequest, PdsAck, ...: alignment 1,
// members and Field types named as in the tables) and as values (RequestHeader, AckHeader, ...),
// which is what the protocol works with. Decides layouts only, never what a header means.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uet/base/types.h"
#include "uet/wire/be.h"
#include "uet/wire/field.h"

namespace uet::wire {

// WIRE 2.1; 15 to 31 are reserved.
enum class PdsType : std::uint8_t {
  Reserved = 0,
  Tss = 1,
  RudReq = 2,
  RodReq = 3,
  RudiReq = 4,
  RudiResp = 5,
  UudReq = 6,
  Ack = 7,
  AckCc = 8,
  AckCcx = 9,
  Nack = 10,
  Cp = 11,
  NackCcx = 12,
  RudCcReq = 13,
  RodCcReq = 14,
};

// The SES header behind the PDS header (WIRE 2.1); 7 to 15 are reserved.
enum class NextHdr : std::uint8_t {
  None = 0,
  RequestSmall = 1,
  RequestMedium = 2,
  RequestStd = 3,
  Response = 4,
  ResponseData = 5,
  ResponseDataSmall = 6,
};

// Control packets (WIRE 2.6); 10 to 15 are reserved.
enum class CpType : std::uint8_t {
  Noop = 0,
  AckRequest = 1,
  Clear = 2,
  ClearRequest = 3,
  Close = 4,
  CloseRequest = 5,
  Probe = 6,
  Credit = 7,
  CreditRequest = 8,
  Negotiation = 9,
};

// The request of an ACK to the initiator: the REQ bits (WIRE 2.3); 3 is reserved.
enum class AckRequestCode : std::uint8_t { None = 0, Clear = 1, Close = 2 };

// Which congestion control state an ACK_CC carries (WIRE 2.4); 2 to 13 reserved, 14, 15 private.
enum class CcType : std::uint8_t { Nscc = 0, Credit = 1, Private14 = 14, Private15 = 15 };

// Why a packet was refused (WIRE 2.5).
enum class NackCode : std::uint8_t {
  Reserved = 0x00,
  Trimmed = 0x01,
  TrimmedLastHop = 0x02,
  TrimmedAck = 0x03,
  NoPdcAvail = 0x04,
  NoCccAvail = 0x05,
  NoBitmap = 0x06,
  NoPktBuffer = 0x07,
  NoGtdDelAvail = 0x08,
  NoSesMsgAvail = 0x09,
  NoResource = 0x0A,
  PsnOorWindow = 0x0B,
  RodOoo = 0x0D,
  InvDpdcid = 0x0E,
  PdcHdrMismatch = 0x0F,
  Closing = 0x10,
  ClosingInErr = 0x11,
  PktNotRcvd = 0x12,
  GtdRespUnavail = 0x13,
  AckWithData = 0x14,
  InvalidSyn = 0x15,
  PdcModeMismatch = 0x16,
  NewStartPsn = 0x17,
  RcvdSesProcg = 0x18,
  UnexpEvent = 0x19,
  RcvrInferLoss = 0x1A,
  ExpNormal = 0xFD,
  ExpErr = 0xFE,
  ExpFatal = 0xFF,
};

inline constexpr std::uint32_t kMaxPsnOffset = 4095;     // 12 bits (WIRE 2.2)
inline constexpr std::uint32_t kMprUnitPsns = 128;       // WIRE 2.4
inline constexpr std::uint32_t kCcByteUnit = 256;        // rcvd_bytes and credits (WIRE 2.4)
inline constexpr std::int64_t kServiceTimeUnitNs = 128;  // WIRE 2.4
inline constexpr std::size_t kMaxPdsHeaderBytes = 40;

// pdc_info of a SYN: "use the reserved PDC pool" (WIRE 2.2). Its place is disputed: sent in one,
// understood in both (WIRE 6.1).
inline constexpr std::uint8_t kReservedPool = 0x1;
constexpr bool wants_reserved_pool(std::uint8_t pdc_info) { return (pdc_info & 0x9) != 0; }

// ---- as it lies on the wire -------------------------------------------------------------------

// The first two bytes of every PDS header (WIRE 2.1).
struct PdsPrologue {
  be16 prologue;

  using Type = Field<&PdsPrologue::prologue, 15, 11>;
  using NextHdrField = Field<&PdsPrologue::prologue, 10, 7>;
  using Flags = Field<&PdsPrologue::prologue, 6, 0>;
};

// RUD_REQ, ROD_REQ (WIRE 2.2).
struct PdsRequest {
  be16 prologue;
  be16 clear_psn_offset;  // signed
  be32 psn;
  be16 spdcid;
  be16 dpdcid;  // SYN = 0; else pdc_info and psn_offset

  using Type = Field<&PdsRequest::prologue, 15, 11>;
  using NextHdrField = Field<&PdsRequest::prologue, 10, 7>;
  using Retx = Field<&PdsRequest::prologue, 4, 4>;
  using Ar = Field<&PdsRequest::prologue, 3, 3>;
  using Syn = Field<&PdsRequest::prologue, 2, 2>;
  using PdcInfo = Field<&PdsRequest::dpdcid, 15, 12>;
  using PsnOffset = Field<&PdsRequest::dpdcid, 11, 0>;
};

// RUD_CC_REQ, ROD_CC_REQ (WIRE 2.2).
struct PdsCcRequest {
  PdsRequest request;
  std::uint8_t ccc_id;
  be24 credit_target;
};

// ACK (WIRE 2.3).
struct PdsAck {
  be16 prologue;
  be16 ack_psn_offset;  // signed; probe_opaque when P = 1
  be32 cack_psn;
  be16 spdcid;
  be16 dpdcid;

  using Type = Field<&PdsAck::prologue, 15, 11>;
  using NextHdrField = Field<&PdsAck::prologue, 10, 7>;
  using Expected = Field<&PdsAck::prologue, 6, 6>;
  using M = Field<&PdsAck::prologue, 5, 5>;
  using Retx = Field<&PdsAck::prologue, 4, 4>;
  using P = Field<&PdsAck::prologue, 3, 3>;
  using Req = Field<&PdsAck::prologue, 2, 1>;
};

// ACK_CC (WIRE 2.4).
struct PdsAckCc {
  PdsAck ack;
  std::uint8_t cc_type_flags;
  std::uint8_t mpr;
  be16 sack_psn_offset;  // signed
  be64 sack_bitmap;
  be64 ack_cc_state;

  using CcTypeField = Field<&PdsAckCc::cc_type_flags, 7, 4>;
  using CcFlags = Field<&PdsAckCc::cc_type_flags, 3, 0>;
  // ack_cc_state of NSCC
  using ServiceTime = Field<&PdsAckCc::ack_cc_state, 63, 48>;
  using Rc = Field<&PdsAckCc::ack_cc_state, 47, 47>;
  using RcvCwndPend = Field<&PdsAckCc::ack_cc_state, 46, 40>;
  using RcvdBytes = Field<&PdsAckCc::ack_cc_state, 39, 16>;
  // ack_cc_state of credit
  using Credit = Field<&PdsAckCc::ack_cc_state, 63, 40>;
  // both
  using OooCount = Field<&PdsAckCc::ack_cc_state, 15, 0>;
};

// ACK_CCX (WIRE 2.4): as ACK_CC with 16 bytes of private state, the first 8 in ack_cc_state's
// place.
struct PdsAckCcx {
  PdsAckCc ack_cc;
  be64 ack_ccx_state_low;
};

// NACK (WIRE 2.5).
struct PdsNack {
  be16 prologue;
  std::uint8_t nack_code;
  std::uint8_t vendor_code;
  be32 nack_psn;  // pkt_id when NT = 1
  be16 spdcid;
  be16 dpdcid;
  be32 payload;

  using Type = Field<&PdsNack::prologue, 15, 11>;
  using NextHdrField = Field<&PdsNack::prologue, 10, 7>;
  using M = Field<&PdsNack::prologue, 5, 5>;
  using Retx = Field<&PdsNack::prologue, 4, 4>;
  using Nt = Field<&PdsNack::prologue, 3, 3>;
};

// NACK_CCX (WIRE 2.5).
struct PdsNackCcx {
  PdsNack nack;
  be64 nccx_word1;
  be64 nccx_state2;

  using NccxType = Field<&PdsNackCcx::nccx_word1, 63, 60>;
  using NccxState1 = Field<&PdsNackCcx::nccx_word1, 59, 0>;
};

// Control packet (WIRE 2.6).
struct PdsControl {
  be16 prologue;
  be16 probe_opaque;
  be32 psn;
  be16 spdcid;
  be16 dpdcid;  // SYN = 0; else pdc_info and psn_offset
  be32 payload;

  using Type = Field<&PdsControl::prologue, 15, 11>;
  using CtlType = Field<&PdsControl::prologue, 10, 7>;
  using Isrod = Field<&PdsControl::prologue, 5, 5>;
  using Retx = Field<&PdsControl::prologue, 4, 4>;
  using Ar = Field<&PdsControl::prologue, 3, 3>;
  using Syn = Field<&PdsControl::prologue, 2, 2>;
  using PdcInfo = Field<&PdsControl::dpdcid, 15, 12>;
  using PsnOffset = Field<&PdsControl::dpdcid, 11, 0>;
};

// Payload of a Negotiation (PDS-215). It begins where the payload of a control packet does, and is
// longer.
struct PdsNegotiation {
  std::uint8_t type;
  std::uint8_t length_words;
  be16 reserved;
  be32 features;
};

// RUDI_REQ, RUDI_RESP (WIRE 2.7).
struct PdsRudi {
  be16 prologue;
  be16 reserved;
  be32 pkt_id;

  using Type = Field<&PdsRudi::prologue, 15, 11>;
  using NextHdrField = Field<&PdsRudi::prologue, 10, 7>;
  using M = Field<&PdsRudi::prologue, 5, 5>;
  using Retx = Field<&PdsRudi::prologue, 4, 4>;
};

// UUD_REQ (WIRE 2.8).
struct PdsUud {
  be16 prologue;
  be16 reserved;

  using Type = Field<&PdsUud::prologue, 15, 11>;
  using NextHdrField = Field<&PdsUud::prologue, 10, 7>;
};

// TSS without SSI (WIRE 2.9).
struct TssHeader {
  std::uint8_t flags;
  be24 sdi;
  be16 epoch;
  BigEndian<std::uint64_t, 6> counter;

  using Type = Field<&TssHeader::flags, 7, 3>;
  using Sp = Field<&TssHeader::flags, 2, 2>;
  using An = Field<&TssHeader::flags, 0, 0>;
};

// TSS with SSI (WIRE 2.9).
struct TssHeaderSsi {
  std::uint8_t flags;
  be24 sdi;
  be32 ssi;
  be16 epoch;
  BigEndian<std::uint64_t, 6> counter;

  using Type = Field<&TssHeaderSsi::flags, 7, 3>;
  using Sp = Field<&TssHeaderSsi::flags, 2, 2>;
  using An = Field<&TssHeaderSsi::flags, 0, 0>;
};

static_assert(sizeof(PdsPrologue) == 2 && alignof(PdsPrologue) == 1);
static_assert(sizeof(PdsRequest) == 12 && alignof(PdsRequest) == 1);
static_assert(sizeof(PdsCcRequest) == 16 && alignof(PdsCcRequest) == 1);
static_assert(sizeof(PdsAck) == 12 && alignof(PdsAck) == 1);
static_assert(sizeof(PdsAckCc) == 32 && alignof(PdsAckCc) == 1);
static_assert(sizeof(PdsAckCcx) == 40 && alignof(PdsAckCcx) == 1);
static_assert(sizeof(PdsNack) == 16 && alignof(PdsNack) == 1);
static_assert(sizeof(PdsNackCcx) == 32 && alignof(PdsNackCcx) == 1);
static_assert(sizeof(PdsControl) == 16 && alignof(PdsControl) == 1);
static_assert(sizeof(PdsNegotiation) == 8 && alignof(PdsNegotiation) == 1);
static_assert(sizeof(PdsRudi) == 8 && alignof(PdsRudi) == 1);
static_assert(sizeof(PdsUud) == 4 && alignof(PdsUud) == 1);
static_assert(sizeof(TssHeader) == 12 && alignof(TssHeader) == 1);
static_assert(sizeof(TssHeaderSsi) == 16 && alignof(TssHeaderSsi) == 1);

// Bytes of a PDS header of this type; 0 for Reserved, Tss and the reserved types.
constexpr std::size_t pds_header_bytes(PdsType type) {
  switch (type) {
    case PdsType::RudReq:
    case PdsType::RodReq:
      return sizeof(PdsRequest);
    case PdsType::RudiReq:
    case PdsType::RudiResp:
      return sizeof(PdsRudi);
    case PdsType::UudReq:
      return sizeof(PdsUud);
    case PdsType::Ack:
      return sizeof(PdsAck);
    case PdsType::AckCc:
      return sizeof(PdsAckCc);
    case PdsType::AckCcx:
      return sizeof(PdsAckCcx);
    case PdsType::Nack:
      return sizeof(PdsNack);
    case PdsType::Cp:
      return sizeof(PdsControl);
    case PdsType::NackCcx:
      return sizeof(PdsNackCcx);
    case PdsType::RudCcReq:
    case PdsType::RodCcReq:
      return sizeof(PdsCcRequest);
    default:
      return 0;
  }
}

// ---- as values --------------------------------------------------------------------------------
// encode writes the header of `type` to `out` (kMaxPdsHeaderBytes bytes suffice), reserved bits
// 0, values too wide for their field cut to the low-order bits, and returns the bytes written.
// decode reads from the front of `bytes` and answers false, leaving the result unspecified, when
// `bytes` is too short or its type does not have this header; reserved bits are ignored (WIRE 0).

// RUD_REQ, ROD_REQ, RUD_CC_REQ, ROD_CC_REQ (WIRE 2.2).
struct RequestHeader {
  PdsType type = PdsType::RudReq;
  NextHdr next_hdr = NextHdr::None;
  bool retx = false;
  bool ar = false;
  bool syn = false;
  std::int16_t clear_psn_offset = 0;
  Psn psn{};
  PdcId spdcid{};
  PdcId dpdcid{};                   // SYN = 0
  std::uint8_t pdc_info = 0;        // SYN = 1, 4 bits
  std::uint16_t psn_offset = 0;     // SYN = 1, 12 bits
  std::uint8_t ccc_id = 0;          // CC types
  std::uint32_t credit_target = 0;  // CC types, 24 bits, units of kCcByteUnit

  bool rod() const { return type == PdsType::RodReq || type == PdsType::RodCcReq; }
  Psn clear_psn() const { return psn + clear_psn_offset; }
  Psn start_psn() const { return psn - std::int32_t{psn_offset}; }  // SYN = 1

  std::size_t encode(std::byte* out) const;
  static bool decode(std::span<const std::byte> bytes, RequestHeader& header);
  friend bool operator==(const RequestHeader&, const RequestHeader&) = default;
};

// Changes the kind of SES header that a request header, which `encode` wrote to `header`, states.
void set_next_hdr(std::byte* header, NextHdr next_hdr);

// ACK, ACK_CC, ACK_CCX (WIRE 2.3, 2.4).
struct AckHeader {
  PdsType type = PdsType::Ack;
  NextHdr next_hdr = NextHdr::None;
  // An Expected_PSN of 32 bits follows the header (PDS-78); only without an SES header.
  bool expected = false;
  bool ce = false;  // M: the ECN mark of the packet answered
  bool retx = false;
  bool p = false;
  AckRequestCode req = AckRequestCode::None;
  std::int16_t ack_psn_offset = 0;  // P = 0
  std::uint16_t probe_opaque = 0;   // P = 1
  Psn cack_psn{};
  PdcId spdcid{};
  PdcId dpdcid{};
  // ACK_CC and ACK_CCX
  CcType cc_type = CcType::Nscc;
  std::uint8_t cc_flags = 0;  // 4 bits
  std::uint8_t mpr = 0;       // units of kMprUnitPsns
  std::int16_t sack_psn_offset = 0;
  std::uint64_t sack_bitmap = 0;  // bit i from the least significant = sack_base() + i
  // ACK_CC, cc_type Nscc
  std::uint16_t service_time = 0;  // units of 128 ns; 0 not valid, 0xFFFF more than 8.388 ms
  bool rc = false;
  std::uint8_t rcv_cwnd_pend = 0;  // 7 bits
  std::uint32_t rcvd_bytes = 0;    // 24 bits, units of kCcByteUnit, wraps
  // ACK_CC, cc_type Nscc and Credit
  std::uint16_t ooo_count = 0;  // 0xFFFF = not tracked
  // ACK_CC, cc_type Credit
  std::uint32_t credit = 0;  // 24 bits, units of kCcByteUnit
  // ACK_CCX: all 16 bytes; ACK_CC with any other cc_type: the first 8
  std::array<std::uint8_t, 16> ccx_state{};

  Psn ack_psn() const { return cack_psn + ack_psn_offset; }
  Psn sack_base() const { return cack_psn + sack_psn_offset; }

  std::size_t encode(std::byte* out) const;
  static bool decode(std::span<const std::byte> bytes, AckHeader& header);
  friend bool operator==(const AckHeader&, const AckHeader&) = default;
};

// NACK, NACK_CCX (WIRE 2.5).
struct NackHeader {
  PdsType type = PdsType::Nack;
  bool ce = false;  // M: the ECN mark of the packet answered
  bool retx = false;
  bool nt = false;  // RUDI
  NackCode nack_code = NackCode::Reserved;
  std::uint8_t vendor_code = 0;
  Psn nack_psn{};             // NT = 1: its value is the RUDI pkt_id
  PdcId spdcid{};             // 0 when the sender of the NACK has no PDC
  PdcId dpdcid{};             // 0 when NT = 1
  std::uint32_t payload = 0;  // NewStartPsn: the Start_PSN to use
  // NACK_CCX
  std::uint8_t nccx_type = 0;     // 4 bits
  std::uint64_t nccx_state1 = 0;  // 60 bits
  std::uint64_t nccx_state2 = 0;

  std::size_t encode(std::byte* out) const;
  static bool decode(std::span<const std::byte> bytes, NackHeader& header);
  friend bool operator==(const NackHeader&, const NackHeader&) = default;
};

// CP (WIRE 2.6).
struct ControlHeader {
  CpType ctl_type = CpType::Noop;
  bool isrod = false;
  bool retx = false;
  bool ar = false;
  bool syn = false;
  std::uint16_t probe_opaque = 0;  // Probe only
  Psn psn{};
  PdcId spdcid{};
  PdcId dpdcid{};                // SYN = 0
  std::uint8_t pdc_info = 0;     // SYN = 1, 4 bits
  std::uint16_t psn_offset = 0;  // SYN = 1, 12 bits
  std::uint32_t payload = 0;     // by ctl_type

  Psn start_psn() const { return psn - std::int32_t{psn_offset}; }  // SYN = 1

  std::size_t encode(std::byte* out) const;
  static bool decode(std::span<const std::byte> bytes, ControlHeader& header);
  friend bool operator==(const ControlHeader&, const ControlHeader&) = default;
};

// A Negotiation asks for a feature, or agrees to one (PDS-215). It follows the first kOffset bytes
// of the control packet; its first four bytes are ControlHeader::payload, too.
struct Negotiation {
  static constexpr std::size_t kOffset = sizeof(PdsControl) - sizeof(be32);
  static constexpr std::uint8_t kOnOff = 1;                   // PDS_NEG_ON_OFF, the one type known
  static constexpr std::uint32_t kSynRetxTransfer = 1U << 0;  // SYN_RETX_TRANSFER (PDS-216)

  std::uint8_t type = kOnOff;
  std::uint8_t length_words = sizeof(PdsNegotiation) / 4;
  std::uint32_t features = 0;  // mask

  std::size_t encode(std::byte* out) const;
  // `bytes`: from kOffset on. False if they are too few; any type and length is taken.
  static bool decode(std::span<const std::byte> bytes, Negotiation& negotiation);
  friend bool operator==(const Negotiation&, const Negotiation&) = default;
};

// RUDI_REQ, RUDI_RESP (WIRE 2.7).
struct RudiHeader {
  PdsType type = PdsType::RudiReq;
  NextHdr next_hdr = NextHdr::None;
  bool ce = false;  // M: the ECN mark of the request; response only
  bool retx = false;
  std::uint32_t pkt_id = 0;

  std::size_t encode(std::byte* out) const;
  static bool decode(std::span<const std::byte> bytes, RudiHeader& header);
  friend bool operator==(const RudiHeader&, const RudiHeader&) = default;
};

// UUD_REQ (WIRE 2.8).
struct UudHeader {
  NextHdr next_hdr = NextHdr::None;

  std::size_t encode(std::byte* out) const;
  static bool decode(std::span<const std::byte> bytes, UudHeader& header);
  friend bool operator==(const UudHeader&, const UudHeader&) = default;
};

// TSS header (WIRE 2.9). Encrypted bytes or, without confidentiality, a PDS header follow it.
struct SecurityHeader {
  bool sp = false;  // ssi is present
  bool an = false;
  std::uint32_t sdi = 0;  // 24 bits
  std::uint32_t ssi = 0;  // sp only
  std::uint16_t epoch = 0;
  std::uint64_t counter = 0;  // 48 bits

  std::size_t encode(std::byte* out) const;
  static bool decode(std::span<const std::byte> bytes, SecurityHeader& header);
  friend bool operator==(const SecurityHeader&, const SecurityHeader&) = default;
};

}  // namespace uet::wire
