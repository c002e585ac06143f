// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PDC that waits, at one moment: for people that ask why an operation does not end. No decision
// reads it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/trace.h"
#include "pds/pdc_state.h"
#include "uet/base/address.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::pds {

class Pdc;

// Times are Time{} if there is none.
struct WaitingPdc {
  FepAddress peer;
  PdcId id;
  bool target = false;
  bool ordered = false;
  PdcState state{};
  std::size_t packets_outstanding = 0;
  std::size_t messages_queued = 0;
  // The oldest packet that the peer has not acknowledged, if one is outstanding.
  Psn oldest_psn;
  std::uint16_t oldest_transmissions = 0;
  std::uint16_t oldest_message = 0;  // Message::id_in_trace; 0: a control packet
  bool oldest_sacked = false;        // the peer has it; its final response is missing
  Time oldest_first_sent{};
  Time oldest_last_sent{};
  trace::Wait wait{};  // what keeps data from leaving
  Time wait_since{};
  Time peer_heard{};
  std::uint64_t window_bytes = 0;
  std::int64_t inflight_bytes = 0;
};

// `packets_short_since`: data of the FEP waits for the packet pool since then; Time{}: none does.
WaitingPdc waiting_pdc(Pdc& pdc, Time packets_short_since);

}  // namespace uet::pds
