// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the close of a PDC needs next (PDS section 6.4, PDS-169 to 177). The initiator quiesces:
// it finishes what it has begun, waits for the last answers, and sends a Close Command. The target
// can only ask for that with a Close Request. Decides; Pdc sends and changes its state.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pds/parameters.h"
#include "pds/pdc_state.h"
#include "pds/quota.h"
#include "pds/retransmit.h"

namespace uet::pds {

class CloseHandshake {
 public:
  enum class Begin : std::uint8_t {
    Later,         // the PDC is not established yet (PDS-56), or closes already
    Forget,        // the peer knows nothing of it
    AskInitiator,  // a target sends a Close Request
    Quiesce,       // an initiator takes no new messages
  };
  enum class Step : std::uint8_t {
    Wait,
    Drained,    // all is sent
    SendClose,  // all is answered
  };
  enum class Reply : std::uint8_t {
    Unexpected,  // only the initiator closes (PDS-169)
    Ignore,      // the Close Command comes again, and so do the ACKs that are missing
    Refuse,      // return data is outstanding: the PDC ends in an error
    Accept,
  };

  // The PDC is to close: it is idle, PDCs are short, or the host wishes it. `unused`: no packet has
  // left, and nothing waits.
  Begin begin(Role role, PdcState state, bool unused) {
    wanted_ = true;
    if (state == PdcState::Creating && unused) return Begin::Forget;
    if (state != PdcState::Established) return Begin::Later;
    return role == Role::Target ? Begin::AskInitiator : Begin::Quiesce;
  }
  // It has begun.
  void begun() { wanted_ = false; }
  // The peer asks for the close, which begins in the next turn.
  void peer_asks() { wanted_ = for_shortage_ = true; }
  // From now on watches do not keep the PDC open (Delivery::watch).
  void close_for_shortage() { for_shortage_ = true; }

  // The close is asked for and could not begin yet.
  bool wanted() const { return wanted_; }
  bool is_held(std::uint32_t locks, std::uint32_t watches) const {
    return locks > 0 || (watches > 0 && !for_shortage_);
  }
  // How long a target waits for the Close Command (PDS-177). An initiator that has proved its
  // address may poll seldom: it has as long as any other peer that sends nothing. After the target
  // has forgotten the PDC it could not tell which of the packets that the initiator sends again it
  // has delivered.
  static Duration patience(const Parameters& parameters, bool proved) {
    const bool unlimited = parameters.max_rto_retransmissions == kUnlimited;
    if (!proved || unlimited) return parameters.close_request_time;
    return std::max(parameters.close_request_time, silence_limit(parameters, Duration::max()));
  }
  // Of a PDC whose close has begun. `held`: the last response may be what makes SES wait for the
  // peer, or send another packet.
  static Step next(Role role, PdcState state, bool all_sent, bool all_answered, bool held) {
    if (role == Role::Target || held || !all_sent) return Step::Wait;
    if (state == PdcState::Quiesce) return Step::Drained;
    return state == PdcState::AckWait && all_answered ? Step::SendClose : Step::Wait;
  }
  // A Close Command has come. `return_data`: data for the initiator is outstanding, though the
  // initiator has all that it waited for. If a message waits for the application here (`watched`),
  // the data come again until their ACKs are here.
  static Reply reply(Role role, bool return_data, bool watched) {
    if (role != Role::Target) return Reply::Unexpected;
    if (!return_data) return Reply::Accept;
    return watched ? Reply::Ignore : Reply::Refuse;
  }

 private:
  bool wanted_ : 1 = false;
  bool for_shortage_ : 1 = false;
};

}  // namespace uet::pds
