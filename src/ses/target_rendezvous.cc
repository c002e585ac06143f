// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads of a message that is being sent: what its target has not kept (SES-57). They name a message
// of the initiator instead of a region and are answered out of the sender's memory, without a copy.
#include <algorithm>

#include "uet/ses/initiator.h"
#include "uet/ses/payload.h"
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
  TxMessage* source =
      initiator_.readable().find(memory_key(request, regions_), request.job_id, view.source);
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
  if (asked.length > 0 && !answer_from(*source, view, request, asked, now)) {
    return nack_response(NackCode::NoResource);
  }
  const bool reaches_end = begin + length == source->length;
  initiator_.read_served(*source, reaches_end, asked.length, request.request_length, now);
  return default_response(request, request.request_length);
}

bool Target::answer_from(TxMessage& source, const View& view, const Request& request,
                         const ReadPiece& asked, Time now) {
  ReadAnswer* answer = take_answer(host_hash(view.source.ip));
  if (answer == nullptr) return false;
  const std::uint64_t offset = request.buffer_offset + asked.offset;
  if (!point_at(source, offset, asked.length, answer->payload)) {
    answer->piece = pieces_.take(asked.length);
    if (answer->piece == nullptr) {
      give_back_answer(*answer);
      return false;
    }
    gather(source.slices(), offset, asked.length, answer->piece->data);
    answer->payload = {Slice{answer->piece->data, asked.length}, Slice{}};
  }
  answer->source = &source;
  source.answers.push_back(*answer);
  answer->header = answer_header(view, request, asked);
  answer->backlog_bytes = asked.length;
  answering_.push_back(*answer);
  if (delivery_->send_on(view.pdc, *answer, now)) return true;
  answer_done(*answer);
  return false;
}

}  // namespace uet::ses
