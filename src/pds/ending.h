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
  bool nothing_behind = false;        // nor what was sent behind it
  bool copies_count = true;           // of these: only what was sent once
  bool backlog_not_consumed = false;  // nor has it heard of what was not sent
  const DeadPeer* lost = nullptr;     // nor has it read all that was sent
  bool tells_peer = true;
  bool is_failure = true;  // else the messages go another way, and nothing is said to have failed

  // The peer cannot have consumed a packet that was sent so often.
  bool is_fresh(std::uint32_t sent_count) const { return sent_count == 1 || !copies_count; }
};

}  // namespace uet::pds
