// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The loss of one of several rails of the NIC, as PDCs and RUDI see it (PDS-227). Neither the
// window nor a retry count knows of it.
#pragma once

#include <cstdint>

#include "uet/base/packet.h"
#include "uet/base/time.h"

namespace uet::pds {

class Pdc;

// Did the packet, which has left, take this rail of the NIC? A ring to a process of this host is
// none.
inline bool took_rail(const Packet& packet, std::uint8_t rail) {
  const std::uint16_t connection = packet.way.connection;
  return packet.rail == rail && (connection == 0 || connection == LocalWay::kSeveral);
}

// This rail to the peer of the PDC carries nothing any more: packets that left by it leave again at
// once, and the ACKs of the last time are repeated.
void lose_rail(Pdc& pdc, std::uint8_t rail, Time now);

}  // namespace uet::pds
