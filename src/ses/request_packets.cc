// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/request_packets.h"

#include "ses/payload.h"
#include "ses/request_header.h"

namespace uet::ses {

// One request packet per payload MTU of the answer (SES-81).
pds::PacketPlan RequestPackets::read(TxMessage& message, Packet& packet,
                                     pds::PreparedPacket& prepared) {
  const std::uint32_t length = piece_length(message, message.offset, payload_mtu_);
  if (!reads_.ask(message, length)) return pds::PacketPlan::NotNow;
  const bool eom = message.offset + length == message.length;
  append_piece_header(packet, message, length, eom);
  prepared.tag = static_cast<std::uint32_t>(message.offset / payload_mtu_);
  message.offset += length;
  return count_packet(message, eom);
}

pds::PacketPlan RequestPackets::atomic(TxMessage& message, Packet& packet,
                                       pds::PreparedPacket& prepared) {
  const auto length = static_cast<std::uint32_t>(message.length);
  const bool returns = returns_data(message.kind);
  if (returns && !reads_.ask(message, length)) return pds::PacketPlan::NotNow;
  append_atomic_header(packet, message);
  if (message.gathered != nullptr) {
    packet.payload = {Slice{message.gathered->data, length}, Slice{}};
  }
  prepared.tag = returns ? 0 : kNoPiece;
  message.offset = message.length;
  return count_packet(message, true);
}

pds::PacketPlan RequestPackets::end(TxMessage& message, wire::SesOpcode opcode, Packet& packet,
                                    pds::PreparedPacket& prepared) {
  append_end_header(packet, message, opcode);
  prepared.tag = kNoPiece;
  return count_packet(message, true);
}

}  // namespace uet::ses
