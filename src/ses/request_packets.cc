// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/request_packets.h"

#include "ses/payload.h"
#include "ses/request_header.h"

namespace uet::ses {
namespace {

pds::PacketPlan made(TxMessage& message, bool last) {
  ++message.packets_made;
  message.ended = last;
  return last ? pds::PacketPlan::Last : pds::PacketPlan::More;
}

}  // namespace

pds::PacketPlan RequestPackets::next(TxMessage& message, Packet& packet,
                                     pds::PreparedPacket& prepared) {
  if (message.failed()) return end(message, wire::SesOpcode::MsgError, packet, prepared);
  if (message.kind == Kind::Read) return next_read(message, packet, prepared);
  if (is_atomic(message.kind)) return next_atomic(message, packet, prepared);
  if (message.awaits_read || message.deferred) {
    return end(message, message.header.opcode, packet, prepared);
  }
  const std::uint32_t length = piece_length(message, message.offset, payload_mtu_);
  const bool eom = message.offset + length == message.eager_bytes();
  append_piece_header(packet, message, length, eom);
  point_next(message, length, packet.payload);
  prepared.next_hdr = message.header.next_hdr;
  prepared.tag = kNoPiece;
  message.offset += length;
  return made(message, eom);
}

// One request packet per payload MTU of the answer (SES-81).
pds::PacketPlan RequestPackets::next_read(TxMessage& message, Packet& packet,
                                          pds::PreparedPacket& prepared) {
  const std::uint32_t length = piece_length(message, message.offset, payload_mtu_);
  if (!reads_.ask(message, length)) return pds::PacketPlan::NotNow;
  const bool eom = message.offset + length == message.length;
  append_piece_header(packet, message, length, eom);
  prepared.tag = static_cast<std::uint32_t>(message.offset / payload_mtu_);
  message.offset += length;
  return made(message, eom);
}

pds::PacketPlan RequestPackets::next_atomic(TxMessage& message, Packet& packet,
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
  return made(message, true);
}

pds::PacketPlan RequestPackets::end(TxMessage& message, wire::SesOpcode opcode, Packet& packet,
                                    pds::PreparedPacket& prepared) {
  append_end_header(packet, message, opcode);
  prepared.tag = kNoPiece;
  return made(message, true);
}

}  // namespace uet::ses
