// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One turn of a PDC as a source: it sends lost packets and new ones, as many as the budget, the
// windows of the peer and of the congestion context, and the packet pool allow. Exists during the
// turn, at the time `now`. Its code is in send_side.cc, beside the transmission of each packet.
#pragma once

#include <cstdint>
#include <optional>

#include "pds/send_side.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

class SendTurn {
 public:
  // Counts down `budget`, the packets that may leave. `side` outlives it.
  SendTurn(SendSide& side, std::uint32_t& budget, Time now)
      : side_(side), core_(side.core()), budget_(budget), now_(now) {}

  // The three parts of a turn, in this order; each is false if the budget does not suffice. Lost
  // packets go first (CMS-12). In RUD those that the peer has refused take turns with new ones:
  // with a window of one packet they would else go each time, and messages that have begun there
  // would keep the memory for which the peer refuses. Their turn is either the end of send_lost()
  // or send_refused().
  [[nodiscard]] bool send_lost();
  [[nodiscard]] bool send_new();
  [[nodiscard]] bool send_refused();

 private:
  Environment& env() const { return core_.env(); }
  SharedCcc& ccc() const { return core_.ccc(); }

  bool may_make_packet();
  Packet* take_packet();
  void note_packets_short();
  void note_packets_back();
  void note_in_trace(std::uint32_t packets, std::uint64_t bytes);
  enum class Resends : std::uint8_t { All, NotRefused, Refused };
  enum class Resent : std::uint8_t { All, Some, NoBudget };
  Resent resend(Resends which);
  bool may_resend_data(bool oldest);
  bool resend_refused();
  void wait_for_ccc();
  bool shares_ack(const Message& message, Psn psn, std::size_t bytes) const;
  bool wants_ack(bool tail, std::uint32_t nominal_bytes) const;

  SendSide& side_;
  PdcCore& core_;
  std::uint32_t& budget_;
  const Time now_;
  bool new_may_leave_ = true;
  std::optional<Psn> new_before_refused_;  // the first new PSN, if refused packets go after it
};

}  // namespace uet::pds
