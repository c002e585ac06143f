// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/memory_release.h"

#include "ses/read_answers.h"
#include "ses/reads.h"
#include "ses/request_header.h"

namespace uet::ses {
namespace {

// The packets of a message. The peer may have had each of them already, or gets the NO_OP.
class RequestEditor final : public pds::PacketEditor {
 public:
  explicit RequestEditor(const TxMessage& message) : message_(message) {}

  bool edit(Packet& packet, pds::PreparedPacket& prepared) override {
    if (packet.payload_length() == 0 || is_copy(packet.payload[0].data)) return false;
    packet.payload = {};
    packet.drop_appended();
    append_no_op_header(packet, message_);
    prepared = {.next_hdr = wire::NextHdr::RequestStd, .tag = kNoPiece};
    emptied_ = true;
    return true;
  }
  bool emptied() const { return emptied_; }

 private:
  bool is_copy(const std::byte* data) const {
    const Piece* piece = message_.gathered;
    while (piece != nullptr && piece->data != data) piece = piece->next;
    return piece != nullptr;
  }

  const TxMessage& message_;
  bool emptied_ = false;
};

// Of an operation that may have to be ended at its target. UUD and RUDI leave nothing there.
bool needs_end(const TxMessage& message, bool emptied) {
  if (message.mode == DeliveryMode::Uud || message.mode == DeliveryMode::Rudi) return false;
  if (message.ends_message) return false;
  const bool several = message.packets_made > 1;
  return !message.ended || (emptied && several) || message.readable || message.restart_token != 0;
}

}  // namespace

bool release_memory(TxMessage& message, pds::Delivery& delivery) {
  while (!message.answers.empty()) ReadAnswers::refuse(message.answers.front(), delivery);
  RequestEditor editor(message);
  delivery.edit_packets(message, editor);
  message.iov_count = 0;
  if (editor.emptied()) message.offset = 0;  // where MSG_ERROR says that the message stopped
  return needs_end(message, editor.emptied());
}

}  // namespace uet::ses
