// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Probes for the base RTT (CMS-140), and the ACK that a full window asks for.
#include <set>

#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class PdcProbe : public Bench {
 protected:
  PdcProbe() {
    cms::Parameters cms;
    cms.mtu_bytes = 4096;
    cms.max_window_bytes = 40'960;
    cms.ack_gen_trigger_bytes = cms::kAckGenTrigger;
    build(test_parameters(), cms);
  }
  static std::vector<wire::ControlHeader> probes(const std::vector<Sent>& sent) {
    std::vector<wire::ControlHeader> found = controls(sent);
    std::erase_if(found, [](const auto& header) { return header.ctl_type != CpType::Probe; });
    return found;
  }
  // The base RTT that seven samples of 1 ms and the Probe make.
  std::optional<Duration> base_rtt(std::uint32_t first = 70002) {
    now += milliseconds(1);
    for (std::uint32_t psn = first; psn < first + 7; ++psn) {
      wire::AckHeader header = ack(psn, psn);
      header.service_time = 1;
      receive(header);
    }
    return node->manager->find(pdc)->ccc().ccc->base_rtt();
  }
};

TEST_F(PdcProbe, Cms140_WithTheFirstAnswerOfALongTransfer) {
  open();
  EXPECT_EQ(counters().probes_sent, 0U) << "a short transfer is over with its first answer";
  send(100, DeliveryMode::Rud, 4000);
  ASSERT_FALSE(requests(turn()).empty());
  const auto first = answer_to(ack(70001, 70001));
  ASSERT_EQ(probes(first).size(), 1U);
  EXPECT_EQ(probes(first)[0].psn, Psn{0});
  EXPECT_EQ(probes(first)[0].payload, 70002U) << "where the bitmap of the answer begins";
  for (const Sent& sent : first) {
    if (!sent.control()) continue;
    EXPECT_EQ(sent.dscp, test_parameters().dscp_control);
  }
  EXPECT_TRUE(probes(answer_to(ack(70002, 70002))).empty());
}

// With answers, each twice as far from the one before as that was from its own: the first may wait
// behind the packets of an incast that begins.
TEST_F(PdcProbe, Cms710_EightInAllAtDoublingDistances) {
  open();
  send(100, DeliveryMode::Rud, 400);
  turn();
  std::set<std::uint16_t> opaques;
  std::uint32_t psn = 70001;
  for (int round = 0; round < 12; ++round) {
    const auto sent = probes(answer_to(ack(psn, psn)));
    ++psn;
    ASSERT_EQ(sent.size(), round < 8 ? 1U : 0U) << round;
    if (!sent.empty()) opaques.insert(sent[0].probe_opaque);
    now += microseconds(100) * (1 << round) - microseconds(1);
    EXPECT_TRUE(probes(answer_to(ack(psn, psn))).empty()) << "too early";
    ++psn;
    now += microseconds(1);
  }
  EXPECT_EQ(opaques.size(), 8U) << "each can be told by its answer";
  EXPECT_EQ(counters().probes_sent, 8U);
}

// PDS-221: some peers refuse every Probe; others are asked as before.
TEST_F(PdcProbe, Pds221_RefusedProbeIsNotRepeatedToThisPeer) {
  open();
  send(100, DeliveryMode::Rud, 400);
  turn();
  ASSERT_EQ(probes(answer_to(ack(70001, 70001))).size(), 1U);
  receive(nack(NackCode::UnexpEvent, 0));  // the PSN of a Probe
  EXPECT_NE(node->manager->find(pdc), nullptr);
  for (std::uint32_t psn = 70002; psn < 70020; ++psn) {
    now += milliseconds(1);
    EXPECT_TRUE(probes(answer_to(ack(psn, psn))).empty()) << psn;
  }
  EXPECT_EQ(counters().probes_sent, 1U);
}

// Where every answer is later than the last, by a queue or a longer path, the base RTT rises; then
// Probes ask again which it is.
TEST_F(PdcProbe, Cms140_Cms142_AgainWhenTheBaseRttHasRisen) {
  cms::Parameters cms;
  cms.mtu_bytes = 4096;
  cms.max_window_bytes = 40'960;
  cms.tuning.raise_after_rtts = 1;
  build(test_parameters(), cms);
  open();
  send(100, DeliveryMode::Rud, 400);
  turn();
  std::set<std::uint16_t> opaques;
  std::uint32_t psn = 70001;
  for (int round = 0; round < 40; ++round) {
    wire::AckHeader header = ack(psn, psn);
    header.service_time = 1;
    for (const auto& probe : probes(answer_to(header))) opaques.insert(probe.probe_opaque);
    ++psn;
    now += milliseconds(1);
  }
  // The base RTT rises once, when six of the first eight Probes have left: eight more follow.
  EXPECT_EQ(counters().probes_sent, 6U + 8U);
  EXPECT_EQ(opaques.size(), 14U);
}

TEST_F(PdcProbe, Cms710_AnAnswerToAnOlderProbeTellsNothing) {
  open();
  send(100, DeliveryMode::Rud, 400);
  turn();
  const auto first = probes(answer_to(ack(70001, 70001)));
  now += milliseconds(1);
  const auto second = probes(answer_to(ack(70002, 70002)));
  ASSERT_EQ(first.size() + second.size(), 2U);
  now += microseconds(10);
  wire::AckHeader answer = ack(70002, 70002);
  answer.p = true;
  answer.service_time = 1;
  answer.probe_opaque = first[0].probe_opaque;
  receive(answer);
  now += microseconds(490);
  answer.probe_opaque = second[0].probe_opaque;
  receive(answer);
  EXPECT_EQ(base_rtt(70003), Duration(500'000 - 128));
}

TEST_F(PdcProbe, Cms140_AlsoWithANack) {
  open();
  send(100, DeliveryMode::Rud, 4000);
  turn();
  EXPECT_EQ(probes(answer_to(nack(NackCode::NoPktBuffer, 70001))).size(), 1U);
}

// 40 us after it left, of which the peer has had it for 10.
TEST_F(PdcProbe, Cms113_Cms140_ProbeAnswer_RttLessServiceTime) {
  open();
  send(100, DeliveryMode::Rud, 4000);
  turn();
  answer_to(ack(70001, 70001));
  now += microseconds(40);
  wire::AckHeader answer = ack(70001, 70001);
  answer.p = true;
  answer.service_time = 78;  // 9.984 us
  answer.probe_opaque = 77;
  receive(answer);  // to the Probe of another PDC
  answer.probe_opaque = 2;
  receive(answer);
  answer.service_time = 240;  // a copy says nothing
  receive(answer);
  EXPECT_EQ(base_rtt(), Duration(40'000 - 9'984));
}

// Window 40,960: nine packets of 4,096 leave 4,096; behind the next nothing would fit.
TEST_F(PdcProbe, Cms124_PacketFillsWindow_AsksForAnAck) {
  open();
  const std::uint32_t payload = 4096 - 48 - sizeof(wire::PdsRequest) - 8;
  send(100, DeliveryMode::Rud, payload);
  const auto sent = requests(turn());
  ASSERT_EQ(sent.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(sent[i].ar, i == 9) << i;
}

// Packets of 4 KiB, the first of which opened the PDC and asked.
TEST_F(PdcProbe, Cms124_APeerThatCollectsMuchIsAskedAfter16KiB) {
  cms::Parameters cms;
  cms.mtu_bytes = 4096;
  cms.max_window_bytes = 65'536;
  cms.ack_gen_trigger_bytes = 65'536;
  build(test_parameters(), cms);
  open();
  send(100, DeliveryMode::Rud, 4000);
  std::vector<std::uint32_t> asking;
  for (const wire::RequestHeader& header : requests(turn())) {
    if (header.ar && header.psn < Psn{70013}) asking.push_back(header.psn.value);
  }
  EXPECT_EQ(asking, (std::vector<std::uint32_t>{70004, 70008, 70012}));
}

}  // namespace
}  // namespace uet::pds::testing
