// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Losses found without knowing paths: by many reports above a gap and by Probes (CMS-150 to
// CMS-153).
#include <algorithm>
#include <optional>

#include "pds/pdc.h"
#include "pds/retransmit.h"
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
    header.probe_opaque = probe_.value().control()->probe_opaque;
    header.service_time = 1;
    return header;
  }
  static std::vector<std::uint32_t> resent(const std::vector<Sent>& sent) {
    std::vector<wire::RequestHeader> found = requests(sent);
    std::erase_if(found, [](const wire::RequestHeader& header) { return !header.retx; });
    return psns(found);
  }
  void wait_for_the_next_probe(Duration time) {
    const auto sent = probes(after(time));
    ASSERT_EQ(sent.size(), 1U);
    probe_ = sent[0];
  }
  // Ten packets, the last word of the PDC, and the Probe that asks for them.
  void send_and_wait_for_the_probe() {
    send(10);
    ASSERT_EQ(requests(turn()).size(), 10U);
    EXPECT_TRUE(probes(after(kSilenceAtEnd - TimerWheel::kTick)).empty());
    ASSERT_NO_FATAL_FAILURE(wait_for_the_next_probe(2 * TimerWheel::kTick));
    EXPECT_EQ(probe_->control()->payload, 70001U);
    EXPECT_EQ(probe_->ecn, Ecn::Ect0) << "it waits where data does";
    EXPECT_EQ(probe_->dscp, test_parameters().dscp_data);
  }

 private:
  std::uint32_t start_of_bytes_ = 0;  // what open() sent, in units of 256
  std::optional<Sent> probe_;         // the newest
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

TEST_F(Recovery, Cms151_ProbeAfterSilence_UnansweredIsLost) {
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

TEST_F(Recovery, Cms151_WhatLeftJustBeforeTheProbeMayStillCome) {
  send_and_wait_for_the_probe();
  after(5 * kRtt - 2 * TimerWheel::kTick);
  send(1);
  ASSERT_EQ(psns(requests(turn())), (std::vector<std::uint32_t>{70011}));
  wait_for_the_next_probe(3 * TimerWheel::kTick);
  now += kRtt;
  EXPECT_EQ(resent(answer_to(answer(70003, 70009))),
            (std::vector<std::uint32_t>{70001, 70002, 70010}));
}

TEST_F(Recovery, Cms151_SendTimeOfAnEarlierProbeIsUnknown) {
  send_and_wait_for_the_probe();
  const wire::AckHeader late = answer(70003, 70009);
  wait_for_the_next_probe(5 * kRtt + TimerWheel::kTick);
  now += kRtt;
  EXPECT_TRUE(resent(answer_to(late)).empty());
  EXPECT_EQ(resent(answer_to(answer(70003, 70009))),
            (std::vector<std::uint32_t>{70001, 70002, 70010}));
}

TEST_F(Recovery, Cms151_WhatIsLostAgainIsAskedForAsSoon) {
  send_and_wait_for_the_probe();
  now += kRtt;
  ASSERT_EQ(resent(answer_to(answer(70002, 70010))), (std::vector<std::uint32_t>{70001}));
  EXPECT_TRUE(probes(after(kSilenceAtEnd - TimerWheel::kTick)).empty());
  wait_for_the_next_probe(2 * TimerWheel::kTick);
  now += kRtt;
  EXPECT_EQ(resent(answer_to(answer(70002, 70010))), (std::vector<std::uint32_t>{70001}));
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
  EXPECT_GT(node->manager->next_deadline(), now + 5 * kRtt) << "and nothing looks for it";
}

class RecoveryWithTrimming : public Recovery {
 protected:
  RecoveryWithTrimming() {
    cms::Parameters cms = parameters();
    cms.trimming = true;
    cms.tuning.target_qdelay_us = 100;  // kSilenceAtEnd
    start(cms);
  }
};

TEST_F(RecoveryWithTrimming, Cms152_WindowsOfReportsProveNothing) {
  send(60);
  turn();
  now += 3 * kRtt;
  const auto more = answer_to(reported(70002, 70020));
  const auto last = requests(more).back().psn.value;
  EXPECT_TRUE(resent(answer_to(reported(70002, last))).empty());
}

TEST_F(RecoveryWithTrimming, Cms151_TheAnswerToAProbeDoes) {
  send_and_wait_for_the_probe();
  now += kRtt;
  EXPECT_EQ(resent(answer_to(answer(70002, 70009))), (std::vector<std::uint32_t>{70001, 70010}));
}

TEST_F(RecoveryWithTrimming, Cms151_NothingIsAskedWhileThereIsMoreToSend) {
  send(60);
  turn();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(probes(after(kRtt)).empty());
}

TEST_F(RecoveryWithTrimming, Cms152_NothingIsAskedForSixteenRttsAfterATrim) {
  send(10);
  turn();
  ASSERT_EQ(resent(answer_to(nack(NackCode::Trimmed, 70001))), (std::vector<std::uint32_t>{70001}));
  EXPECT_TRUE(probes(after(16 * kRtt - TimerWheel::kTick)).empty());
  EXPECT_EQ(probes(after(2 * TimerWheel::kTick)).size(), 1U);
}

TEST_F(Recovery, ItCanBeTurnedOff) {
  cms::Parameters off = parameters();
  off.recovery = false;
  start(off);
  send(10);
  turn();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(probes(after(kRtt)).empty());
  EXPECT_EQ(counters().probes_sent, 0U);
}

// The order on the path shows each loss that a later packet follows.
class RecoveryOnASinglePath : public Recovery {
 protected:
  RecoveryOnASinglePath() {
    single_.paths = cms::PathPolicy::Single;
    start(single_);
  }
  // Of a peer that says nothing, in steps of the timer.
  std::size_t probes_for(Duration time) {
    std::size_t count = 0;
    for (const Time end = now + time; now < end;) count += probes(after(TimerWheel::kTick)).size();
    return count;
  }
  cms::Parameters single_ = parameters();
};

const Duration kPatience = tail_loss_time(test_parameters());

TEST_F(RecoveryOnASinglePath, Cms151_OnePath_ProbeLongBeforeTheTimeOut) {
  send(10);
  turn();
  EXPECT_TRUE(probes(after(kPatience - TimerWheel::kTick)).empty());
  wait_for_the_next_probe(2 * TimerWheel::kTick);
  now += 10 * kRtt;  // what it waited behind was before it
  EXPECT_EQ(resent(answer_to(answer(70003, 70009))),
            (std::vector<std::uint32_t>{70001, 70002, 70010}));
  EXPECT_EQ(counters().rto_retransmissions, 0U);
}

TEST_F(RecoveryOnASinglePath, Cms151_WithMoreToSendToo) {
  send(60);
  turn();
  EXPECT_EQ(probes_for(kPatience + TimerWheel::kTick), 1U);
}

TEST_F(RecoveryOnASinglePath, Cms151_ASilentPeerIsAskedEverMoreRarely) {
  send(10);
  turn();
  EXPECT_EQ(probes_for(14 * kPatience), 4U) << "after 1, 2, 4 and 8 times as long";
}

TEST_F(RecoveryOnASinglePath, Cms151_NotBeforeAnswersUsuallyCome) {
  for (std::uint32_t psn = 70001; psn < 70031; ++psn) {
    send(1);
    turn();
    after(milliseconds(4));
    answer_to(ack(psn, psn));
  }
  const std::uint64_t before = counters().probes_sent;
  send(1);
  turn();
  EXPECT_EQ(probes_for(milliseconds(4)), 0U);
  EXPECT_EQ(probes_for(milliseconds(4)), 1U);
  EXPECT_EQ(counters().probes_sent, before + 1);
}

TEST_F(RecoveryOnASinglePath, Cms153_NoNumberOfReportsBeginsIt) {
  single_.path_inference = false;
  start(single_);
  send(60);
  turn();
  now += 3 * kRtt;
  const auto more = requests(answer_to(reported(70002, 70020)));
  ASSERT_GE(more.size(), 11U);
  EXPECT_TRUE(resent(answer_to(reported(70002, more.back().psn.value))).empty());
}

}  // namespace
}  // namespace uet::pds::testing
