// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SES headers between bytes and values (WIRE 3), and the payload length rules (WIRE 3.8).
#include "uet/wire/ses.h"

#include <algorithm>

namespace uet::wire {

namespace {

void encode_common(const SesRequest& request, SesCommon& raw) {
  using C = SesCommon;
  const bool hd = request.hd && request.next_hdr != NextHdr::RequestSmall;
  raw.first =
      C::Opcode::bits(to_underlying(request.opcode)) | C::Version::bits(request.version) |
      C::Dc::bits(request.dc) | C::Ie::bits(request.ie) | C::Rel::bits(request.rel) |
      C::Hd::bits(hd) | C::Eom::bits(request.eom) | C::Som::bits(request.som) |
      (request.next_hdr == NextHdr::RequestStd ? C::MessageId::bits(request.message_id.value)
                                               : C::RequestLength::bits(request.request_length)) |
      C::RiGenerationField::bits(request.ri_generation.value) |
      C::JobIdField::bits(request.job_id.value);
  raw.second = C::PidOnFepField::bits(request.pid_on_fep.value) |
               C::ResourceIndexField::bits(request.resource_index.value);
}

void decode_common(const SesCommon& raw, SesRequest& request) {
  using C = SesCommon;
  request.opcode = static_cast<SesOpcode>(C::Opcode::get(raw));
  request.version = static_cast<std::uint8_t>(C::Version::get(raw));
  request.dc = C::Dc::get(raw) != 0;
  request.ie = C::Ie::get(raw) != 0;
  request.rel = C::Rel::get(raw) != 0;
  request.hd = C::Hd::get(raw) != 0;
  request.eom = C::Eom::get(raw) != 0;
  request.som = C::Som::get(raw) != 0;
  request.ri_generation = RiGeneration{static_cast<std::uint8_t>(C::RiGenerationField::get(raw))};
  request.job_id = JobId{static_cast<std::uint32_t>(C::JobIdField::get(raw))};
  request.pid_on_fep = PidOnFep{static_cast<std::uint16_t>(C::PidOnFepField::get(raw))};
  request.resource_index =
      ResourceIndex{static_cast<std::uint16_t>(C::ResourceIndexField::get(raw))};
}

// The header without extension; `bytes` are long enough.
void decode_form(std::span<const std::byte> bytes, SesRequest& request) {
  const auto& common = load<SesCommon>(bytes);
  decode_common(common, request);
  if (request.next_hdr == NextHdr::RequestStd) {
    const auto& raw = load<SesStandard>(bytes);
    request.message_id = MsgId{static_cast<std::uint16_t>(SesCommon::MessageId::get(common))};
    request.buffer_offset = raw.buffer_offset;
    request.initiator = InitiatorId{raw.initiator};
    request.match_bits = raw.match_bits;
    request.request_length = raw.request_length;
    if (request.som) {
      request.header_data = raw.header_data;
    } else {
      request.payload_length = static_cast<std::uint32_t>(SesStandard::PayloadLength::get(raw));
      request.message_offset = static_cast<std::uint32_t>(SesStandard::MessageOffset::get(raw));
    }
    return;
  }
  request.request_length = static_cast<std::uint32_t>(SesCommon::RequestLength::get(common));
  if (request.next_hdr == NextHdr::RequestMedium) {
    const auto& raw = load<SesMedium>(bytes);
    (request.hd ? request.header_data : request.buffer_offset) = raw.header_data;
    request.initiator = InitiatorId{raw.initiator};
    request.match_bits = raw.match_bits;
  } else {
    request.hd = false;
    request.buffer_offset = load<SesSmall>(bytes).buffer_offset;
  }
}

std::size_t encode_atomic(std::byte* out, const AtomicExtension& atomic) {
  const SesAtomic raw{.atomic_opcode = to_underlying(atomic.op),
                      .atomic_datatype = to_underlying(atomic.datatype),
                      .semantic_control = atomic.semantic_control,
                      .reserved = 0};
  if (!is_compare_swap(atomic.op)) return store(out, raw);
  return store(out, SesCompareSwap{.atomic = raw,
                                   .compare_high = atomic.compare_value.high,
                                   .compare_low = atomic.compare_value.low,
                                   .swap_high = atomic.swap_value.high,
                                   .swap_low = atomic.swap_value.low});
}

// The decoders of extensions answer the bytes used; 0 = cut short.
std::size_t decode_atomic(std::span<const std::byte> bytes, AtomicExtension& atomic) {
  if (bytes.size() < sizeof(SesAtomic)) return 0;
  const auto& raw = load<SesAtomic>(bytes);
  atomic.op = static_cast<AmoOp>(raw.atomic_opcode);
  atomic.datatype = static_cast<AmoDatatype>(raw.atomic_datatype);
  atomic.semantic_control = raw.semantic_control;
  if (!is_compare_swap(atomic.op)) return sizeof raw;
  if (bytes.size() < sizeof(SesCompareSwap)) return 0;
  const auto& swap = load<SesCompareSwap>(bytes);
  atomic.compare_value = {.high = swap.compare_high, .low = swap.compare_low};
  atomic.swap_value = {.high = swap.swap_high, .low = swap.swap_low};
  return sizeof swap;
}

std::size_t encode_rendezvous(std::byte* out, const RendezvousExtension& rendezvous) {
  SesRendezvous raw{.eager_length = rendezvous.eager_length,
                    .read_context = {},
                    .read_offset = rendezvous.read_offset,
                    .read_memory_key = rendezvous.read_memory_key.value};
  SesRendezvous::ReadRiGeneration::set(raw, rendezvous.read_ri_generation.value);
  SesRendezvous::ReadPidOnFep::set(raw, rendezvous.read_pid_on_fep.value);
  SesRendezvous::ReadResourceIndex::set(raw, rendezvous.read_resource_index.value);
  return store(out, raw);
}

std::size_t decode_rendezvous(std::span<const std::byte> bytes, RendezvousExtension& rendezvous) {
  if (bytes.size() < sizeof(SesRendezvous)) return 0;
  const auto& raw = load<SesRendezvous>(bytes);
  rendezvous.eager_length = raw.eager_length;
  rendezvous.read_ri_generation =
      RiGeneration{static_cast<std::uint8_t>(SesRendezvous::ReadRiGeneration::get(raw))};
  rendezvous.read_pid_on_fep =
      PidOnFep{static_cast<std::uint16_t>(SesRendezvous::ReadPidOnFep::get(raw))};
  rendezvous.read_resource_index =
      ResourceIndex{static_cast<std::uint16_t>(SesRendezvous::ReadResourceIndex::get(raw))};
  rendezvous.read_offset = raw.read_offset;
  rendezvous.read_memory_key = Rkey{raw.read_memory_key};
  return sizeof raw;
}

bool carries_data(const SesRequest& request) {
  switch (request.opcode) {
    case SesOpcode::NoOp:
    case SesOpcode::Read:
    case SesOpcode::DeferrableRtr:
    case SesOpcode::MsgError:
      return false;
    default:
      return !(has_atomic_extension(request.opcode) && is_compare_swap(request.atomic.op));
  }
}

// Payload length by WIRE 3.8; `left`: bytes after header and extension. May exceed `left`.
std::size_t payload_length_of(const SesRequest& request, std::size_t left) {
  if (!carries_data(request)) return 0;
  if (request.next_hdr != NextHdr::RequestStd) return request.request_length;
  if (!request.som) return request.payload_length;
  const std::size_t whole = has_rendezvous_extension(request.opcode)
                                ? request.rendezvous.eager_length
                                : request.request_length;
  return std::min(whole, left);
}

// List, opcode, version, return code and JobID lie alike in all responses.
template <class Raw>
std::uint64_t result_bits(const SesResponseHeader& response) {
  return Raw::ListField::bits(to_underlying(response.list)) |
         Raw::Opcode::bits(to_underlying(response.opcode)) | Raw::Version::bits(response.version) |
         Raw::ReturnCodeField::bits(to_underlying(response.return_code)) |
         Raw::JobIdField::bits(response.job_id.value);
}

template <class Raw>
void decode_result(const Raw& raw, SesResponseHeader& response) {
  response.list = static_cast<List>(Raw::ListField::get(raw));
  response.opcode = static_cast<ResponseOpcode>(Raw::Opcode::get(raw));
  response.version = static_cast<std::uint8_t>(Raw::Version::get(raw));
  response.return_code = static_cast<ReturnCode>(Raw::ReturnCodeField::get(raw));
  response.job_id = JobId{static_cast<std::uint32_t>(Raw::JobIdField::get(raw))};
}

}  // namespace

std::size_t SesRequest::encoded_bytes() const {
  std::size_t bytes = ses_header_bytes(next_hdr);
  if (has_atomic_extension(opcode)) {
    bytes += is_compare_swap(atomic.op) ? sizeof(SesCompareSwap) : sizeof(SesAtomic);
  }
  if (has_rendezvous_extension(opcode)) bytes += sizeof(SesRendezvous);
  return bytes;
}

std::size_t SesRequest::encode(std::byte* out) const {
  encode_common(*this, overlay<SesCommon>(out));
  if (next_hdr == NextHdr::RequestStd) {
    auto& raw = overlay<SesStandard>(out);
    raw.buffer_offset = buffer_offset;
    raw.initiator = initiator.value;
    raw.match_bits = match_bits;
    raw.header_data = som ? header_data
                          : SesStandard::PayloadLength::bits(payload_length) |
                                SesStandard::MessageOffset::bits(message_offset);
    raw.request_length = request_length;
  } else if (next_hdr == NextHdr::RequestMedium) {
    auto& raw = overlay<SesMedium>(out);
    raw.header_data = hd ? header_data : buffer_offset;
    raw.initiator = initiator.value;
    raw.match_bits = match_bits;
  } else {
    overlay<SesSmall>(out).buffer_offset = buffer_offset;
  }
  std::size_t bytes = ses_header_bytes(next_hdr);
  if (has_atomic_extension(opcode)) bytes += encode_atomic(out + bytes, atomic);
  if (has_rendezvous_extension(opcode)) bytes += encode_rendezvous(out + bytes, rendezvous);
  return bytes;
}

void LaterHeader::set(const SesRequest& request) {
  SesRequest later = request;
  later.som = later.eom = later.hd = false;
  later.encode(bytes_.data());
}

std::size_t LaterHeader::encode(std::byte* out, bool eom, std::uint32_t payload_length,
                                std::uint32_t message_offset) const {
  std::memcpy(out, bytes_.data(), bytes_.size());
  auto& raw = overlay<SesStandard>(out);
  raw.common.first = load<SesCommon>(bytes_).first | SesCommon::Eom::bits(eom);
  raw.header_data = SesStandard::PayloadLength::bits(payload_length) |
                    SesStandard::MessageOffset::bits(message_offset);
  return sizeof raw;
}

bool SesRequest::decode(NextHdr next_hdr, std::span<const std::byte> bytes, SesRequest& request) {
  if (!is_request(next_hdr) || bytes.size() < ses_header_bytes(next_hdr)) return false;
  request.next_hdr = next_hdr;
  decode_form(bytes, request);
  const bool one_packet = request.som && request.eom;
  if (next_hdr != NextHdr::RequestStd && !one_packet) return false;

  request.header_bytes = ses_header_bytes(next_hdr);
  auto rest = bytes.subspan(request.header_bytes);
  std::size_t extension_bytes = 0;
  if (has_atomic_extension(request.opcode)) {
    extension_bytes = decode_atomic(rest, request.atomic);
    if (extension_bytes == 0) return false;
  } else if (has_rendezvous_extension(request.opcode)) {
    extension_bytes = decode_rendezvous(rest, request.rendezvous);
    if (extension_bytes == 0) return false;
  }
  request.header_bytes += extension_bytes;
  rest = rest.subspan(extension_bytes);

  const std::size_t length = payload_length_of(request, rest.size());
  if (length > rest.size()) return false;
  request.payload = rest.first(length);
  const bool has_length_field = next_hdr == NextHdr::RequestStd && !request.som;
  if (!has_length_field) request.payload_length = static_cast<std::uint32_t>(length);
  return true;
}

std::size_t SesResponseHeader::encode(std::byte* out) const {
  if (next_hdr == NextHdr::Response) {
    using R = SesResponse;
    auto& raw = overlay<SesResponse>(out);
    raw.first = result_bits<R>(*this) | R::MessageId::bits(message_id.value) |
                R::RiGenerationField::bits(ri_generation.value);
    raw.modified_length = modified_length;
    return sizeof raw;
  }
  if (next_hdr == NextHdr::ResponseData) {
    using R = SesResponseData;
    auto& raw = overlay<SesResponseData>(out);
    raw.first = result_bits<R>(*this) | R::ResponseMessageId::bits(response_message_id.value);
    raw.read_request_message_id = read_request_message_id.value;
    raw.payload_length_word = R::PayloadLength::bits(static_cast<std::uint16_t>(payload_length));
    raw.modified_length = modified_length;
    raw.message_offset = message_offset;
    return sizeof raw;
  }
  using R = SesResponseDataSmall;
  auto& raw = overlay<SesResponseDataSmall>(out);
  raw.first = result_bits<R>(*this) | R::PayloadLength::bits(payload_length);
  raw.original_request_psn = original_request_psn.value;
  return sizeof raw;
}

bool SesResponseHeader::decode(NextHdr next_hdr, std::span<const std::byte> bytes,
                               SesResponseHeader& response) {
  if (!is_response(next_hdr) || bytes.size() < ses_header_bytes(next_hdr)) return false;
  response = {};
  response.next_hdr = next_hdr;
  response.header_bytes = ses_header_bytes(next_hdr);
  if (next_hdr == NextHdr::Response) {
    const auto& raw = load<SesResponse>(bytes);
    decode_result(raw, response);
    response.message_id = MsgId{static_cast<std::uint16_t>(SesResponse::MessageId::get(raw))};
    response.ri_generation =
        RiGeneration{static_cast<std::uint8_t>(SesResponse::RiGenerationField::get(raw))};
    response.modified_length = raw.modified_length;
  } else if (next_hdr == NextHdr::ResponseData) {
    const auto& raw = load<SesResponseData>(bytes);
    decode_result(raw, response);
    response.response_message_id =
        MsgId{static_cast<std::uint16_t>(SesResponseData::ResponseMessageId::get(raw))};
    response.read_request_message_id = MsgId{raw.read_request_message_id};
    response.payload_length = SesResponseData::PayloadLength::get(raw);
    response.modified_length = raw.modified_length;
    response.message_offset = raw.message_offset;
  } else {
    const auto& raw = load<SesResponseDataSmall>(bytes);
    decode_result(raw, response);
    response.payload_length =
        static_cast<std::uint32_t>(SesResponseDataSmall::PayloadLength::get(raw));
    response.original_request_psn = Psn{raw.original_request_psn};
  }
  const auto rest = bytes.subspan(response.header_bytes);
  if (response.payload_length > rest.size()) return false;
  response.payload = rest.first(response.payload_length);
  return true;
}

}  // namespace uet::wire
