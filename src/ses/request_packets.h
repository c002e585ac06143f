// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cuts operations into packets, one at a time, when PDS asks for them.
#pragma once

#include <cstdint>

#include "ses/message.h"
#include "ses/reads.h"
#include "uet/base/packet.h"
#include "uet/pds/api.h"

namespace uet::ses {

class RequestPackets {
 public:
  RequestPackets(std::uint32_t payload_mtu, Reads& reads)
      : payload_mtu_(payload_mtu), reads_(reads) {}

  // As pds::MessageOwner::next_packet. A failed message, and one that its target will read or has
  // put off, makes one more packet, which ends it.
  pds::PacketPlan next(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);

 private:
  pds::PacketPlan next_read(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  pds::PacketPlan next_atomic(TxMessage& message, Packet& packet, pds::PreparedPacket& prepared);
  static pds::PacketPlan end(TxMessage& message, wire::SesOpcode opcode, Packet& packet,
                             pds::PreparedPacket& prepared);

  const std::uint32_t payload_mtu_;
  Reads& reads_;
};

}  // namespace uet::ses
