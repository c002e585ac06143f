// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Losses inferred from later packets on the same path, and the guards (CMS-420, CMS-421).
#include <algorithm>
#include <map>

#include "uet/pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

// A quarter of the base RTT, of 100 us here, and until the timer notices.
constexpr Duration kWait = microseconds(25) + TimerWheel::kTick;

class PathInference : public Bench {
 protected:
  void build_with(std::uint16_t path_count) {
    cms::Parameters cms = open_window();
    cms.paths = cms::PathPolicy::RoundRobin;
    cms.path_count = path_count;
    build(test_parameters(), cms);
    open();
  }
  // Sends `count` packets; their entropy values by PSN.
  std::map<std::uint32_t, std::uint16_t> send_many(std::uint32_t count) {
    send(count);
    return entropies(turn());
  }
  static std::map<std::uint32_t, std::uint16_t> entropies(const std::vector<Sent>& sent) {
    std::map<std::uint32_t, std::uint16_t> by_psn;
    for (const Sent& packet : sent) {
      if (packet.request()) by_psn[packet.request()->psn.value] = packet.entropy;
    }
    return by_psn;
  }
  // The peer has this one packet, and nothing is known of those before.
  wire::AckHeader only(std::uint32_t psn) const { return ack(70000, psn); }
};

TEST_F(PathInference, Cms420_Pds131_AnyNumberOfPathsIsToldApart) {
  for (const std::uint16_t paths : {2, 16, 64, 100, 400}) {
    build_with(paths);
    const auto by_psn = send_many(2U * paths);
    ASSERT_EQ(by_psn.size(), 2U * paths);
    std::uint32_t arrived = 70001U + paths;  // its path has gone round once
    ASSERT_EQ(by_psn.at(arrived), by_psn.at(70001));
    receive(only(arrived));
    EXPECT_EQ(psns(requests(after(kWait))), (std::vector<std::uint32_t>{70001})) << paths;
    EXPECT_EQ(counters().inferred_loss_retransmissions, 1U);
  }
}

TEST_F(PathInference, Cms421_NothingHappensBeforeAQuarterOfTheBaseRtt) {
  build_with(2);
  send_many(4);
  receive(only(70003));
  EXPECT_TRUE(requests(turn()).empty());
  EXPECT_TRUE(requests(after(microseconds(24))).empty());
  EXPECT_EQ(requests(after(TimerWheel::kTick + microseconds(1))).size(), 1U);
}

TEST_F(PathInference, Cms421_ANackThatComesMeanwhileTellsMore) {
  build_with(2);
  send_many(4);
  receive(only(70003));
  EXPECT_EQ(psns(requests(answer_to(nack(NackCode::Trimmed, 70001)))),
            (std::vector<std::uint32_t>{70001}));
  EXPECT_TRUE(requests(after(kWait)).empty());
  EXPECT_EQ(counters().inferred_loss_retransmissions, 0U);
}

TEST_F(PathInference, Cms421_APacketThatArrivesMeanwhileWasNotLost) {
  build_with(2);
  send_many(4);
  receive(only(70003));
  receive(ack(70001, 70001));
  EXPECT_TRUE(requests(after(kWait)).empty());
}

TEST_F(PathInference, Cms421_WhatLeftBeforeTheRetransmissionProvesNothingOfIt) {
  build_with(1);
  send_many(3);
  receive(only(70002));
  ASSERT_EQ(psns(requests(after(kWait))), (std::vector<std::uint32_t>{70001}));
  receive(ack(70000, 70003));  // left before 70001 did again
  EXPECT_TRUE(requests(after(test_parameters().rto_init - milliseconds(1))).empty());
}

TEST_F(PathInference, Cms421_ARouteThatChangedProvesNothingOfWhatWasUnderWay) {
  cms::Parameters cms = open_window();
  cms.base_rtt = microseconds(100);
  build(test_parameters(), cms);
  open();
  send_many(5);
  receive(only(70003));
  ASSERT_EQ(psns(requests(after(kWait))), (std::vector<std::uint32_t>{70001, 70002}));
  // 70001 was not lost: its answer comes sooner than one to the retransmission can.
  receive(ack(70001, 70001));
  EXPECT_EQ(counters().inferred_losses_spurious, 1U);
  receive(ack(70001, 70005));
  EXPECT_TRUE(requests(after(4 * kWait)).empty()) << "70004 left before the route changed";
  send_many(2);  // 70006, 70007
  receive(ack(70001, 70007));
  EXPECT_TRUE(requests(after(kWait)).empty()) << "the wait is twice as long";
  EXPECT_EQ(psns(requests(after(kWait))), (std::vector<std::uint32_t>{70006}));
}

TEST_F(PathInference, Cms424_RodNeverUsesIt) {
  open(DeliveryMode::Rod);
  send(4, DeliveryMode::Rod);
  turn();
  wire::AckHeader header = ack(70000, 70000);
  header.sack_bitmap = 0b1110;  // all but 70001
  receive(header);
  EXPECT_TRUE(requests(after(4 * kWait)).empty());
}

TEST_F(PathInference, ItCanBeTurnedOff) {
  cms::Parameters cms = open_window();
  cms.path_inference = false;
  build(test_parameters(), cms);
  open();
  send_many(4);
  receive(only(70004));
  EXPECT_TRUE(requests(after(4 * kWait)).empty());
}

// Packets reported above do not prove that a retransmission is lost too: time-outs must.
TEST_F(PathInference, Pds132_APeerThatFallsSilentIsGivenUp) {
  Parameters parameters = test_parameters();
  parameters.out_of_order_threshold = 2;
  parameters.max_rto_retransmissions = 3;
  build(parameters, open_window());
  open();
  TestMessage& message = send(4);
  turn();
  wire::AckHeader header = ack(70000, 70000);
  header.sack_bitmap = 0b1110;  // all but 70001
  receive(header);
  ASSERT_EQ(counters().inferred_loss_retransmissions, 1U);
  for (int i = 0; i < 200 && message.errors.empty(); ++i) {
    now = std::max(now, node->manager->next_deadline());
    turn();
  }
  ASSERT_FALSE(message.errors.empty());
  EXPECT_EQ(message.errors[0], PdsError::RtoExhausted);
  EXPECT_EQ(counters().inferred_loss_retransmissions, 1U);
}

// ---- how it is sent again -----------------------------------------------------------------------

class Retransmission : public Bench {
 protected:
  void build_with(std::optional<std::uint8_t> dscp) {
    Parameters parameters = test_parameters();
    parameters.dscp_data = 4;
    parameters.dscp_retransmission = dscp;
    parameters.dscp_no_trim = 1;
    build(parameters);
    open();
    send(1);
    first = turn();
  }
  // The DSCP of what `code` brings back.
  int dscp_after(NackCode code) {
    for (const Sent& sent : answer_to(nack(code, 70001))) {
      if (sent.request()) return sent.dscp;
    }
    return -1;
  }
  std::vector<Sent> first;
};

TEST_F(Retransmission, Cms504_MayHaveADscpOfItsOwn) {
  build_with(8);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].dscp, 4);
  EXPECT_EQ(dscp_after(NackCode::Trimmed), 8);
  build_with({});
  EXPECT_EQ(dscp_after(NackCode::Trimmed), 4);
}

TEST_F(Retransmission, Cms507_TrimmedThreeTimesMoreItGoesWhereNothingIsTrimmed) {
  for (const NackCode code : {NackCode::Trimmed, NackCode::TrimmedLastHop}) {
    build_with(8);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(dscp_after(code), 8) << i;
    EXPECT_EQ(dscp_after(code), 1);
    send(1);
    for (const Sent& sent : turn()) EXPECT_EQ(sent.dscp, 4) << "the next one is as any other";
  }
}

TEST_F(Retransmission, Cms507_OtherNacksDoNotCount) {
  build_with(8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(dscp_after(NackCode::RcvrInferLoss), 8) << i;
}

TEST(PathInferenceMemory, APdcIsSmallerThanAKilobyte) { EXPECT_LE(sizeof(Pdc), 1024U); }

}  // namespace
}  // namespace uet::pds::testing
