// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RUDI (SES-137 to 139): reads and writes that may be executed more than once, each packet by
// itself. The target keeps no state of them and counts none, because it cannot tell a copy.

#include "uet/ses/return_code.h"
#include "uet/ses/target.h"

namespace uet::ses {

using pds::Response;
using wire::ReturnCode;
using wire::SesOpcode;

// The checks of SES-115; nothing is remembered of what is refused.
Response Target::on_rudi(const View& view, Time now) {
  Request request;
  if (!decode(view, request)) return error(Request{}, ReturnCode::Uncor);
  const bool is_read = request.opcode == SesOpcode::Read;
  if (!is_read && request.opcode != SesOpcode::Write) {  // SES-95, SES-137
    return error(request, ReturnCode::UnsupportedOp);
  }
  ReturnCode code = check_opcode(request);
  const Addressed addressed = find_context(request);
  if (code == ReturnCode::Ok) code = addressed.code;
  if (code != ReturnCode::Ok) return error(request, code);
  Context& context = *addressed.context;
  code = check_context(context, request, payload_mtu_);
  if (code != ReturnCode::Ok) return error(request, code, context.generation.value);
  const std::uint8_t right = is_read ? ri::kRemoteRead : ri::kRemoteWrite;
  const ri::MrAccess access = access_memory(request, context, right);
  code = check_access(access.verdict);
  const bool may = code == ReturnCode::Ok || access.verdict == ri::MrVerdict::OutOfBounds;
  if (may && !is_idempotent_safe(memory_key(request, regions_))) {  // 12d
    code = ReturnCode::OpViolation;
  }
  if (code != ReturnCode::Ok) return error(request, code, context.generation.value);
  return is_read ? on_read(view, request, context, now) : on_rudi_write(request, context, access);
}

Response Target::on_rudi_write(const Request& request, const Context& context,
                               const ri::MrAccess& access) {
  ReturnCode code = check_extent(request, payload_mtu_);
  if (code == ReturnCode::Ok && request.hd) code = ReturnCode::OpViolation;
  if (code != ReturnCode::Ok) return error(request, code, context.generation.value);
  if (!request.payload.empty()) {
    access.place(host_copy_, request.message_offset, request.payload);
  }
  return default_response(request, request.request_length);
}

}  // namespace uet::ses
