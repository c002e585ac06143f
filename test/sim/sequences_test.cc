// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reference sequences of PDS section 9 (S1 to S8), packet by packet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using wire::AckRequestCode;
using wire::CpType;
using wire::NackCode;

bool same(Stage& stage, int a, int b, std::size_t offset, std::size_t length) {
  const auto first = stage.actor(a).memory.begin() + static_cast<std::ptrdiff_t>(offset);
  return std::equal(first, first + static_cast<std::ptrdiff_t>(length),
                    stage.actor(b).memory.begin() + static_cast<std::ptrdiff_t>(offset));
}

std::vector<std::uint32_t> psns(const std::vector<Seen>& requests) {
  std::vector<std::uint32_t> values;
  for (const Seen& seen : requests) values.push_back(seen.request->psn.value);
  return values;
}

// Drops the first transmission of one PSN of node 0.
std::function<bool(const Sighting&)> drop_psn(std::uint32_t psn) {
  return drop_first(1, [=](const Sighting& s) {
    const auto* request = s.header<wire::RequestHeader>();
    return s.from == 0 && request != nullptr && request->psn.value == psn;
  });
}

StageConfig starting_at(std::uint32_t start_psn, DeliveryMode mode = DeliveryMode::Rud) {
  StageConfig config;
  config.mode = mode;
  config.fep.pds.start_psn = start_psn;
  return config;
}

// PDS section 9, S1; PDS-85, PDS-93, PDS-105.
TEST(Sequence, S1_NonGuaranteedResponse_OnlyAckIsSent) {
  Stage stage(starting_at(333));
  ASSERT_TRUE(stage.write(0, 1, 0, 100).ok());
  stage.world().run_for(milliseconds(100));
  ASSERT_EQ(stage.sent.size(), 2u);
  const auto& request = stage.sent[0].request;
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->psn.value, 333u);
  EXPECT_TRUE(request->syn);
  EXPECT_TRUE(request->ar);  // PDS-101
  const auto& ack = stage.sent[1].ack;
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->ack_psn().value, 333u);
  EXPECT_EQ(ack->cack_psn.value, 333u);
  EXPECT_EQ(ack->req, AckRequestCode::None);
  EXPECT_EQ(stage.actor(0).sink.completions.size(), 1u);
  EXPECT_TRUE(same(stage, 0, 1, 0, 100));
}

// PDS section 9, S2; PDS-86, PDS-95, PDS-111, PDS-116. An unexpected message is such a response.
TEST(Sequence, S2_GuaranteedResponseHoldsCackUntilCleared) {
  Stage stage(starting_at(333));
  ASSERT_TRUE(stage.send(0, 1, 0, 100).ok());
  stage.world().run_for(milliseconds(10));
  ASSERT_EQ(stage.acks(1).size(), 1u);
  const auto ack = *stage.acks(1)[0].ack;
  EXPECT_EQ(ack.ack_psn().value, 333u);
  EXPECT_EQ(ack.cack_psn.value, 332u);
  EXPECT_EQ(ack.req, AckRequestCode::Clear);
  const auto clears = stage.controls(0, CpType::Clear);
  ASSERT_EQ(clears.size(), 1u);
  EXPECT_EQ(clears[0].control->payload, 333u);
  EXPECT_EQ(clears[0].control->psn.value, 0u);
  EXPECT_FALSE(clears[0].control->ar);
  EXPECT_TRUE(stage.fep(1).quiescent() || !stage.fep(1).ses().idle());
  // Cleared: the next ACK shows it.
  ASSERT_TRUE(stage.write(0, 1, 0, 100).ok());
  stage.world().run_for(milliseconds(10));
  ASSERT_EQ(stage.acks(1).size(), 2u);
  EXPECT_EQ(stage.acks(1)[1].ack->cack_psn.value, 334u);
  ASSERT_TRUE(stage.receive(1, 4096, 100).ok());
  EXPECT_TRUE(stage.completes(1, 1));
}

// PDS section 9, S3.
TEST(Sequence, S3_FourGuaranteedThenTwoPlain) {
  Stage stage(starting_at(333));
  for (std::uintptr_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(stage.send(0, 1, 0, 100, std::nullopt, i + 1).ok());
  }
  stage.world().run_for(milliseconds(10));
  const auto guaranteed = stage.acks(1);
  ASSERT_EQ(guaranteed.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(guaranteed[i].ack->ack_psn().value, 333 + i);
    EXPECT_EQ(guaranteed[i].ack->cack_psn.value, 332u);
    EXPECT_EQ(guaranteed[i].ack->req, AckRequestCode::Clear);
  }
  EXPECT_EQ(stage.controls(0, CpType::Clear).back().control->payload, 336u);
  ASSERT_TRUE(stage.write(0, 1, 0, 100).ok());
  ASSERT_TRUE(stage.write(0, 1, 0, 100).ok());
  stage.world().run_for(milliseconds(10));
  const auto last = *stage.acks(1).back().ack;
  EXPECT_EQ(last.cack_psn.value, 338u);
  EXPECT_EQ(last.req, AckRequestCode::None);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(stage.receive(1, 4096, 100).ok());
  EXPECT_TRUE(stage.completes(1, 4));
}

// PDS section 9, S5; PDS-51, PDS-54, PDS-58, PDS-92, PDS-94, PDS-124.
TEST(Sequence, S5_OpenWithLossOfTheFirstPacket) {
  Stage stage(starting_at(70000));
  stage.world().filter = drop_psn(70000);
  ASSERT_TRUE(stage.write(0, 1, 0, 5 * 1024).ok());
  ASSERT_TRUE(stage.completes(0, 1));
  const auto requests = stage.requests(0);
  EXPECT_THAT(psns(requests), ElementsAre(70000, 70001, 70002, 70003, 70004, 70000));
  for (std::uint16_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(requests[i].request->syn);
    EXPECT_EQ(requests[i].request->psn_offset, i);
    EXPECT_EQ(requests[i].request->clear_psn_offset, -1 - i);  // PDS-34: CLEAR_PSN 69999
  }
  const auto& resent = *requests[5].request;
  EXPECT_FALSE(resent.syn);
  EXPECT_TRUE(resent.retx);
  EXPECT_TRUE(resent.ar);
  const auto acks = stage.acks(1);
  ASSERT_GE(acks.size(), 2u);
  EXPECT_EQ(acks[0].ack->cack_psn.value, 69999u);
  EXPECT_NE(acks[0].ack->sack_bitmap, 0u);
  EXPECT_EQ(resent.dpdcid, acks[0].ack->spdcid);
  EXPECT_EQ(acks.back().ack->cack_psn.value, 70004u);
  EXPECT_EQ(stage.counters(1).pdcs_accepted, 1u);
  EXPECT_EQ(stage.counters(1).requests_delivered, 5u);
  EXPECT_TRUE(same(stage, 0, 1, 0, 5 * 1024));
}

// PDS section 9, S6; PDS-24, PDS-60, PDS-206.
TEST(Sequence, S6_DuplicatedSynIsDropped) {
  Stage stage(starting_at(70000));
  bool copied = false;
  stage.world().on_delivered = [&](const Sighting& s) {
    const auto* request = s.header<wire::RequestHeader>();
    if (copied || request == nullptr || request->psn.value != 70002) return;
    copied = true;
    stage.world().inject(*s.packet, 1, std::chrono::microseconds(3));
  };
  ASSERT_TRUE(stage.write(0, 1, 0, 5 * 1024).ok());
  stage.world().run_for(milliseconds(10));
  EXPECT_TRUE(copied);
  EXPECT_EQ(stage.actor(0).sink.completions.size(), 1u);
  EXPECT_EQ(stage.counters(1).pdcs_accepted, 1u);
  EXPECT_EQ(stage.counters(1).duplicates_dropped, 1u);
  EXPECT_EQ(stage.counters(1).requests_delivered, 5u);
  EXPECT_TRUE(stage.nacks(1).empty());  // PDS-201
}

// PDS section 9, S7; PDS-155, PDS-169, PDS-174.
TEST(Sequence, S7_IdlePdcIsClosedWithAHandshake) {
  StageConfig config = starting_at(70000);
  config.fep.pds.initiator_idle_time = config.fep.pds.keepalive_time = milliseconds(5);
  Stage stage(config);
  ASSERT_TRUE(stage.write(0, 1, 0, 5 * 1024).ok());
  stage.world().run_for(milliseconds(100));
  const auto closes = stage.controls(0, CpType::Close);
  ASSERT_EQ(closes.size(), 1u);
  EXPECT_EQ(closes[0].control->psn.value, 70005u);
  EXPECT_TRUE(closes[0].control->ar);
  EXPECT_FALSE(closes[0].control->syn);  // PDS-56
  const auto last = *stage.acks(1).back().ack;
  EXPECT_EQ(last.ack_psn().value, 70005u);
  EXPECT_EQ(last.cack_psn.value, 70005u);
  EXPECT_EQ(last.next_hdr, wire::NextHdr::None);  // PDS-104
  EXPECT_EQ(stage.counters(0).pdcs_closed, 1u);
  EXPECT_EQ(stage.counters(1).pdcs_closed, 1u);
  EXPECT_EQ(stage.counters(0).pdcs_failed + stage.counters(1).pdcs_failed, 0u);
  EXPECT_TRUE(stage.fep(0).quiescent());
  EXPECT_TRUE(stage.fep(1).quiescent());
}

// PDS section 9, S8 with a reorder buffer; PDS-162, PDS-164, PDS-165, PDS-166.
TEST(Sequence, S8_RodResendsOnlyTheGap) {
  Stage stage(starting_at(1, DeliveryMode::Rod));
  ASSERT_TRUE(stage.write(0, 1, 0, 10).ok());  // establishes: PSN 1
  ASSERT_TRUE(stage.completes(0, 1));
  stage.sent.clear();
  stage.world().filter = drop_psn(4);
  ASSERT_TRUE(stage.write(0, 1, 0, 6 * 1024).ok());
  ASSERT_TRUE(stage.completes(0, 2));
  EXPECT_THAT(psns(stage.requests(0)), ElementsAre(2, 3, 4, 5, 6, 7, 4));
  EXPECT_TRUE(stage.requests(0).back().request->retx);
  const auto nacks = stage.nacks(1);
  ASSERT_EQ(nacks.size(), 1u);
  EXPECT_EQ(nacks[0].nack->nack_code, NackCode::RodOoo);
  EXPECT_EQ(stage.acks(1).back().ack->cack_psn.value, 7u);
  EXPECT_TRUE(same(stage, 0, 1, 0, 6 * 1024));
  // PDS-161: one entropy value for the life of the PDC.
  for (const Seen& seen : stage.requests(0)) {
    EXPECT_EQ(seen.packet.entropy, stage.requests(0)[0].packet.entropy);
  }
}

// PDS section 22, idea 10; PDS-162.
TEST(Sequence, RodWithOneLossInTenPacketsIsDeliveredInOrder) {
  Stage stage(starting_at(1, DeliveryMode::Rod));
  for (std::uintptr_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(stage.receive(1, 64 * 1024 + i * 1024, 1024, i + 1).ok());
  }
  stage.world().filter = drop_psn(4);
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(stage.send(0, 1, i * 1024, 1000, i, i + 1).ok());
  }
  ASSERT_TRUE(stage.completes(1, 10));
  ASSERT_TRUE(stage.completes(0, 10));
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(stage.actor(1).sink.completions[i].data, i);
    EXPECT_EQ(stage.actor(1).sink.completions[i].context, reinterpret_cast<void*>(i + 1));
  }
}

}  // namespace
}  // namespace uet::sim
