// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/message_reads.h"

#include "ses/rendezvous.h"
#include "ses/return_code.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;

bool MessageReads::is_meant(const wire::SesRequest& request) const {
  return request.opcode == wire::SesOpcode::Read && is_message_key(checks_.key(request));
}

// In the order of SES-116. No context is looked up: one that only transmits is not in the table.
// The key says enough.
Response MessageReads::serve(const pds::RequestView& view, const wire::SesRequest& request,
                             Time now) {
  const ReadPiece asked = read_piece(request, payload_mtu_);
  if (asked.code != ReturnCode::Ok) return errors_.answer(request, asked.code);
  TxMessage* source = initiator_.readable().find(checks_.key(request), request.job_id, view.source);
  if (request.ie) {  // the reader cannot deliver the message
    if (source != nullptr) {
      source->fail(ReturnCode::Dropped);
      initiator_.finish_if_done(*source);
    }
    return errors_.answer(request, ReturnCode::InitiatorErr);
  }
  if (source == nullptr) return errors_.answer(request, ReturnCode::BadMkey);
  const std::uint64_t begin = request.buffer_offset;
  const std::uint64_t length = request.request_length;
  if (begin > source->length || length > source->length - begin) {  // SES-118
    if (is_outsized(*source)) {  // the reader does not know SES-164, and will not find the end
      source->fail(ReturnCode::BadAddr);
      initiator_.finish_if_done(*source);
    }
    return errors_.answer(request, ReturnCode::BadAddr);
  }
  if (asked.length > 0 && !answers_.answer_from(*source, view, request, asked, now)) {
    return nack_response(NackCode::NoResource);
  }
  const bool reaches_end = begin + length == source->length;
  initiator_.readable().served(*source, reaches_end, asked.length, request.request_length, now);
  initiator_.staging().resume(*source);  // of its bytes no more are sent
  initiator_.finish_if_done(*source);
  return default_response(request, request.request_length);
}

void MessageReads::answer_done(ReadAnswer& answer) {
  TxMessage* source = answers_.done(answer);
  if (source != nullptr) initiator_.finish_if_done(*source);
}

}  // namespace uet::ses
