// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/ack_scheduler.h"

#include <gtest/gtest.h>

#include <vector>

namespace uet::pds {
namespace {

using Urgency = AckScheduler::Urgency;

constexpr Psn kStart{1000};

class AckSchedulerTest : public ::testing::Test {
 protected:
  AckSchedulerTest() {
    parameters_.ack_gen_trigger_bytes = cms::kAckGenTrigger;  // 16 KiB, which CMS-124 assumes
    arrival_.payload_bytes = 64;
  }
  ~AckSchedulerTest() override { acks_.discard(memory_); }

  // The packet `psn` was consumed, with the marks of `packet_` and the facts of `arrival_`. It
  // moves CACK if `in_order`.
  AckScheduler::Plan consume(Psn psn, bool in_order = true) {
    packet_.psn = psn;
    if (in_order) window_.cack = psn;
    return acks_.consumed(parameters_, packet_, arrival_, window_);
  }
  Urgency urgency_of(Psn psn, bool in_order = true) { return consume(psn, in_order).urgency; }
  // Packets in order without any mark until an ACK is due, with that packet.
  int packets_until_due(std::uint32_t bytes) {
    arrival_.payload_bytes = bytes;
    for (int count = 1; count < 1000; ++count) {
      if (urgency_of(window_.cack + 1) != Urgency::AfterBytes) return count;
    }
    return -1;
  }
  // An ACK leaves, of all up to CACK.
  void ack_leaves() { acks_.sent(window_.cack); }
  AckScheduler::Gap early(Psn psn, Psn gap) {
    packet_.psn = psn;
    return acks_.early(parameters_, packet_, arrival_, gap, window_);
  }
  bool owe(Psn psn) {
    PacketMeta packet = packet_;
    packet.psn = psn;
    Response response;
    response.length = 1;
    response.bytes[0] = static_cast<std::byte>(psn.value);
    return acks_.owe(memory_, packet, response);
  }
  // The ACKs that a turn sends.
  std::vector<AckDue> turn(bool has_packet = true) {
    std::vector<AckDue> sent;
    acks_.take(memory_, [&](const AckDue& due) {
      if (has_packet) sent.push_back(due);
      return has_packet;
    });
    return sent;
  }

  Parameters parameters_;
  AckScheduler::Memory memory_{1};
  AckScheduler acks_{kStart};
  PacketMeta packet_;
  AckScheduler::Arrival arrival_;
  AckScheduler::Window window_{kStart - 1, 1024};
};

// ---- the ACK that waits for a reply -------------------------------------------------------------

TEST_F(AckSchedulerTest, AckThatWaitsForTheReply_MayNotLeave) {
  ASSERT_TRUE(owe(kStart));
  EXPECT_TRUE(acks_.may_leave());
  acks_.wait_for_reply(true);
  EXPECT_TRUE(acks_.is_owed());
  EXPECT_FALSE(acks_.may_leave());
  acks_.wait_for_reply(false);
  EXPECT_TRUE(acks_.may_leave());
}

TEST_F(AckSchedulerTest, AckThatHasLeft_NextOneDoesNotWait) {
  ASSERT_TRUE(owe(kStart));
  acks_.wait_for_reply(true);
  EXPECT_EQ(turn().size(), 1U) << "PDS-167: another one goes behind it";
  ASSERT_TRUE(owe(kStart + 1));
  EXPECT_TRUE(acks_.may_leave());
}

// ---- reasons for an ACK with the next turn ------------------------------------------------------

TEST_F(AckSchedulerTest, Pds93_AckRequest_NextTurn) {
  EXPECT_EQ(urgency_of(kStart), Urgency::AfterBytes);
  packet_.ar = true;
  EXPECT_EQ(urgency_of(kStart + 1), Urgency::NextTurn);
  packet_.ar = false;
  EXPECT_EQ(urgency_of(kStart + 2), Urgency::AfterBytes) << "only the packet that requests it";
}

TEST_F(AckSchedulerTest, Pds94_Syn_NextTurn) {
  arrival_.syn = true;
  EXPECT_EQ(urgency_of(kStart), Urgency::NextTurn);
}

TEST_F(AckSchedulerTest, Pds96_Retransmission_NextTurn) {
  packet_.retx = true;
  EXPECT_EQ(urgency_of(kStart), Urgency::NextTurn);
}

TEST_F(AckSchedulerTest, Pds155_ControlPacket_NextTurn) {
  arrival_.control = true;
  EXPECT_EQ(urgency_of(kStart), Urgency::NextTurn);
}

TEST_F(AckSchedulerTest, Pds230_MissingPredecessor_NextTurn) {
  arrival_.predecessor_missing = true;
  EXPECT_EQ(urgency_of(kStart + 1, false), Urgency::NextTurn);
}

TEST_F(AckSchedulerTest, Pds99_EcnMark_NextTurnIfConfigured) {
  packet_.ce = true;
  EXPECT_EQ(urgency_of(kStart), Urgency::NextTurn);
  parameters_.ack_on_ecn = false;
  EXPECT_EQ(urgency_of(kStart + 1), Urgency::AfterBytes);
}

TEST_F(AckSchedulerTest, Pds98_LastGapBelowArPacket_NextTurn) {
  packet_.ar = true;
  EXPECT_EQ(urgency_of(kStart + 2, false), Urgency::NextTurn);
  packet_.ar = false;
  EXPECT_EQ(urgency_of(kStart), Urgency::AfterBytes) << "one is still missing";
  window_.cack = kStart + 2;
  EXPECT_EQ(urgency_of(kStart + 1, false), Urgency::NextTurn);
  EXPECT_EQ(urgency_of(kStart + 3), Urgency::AfterBytes) << "only once";
}

TEST_F(AckSchedulerTest, Pds98_GapBelowPacketWithoutAr_AfterBytes) {
  consume(kStart + 1, false);
  window_.cack = kStart + 1;
  EXPECT_EQ(urgency_of(kStart, false), Urgency::AfterBytes);
}

TEST_F(AckSchedulerTest, Pds98_TwoArPackets_HighestCounts) {
  packet_.ar = true;
  consume(kStart + 4, false);
  consume(kStart + 2, false);
  packet_.ar = false;
  window_.cack = kStart + 2;
  EXPECT_EQ(urgency_of(kStart, false), Urgency::AfterBytes);
  window_.cack = kStart + 4;
  EXPECT_EQ(urgency_of(kStart + 3, false), Urgency::NextTurn);
}

// ---- the count of bytes -------------------------------------------------------------------------

TEST_F(AckSchedulerTest, Pds97_Bytes_OneAckPerFourLargePackets) {
  EXPECT_EQ(packets_until_due(4096), 4);
}

// Packets of messages that share their ACKs request none.
TEST_F(AckSchedulerTest, Pds107_SmallPackets_ShareOneAckPer16) {
  EXPECT_EQ(packets_until_due(1), 16);
  ack_leaves();
  EXPECT_EQ(packets_until_due(1024), 16);
}

TEST_F(AckSchedulerTest, Pds97_Default_OneAckFor64KiB) {
  parameters_ = Parameters{};
  EXPECT_EQ(packets_until_due(4096), 16);
  EXPECT_EQ(urgency_of(window_.cack + 1), Urgency::NextTurn);
}

TEST_F(AckSchedulerTest, Pds97_SmallPackets_BehindReplyPer16KiB) {
  parameters_ = Parameters{};
  EXPECT_EQ(packets_until_due(64), 16);
  EXPECT_EQ(urgency_of(window_.cack + 1), Urgency::BehindReply);
  ack_leaves();
  EXPECT_EQ(packets_until_due(parameters_.ack_gen_min_packet_add_bytes + 1), 64) << "not small";
}

TEST_F(AckSchedulerTest, Pds97_SmallPackets_TriggerMayBeLess) {
  parameters_.ack_gen_trigger_bytes = 4096;
  EXPECT_EQ(packets_until_due(1), 4);
}

TEST_F(AckSchedulerTest, Pds93_SmallPacketWithAr_WaitsForNoReply) {
  packets_until_due(1);
  packet_.ar = true;
  EXPECT_EQ(urgency_of(window_.cack + 1), Urgency::NextTurn);
}

TEST_F(AckSchedulerTest, Pds98_SmallPacketClosesGap_WaitsForNoReply) {
  packet_.ar = true;
  consume(kStart + 1, false);
  packet_.ar = false;
  for (int i = 0; i < 20; ++i) consume(kStart + 2 + i, false);
  window_.cack = kStart + 21;
  EXPECT_EQ(urgency_of(kStart, false), Urgency::NextTurn);
}

TEST_F(AckSchedulerTest, Pds97_AnyAck_RestartsTheCount) {
  for (int i = 0; i < 3; ++i) consume(kStart + i);
  ack_leaves();
  EXPECT_EQ(packets_until_due(4096), 4);
}

TEST_F(AckSchedulerTest, Pds97_CountReached_DueUntilAckLeaves) {
  EXPECT_EQ(packets_until_due(16 * 1024), 1);
  EXPECT_EQ(packets_until_due(1), 1);
  ack_leaves();
  EXPECT_EQ(packets_until_due(1), 16);
}

TEST_F(AckSchedulerTest, Pds97_TriggerZero_AckForEachPacket) {
  parameters_.ack_gen_trigger_bytes = 0;
  EXPECT_EQ(packets_until_due(0), 1);
}

TEST_F(AckSchedulerTest, Pds219_HalfOfSmallWindow_NextTurn) {
  window_.range = 8;
  EXPECT_EQ(packets_until_due(64), 4);
  ack_leaves();
  EXPECT_EQ(packets_until_due(64), 4);
}

TEST_F(AckSchedulerTest, Pds219_WindowOf128_OnlyBytesCount) {
  parameters_.ack_gen_trigger_bytes = 400 * 1024;
  window_.range = 128;
  EXPECT_EQ(packets_until_due(4096), 100);
}

TEST_F(AckSchedulerTest, Pds219_WindowOfOne_AckForEachPacket) {
  window_.range = 1;
  EXPECT_EQ(packets_until_due(64), 1);
}

// ---- ACKs that leave now ------------------------------------------------------------------------

TEST_F(AckSchedulerTest, Pds95_GuaranteedResponses_AckForEachNow) {
  arrival_.guaranteed = true;
  arrival_.behind_held = true;
  for (int i = 0; i < 3; ++i) {
    const AckScheduler::Plan plan = consume(kStart + 2 * i + 1, false);
    EXPECT_EQ(plan.urgency, Urgency::Now);
    EXPECT_EQ(plan.uncovered_from, kStart + 2 * i + 1) << "without AR no other packet has one";
  }
}

TEST_F(AckSchedulerTest, Pds95_GuaranteedAndCleared_OnlyItsAck) {
  arrival_.guaranteed = true;
  packet_.ar = true;
  const AckScheduler::Plan plan = consume(kStart + 2);
  EXPECT_EQ(plan.urgency, Urgency::Now);
  EXPECT_EQ(plan.uncovered_from, kStart + 2) << "CACK covers the others";
}

TEST_F(AckSchedulerTest, Pds167_RodGuaranteed_WaitingAckGoesFirst) {
  arrival_.guaranteed = true;
  EXPECT_FALSE(consume(kStart).waiting_first);
  arrival_.ordered = true;
  EXPECT_TRUE(consume(kStart + 1).waiting_first);
  arrival_.guaranteed = false;
  packet_.ar = true;
  EXPECT_FALSE(consume(kStart + 2).waiting_first) << "this ACK replaces the one that waits";
}

// 1000 holds CACK; 1001 to 1003 are consumed behind it, and 1003 requests an ACK.
TEST_F(AckSchedulerTest, Pds232_BehindHeldResponse_AckForEach) {
  arrival_.behind_held = true;
  EXPECT_EQ(urgency_of(kStart + 1, false), Urgency::AfterBytes);
  consume(kStart + 2, false);
  packet_.ar = true;
  const AckScheduler::Plan plan = consume(kStart + 3, false);
  EXPECT_EQ(plan.urgency, Urgency::Now);
  EXPECT_EQ(plan.uncovered_from, kStart);
  const AckScheduler::Plan next = consume(kStart + 6, false);
  EXPECT_EQ(next.uncovered_from, kStart + 4) << "those up to 1003 have had theirs";
}

TEST_F(AckSchedulerTest, Pds232_LatePacketBelowAr_Now) {
  arrival_.behind_held = true;
  packet_.ar = true;
  consume(kStart + 3, false);
  consume(kStart + 1, false);
  packet_.ar = false;
  EXPECT_EQ(urgency_of(kStart + 2, false), Urgency::Now) << "it was missing then";
  EXPECT_EQ(urgency_of(kStart + 4, false), Urgency::AfterBytes);
  arrival_.behind_held = false;
  EXPECT_EQ(urgency_of(kStart + 1, false), Urgency::AfterBytes) << "CACK covers it";
}

TEST_F(AckSchedulerTest, Pds232_CackAboveOldAcks_BeginsThere) {
  window_.cack = kStart + 9;
  arrival_.behind_held = true;
  packet_.ar = true;
  EXPECT_EQ(consume(kStart + 14, false).uncovered_from, kStart + 10);
}

// ---- ROD: a packet before its predecessors ------------------------------------------------------

TEST_F(AckSchedulerTest, Pds165_FirstOfGap_AckAndNackOnce) {
  const AckScheduler::Gap first = early(kStart + 2, kStart);
  EXPECT_TRUE(first.ack);
  EXPECT_TRUE(first.nack);
  const AckScheduler::Gap second = early(kStart + 3, kStart);
  EXPECT_FALSE(second.ack);
  EXPECT_FALSE(second.nack);
  EXPECT_TRUE(early(kStart + 9, kStart + 5).nack) << "another gap";
}

TEST_F(AckSchedulerTest, Pds164_BufferedPackets_AckAsOftenAsOthers) {
  (void)early(kStart + 1, kStart);
  ack_leaves();
  int count = 0;
  do ++count;
  while (count < 1000 && !early(kStart + 1 + count, kStart).ack);
  EXPECT_EQ(count, 16);
  ack_leaves();
  packet_.ar = true;
  EXPECT_TRUE(early(kStart + 50, kStart).ack);
  packet_.ar = false;
  arrival_.predecessor_missing = true;
  EXPECT_TRUE(early(kStart + 60, kStart).ack);
}

TEST_F(AckSchedulerTest, Pds164_MarkOfBufferedPacket_WaitsForDelivery) {
  (void)early(kStart + 1, kStart);
  packet_.ce = true;
  EXPECT_FALSE(early(kStart + 2, kStart).ack);
}

TEST_F(AckSchedulerTest, Pds133_GapIsReportedOnce) {
  EXPECT_TRUE(acks_.reports_gap(kStart));
  EXPECT_FALSE(acks_.reports_gap(kStart));
  EXPECT_TRUE(acks_.reports_gap(kStart + 5));
}

// ---- CLEAR --------------------------------------------------------------------------------------

TEST_F(AckSchedulerTest, Pds231_ClearMovesCackOverAr_Due) {
  packet_.ar = true;
  consume(kStart + 3, false);
  EXPECT_FALSE(acks_.cleared(kStart, {kStart, 1024})) << "the packet with AR lies above CACK";
  EXPECT_TRUE(acks_.cleared(kStart + 1, {kStart + 3, 1024}));
  EXPECT_FALSE(acks_.cleared(kStart + 1, {kStart + 4, 1024})) << "once";
}

TEST_F(AckSchedulerTest, Pds231_SourceClearsTheArPacket_NotDue) {
  packet_.ar = true;
  consume(kStart + 3, false);
  EXPECT_FALSE(acks_.cleared(kStart + 3, {kStart + 5, 1024})) << "the source has the response";
}

TEST_F(AckSchedulerTest, Pds231_QuarterOfTheWindow_Due) {
  EXPECT_FALSE(acks_.cleared(kStart + 254, {kStart + 254, 1024}));
  EXPECT_TRUE(acks_.cleared(kStart + 255, {kStart + 255, 1024}));
  acks_.sent(kStart + 255);
  EXPECT_FALSE(acks_.cleared(kStart + 256, {kStart + 256, 1024}));
}

TEST_F(AckSchedulerTest, Pds231_AckWaitsAlready_NotDue) {
  ASSERT_TRUE(owe(kStart));
  EXPECT_FALSE(acks_.cleared(kStart + 500, {kStart + 500, 1024}));
}

// ---- the ACK that waits -------------------------------------------------------------------------

TEST_F(AckSchedulerTest, Turn_NothingOwed_SendsNothing) {
  EXPECT_FALSE(acks_.is_owed());
  EXPECT_TRUE(turn().empty());
}

TEST_F(AckSchedulerTest, Pds102_SeveralOwed_OneAckForTheNewest) {
  ASSERT_TRUE(owe(kStart));
  ASSERT_TRUE(owe(kStart + 1));
  const std::vector<AckDue> sent = turn();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].meta.psn, kStart + 1);
  EXPECT_EQ(sent[0].response.bytes[0], static_cast<std::byte>((kStart + 1).value));
  EXPECT_FALSE(acks_.is_owed());
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(memory_.in_use(), 0U);
}

TEST_F(AckSchedulerTest, Cms721_MarkOfReplacedAck_IsKept) {
  packet_.ce = true;
  ASSERT_TRUE(owe(kStart));
  packet_.ce = false;
  ASSERT_TRUE(owe(kStart + 1));
  EXPECT_TRUE(turn().at(0).meta.ce);
  ASSERT_TRUE(owe(kStart + 2));
  EXPECT_FALSE(turn().at(0).meta.ce);
}

TEST_F(AckSchedulerTest, Turn_WithoutPacket_AckStaysOwed) {
  ASSERT_TRUE(owe(kStart));
  EXPECT_TRUE(turn(false).empty());
  EXPECT_TRUE(acks_.is_owed());
  EXPECT_EQ(turn().size(), 1U);
}

TEST_F(AckSchedulerTest, Owe_WithoutMemory_Fails) {
  AckScheduler other(kStart);
  ASSERT_TRUE(owe(kStart));
  EXPECT_FALSE(other.owe(memory_, packet_, Response{}));
  EXPECT_FALSE(other.is_owed());
  EXPECT_TRUE(owe(kStart + 1)) << "an ACK that waits already has its place";
}

TEST_F(AckSchedulerTest, Discard_GivesTheMemoryBack) {
  ASSERT_TRUE(owe(kStart));
  acks_.discard(memory_);
  EXPECT_FALSE(acks_.is_owed());
  EXPECT_EQ(memory_.in_use(), 0U);
}

TEST_F(AckSchedulerTest, Pds77_Rebase_CountsFromTheNewStart) {
  const Psn start = kStart + 100'000;
  acks_.rebase(start);
  window_ = {start - 1, 8};
  EXPECT_EQ(packets_until_due(64), 4);
}

}  // namespace
}  // namespace uet::pds
