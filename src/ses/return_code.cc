// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks of SES-115 in groups, and the responses that carry their verdict.
#include "ses/return_code.h"

#include <algorithm>

#include "ses/atomic.h"

namespace uet::ses {

using wire::NextHdr;
using wire::ReturnCode;
using wire::SesOpcode;
using wire::SesRequest;

ReturnCode check_opcode(const SesRequest& request) {
  switch (request.opcode) {
    case SesOpcode::NoOp:
      return ReturnCode::Ok;
    case SesOpcode::TaggedSend:
    case SesOpcode::DeferrableTsend:
    case SesOpcode::DeferrableRtr:
      // A small header has no match bits (SES-3).
      if (request.next_hdr == NextHdr::RequestSmall) return ReturnCode::UnsupportedOp;
      break;
    case SesOpcode::Send:
    case SesOpcode::DeferrableSend:
    case SesOpcode::Write:
    case SesOpcode::Read:
    case SesOpcode::Atomic:
    case SesOpcode::FetchingAtomic:
      break;
    case SesOpcode::RendezvousSend:
    case SesOpcode::RendezvousTsend:
      if (request.next_hdr != NextHdr::RequestStd) return ReturnCode::UnsupportedOp;
      if (request.rendezvous.eager_length > whole_length(request)) return ReturnCode::OpViolation;
      if (whole_length(request) > kMaxOutsizedBytes) return ReturnCode::OpViolation;
      break;
    case SesOpcode::MsgError:
      if (request.next_hdr != NextHdr::RequestStd) return ReturnCode::UnsupportedOp;
      break;
    default:
      return ReturnCode::UnsupportedOp;
  }
  // Message id 0 is not valid (SES-27); only the standard header has one.
  const bool needs_id = request.next_hdr == NextHdr::RequestStd;
  return needs_id && request.message_id.value == 0 ? ReturnCode::OpViolation : ReturnCode::Ok;
}

ReturnCode check_address(ri::RiVerdict verdict) {
  switch (verdict) {
    case ri::RiVerdict::Ok:
      return ReturnCode::Ok;
    case ri::RiVerdict::BadPid:
      return ReturnCode::BadPid;
    case ri::RiVerdict::BadIndex:
      return ReturnCode::BadIndex;
    case ri::RiVerdict::BadJob:
      return ReturnCode::BadJobId;
  }
  return ReturnCode::Undeliverable;
}

ReturnCode check_first_packet(const SesRequest& request, std::uint32_t payload_mtu) {
  if (!request.som) return ReturnCode::Ok;
  const std::size_t payload = request.payload.size();
  // Operands in the header, or none: request_length then stands for no payload (WIRE 3.8).
  const bool needs_none =
      wire::is_compare_swap(request.atomic.op) || request.atomic.op == wire::AmoOp::Read;
  if (wire::has_atomic_extension(request.opcode) && needs_none && payload == 0) {
    return ReturnCode::Ok;
  }
  if (payload == eager_length(request)) return ReturnCode::Ok;
  return payload == payload_mtu && !request.eom ? ReturnCode::Ok : ReturnCode::OpViolation;
}

ReturnCode check_context(const Context& context, const SesRequest& request,
                         std::uint32_t payload_mtu) {
  // Takes datagrams only.
  if (context.config.mode == DeliveryMode::Uud) return ReturnCode::UnsupportedOp;
  if (!context.enabled) return ReturnCode::Disabled;    // 6
  const bool read = request.opcode == SesOpcode::Read;  // in the order of SES-116
  const ReturnCode first =
      read ? read_piece(request, payload_mtu).code : check_first_packet(request, payload_mtu);  // 7
  if (first != ReturnCode::Ok) return first;
  if (read && request.ie) return ReturnCode::InitiatorErr;
  const Generation& generation = context.generation;
  if (!generation.enabled) return ReturnCode::DisabledGen;                          // 8
  if (request.ri_generation != generation.value) return ReturnCode::BadGeneration;  // 9
  return request.ie ? ReturnCode::InitiatorErr : ReturnCode::Ok;                    // 10
}

ReturnCode check_job(const ContextConfig& config, const SesRequest& request) {
  const bool foreign = config.own_job_only && !config.serves(request.job_id);
  return foreign ? ReturnCode::BadJobId : ReturnCode::Ok;
}

ReturnCode check_access(ri::MrVerdict verdict) {
  switch (verdict) {
    case ri::MrVerdict::Ok:
      return ReturnCode::Ok;
    case ri::MrVerdict::BadKey:
    case ri::MrVerdict::BadJob:  // must not show that the key exists (SES-119)
      return ReturnCode::BadMkey;
    case ri::MrVerdict::NoRight:
      return ReturnCode::OpViolation;
    case ri::MrVerdict::OutOfBounds:
      return ReturnCode::BadAddr;
  }
  return ReturnCode::BadMkey;
}

ReturnCode check_extent(const SesRequest& request, std::uint32_t payload_mtu) {
  const std::uint64_t payload = request.payload.size();
  if (payload > payload_mtu) return ReturnCode::OpViolation;
  if (std::uint64_t{request.message_offset} + payload > eager_length(request)) {
    return ReturnCode::OpViolation;
  }
  // A later packet that carries nothing, or begins where the first one does, belongs to no
  // message; if accepted, it would hold a receive state for ever.
  const bool empty = payload == 0 || request.message_offset == 0;
  return !request.som && empty && !ends_eager_part(request) ? ReturnCode::OpViolation
                                                            : ReturnCode::Ok;
}

ReturnCode check_data(const ContextConfig& config, const SesRequest& request) {
  const bool has_data = request.som && request.hd;
  return has_data && !config.remote_cq_data ? ReturnCode::OpViolation : ReturnCode::Ok;
}

ReturnCode check_same_message(const RxMessage& message, const SesRequest& request) {
  const bool same = message.opcode == request.opcode && message.job == request.job_id &&
                    message.initiator == request.initiator &&
                    message.match_bits == request.match_bits &&
                    message.buffer_offset == request.buffer_offset &&
                    message.request_length == whole_length(request);
  if (!same) return ReturnCode::PermViolation;
  if (wire::has_rendezvous_extension(request.opcode) && message.rendezvous != request.rendezvous) {
    return ReturnCode::PermViolation;
  }
  if (ends_eager_part(request)) {
    const bool waits = message.must_read || message.parked;
    const bool asked_for = waits && request.message_offset >= message.received;
    return asked_for ? ReturnCode::Ok : ReturnCode::OpViolation;
  }
  const bool repeats = request.som && message.som_seen;
  const bool overlaps = message.received + request.payload.size() > message.expected;
  return repeats || overlaps ? ReturnCode::OpViolation : ReturnCode::Ok;
}

ReadPiece read_piece(const SesRequest& request, std::uint32_t payload_mtu) {
  ReadPiece piece;
  if (request.som) {
    piece.length = std::min(request.request_length, payload_mtu);  // SES-89
    // One packet for more than we put into one, or several for less: the peer has another payload
    // MTU, and would not take what we send (SES-25).
    const bool whole = piece.length == request.request_length;
    if (request.eom != whole) piece.code = ReturnCode::OpViolation;
    return piece;
  }
  piece.offset = request.message_offset;
  piece.length = request.payload_length;
  const std::uint64_t end = std::uint64_t{piece.offset} + piece.length;
  if (piece.length == 0 || piece.length > payload_mtu || end > request.request_length) {
    piece.code = ReturnCode::OpViolation;
  }
  return piece;
}

AtomicExtent atomic_extent(const SesRequest& request, std::uint32_t payload_mtu) {
  const wire::AtomicExtension& atomic = request.atomic;
  const std::uint32_t element = element_bytes(atomic.datatype);
  const bool compares = wire::is_compare_swap(atomic.op);
  const bool fetches = request.opcode == SesOpcode::FetchingAtomic;
  AtomicExtent extent;
  extent.length = compares ? element : request.request_length;
  const Kind form = compares ? Kind::CompareAtomic : fetches ? Kind::FetchAtomic : Kind::Atomic;
  extent.code = check_atomic(form, atomic.op, atomic.datatype);
  if (extent.code != ReturnCode::Ok) return extent;
  extent.count = extent.length / element;
  const bool whole = extent.length > 0 && extent.length % element == 0;
  if (!whole || extent.length > payload_mtu) extent.code = ReturnCode::AmoUnsupportedSize;
  return extent;
}

Rkey memory_key(const SesRequest& request, const ri::MrTable& regions) {
  if (request.next_hdr != NextHdr::RequestSmall) return Rkey{request.match_bits};
  return regions.optimized_key(request.resource_index.value);
}

namespace {

// SES-164: of an outsized message a response can only state that more than 2^32 - 2 bytes count.
std::uint32_t in_32_bits(std::uint64_t length) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(length, UINT32_MAX));
}

pds::Response response_of(const wire::SesResponseHeader& header) {
  pds::Response response;
  response.next_hdr = NextHdr::Response;
  response.request = {header.message_id, header.job_id};
  response.length = static_cast<std::uint8_t>(header.encode(response.bytes.data()));
  return response;
}

}  // namespace

std::uint64_t modified_length(const Envelope& message, const Placement& placement) {
  if (placement.receive == nullptr) return message.request_length;
  return std::min<std::uint64_t>(message.request_length,
                                 placement.receive->capacity - placement.base);
}

pds::Response explicit_response(const SesRequest& request, ReturnCode code, wire::List list,
                                std::uint64_t modified, RiGeneration generation, bool guaranteed) {
  wire::SesResponseHeader header;
  header.list = list;
  header.opcode = wire::ResponseOpcode::Response;
  header.return_code = code;
  header.message_id = request.message_id;
  header.job_id = request.job_id;
  header.ri_generation = generation;
  header.modified_length = in_32_bits(modified);
  pds::Response response = response_of(header);
  response.guaranteed = guaranteed;
  return response;
}

pds::Response default_response(const SesRequest& request, std::uint64_t modified) {
  wire::SesResponseHeader header;
  header.return_code = ReturnCode::Ok;
  header.message_id = request.message_id;
  header.job_id = request.job_id;
  header.ri_generation = request.ri_generation;
  header.modified_length = in_32_bits(modified);
  return response_of(header);
}

pds::Response default_response(const pds::RequestName& name) {
  wire::SesResponseHeader header;
  header.return_code = ReturnCode::Ok;
  header.message_id = name.message;
  header.job_id = name.job;
  return response_of(header);
}

pds::Response provisional_response(const SesRequest& request, RiGeneration generation) {
  wire::SesResponseHeader header;
  header.opcode = wire::ResponseOpcode::NoResponse;
  header.message_id = request.message_id;
  header.job_id = request.job_id;
  header.ri_generation = generation;
  pds::Response response = response_of(header);
  response.guaranteed = response.provisional = true;
  return response;
}

pds::Response nack_response(pds::NackCode code) {
  pds::Response response;
  response.next_hdr = NextHdr::None;
  response.nack = code;
  return response;
}

}  // namespace uet::ses
