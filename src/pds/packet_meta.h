// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The marks of an arriving packet that its answer depends on. They stay together while the packet
// waits in the reorder buffer, and while its ACK waits for a turn.
#pragma once

#include <cstdint>

#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::pds {

struct PacketMeta {
  PacketMeta() {}  // member by member, as SesRequest

  Psn psn;
  bool retx = false;          // the peer marked it as a retransmission
  bool ar = false;            // it asks for an ACK (PDS-93)
  bool ce = false;            // a switch set the ECN mark
  std::uint16_t entropy = 0;  // its path; the answer takes the same (PDS-103)
  Time arrived{};             // at this host; not after the pass that takes it (CMS-712)
};

}  // namespace uet::pds
