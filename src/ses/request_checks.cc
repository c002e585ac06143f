// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/request_checks.h"

#include "ses/atomic.h"

namespace uet::ses {

using wire::ReturnCode;
using wire::SesOpcode;

bool RequestChecks::decode(const pds::RequestView& view, Request& request) const {
  if (!Request::decode(view.next_hdr, view.bytes, request) || request.version != 0) return false;
  const bool one_packet = request.som && request.request_length <= payload_mtu_;
  if (request.opcode == SesOpcode::Read && one_packet) request.eom = true;
  return true;
}

// A small RMA request has its key where others have the resource index (SES-5): it comes through
// the context that its region is bound to, or any of the process.
RequestChecks::Addressed RequestChecks::address(const Request& request) const {
  ri::RiKey key{request.rel, request.job_id, request.pid_on_fep, request.resource_index};
  bool by_process = request.next_hdr == wire::NextHdr::RequestSmall && !is_send(request.opcode);
  if (by_process) {
    const ri::MemoryRegion* region = regions_.find(memory_key(request, regions_));
    by_process = region == nullptr || !region->ri;
    if (!by_process) key.resource_index = *region->ri;
  }
  const ri::RiLookup found = by_process ? contexts_.find_process(key) : contexts_.find(key);
  return {check_address(found.verdict), static_cast<Context*>(found.context)};
}

// Step 13 comes before 11, so that a refused packet takes no receive.
ReturnCode RequestChecks::send(const Request& request, const Context& context) const {
  if (ends_eager_part(request)) return ReturnCode::OpViolation;  // of no message that is known
  const ReturnCode code = check_extent(request, payload_mtu_);   // 13
  return code != ReturnCode::Ok ? code : check_job(context.config, request);  // 11b
}

RequestChecks::Permission RequestChecks::write(const Request& request,
                                               const Context& context) const {
  const ri::MrAccess memory = access(request, context, ri::kRemoteWrite, request.request_length);
  ReturnCode code = check_access(memory.verdict);                          // 12
  if (code == ReturnCode::Ok) code = check_extent(request, payload_mtu_);  // 13
  if (code == ReturnCode::Ok) code = check_data(context.config, request);  // 14
  return {code, memory};
}

RequestChecks::Permission RequestChecks::read(const Request& request,
                                              const Context& context) const {
  const ri::MrAccess memory = access(request, context, ri::kRemoteRead, request.request_length);
  return {check_access(memory.verdict), memory};  // 12
}

RequestChecks::Permission RequestChecks::atomic(const Request& request, const Context& context,
                                                const AtomicExtent& extent) const {
  constexpr std::uint8_t kBoth = ri::kRemoteRead | ri::kRemoteWrite;  // for any (SES-91)
  const ri::MrAccess memory = access(request, context, kBoth, extent.length);
  ReturnCode code = check_access(memory.verdict);                          // 12
  if (code == ReturnCode::Ok) code = check_extent(request, payload_mtu_);  // 13
  // An atomic is one packet, and brings no data for a completion (SES-90).
  if (code == ReturnCode::Ok && (!is_single(request) || request.hd)) code = ReturnCode::OpViolation;
  if (code == ReturnCode::Ok) code = extent.code;  // 16
  const bool executes = memory.device == nullptr || memory.device->executes_atomics();
  if (code == ReturnCode::Ok && !executes) code = ReturnCode::AmoUnsupportedOp;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.address);
  if (code == ReturnCode::Ok && address % element_alignment(request.atomic.datatype) != 0) {
    code = ReturnCode::AmoUnaligned;
  }
  return {code, memory};
}

ReturnCode RequestChecks::later(const Request& request, const RxMessage& message) const {
  ReturnCode code = check_same_message(message, request);  // 15
  if (code == ReturnCode::Ok) code = check_first_packet(request, payload_mtu_);
  if (code == ReturnCode::Ok && request.ie) code = ReturnCode::InitiatorErr;
  if (code == ReturnCode::Ok) code = check_extent(request, payload_mtu_);
  if (code == ReturnCode::Ok && message.kind == Kind::Write) {
    code = check_data(message.context->config, request);
  }
  return code;
}

RequestChecks::Permission RequestChecks::rudi(const Request& request,
                                              const Context& context) const {
  const bool is_read = request.opcode == SesOpcode::Read;
  ReturnCode code = check_context(context, request, payload_mtu_);
  if (code != ReturnCode::Ok) return {code, {}};
  const std::uint8_t right = is_read ? ri::kRemoteRead : ri::kRemoteWrite;
  const ri::MrAccess memory = access(request, context, right, request.request_length);
  code = check_access(memory.verdict);
  const bool may = code == ReturnCode::Ok || memory.verdict == ri::MrVerdict::OutOfBounds;
  if (may && !is_idempotent_safe(key(request))) code = ReturnCode::OpViolation;  // 12d
  if (code == ReturnCode::Ok && !is_read) {
    code = check_extent(request, payload_mtu_);
    if (code == ReturnCode::Ok && request.hd) code = ReturnCode::OpViolation;
  }
  return {code, memory};
}

// SES-115 without generation (step 9). One packet: its payload is the whole message (7, 13).
bool RequestChecks::datagram(const Request& request, const Context& context) const {
  return context.config.mode == DeliveryMode::Uud && context.enabled && !request.ie &&
         request.payload.size() == request.request_length && request.payload.size() <= payload_mtu_;
}

}  // namespace uet::ses
