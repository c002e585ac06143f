// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peers that talk nonsense: the fields of ACKs and Credits for congestion control are spoilt on
// arrival (CMS 8.4, 7). The PSNs that they acknowledge stay true, so only the control is tested.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "netsim/packet.h"

namespace uet::netsim {

enum class Garbage : std::uint8_t {
  Any,            // one of the others each time
  ReceivedBytes,  // rcvd_bytes jumps by 2^22 units
  ServiceTime,    // longer than the round trip
  Credit,         // jumps by 2^22 units
  Pend,           // the destination asks for next to nothing
  Mark,           // M is set
};

// Spoils one field of the packet. False: it has no such field.
bool spoil(NetPacket& packet, Garbage what, Rng& rng);

}  // namespace uet::netsim
