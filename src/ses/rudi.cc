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
  const RequestChecks::Addressed addressed = checks_.address(request);
  if (code == ReturnCode::Ok) code = addressed.code;
  if (code != ReturnCode::Ok) return error(request, code);
  Context& context = *addressed.context;
  const RequestChecks::Permission allowed = checks_.rudi(request, context);
  if (allowed.code != ReturnCode::Ok) {
    return error(request, allowed.code, context.generation.value);
  }
  if (is_read) return on_read(view, request, context, now);
  if (!request.payload.empty()) {
    allowed.memory.place(host_copy_, request.message_offset, request.payload);
  }
  return default_response(request, request.request_length);
}

}  // namespace uet::ses
