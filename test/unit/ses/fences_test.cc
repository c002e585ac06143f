// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_FENCE: who waits for whom.
#include "ses/fences.h"
#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

class FenceTest : public TwoNodes {
 protected:
  Result<void> send(const Peer& to, bool fence, void* operation = nullptr) {
    SendOp op;
    op.peer = &to;
    op.fence = fence;
    op.context = operation;
    return a.ses.initiator().post(*a.context, op, kNow);
  }
  // The packets that can be made now.
  std::vector<Sent> turn() {
    a.ses.progress(kNow);
    return a.packets();
  }
  const pds::Response bare_ack{};
};

TEST_F(FenceTest, FencedAndLater_WaitForAllEarlierOnes) {
  const Peer peer = b.peer();
  ASSERT_TRUE(send(peer, false));
  ASSERT_TRUE(send(peer, false));
  ASSERT_TRUE(send(peer, true));
  ASSERT_TRUE(send(peer, false));
  const std::vector<Sent> early = turn();
  ASSERT_EQ(early.size(), 2u);
  a.answered(early[1], bare_ack);
  EXPECT_TRUE(turn().empty());
  a.answered(early[0], bare_ack);
  EXPECT_LE(a.ses.next_deadline(), kNow);
  const std::vector<Sent> late = turn();
  ASSERT_EQ(late.size(), 2u) << "the fence is open for those behind it too";
  EXPECT_EQ(late[0].request().message_id, MsgId{3});
  for (const Sent& sent : late) a.answered(sent, bare_ack);
  EXPECT_EQ(a.sink.all.size(), 4u);
  EXPECT_EQ(a.ses.next_deadline(), kNever);
  expect_idle();
}

TEST_F(FenceTest, FenceWithNothingBeforeItDoesNotWait) {
  const Peer peer = b.peer();
  ASSERT_TRUE(send(peer, true));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  a.answered(sent[0], bare_ack);
}

TEST_F(FenceTest, FenceRequestsPromptAcksOfEarlierOperations) {
  const Peer peer = b.peer();
  SendOp without_prompt_ack;
  without_prompt_ack.peer = &peer;
  without_prompt_ack.prompt_ack = false;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, without_prompt_ack, kNow));
  EXPECT_EQ(a.delivery.requested_acks, 0);
  ASSERT_TRUE(send(peer, true));
  EXPECT_EQ(a.delivery.requested_acks, 1);
  // Two operations behind it: the second, a fence, waits for the first once that has begun.
  ASSERT_TRUE(a.ses.initiator().post(*a.context, without_prompt_ack, kNow));
  ASSERT_TRUE(send(peer, true));
  for (const Sent& sent : turn()) a.answered(sent, bare_ack);
  for (const Sent& sent : turn()) a.answered(sent, bare_ack);
  const std::vector<Sent> third = turn();
  ASSERT_EQ(third.size(), 1u);
  EXPECT_TRUE(third[0].message->prompt_ack);
  a.answered(third[0], bare_ack);
  for (const Sent& sent : turn()) a.answered(sent, bare_ack);
  EXPECT_EQ(a.sink.all.size(), 4u);
}

TEST_F(FenceTest, SecondFenceWaitsForTheFirst) {
  const Peer peer = b.peer();
  ASSERT_TRUE(send(peer, false));
  ASSERT_TRUE(send(peer, true));
  ASSERT_TRUE(send(peer, true));
  for (int i = 0; i < 3; ++i) {
    const std::vector<Sent> sent = turn();
    ASSERT_EQ(sent.size(), 1u);
    a.answered(sent[0], bare_ack);
  }
  expect_idle();
}

TEST_F(FenceTest, OtherPeersAndContextsDoNotWait) {
  const Peer peer = b.peer();
  Peer other = peer;
  other.resource_index = ResourceIndex{11};
  ContextConfig config = small_config();
  config.resource_index = ResourceIndex{12};
  Context* second = a.ses.open_context(config, a.sink).value();
  ASSERT_TRUE(send(peer, false));
  ASSERT_TRUE(send(peer, true));
  ASSERT_TRUE(send(other, true));
  SendOp op;
  op.peer = &peer;
  ASSERT_TRUE(a.ses.initiator().post(*second, op, kNow));
  std::vector<Sent> sent = turn();
  ASSERT_EQ(sent.size(), 3u);
  for (const Sent& packet : sent) a.answered(packet, bare_ack);
  sent = turn();
  ASSERT_EQ(sent.size(), 1u);
  a.answered(sent[0], bare_ack);
  a.ses.close_context(*second, kNow);
}

TEST_F(FenceTest, ReadsAndWritesAreFencedToo) {
  Bytes region(kMtu);
  Bytes memory = pattern(16);
  const Rkey key = b.expose(region);
  const Peer peer = b.peer();
  const std::vector<IoSlice> local{slice_of(memory)};
  ASSERT_TRUE(a.ses.initiator().post(*a.context, a.rma(peer, local, key), kNow));
  RmaOp op = a.rma(peer, local, key);
  op.kind = Kind::Read;
  op.fence = true;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  std::vector<Sent> sent = turn();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::Write);
  deliver(a, b, sent[0]);
  sent = turn();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::Read);
  deliver(a, b, sent[0]);
  exchange();
  EXPECT_EQ(a.sink.all.size(), 2u);
  expect_idle();
}

TEST_F(FenceTest, ShortageWhenTheFenceOpensIsTriedAgain) {
  const Peer peer = b.peer();
  ASSERT_TRUE(send(peer, false));
  ASSERT_TRUE(send(peer, true));
  a.answered(turn().at(0), bare_ack);
  a.delivery.refuse = true;
  EXPECT_TRUE(turn().empty());
  const Time again = a.ses.next_deadline();
  EXPECT_GT(again, kNow);
  EXPECT_LT(again, kNever);
  a.delivery.refuse = false;
  EXPECT_TRUE(turn().empty()) << "not yet";
  a.ses.progress(again);
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  a.answered(sent[0], bare_ack);
  expect_idle();
}

TEST_F(FenceTest, OperationsBehindACancelledFenceAreSent) {
  const Peer peer = b.peer();
  int fence = 0;
  ASSERT_TRUE(send(peer, false));
  ASSERT_TRUE(send(peer, true, &fence));
  ASSERT_TRUE(send(peer, false));
  EXPECT_TRUE(a.ses.cancel(*a.context, &fence, kNow));
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  const std::vector<Sent> sent = turn();
  ASSERT_EQ(sent.size(), 2u);
  for (const Sent& packet : sent) a.answered(packet, bare_ack);
  expect_idle();
}

TEST_F(FenceTest, ClosingTheContextEndsWhatWaits) {
  const Peer peer = b.peer();
  ASSERT_TRUE(send(peer, false));
  ASSERT_TRUE(send(peer, true));
  const std::vector<Sent> sent = turn();
  a.ses.close_context(*a.context, kNow);
  EXPECT_EQ(a.ses.next_deadline(), kNever);
  a.answered(sent[0], bare_ack);
  EXPECT_TRUE(turn().empty());
  EXPECT_TRUE(a.ses.idle());
  a.context = a.ses.open_context(small_config(), a.sink).value();
}

// ---- the object alone --------------------------------------------------------------------------

class FencesTest : public OperationTest {
 protected:
  // Starts what may start; the messages in their order.
  std::vector<TxMessage*> started(Time now = kNow, bool succeeds = true) {
    std::vector<TxMessage*> all;
    fences.start_ready(now, [&](TxMessage& message) {
      all.push_back(&message);
      return succeeds;
    });
    return all;
  }
  Fences fences;
};

TEST_F(FencesTest, HeldOnesStartInTheOrderOfPosting) {
  TxMessage& first = open();
  TxMessage& second = open();
  TxMessage& third = open();
  for (TxMessage* message : {&third, &first, &second}) fences.hold(*message);
  EXPECT_TRUE(fences.waits());
  EXPECT_TRUE(started().empty()) << "nothing has ended";
  fences.operation_ended(context);
  EXPECT_EQ(started(), (std::vector<TxMessage*>{&first, &second, &third}));
  EXPECT_FALSE(fences.waits());
  EXPECT_EQ(fences.deadline(), kNever);
}

TEST_F(FencesTest, StartThatFailsIsTriedAgainALittleLater) {
  TxMessage& message = open();
  fences.hold(message);
  fences.operation_ended(context);
  EXPECT_EQ(started(kNow, false).size(), 1u);
  EXPECT_TRUE(Fences::is_held(message));
  EXPECT_GT(fences.deadline(), kNow);
  EXPECT_LT(fences.deadline(), kNow + std::chrono::seconds(1));
  EXPECT_EQ(started(fences.deadline()).size(), 1u);
}

TEST_F(FencesTest, NextTryIsNotBeforeItsTime) {
  TxMessage& message = open();
  message.not_before = kNow + std::chrono::milliseconds(5);
  fences.hold(message);
  fences.operation_ended(context);
  EXPECT_TRUE(started().empty());
  EXPECT_EQ(fences.deadline(), message.not_before);
  EXPECT_EQ(started(message.not_before).size(), 1u);
}

TEST_F(FencesTest, FencedOneWaitsForEarlierOnesToItsPeerOnly) {
  open(0, Kind::Send, 3);
  TxMessage& fenced = open();
  fenced.fence = true;
  EXPECT_FALSE(Fences::must_wait(fenced));
  TxMessage& later = open();
  later.fence = true;
  EXPECT_TRUE(Fences::must_wait(later));
}

TEST_F(FencesTest, Ses54_OrderedOneBehindARefusedOneIsFenced) {
  TxMessage& refused = open();
  refused.refused = true;
  context.refused_count = 1;
  TxMessage& unordered = open();
  EXPECT_FALSE(Fences::must_wait(unordered));
  TxMessage& ordered = open();
  ordered.mode = DeliveryMode::Rod;
  EXPECT_TRUE(Fences::must_wait(ordered));
  EXPECT_TRUE(ordered.fence);
}

}  // namespace
}  // namespace uet::ses::test
