// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DATAGRAM_SEND (SES-77): a send of one packet that may get lost. The initiator hears nothing of
// it, so what the target cannot take is dropped; matching is that of every other untagged send.
// Some initiators call it SEND and give it a message id, which says nothing here (WIRE 3.12).
#include "uet/ses/return_code.h"
#include "uet/ses/target.h"

namespace uet::ses {

// False: it is dropped.
bool Target::take_datagram(const View& view, Time now) {
  Request request;
  const bool parsed = Request::decode(view.next_hdr, view.bytes, request) && request.version == 0;
  const bool sends =
      request.opcode == wire::SesOpcode::DatagramSend || request.opcode == wire::SesOpcode::Send;
  if (!parsed || !sends || !is_single(request)) {
    ++counters_.malformed;
    return false;
  }
  const RequestChecks::Addressed addressed = checks_.address(request);  // 3, 4
  if (addressed.code != wire::ReturnCode::Ok) return false;
  Context& context = *addressed.context;
  if (!checks_.datagram(request, context)) return false;
  return !on_send(view, request, context, now).nack;
}

}  // namespace uet::ses
