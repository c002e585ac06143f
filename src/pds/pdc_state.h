// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of a PDC and what moves it from one to the next (PDS sections 6.3 and 6.4), as one
// table. An event that has no row for a state is a protocol error and changes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace uet::pds {

enum class PdcState : std::uint8_t {
  Closed,
  Creating,  // initiator: the peer's PDC id is not known yet, packets carry SYN
  Established,
  Quiesce,       // closing: takes no new message, finishes the started ones
  AckWait,       // initiator: all sent, waits for the last acknowledgements
  CloseAckWait,  // initiator: the Close Command is out
};

enum class PdcEvent : std::uint8_t {
  PeerKnown,    // first valid ACK
  CloseWanted,  // idle, shortage, the peer's or the host's wish
  Drained,      // every message transmitted, no lock
  CloseSent,    // every request acknowledged, the Close Command left
  CloseDone,    // its ACK came, or the target answered it
  Failed,
};

inline constexpr std::size_t kPdcStates = 6;
inline constexpr std::size_t kPdcEvents = 6;

struct PdcTransition {
  PdcState from;
  PdcEvent event;
  PdcState to;
};

inline constexpr std::array kPdcTransitions{
    PdcTransition{PdcState::Creating, PdcEvent::PeerKnown, PdcState::Established},
    PdcTransition{PdcState::Creating, PdcEvent::CloseDone, PdcState::Closed},  // nothing ever sent
    PdcTransition{PdcState::Creating, PdcEvent::Failed, PdcState::Closed},
    PdcTransition{PdcState::Established, PdcEvent::CloseWanted, PdcState::Quiesce},
    PdcTransition{PdcState::Established, PdcEvent::CloseDone, PdcState::Closed},
    PdcTransition{PdcState::Established, PdcEvent::Failed, PdcState::Closed},
    PdcTransition{PdcState::Quiesce, PdcEvent::Drained, PdcState::AckWait},
    PdcTransition{PdcState::Quiesce, PdcEvent::CloseDone, PdcState::Closed},
    PdcTransition{PdcState::Quiesce, PdcEvent::Failed, PdcState::Closed},
    PdcTransition{PdcState::AckWait, PdcEvent::CloseSent, PdcState::CloseAckWait},
    PdcTransition{PdcState::AckWait, PdcEvent::Failed, PdcState::Closed},
    PdcTransition{PdcState::CloseAckWait, PdcEvent::CloseDone, PdcState::Closed},
    PdcTransition{PdcState::CloseAckWait, PdcEvent::Failed, PdcState::Closed},
};

constexpr std::optional<PdcState> next_state(PdcState from, PdcEvent event) {
  for (const PdcTransition& transition : kPdcTransitions) {
    if (transition.from == from && transition.event == event) return transition.to;
  }
  return std::nullopt;
}

}  // namespace uet::pds
