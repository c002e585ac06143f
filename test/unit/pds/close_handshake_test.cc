// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/close_handshake.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

using Begin = CloseHandshake::Begin;
using Step = CloseHandshake::Step;
using Reply = CloseHandshake::Reply;

TEST(CloseHandshake, Pds169_InitiatorQuiescesAndTargetAsks) {
  CloseHandshake close;
  EXPECT_FALSE(close.wanted());
  EXPECT_EQ(close.begin(Role::Initiator, PdcState::Established, false), Begin::Quiesce);
  EXPECT_TRUE(close.wanted()) << "until it has begun";
  close.begun();
  EXPECT_FALSE(close.wanted());
  EXPECT_EQ(close.begin(Role::Target, PdcState::Established, false), Begin::AskInitiator);
}

TEST(CloseHandshake, Pds56_CloseWaitsForTheEstablishment) {
  CloseHandshake close;
  EXPECT_EQ(close.begin(Role::Initiator, PdcState::Creating, false), Begin::Later);
  EXPECT_TRUE(close.wanted());
  EXPECT_EQ(close.begin(Role::Initiator, PdcState::Creating, true), Begin::Forget);
  EXPECT_EQ(close.begin(Role::Initiator, PdcState::Quiesce, true), Begin::Later);
}

TEST(CloseHandshake, Pds172_PeerThatAsksOverridesWatchersNotLocks) {
  CloseHandshake close;
  EXPECT_FALSE(close.is_held(0, 0));
  EXPECT_TRUE(close.is_held(0, 1));
  close.peer_asks();
  EXPECT_TRUE(close.wanted());
  EXPECT_FALSE(close.is_held(0, 1));
  EXPECT_TRUE(close.is_held(1, 0));
}

TEST(CloseHandshake, GivingWayDoesNotAskForTheClose) {
  CloseHandshake close;
  close.close_for_shortage();
  EXPECT_FALSE(close.wanted());
  EXPECT_FALSE(close.is_held(0, 1));
}

TEST(CloseHandshake, InitiatorDrainsBeforeItsCloseCommand) {
  const auto next = [](PdcState state, bool all_sent, bool all_answered, bool held) {
    return CloseHandshake::next(Role::Initiator, state, all_sent, all_answered, held);
  };
  EXPECT_EQ(next(PdcState::Quiesce, false, true, false), Step::Wait);
  EXPECT_EQ(next(PdcState::Quiesce, true, false, true), Step::Wait);
  EXPECT_EQ(next(PdcState::Quiesce, true, false, false), Step::Drained);
  EXPECT_EQ(next(PdcState::AckWait, true, false, false), Step::Wait);
  EXPECT_EQ(next(PdcState::AckWait, true, true, true), Step::Wait);
  EXPECT_EQ(next(PdcState::AckWait, false, true, false), Step::Wait);
  EXPECT_EQ(next(PdcState::AckWait, true, true, false), Step::SendClose);
  EXPECT_EQ(next(PdcState::CloseAckWait, true, true, false), Step::Wait);
}

TEST(CloseHandshake, Pds169_TargetSendsNoCloseCommand) {
  EXPECT_EQ(CloseHandshake::next(Role::Target, PdcState::Quiesce, true, true, false), Step::Wait);
  EXPECT_EQ(CloseHandshake::next(Role::Target, PdcState::AckWait, true, true, false), Step::Wait);
}

TEST(CloseHandshake, CloseCommandMeetsReturnData) {
  EXPECT_EQ(CloseHandshake::reply(Role::Initiator, false, false), Reply::Unexpected);
  EXPECT_EQ(CloseHandshake::reply(Role::Target, false, true), Reply::Accept);
  EXPECT_EQ(CloseHandshake::reply(Role::Target, true, true), Reply::Ignore);
  EXPECT_EQ(CloseHandshake::reply(Role::Target, true, false), Reply::Refuse);
}

}  // namespace
}  // namespace uet::pds
