// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads of a message that is being sent: what its target has not kept (SES-57). They name a message
// of the initiator instead of a region and are answered out of the sender's memory, without a copy.
#include "uet/ses/initiator.h"
#include "uet/ses/return_code.h"
#include "uet/ses/target.h"

namespace uet::ses {

using pds::NackCode;
using pds::Response;
using wire::ReturnCode;

// In the order of SES-116. No context is looked up: one that only transmits is not in the table.
// The key says enough.
Response Target::on_message_read(const View& view, const Request& request, Time now) {
  const ReadPiece asked = read_piece(request, payload_mtu_);
  if (asked.code != ReturnCode::Ok) return error(request, asked.code);
  TxMessage* source = initiator_.readable().find(checks_.key(request), request.job_id, view.source);
  if (request.ie) {  // the reader cannot deliver the message
    if (source != nullptr) initiator_.reader_gave_up(*source);
    return error(request, ReturnCode::InitiatorErr);
  }
  if (source == nullptr) return error(request, ReturnCode::BadMkey);
  const std::uint64_t begin = request.buffer_offset;
  const std::uint64_t length = request.request_length;
  if (begin > source->length || length > source->length - begin) {  // SES-118
    return error(request, ReturnCode::BadAddr);
  }
  if (asked.length > 0 && !answers_.answer_from(*source, view, request, asked, now)) {
    return nack_response(NackCode::NoResource);
  }
  const bool reaches_end = begin + length == source->length;
  initiator_.read_served(*source, reaches_end, asked.length, request.request_length, now);
  return default_response(request, request.request_length);
}

}  // namespace uet::ses
