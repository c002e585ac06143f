// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets without a piece of a message: read requests, atomic requests, and the packet that ends a
// message early. Initiator::next_packet chooses between them.
#pragma once

#include <cstdint>

#include "ses/message.h"
#include "ses/reads.h"
#include "uet/base/packet.h"
#include "uet/pds/api.h"

namespace uet::ses {

// Counts a packet that was made; `last` ends the message.
inline pds::PacketPlan count_packet(TxMessage& message, bool last) {
  ++message.packets_made;
  message.ended = last;
  return last ? pds::PacketPlan::Last : pds::PacketPlan::More;
}

class RequestPackets {
 public:
  RequestPackets(std::uint32_t payload_mtu, Reads& reads)
      : payload_mtu_(payload_mtu), reads_(reads) {}

  // Each as pds::MessageOwner::next_packet.
  pds::PacketPlan read(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  pds::PacketPlan atomic(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  // The last packet of a message of which more would follow.
  static pds::PacketPlan end(TxMessage& message, wire::SesOpcode opcode, Packet& packet,
                             pds::PreparedPacket& prepared);

 private:
  const std::uint32_t payload_mtu_;
  Reads& reads_;
};

}  // namespace uet::ses
