// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ACKs that wait for the reply.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "uet/wire/parse.h"
#include "unit/fep/fep_harness.h"

namespace uet::fep {
namespace {

class KeptAcks : public FepPair {
 protected:
  KeptAcks() {
    a.nic.on_the_way = [this](RxPacket& packet) {
      packet.through_memory = through_memory;
      const auto parsed = wire::parse(packet.bytes);
      const bool request = parsed && std::holds_alternative<wire::RequestHeader>(parsed->header);
      arrived += request ? 'R' : 'A';
      if (!parsed) return;
      if (const auto* ack = std::get_if<wire::AckHeader>(&parsed->header)) last_ack = *ack;
    };
    b.nic.on_the_way = [this](RxPacket& packet) { packet.through_memory = through_memory; };
    post_receives();
    begin();
    EXPECT_TRUE(run_while_not([this] { return a.sink.all.size() == 1; }));  // the PDC is open
    arrived.clear();
    post_receives();
  }
  // Both ends.
  void post_receives() {
    ses::ReceiveOp op;
    op.local = {&slice, 1};
    for (Node* node : {&a, &b}) {
      ASSERT_TRUE(node->fep->ses().receive(*node->context, op, now).ok());
    }
  }
  void begin() {
    ASSERT_TRUE(send({&slice, 1}).ok());
    a.fep->push(now);
  }
  void reply() { reply({&slice, 1}); }
  void reply(std::span<const ses::IoSlice> slices) {
    const ses::Peer to = a.as_peer();
    ses::SendOp op;
    op.peer = &to;
    op.local = slices;
    ASSERT_TRUE(b.fep->ses().send(*b.context, op, now).ok());
    b.fep->posted(now);
  }
  // b takes what has come, and keeps its ACK if it can.
  bool take_and_keep() {
    b.fep->take(now);
    if (!b.fep->can_keep_acks(now)) return false;
    b.fep->keep_acks();
    return true;
  }

  std::byte byte{};
  const ses::IoSlice slice{&byte, 1};
  bool through_memory = false;
  std::string arrived;  // at a: requests and others
  wire::AckHeader last_ack;
};

TEST_F(KeptAcks, LeaveBehindTheReply) {
  begin();
  ASSERT_TRUE(take_and_keep());
  EXPECT_EQ(b.sink.count(ses::Kind::Receive), 2U);  // the application can be told
  const std::size_t sent = b.nic.sent;
  b.fep->posted_receive(now);  // has nothing to send
  EXPECT_EQ(b.nic.sent, sent);
  EXPECT_EQ(b.fep->next_deadline(), now + microseconds(50));
  reply();
  EXPECT_EQ(b.nic.sent, sent + 2);
  a.fep->progress(now);
  EXPECT_EQ(arrived, "RA");
  EXPECT_EQ(b.fep->stats().pds.acks_kept, 1U);
  EXPECT_EQ(b.fep->stats().pds.acks_late, 0U);
  expect_clean_close();
}

// Two bursts cost no more than one there.
TEST_F(KeptAcks, LeaveWithThePassAfterTheReplyWhereTheKernelDoesNotSend) {
  b.nic.capabilities.sends_by_kernel = false;
  for (const bool comes_back : {true, false}) {
    arrived.clear();
    begin();
    ASSERT_TRUE(take_and_keep());
    reply();
    post_receives();
    b.fep->posted_receive(now);  // has nothing to send
    a.fep->progress(now);
    EXPECT_EQ(arrived, "R");
    EXPECT_EQ(b.fep->next_deadline(), now + microseconds(50));
    EXPECT_FALSE(b.fep->take(now) && b.fep->keep_acks_longer(now));
    if (comes_back) {
      b.fep->push(now);
    } else {
      b.fep->push_kept_acks(now);
    }
    a.fep->progress(now);
    EXPECT_EQ(arrived, "RA");
    EXPECT_EQ(b.fep->stats().pds.acks_late, comes_back ? 0U : 1U);
    for (int pass = 0; pass < 3; ++pass) step();
  }
  expect_clean_close();
}

TEST_F(KeptAcks, LeaveBehindAReplyOf16KiB) {
  std::array<std::byte, 16384> bytes{};
  const ses::IoSlice all{bytes.data(), bytes.size()};
  begin();
  ASSERT_TRUE(take_and_keep());
  reply({&all, 1});
  a.fep->progress(now);
  EXPECT_EQ(arrived.back(), 'A');
  EXPECT_EQ(arrived.find('A'), arrived.size() - 1);
  EXPECT_GT(arrived.size(), 2U);
}

// Its receiver waits for the ACK, and copying it takes long.
TEST_F(KeptAcks, LeaveBeforeALongReply) {
  std::array<std::byte, 16385> bytes{};
  const ses::IoSlice all{bytes.data(), bytes.size()};
  begin();
  ASSERT_TRUE(take_and_keep());
  reply({&all, 1});
  a.fep->progress(now);
  EXPECT_EQ(arrived.front(), 'A');
  EXPECT_EQ(arrived.find('A', 1), std::string::npos);
  EXPECT_GT(arrived.size(), 1U);
}

// As MPI does, which reads until there are no completions before it looks at what it read.
TEST_F(KeptAcks, StayForOneReadMoreThatBringsNothingToSend) {
  begin();
  EXPECT_FALSE(b.fep->keep_acks_longer(now));  // none are kept
  ASSERT_TRUE(take_and_keep());
  EXPECT_FALSE(b.fep->take(now));
  ASSERT_TRUE(b.fep->keep_acks_longer(now));
  EXPECT_FALSE(b.fep->keep_acks_longer(now));  // not twice
  reply();
  a.fep->progress(now);
  EXPECT_EQ(arrived, "RA");
  EXPECT_EQ(b.fep->stats().pds.acks_late, 0U);
  expect_clean_close();
}

// From the arrival of the request, or the pass that took it, to the pass that builds its ACK: what
// the host did with packets meanwhile is no time of the network's.
TEST_F(KeptAcks, Cms712_TheServiceTimeLastsUntilTheyAreBuilt) {
  begin();
  ASSERT_TRUE(b.fep->take(now));
  EXPECT_TRUE(b.fep->took_from_network());
  b.fep->push(now + microseconds(64));
  a.fep->progress(now + microseconds(64));
  EXPECT_EQ(last_ack.service_time, 500);  // of 128 ns
  now += microseconds(100);
  post_receives();
  begin();
  ASSERT_TRUE(take_and_keep());
  b.fep->push(now + microseconds(32));
  a.fep->progress(now + microseconds(32));
  EXPECT_EQ(last_ack.service_time, 250);
}

TEST_F(KeptAcks, LeaveWithTheNextPassWithoutAReply) {
  begin();
  ASSERT_TRUE(take_and_keep());
  now += microseconds(50);
  EXPECT_FALSE(take_and_keep());  // not twice
  b.fep->push(now);
  a.fep->progress(now);
  EXPECT_EQ(arrived, "A");
  EXPECT_EQ(a.sink.count(ses::Kind::Send), 2U);
  EXPECT_EQ(b.fep->stats().pds.acks_late, 0U);
}

TEST_F(KeptAcks, LeaveWhenTheApplicationDoesNotComeBack) {
  begin();
  ASSERT_TRUE(take_and_keep());
  b.fep->push_kept_acks(now);
  a.fep->progress(now);
  EXPECT_EQ(arrived, "A");
  EXPECT_EQ(b.fep->stats().pds.acks_late, 1U);
  b.fep->push_kept_acks(now);
  EXPECT_EQ(b.fep->stats().pds.acks_late, 1U);  // nothing was kept
}

TEST_F(KeptAcks, LeaveWithWhatWaitsToBeSentWhenTheApplicationDoesNotComeBack) {
  for (const bool by_kernel : {true, false}) {
    b.nic.capabilities.sends_by_kernel = by_kernel;
    arrived.clear();
    begin();
    ASSERT_TRUE(take_and_keep());
    const ses::Peer to = a.as_peer();
    ses::SendOp op;
    op.peer = &to;
    op.local = {&slice, 1};
    ASSERT_TRUE(b.fep->ses().send(*b.context, op, now).ok());
    b.fep->push_kept_acks(now);
    a.fep->progress(now);
    EXPECT_THAT(arrived, ::testing::AnyOf("AR", "RA"));
    post_receives();
    for (int pass = 0; pass < 3; ++pass) step();
  }
}

TEST_F(KeptAcks, AreNoneWhereAnAnswerCostsNothing) {
  through_memory = true;
  begin();
  EXPECT_FALSE(take_and_keep());
  EXPECT_FALSE(b.fep->took_from_network());
}

// A stream's window moves with its ACKs.
TEST_F(KeptAcks, AreNoneOfAStream) {
  post_receives();
  post_receives();
  for (int i = 0; i < 3; ++i) begin();
  EXPECT_FALSE(take_and_keep());
}

// Of partners that exchange, each hears of its own messages, too.
TEST_F(KeptAcks, AreThoseOfAMessageThatCameBesideAcks) {
  for (int i = 0; i < 3; ++i) {
    post_receives();
    reply();
    a.fep->progress(now);
  }
  begin();
  EXPECT_TRUE(take_and_keep());
  EXPECT_EQ(b.sink.count(ses::Kind::Send), 3U);
}

// Whoever receives only loses by it.
TEST_F(KeptAcks, AreFewWhereNobodyReplies) {
  int kept = 0;
  for (int i = 0; i < 8 + 64; ++i) {
    post_receives();
    begin();
    kept += take_and_keep() ? 1 : 0;
    b.fep->push(now);
    a.fep->progress(now);
    now += microseconds(16);
  }
  EXPECT_EQ(kept, 8 + 2);
}

TEST_F(KeptAcks, AreKeptAgainOnceThereAreReplies) {
  for (int i = 0; i < 8 + 32 + 10; ++i) {
    post_receives();
    begin();
    const bool kept = take_and_keep();
    if (i >= 8 + 31) {
      EXPECT_TRUE(kept) << i;
      reply();
    }
    b.fep->push(now);
    for (int pass = 0; pass < 3; ++pass) step();
  }
}

TEST_F(KeptAcks, AreNoneWhereDataWaitsToo) {
  reply();
  ASSERT_TRUE(run_while_not([this] { return b.sink.count(ses::Kind::Send) == 1; }));
  const ses::Peer to = a.as_peer();
  ses::SendOp op;
  op.peer = &to;
  op.local = {&slice, 1};
  ASSERT_TRUE(b.fep->ses().send(*b.context, op, now).ok());
  begin();
  EXPECT_FALSE(take_and_keep());
}

}  // namespace
}  // namespace uet::fep
