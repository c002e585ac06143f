// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which of the three request headers a message gets (SES-3 to SES-8), and how it is written.
#include <algorithm>

#include "uet/ses/initiator.h"
#include "uet/ses/return_code.h"

namespace uet::ses {
namespace {

void append(Packet& packet, const wire::SesRequest& header) {
  packet.append_with(wire::kMaxSesHeaderBytes, [&](std::byte* at) { return header.encode(at); });
}

}  // namespace

// Messages of one packet that need neither message id nor both of header_data and buffer_offset
// (SES-3). What brings data back keeps its id, which the data name in the return direction (SES-6).
void Initiator::choose_header(TxMessage& message) const {
  wire::SesRequest& header = message.header;
  if (message.length > std::min(payload_mtu_, wire::kMaxShortLength)) return;  // SES-4
  if (header.opcode == wire::SesOpcode::Send || header.opcode == wire::SesOpcode::TaggedSend) {
    header.next_hdr = wire::NextHdr::RequestMedium;
  } else if (header.opcode != wire::SesOpcode::Write) {
    return;
  } else if (is_optimized(Rkey{header.match_bits}) && !message.has_data) {
    header.next_hdr = wire::NextHdr::RequestSmall;
  } else if (header.buffer_offset == 0 || !message.has_data) {
    header.next_hdr = wire::NextHdr::RequestMedium;
  }
}

void Initiator::append_header(Packet& packet, const wire::SesRequest& header) {
  if (header.opcode == wire::SesOpcode::DatagramSend) {
    wire::SesRequest datagram = header;
    datagram.message_id = {};  // SES-27; the id is for our own use
    return append(packet, datagram);
  }
  if (header.next_hdr == wire::NextHdr::RequestSmall) {  // carries the key there (WIRE 3.4)
    wire::SesRequest small = header;
    small.resource_index = {static_cast<std::uint16_t>(header.match_bits & kMaxResourceIndex)};
    return append(packet, small);
  }
  append(packet, header);
}

// Of the packet that carries `length` bytes of the message, or asks for them, from its offset on.
void Initiator::append_piece_header(Packet& packet, TxMessage& message, std::uint32_t length,
                                    bool eom) {
  wire::SesRequest& header = message.header;
  const auto offset = static_cast<std::uint32_t>(message.offset);
  const bool copied = !wire::has_rendezvous_extension(header.opcode);
  if (copied && offset > 0) {
    return packet.append_with(wire::kMaxSesHeaderBytes, [&](std::byte* at) {
      return message.later_header.encode(at, eom, length, offset);
    });
  }
  header.som = offset == 0;
  header.eom = eom;
  header.hd = header.som && message.has_data;
  header.payload_length = length;
  header.message_offset = offset;
  append_header(packet, header);
  if (copied && !eom) message.later_header.set(header);
}

}  // namespace uet::ses
