// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Losses that are found without knowing paths: by many reports above a gap (CMS-150) and by the
// answer to a Probe after a silence (CMS-151).
#include <algorithm>

#include "uet/pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

constexpr std::uint32_t kPacketBytes = 132;  // nominal, of what send() makes
constexpr Duration kRtt = microseconds(100);
constexpr Duration kSilenceAtEnd = 2 * kRtt;  // base RTT and target delay

// A window of 20 packets, and more paths than packets.
class Recovery : public Bench {
 protected:
  static cms::Parameters parameters() {
    cms::Parameters cms;
    cms.mtu_bytes = kPacketBytes;
    cms.base_rtt = kRtt;
    cms.synthetic_ecn = false;
    cms.paths = cms::PathPolicy::RoundRobin;
    cms.path_count = 1024;
    cms.tuning.initial_window_bytes = 20 * kPacketBytes;
    return cms;
  }
  Recovery() { start(parameters()); }
  void start(const cms::Parameters& cms) {
    build(test_parameters(), cms);
    open();
    start_of_bytes_ = 1;
  }
  // An ACK for all packets from `first` to `last`, CACK stays at 70000.
  wire::AckHeader reported(std::uint32_t first, std::uint32_t last) const {
    wire::AckHeader header = ack(70000, last);
    for (std::uint32_t psn = first; psn <= last; ++psn) {
      header.sack_bitmap |= std::uint64_t{1} << (psn - 70001);
    }
    header.rcvd_bytes = start_of_bytes_ + (last - first + 1) * kPacketBytes / wire::kCcByteUnit;
    return header;
  }
  static std::vector<Sent> probes(const std::vector<Sent>& sent) {
    std::vector<Sent> found = sent;
    std::erase_if(found, [](const Sent& packet) {
      return !packet.control() || packet.control()->ctl_type != CpType::Probe;
    });
    return found;
  }
  wire::AckHeader answer(std::uint32_t first, std::uint32_t last) const {
    wire::AckHeader header = reported(first, last);
    header.p = true;
    header.probe_opaque = 2;
    header.service_time = 1;
    return header;
  }
  static std::vector<std::uint32_t> resent(const std::vector<Sent>& sent) {
    std::vector<wire::RequestHeader> found = requests(sent);
    std::erase_if(found, [](const wire::RequestHeader& header) { return !header.retx; });
    return psns(found);
  }
  // Ten packets, the last word of the PDC, and the Probe that asks for them.
  void send_and_wait_for_the_probe() {
    send(10);
    ASSERT_EQ(requests(turn()).size(), 10U);
    EXPECT_TRUE(probes(after(kSilenceAtEnd - TimerWheel::kTick)).empty());
    const auto probe = probes(after(2 * TimerWheel::kTick));
    ASSERT_EQ(probe.size(), 1U);
    EXPECT_EQ(probe[0].control()->payload, 70001U);
    EXPECT_EQ(probe[0].ecn, Ecn::Ect0) << "it waits where data does";
    EXPECT_EQ(probe[0].dscp, test_parameters().dscp_data);
  }

 private:
  std::uint32_t start_of_bytes_ = 0;  // what open() sent, in units of 256
};

TEST_F(Recovery, Cms150_OneAndAHalfWindowsAboveAGapBeginIt) {
  send(60);
  ASSERT_EQ(requests(turn()).size(), 20U);
  now += 3 * kRtt;
  const auto more = answer_to(reported(70002, 70020));
  EXPECT_TRUE(resent(more).empty()) << "19 packets are less than 30";
  ASSERT_GE(requests(more).size(), 11U);
  const auto last = requests(more).back().psn.value;
  EXPECT_EQ(resent(answer_to(reported(70002, last))), (std::vector<std::uint32_t>{70001}));
  EXPECT_EQ(counters().rto_retransmissions, 0U);
}

TEST_F(Recovery, Cms150_WhatLeftJustNowMayStillCome) {
  send(60);
  turn();
  const auto more = answer_to(reported(70002, 70020));
  const auto last = requests(more).back().psn.value;
  EXPECT_TRUE(resent(answer_to(reported(70002, last))).empty());
}

TEST_F(Recovery, Cms151_AProbeAsksAfterASilenceAndWhatItsAnswerMissesIsLost) {
  send_and_wait_for_the_probe();
  now += kRtt;
  EXPECT_EQ(resent(answer_to(answer(70003, 70009))),
            (std::vector<std::uint32_t>{70001, 70002, 70010}));
  EXPECT_EQ(counters().inferred_loss_retransmissions, 3U);
  EXPECT_TRUE(resent(answer_to(answer(70003, 70009))).empty()) << "a copy";
}

TEST_F(Recovery, Cms151_AnAnswerThatHadToWaitProvesNothing) {
  send_and_wait_for_the_probe();
  now += kRtt + kRtt + TimerWheel::kTick;
  EXPECT_TRUE(resent(answer_to(answer(70003, 70009))).empty());
}

TEST_F(Recovery, Cms151_ItIsRepeatedAfterFiveRtts) {
  send_and_wait_for_the_probe();
  EXPECT_TRUE(probes(after(5 * kRtt - 2 * TimerWheel::kTick)).empty());
  EXPECT_EQ(probes(after(3 * TimerWheel::kTick)).size(), 1U);
}

TEST_F(Recovery, Cms151_WithMoreToSendItTakesThreeRtts) {
  send(60);
  turn();
  EXPECT_TRUE(probes(after(3 * kRtt - TimerWheel::kTick)).empty());
  EXPECT_EQ(probes(after(2 * TimerWheel::kTick)).size(), 1U);
}

TEST_F(Recovery, Cms151_NothingIsAskedWhenAllHasArrived) {
  send(10);
  turn();
  answer_to(ack(70010, 70010));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(probes(after(kRtt)).empty());
}

TEST_F(Recovery, Cms152_Cms153_NeitherWithTrimmingNorOnASinglePathNorWhereItIsOff) {
  cms::Parameters trimming = parameters(), single = parameters(), off = parameters();
  trimming.trimming = true;
  single.paths = cms::PathPolicy::Single;
  off.recovery = false;
  for (const cms::Parameters& cms : {trimming, single, off}) {
    start(cms);
    send(10);
    turn();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(probes(after(kRtt)).empty());
    EXPECT_EQ(counters().probes_sent, 0U);
  }
}

}  // namespace
}  // namespace uet::pds::testing
