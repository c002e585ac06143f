// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a PDC that fails ends its packets and messages, and whether the peer hears of it.
#pragma once

#include <optional>

#include "uet/base/packet.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

struct Ending {
  PdsError error{};
  std::optional<Psn> not_consumed{};  // a packet that the peer has not consumed (PDS-142)
  bool nothing_behind = false;        // nor what was sent once behind it
  bool spares_backlog = false;        // nor has it heard of what was not sent
  const LostPeer* lost = nullptr;     // nor has it read all that was sent
  bool tells_peer = true;
};

}  // namespace uet::pds
