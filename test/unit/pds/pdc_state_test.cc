// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/pdc_state.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

using S = PdcState;
constexpr std::optional<PdcState> kNo = std::nullopt;

// Every cell, copied from PDS sections 6.3 and 6.4: a row per state, a column per event in order:
// PeerKnown, CloseWanted, Drained, CloseSent, CloseDone, Failed.
constexpr std::optional<PdcState> kExpected[kPdcStates][kPdcEvents] = {
    /* Closed       */ {kNo, kNo, kNo, kNo, kNo, kNo},
    /* Creating     */ {S::Established, kNo, kNo, kNo, S::Closed, S::Closed},
    /* Established  */ {kNo, S::Quiesce, kNo, kNo, S::Closed, S::Closed},
    /* Quiesce      */ {kNo, kNo, S::AckWait, kNo, S::Closed, S::Closed},
    /* AckWait      */ {kNo, kNo, kNo, S::CloseAckWait, kNo, S::Closed},
    /* CloseAckWait */ {kNo, kNo, kNo, kNo, S::Closed, S::Closed},
};

TEST(PdcTransitions, EveryCell) {
  for (std::size_t state = 0; state < kPdcStates; ++state) {
    for (std::size_t event = 0; event < kPdcEvents; ++event) {
      EXPECT_EQ(next_state(static_cast<PdcState>(state), static_cast<PdcEvent>(event)),
                kExpected[state][event])
          << "state " << state << " event " << event;
    }
  }
}

TEST(PdcTransitions, NoCellHasTwoRows) {
  for (const PdcTransition& one : kPdcTransitions) {
    int rows = 0;
    for (const PdcTransition& other : kPdcTransitions) {
      rows += one.from == other.from && one.event == other.event;
    }
    EXPECT_EQ(rows, 1);
  }
}

TEST(PdcTransitions, EveryOpenStateCanFail) {
  for (const PdcState state :
       {S::Creating, S::Established, S::Quiesce, S::AckWait, S::CloseAckWait}) {
    EXPECT_EQ(next_state(state, PdcEvent::Failed), S::Closed);
  }
}

}  // namespace
}  // namespace uet::pds
