// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every SES header (WIRE 3) twice: as it lies on the wire (SesStandard, SesMedium, ...: alignment
// 1, members and Field types named as in the tables) and as values (SesRequest, SesResponseHeader),
// one form for all requests and one for all responses. Decides layouts and where a packet's payload
// lies (WIRE 3.8), never whether an operation is allowed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uet/base/types.h"
#include "uet/wire/be.h"
#include "uet/wire/field.h"
#include "uet/wire/pds.h"

namespace uet::wire {

// WIRE 3.1; 0x10 to 0x2F are reserved, 0x30 to 0x3E vendor, 0x3F extended.
enum class SesOpcode : std::uint8_t {
  NoOp = 0x00,
  Write = 0x01,
  Read = 0x02,
  Atomic = 0x03,
  FetchingAtomic = 0x04,
  Send = 0x05,
  RendezvousSend = 0x06,
  DatagramSend = 0x07,
  DeferrableSend = 0x08,
  TaggedSend = 0x09,
  RendezvousTsend = 0x0A,
  DeferrableTsend = 0x0B,
  DeferrableRtr = 0x0C,
  TsendAtomic = 0x0D,
  TsendFetchAtomic = 0x0E,
  MsgError = 0x0F,
};

// WIRE 3.1; 0x04 to 0x2F are reserved, 0x30 to 0x3F vendor.
enum class ResponseOpcode : std::uint8_t {
  DefaultResponse = 0x00,
  Response = 0x01,
  ResponseWData = 0x02,
  NoResponse = 0x03,
};

// Where a message went (WIRE 3.1); 2 and 3 are the vendor's. ToBeRead: ours, to our own kind only;
// a message without bytes is kept, and its sender will be told by a read when it is delivered.
enum class List : std::uint8_t { Expected = 0, Overflow = 1, ToBeRead = 2 };

// WIRE 3.1; other values are reserved or the vendor's.
enum class ReturnCode : std::uint8_t {
  Null = 0x00,
  Ok = 0x01,
  BadGeneration = 0x02,
  Disabled = 0x03,
  DisabledGen = 0x04,
  NoMatch = 0x05,
  UnsupportedOp = 0x06,
  UnsupportedSize = 0x07,
  AtInvalid = 0x08,
  AtPerm = 0x09,
  AtAtsError = 0x0A,
  AtNoTrans = 0x0B,
  AtOutOfRange = 0x0C,
  HostPoisoned = 0x0D,
  HostUnsuccessCmpl = 0x0E,
  AmoUnsupportedOp = 0x0F,
  AmoUnsupportedDt = 0x10,
  AmoUnsupportedSize = 0x11,
  AmoUnaligned = 0x12,
  AmoFpNan = 0x13,
  FpUnderflow = 0x14,
  FpOverflow = 0x15,
  FpInexact = 0x16,
  PermViolation = 0x17,
  OpViolation = 0x18,
  BadIndex = 0x19,
  BadPid = 0x1A,
  BadJobId = 0x1B,
  BadMkey = 0x1C,
  BadAddr = 0x1D,
  Cancelled = 0x1E,
  Undeliverable = 0x1F,
  Uncor = 0x20,
  UncorTrnsnt = 0x21,
  TooLong = 0x22,
  InitiatorErr = 0x23,
  Dropped = 0x24,
};

// WIRE 3.1. Not libfabric's numbers. 0xE0 to 0xFE are the vendor's, the rest reserved.
enum class AmoOp : std::uint8_t {
  Min = 0x00,
  Max = 0x01,
  Sum = 0x02,
  Diff = 0x03,
  Prod = 0x04,
  Lor = 0x05,
  Land = 0x06,
  Bor = 0x07,
  Band = 0x08,
  Lxor = 0x09,
  Bxor = 0x0A,
  Read = 0x0B,
  Write = 0x0C,
  Cswap = 0x0D,
  CswapNe = 0x0E,
  CswapLe = 0x0F,
  CswapLt = 0x10,
  CswapGe = 0x11,
  CswapGt = 0x12,
  Mswap = 0x13,
  Inval = 0x14,
};

// WIRE 3.1. Not libfabric's numbers. 0xE0 to 0xFE are the vendor's, the rest reserved.
enum class AmoDatatype : std::uint8_t {
  Int8 = 0x00,
  Uint8 = 0x01,
  Int16 = 0x02,
  Uint16 = 0x03,
  Int32 = 0x04,
  Uint32 = 0x05,
  Int64 = 0x06,
  Uint64 = 0x07,
  Int128 = 0x08,
  Uint128 = 0x09,
  Float = 0x0A,
  Double = 0x0B,
  FloatComplex = 0x0C,
  DoubleComplex = 0x0D,
  LongDouble = 0x0E,
  LongDoubleComplex = 0x0F,
  Bf16 = 0x10,
  Fp16 = 0x11,
};

// semantic_control bits of the atomic extension (WIRE 3.5).
inline constexpr std::uint8_t kAtomicCacheable = 0x01;
inline constexpr std::uint8_t kAtomicCpuCoherent = 0x02;

inline constexpr std::uint32_t kMaxPayloadLength = 0x3FFF;  // 14-bit length fields
inline constexpr std::uint32_t kMaxShortLength = 8191;      // of a medium or small request (SES-4)
inline constexpr std::size_t kMaxSesHeaderBytes = 80;       // standard and compare-and-swap

// Which extension follows the request header (WIRE 3.5).
constexpr bool has_atomic_extension(SesOpcode opcode) {
  return opcode == SesOpcode::Atomic || opcode == SesOpcode::FetchingAtomic ||
         opcode == SesOpcode::TsendAtomic || opcode == SesOpcode::TsendFetchAtomic;
}
constexpr bool is_compare_swap(AmoOp op) { return op >= AmoOp::Cswap && op <= AmoOp::Mswap; }
constexpr bool has_rendezvous_extension(SesOpcode opcode) {
  return opcode == SesOpcode::RendezvousSend || opcode == SesOpcode::RendezvousTsend;
}
constexpr bool is_deferrable(SesOpcode opcode) {
  return opcode == SesOpcode::DeferrableSend || opcode == SesOpcode::DeferrableTsend;
}

// ---- as it lies on the wire -------------------------------------------------------------------

// The fields that every request header shares at the same place (WIRE 3.2), bytes 0 to 11. As two
// words, since every packet has them: so they are read and written at once.
struct SesCommon {
  be64 first;
  be32 second;

  using Opcode = Field<&SesCommon::first, 61, 56>;
  using Version = Field<&SesCommon::first, 55, 54>;
  using Dc = Field<&SesCommon::first, 53, 53>;
  using Ie = Field<&SesCommon::first, 52, 52>;
  using Rel = Field<&SesCommon::first, 51, 51>;
  using Hd = Field<&SesCommon::first, 50, 50>;  // reserved in small
  using Eom = Field<&SesCommon::first, 49, 49>;
  using Som = Field<&SesCommon::first, 48, 48>;
  using MessageId = Field<&SesCommon::first, 47, 32>;
  using RequestLength = Field<&SesCommon::first, 45, 32>;  // medium and small: there
  using RiGenerationField = Field<&SesCommon::first, 31, 24>;
  using JobIdField = Field<&SesCommon::first, 23, 0>;
  using PidOnFepField = Field<&SesCommon::second, 27, 16>;
  using ResourceIndexField = Field<&SesCommon::second, 11, 0>;
};

// WIRE 3.2
struct SesStandard {
  SesCommon common;
  be64 buffer_offset;  // DEFERRABLE_SEND, DEFERRABLE_TSEND: restart tokens
  be32 initiator;
  be64 match_bits;   // memory key in RMA and atomics; DEFERRABLE_RTR: restart tokens
  be64 header_data;  // SOM = 1; else payload_length and message_offset
  be32 request_length;

  using PayloadLength = Field<&SesStandard::header_data, 45, 32>;  // SOM = 0
  using MessageOffset = Field<&SesStandard::header_data, 31, 0>;   // SOM = 0
};

// WIRE 3.3
struct SesMedium {
  SesCommon common;
  be64 header_data;  // HD = 1; else buffer_offset
  be32 initiator;
  be64 match_bits;
};

// WIRE 3.4
struct SesSmall {
  SesCommon common;
  be64 buffer_offset;
};

// WIRE 3.5
struct SesAtomic {
  std::uint8_t atomic_opcode;
  std::uint8_t atomic_datatype;
  std::uint8_t semantic_control;
  std::uint8_t reserved;
};

// WIRE 3.5; values of 128 bits, the high half first.
struct SesCompareSwap {
  SesAtomic atomic;
  be64 compare_high;
  be64 compare_low;
  be64 swap_high;
  be64 swap_low;
};

// WIRE 3.5
struct SesRendezvous {
  be32 eager_length;
  be32 read_context;
  be64 read_offset;
  be64 read_memory_key;

  using ReadRiGeneration = Field<&SesRendezvous::read_context, 31, 24>;
  using ReadPidOnFep = Field<&SesRendezvous::read_context, 23, 12>;
  using ReadResourceIndex = Field<&SesRendezvous::read_context, 11, 0>;
};

// WIRE 3.9
struct SesResponse {
  be64 first;
  be32 modified_length;

  using ListField = Field<&SesResponse::first, 63, 62>;
  using Opcode = Field<&SesResponse::first, 61, 56>;
  using Version = Field<&SesResponse::first, 55, 54>;
  using ReturnCodeField = Field<&SesResponse::first, 53, 48>;
  using MessageId = Field<&SesResponse::first, 47, 32>;
  using RiGenerationField = Field<&SesResponse::first, 31, 24>;
  using JobIdField = Field<&SesResponse::first, 23, 0>;
};

// WIRE 3.10
struct SesResponseData {
  be64 first;
  be16 read_request_message_id;
  be16 payload_length_word;
  be32 modified_length;
  be32 message_offset;

  using ListField = Field<&SesResponseData::first, 63, 62>;
  using Opcode = Field<&SesResponseData::first, 61, 56>;
  using Version = Field<&SesResponseData::first, 55, 54>;
  using ReturnCodeField = Field<&SesResponseData::first, 53, 48>;
  using ResponseMessageId = Field<&SesResponseData::first, 47, 32>;
  using JobIdField = Field<&SesResponseData::first, 23, 0>;
  using PayloadLength = Field<&SesResponseData::payload_length_word, 13, 0>;
};

// WIRE 3.11
struct SesResponseDataSmall {
  be64 first;
  be32 original_request_psn;

  using ListField = Field<&SesResponseDataSmall::first, 63, 62>;
  using Opcode = Field<&SesResponseDataSmall::first, 61, 56>;
  using Version = Field<&SesResponseDataSmall::first, 55, 54>;
  using ReturnCodeField = Field<&SesResponseDataSmall::first, 53, 48>;
  using PayloadLength = Field<&SesResponseDataSmall::first, 45, 32>;
  using JobIdField = Field<&SesResponseDataSmall::first, 23, 0>;
};

static_assert(sizeof(SesCommon) == 12 && alignof(SesCommon) == 1);
static_assert(sizeof(SesStandard) == 44 && alignof(SesStandard) == 1);
static_assert(sizeof(SesMedium) == 32 && alignof(SesMedium) == 1);
static_assert(sizeof(SesSmall) == 20 && alignof(SesSmall) == 1);
static_assert(sizeof(SesAtomic) == 4 && alignof(SesAtomic) == 1);
static_assert(sizeof(SesCompareSwap) == 36 && alignof(SesCompareSwap) == 1);
static_assert(sizeof(SesRendezvous) == 24 && alignof(SesRendezvous) == 1);
static_assert(sizeof(SesResponse) == 12 && alignof(SesResponse) == 1);
static_assert(sizeof(SesResponseData) == 20 && alignof(SesResponseData) == 1);
static_assert(sizeof(SesResponseDataSmall) == 12 && alignof(SesResponseDataSmall) == 1);

// Bytes of the SES header that next_hdr announces, without extension; 0 for None and reserved.
constexpr std::size_t ses_header_bytes(NextHdr next_hdr) {
  switch (next_hdr) {
    case NextHdr::RequestSmall:
      return sizeof(SesSmall);
    case NextHdr::RequestMedium:
      return sizeof(SesMedium);
    case NextHdr::RequestStd:
      return sizeof(SesStandard);
    case NextHdr::Response:
      return sizeof(SesResponse);
    case NextHdr::ResponseData:
      return sizeof(SesResponseData);
    case NextHdr::ResponseDataSmall:
      return sizeof(SesResponseDataSmall);
    default:
      return 0;
  }
}
constexpr bool is_request(NextHdr next_hdr) {
  return next_hdr >= NextHdr::RequestSmall && next_hdr <= NextHdr::RequestStd;
}
constexpr bool is_response(NextHdr next_hdr) {
  return next_hdr >= NextHdr::Response && next_hdr <= NextHdr::ResponseDataSmall;
}

// ---- as values --------------------------------------------------------------------------------

// Operand of compare-and-swap: a 128-bit integer; narrower ones fill `low` from the right.
struct AtomicOperand {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const AtomicOperand&, const AtomicOperand&) = default;
};

// Extension of the atomic opcodes (WIRE 3.5). The values count only if is_compare_swap(op).
struct AtomicExtension {
  AmoOp op = AmoOp::Min;
  AmoDatatype datatype = AmoDatatype::Int8;
  std::uint8_t semantic_control = 0;
  AtomicOperand compare_value{};  // mask for Mswap
  AtomicOperand swap_value{};
  friend bool operator==(const AtomicExtension&, const AtomicExtension&) = default;
};

// Extension of RENDEZVOUS_SEND and RENDEZVOUS_TSEND (WIRE 3.5).
struct RendezvousExtension {
  std::uint32_t eager_length = 0;
  RiGeneration read_ri_generation{};
  PidOnFep read_pid_on_fep{};
  ResourceIndex read_resource_index{};
  std::uint64_t read_offset = 0;
  Rkey read_memory_key{};
  friend bool operator==(const RendezvousExtension&, const RendezvousExtension&) = default;
};

// A request of any of the three forms. Fields that a form does not carry are 0 after decode and are
// not written by encode: medium has no message id, and either header_data (hd) or buffer_offset;
// small has neither message id, initiator, match_bits nor header data.
struct SesRequest {
  // Clears member by member: every packet has one, and g++ clears a whole of this size by an
  // instruction that the processor takes longer to begin than to carry out.
  SesRequest() {}

  NextHdr next_hdr = NextHdr::RequestStd;  // RequestSmall, RequestMedium or RequestStd
  SesOpcode opcode = SesOpcode::NoOp;      // 6 bits; unknown ones are decoded, not refused
  std::uint8_t version = 0;                // 2 bits
  bool dc = false;
  bool ie = false;
  bool rel = false;
  bool hd = false;
  bool eom = true;
  bool som = true;
  MsgId message_id{};
  RiGeneration ri_generation{};
  JobId job_id{};
  PidOnFep pid_on_fep{};
  ResourceIndex resource_index{};
  std::uint64_t buffer_offset = 0;
  InitiatorId initiator{};
  std::uint64_t match_bits = 0;  // tag, or memory key
  std::uint64_t header_data = 0;
  // Standard with SOM = 0: the field, also where the packet has no payload (READ: the length of
  // the piece asked for). Otherwise, after decode, the length of `payload`; encode ignores it.
  std::uint32_t payload_length = 0;  // 14 bits
  std::uint32_t message_offset = 0;  // standard with SOM = 0, else 0
  std::uint32_t request_length = 0;  // 14 bits in medium and small

  AtomicExtension atomic{};          // if has_atomic_extension(opcode)
  RendezvousExtension rendezvous{};  // if has_rendezvous_extension(opcode)

  std::size_t header_bytes = 0;          // set by decode: header and extension
  std::span<const std::byte> payload{};  // set by decode: a view of what was decoded

  // Restart tokens (WIRE 3.6) share a field with buffer_offset or, in DEFERRABLE_RTR, match_bits.
  std::uint32_t initiator_restart_token() const {
    return static_cast<std::uint32_t>(tokens() >> 32);
  }
  std::uint32_t target_restart_token() const { return static_cast<std::uint32_t>(tokens()); }
  void set_restart_tokens(std::uint32_t initiator_token, std::uint32_t target_token) {
    const std::uint64_t both = std::uint64_t{initiator_token} << 32 | target_token;
    (opcode == SesOpcode::DeferrableRtr ? match_bits : buffer_offset) = both;
  }

  // Header and extension length of this request as encode would write it.
  std::size_t encoded_bytes() const;
  // Writes header and extension to `out` (kMaxSesHeaderBytes bytes suffice), not the payload.
  // Values too wide for their field are cut to the low-order bits. Returns the bytes written.
  std::size_t encode(std::byte* out) const;
  // `bytes`: from the SES header to the end of the packet without CRC or ICV; `request`: as new, it
  // is not cleared again. False, leaving `request` unspecified, when next_hdr is no request, the
  // header, extension or payload is cut short, or a medium or small request lacks SOM or EOM.
  // Excess bytes are ignored (WIRE 3.8).
  static bool decode(NextHdr next_hdr, std::span<const std::byte> bytes, SesRequest& request);

 private:
  std::uint64_t tokens() const {
    return opcode == SesOpcode::DeferrableRtr ? match_bits : buffer_offset;
  }
};

// The header of the packets of a message behind its first one, which differ in little (WIRE 3.2):
// written once, then copied.
class LaterHeader {
 public:
  LaterHeader() {}  // leaves the bytes as they are
  // Prepares the header as encode writes it for `request`, which has the standard form and no
  // extension. The fields that differ from packet to packet are arguments of encode() below.
  void set(const SesRequest& request);
  // The header of such a packet. Returns the bytes written, as encode.
  std::size_t encode(std::byte* out, bool eom, std::uint32_t payload_length,
                     std::uint32_t message_offset) const;

 private:
  std::array<std::byte, sizeof(SesStandard)> bytes_;
};

// A response of any of the three forms; fields that a form does not carry are 0 after decode and
// are not written by encode.
struct SesResponseHeader {
  NextHdr next_hdr = NextHdr::Response;  // Response, ResponseData or ResponseDataSmall
  List list = List::Expected;            // 2 bits
  ResponseOpcode opcode = ResponseOpcode::DefaultResponse;  // 6 bits
  std::uint8_t version = 0;                                 // 2 bits
  ReturnCode return_code = ReturnCode::Null;                // 6 bits
  JobId job_id{};
  MsgId message_id{};                 // Response: the request's
  RiGeneration ri_generation{};       // Response: on BadGeneration the right one
  MsgId response_message_id{};        // ResponseData: given by the target
  MsgId read_request_message_id{};    // ResponseData: of the READ or fetching atomic
  std::uint32_t payload_length = 0;   // ResponseData, ResponseDataSmall: 14 bits
  std::uint32_t modified_length = 0;  // Response, ResponseData
  std::uint32_t message_offset = 0;   // ResponseData
  Psn original_request_psn{};         // ResponseDataSmall

  std::size_t header_bytes = 0;          // set by decode
  std::span<const std::byte> payload{};  // set by decode: a view of what was decoded

  // Writes the header to `out` (kMaxSesHeaderBytes bytes suffice), not the payload; returns the
  // bytes written.
  std::size_t encode(std::byte* out) const;
  // As SesRequest::decode; false when next_hdr is no response or the header or payload is cut
  // short.
  static bool decode(NextHdr next_hdr, std::span<const std::byte> bytes,
                     SesResponseHeader& response);
};

}  // namespace uet::wire
