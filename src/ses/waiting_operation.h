// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An operation of the application that has not completed, at one moment: for people that ask why.
// No decision reads it.
#pragma once

#include <cstdint>

#include "uet/base/address.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/ses/api.h"

namespace uet::ses {

// The event that an operation waits for. Numbers stay as they are: other programs read them.
enum class OperationWait : std::uint8_t {
  Packets = 0,   // its packets are to be sent, or to be acknowledged
  Fence = 1,     // earlier operations of its endpoint
  Read = 2,      // the target is to read the rest: no receive has matched it yet, or it reads
  Deferred = 3,  // the target has put it off until it has a receive
  Data = 4,      // the target is to send the data that it asked for
  Retry = 5,     // the target refused it for now; it is sent again
};

struct WaitingOperation {
  FepAddress to;
  Kind kind{};
  MsgId message_id;
  PdcId pdc;  // 0: it has none yet
  OperationWait waits{};
  Time posted{};
  std::uint64_t bytes = 0;
  std::uint64_t packets_made = 0;
  std::uint64_t packets_answered = 0;
};

}  // namespace uet::ses
