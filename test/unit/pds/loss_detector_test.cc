// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/loss_detector.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "fixed_ccc.h"
#include "pds/retransmit.h"

namespace uet::pds {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = LossDetector::Verdict;

constexpr Psn kStart{1000};
constexpr std::size_t kWindowPsns = 128;

class LossDetectorTest : public ::testing::Test {
 protected:
  LossDetectorTest() {
    pool_.reserve(1);
    cms_.path_inference = true;
    parameters_.out_of_order_threshold = 4;
    send(8);
  }

  Time at(Duration elapsed) const { return begin_ + elapsed; }
  LossContext context() {
    return {.parameters = parameters_,
            .cms = cms_,
            .ccc = ccc_,
            .history = history_,
            .range_psns = kWindowPsns,
            .recovers_midway = true,
            .ordered = ordered_,
            .creating = false};
  }
  // New packets of data, on two paths by turns.
  void send(int count) {
    for (int i = 0; i < count; ++i) {
      TxRecord& record = window_.put();
      record.packet = &packets_[window_.span()];
      record.message = &message_;
      record.entropy = static_cast<std::uint16_t>(window_.span() % 2);
      detector_.sent(record, false, begin_);
    }
  }
  static Psn psn(int number) { return kStart + number; }
  TxRecord& record(int number) { return window_.at(psn(number)); }
  // The peer SACKs it.
  bool report(int number, Duration elapsed) {
    detector_.heard(at(elapsed));
    const bool wrong = detector_.reported(context(), kStart + number, record(number), at(elapsed));
    record(number).sacked = true;
    return wrong;
  }
  // Numbers of the packets that are found lost.
  std::vector<int> lost(bool by_ack, Duration elapsed) {
    look_ = detector_.overtaken(context(), window_, by_ack, scratch_, at(elapsed));
    return numbers();
  }
  std::vector<int> numbers() const {
    std::vector<int> result;
    for (const Psn psn : scratch_.lost) result.push_back(psn - kStart);
    return result;
  }
  LossDetector::Judgement check(int number, Duration elapsed, bool first = true,
                                bool in_window = true) {
    return detector_.check(context(), window_, kStart + number, record(number),
                           {.first = first, .asks = first, .in_window = in_window}, at(elapsed));
  }

  const Time begin_{seconds(100)};
  Parameters parameters_;
  cms::Parameters cms_;
  FixedCcc ccc_;
  InferenceHistory history_;
  bool ordered_ = false;
  Message message_;
  std::array<Packet, kWindowPsns> packets_;
  TxWindow::Pool pool_{kWindowPsns, 1};
  TxWindow window_{pool_, kStart};
  LossDetector detector_{kStart, begin_};
  LossScratch scratch_{2, kWindowPsns};
  LossDetector::Look look_;
};

using Lost = std::vector<int>;

TEST_F(LossDetectorTest, Pds130_EnoughReportsAboveMeanLost) {
  cms_.path_inference = false;
  for (const int number : {1, 2, 3}) report(number, microseconds(10));
  EXPECT_EQ(lost(true, microseconds(10)), Lost{});
  report(4, microseconds(11));
  EXPECT_EQ(lost(true, microseconds(11)), Lost{0});
  EXPECT_EQ(look_.reported, 4U);
}

TEST_F(LossDetectorTest, Pds130_TimeAloneCountsNoReports) {
  cms_.path_inference = false;
  for (const int number : {1, 2, 3, 4}) report(number, microseconds(10));
  EXPECT_EQ(lost(false, seconds(1)), Lost{});
}

TEST_F(LossDetectorTest, Pds131_LaterOneOnItsPathMeansLostAfterWait) {
  report(2, microseconds(10));
  EXPECT_EQ(lost(true, microseconds(10)), Lost{});
  const Duration wait = look_.again - at(microseconds(10));
  EXPECT_GT(wait, Duration{});
  EXPECT_EQ(lost(false, microseconds(10) + wait - Duration(1)), Lost{});
  EXPECT_EQ(lost(false, microseconds(10) + wait), Lost{0});  // and not 1, on the other path
}

TEST_F(LossDetectorTest, Pds132_OncePerTimeOut) {
  report(2, microseconds(10));
  lost(true, microseconds(10));
  ASSERT_EQ(lost(true, microseconds(100)), Lost{0});
  detector_.sent(record(0), true, at(microseconds(100)));
  parameters_.out_of_order_threshold = 64;
  send(1);
  for (const int number : {4, 6, 8}) report(number, microseconds(200));
  EXPECT_EQ(lost(true, microseconds(200)), Lost{});
  EXPECT_EQ(look_.again, at(microseconds(100)) + parameters_.rto_init);
}

TEST_F(LossDetectorTest, PacketThatWaitsToBeSentAgainIsNotLostTwice) {
  for (const int number : {1, 2, 3, 4, 5}) report(number, microseconds(10));
  record(0).resend = true;
  EXPECT_EQ(lost(true, microseconds(100)), Lost{});
  record(0).resend = false;
  record(0).not_before = at(milliseconds(1));
  EXPECT_EQ(lost(true, microseconds(100)), Lost{});
}

TEST_F(LossDetectorTest, Cms421_WrongInferenceDoublesTheWait) {
  const Duration usual = microseconds(10);
  EXPECT_EQ(history_.wait(usual), usual);
  report(2, microseconds(10));
  lost(true, microseconds(10));
  ASSERT_EQ(lost(true, microseconds(100)), Lost{0});
  detector_.sent(record(0), true, at(microseconds(100)));
  EXPECT_TRUE(report(0, microseconds(101)));  // sooner than the retransmission can have arrived
  EXPECT_EQ(history_.wait(usual), 2 * usual);
  report(7, microseconds(102));  // what left before the route changed proves nothing
  EXPECT_EQ(lost(true, seconds(1)), Lost{});
  EXPECT_EQ(look_.again, kNever);
}

TEST_F(LossDetectorTest, Cms421_SixteenRightInferencesHalveTheWait) {
  const Duration usual = microseconds(10);
  history_.note_wrong();
  for (int i = 0; i < 15; ++i) history_.note_right();
  EXPECT_EQ(history_.wait(usual), 2 * usual);
  history_.note_right();
  EXPECT_EQ(history_.wait(usual), usual);
  for (int i = 0; i < 10; ++i) history_.note_wrong();
  EXPECT_EQ(history_.wait(usual), 16 * usual);
}

TEST_F(LossDetectorTest, Cms150_RecoveryNeedsFiveReports) {
  cms_.path_inference = false;
  parameters_.out_of_order_threshold = 64;
  ccc_.rules = cms::RecoveryRules{};
  ccc_.rules->bytes = std::uint64_t{5} * cms_.mtu_bytes;
  for (const int number : {2, 3, 4, 5}) report(number, microseconds(10));
  EXPECT_EQ(lost(true, microseconds(10)), Lost{});
  EXPECT_FALSE(detector_.begin_recovery(context(), window_, look_.reported, at(microseconds(10))));
  report(6, microseconds(10));
  EXPECT_EQ(lost(true, microseconds(10)), Lost{});
  ASSERT_TRUE(detector_.begin_recovery(context(), window_, look_.reported, at(microseconds(10))));
  EXPECT_EQ(lost(true, microseconds(10)), (Lost{1, 0}));
  EXPECT_FALSE(detector_.begin_recovery(context(), window_, look_.reported,
                                        at(microseconds(10))));  // it lasts
}

// NACKs report the losses of a queue that trims, and other packets come late from it.
TEST_F(LossDetectorTest, Cms152_NoRecoveryWhileQueuesTrim) {
  ccc_.rules = cms::RecoveryRules{};
  ccc_.rules->bytes = 0;
  ccc_.rules->not_before = at(microseconds(20));
  EXPECT_FALSE(detector_.begin_recovery(context(), window_, 5, at(microseconds(19))));
  EXPECT_TRUE(detector_.begin_recovery(context(), window_, 5, at(microseconds(20))));
}

TEST_F(LossDetectorTest, Pds120_TimeOutDoublesWithEachOne) {
  const Duration first = parameters_.rto_init;
  EXPECT_EQ(check(0, first - Duration(1)).verdict, Verdict::Wait);
  EXPECT_EQ(check(0, first - Duration(1)).again, at(first));
  EXPECT_EQ(check(0, first).verdict, Verdict::TimedOut);
  detector_.sent(record(0), true, at(first));
  EXPECT_EQ(check(0, first).again, at(3 * first));
}

TEST_F(LossDetectorTest, Pds125_ProgressOfCackRestartsTheCount) {
  const Duration first = parameters_.rto_init;
  ASSERT_EQ(check(0, first).verdict, Verdict::TimedOut);
  detector_.sent(record(0), true, at(first));
  detector_.cack_moved();
  EXPECT_EQ(check(0, first).again, at(2 * first));
}

TEST_F(LossDetectorTest, Pds121_SilentPeerIsDeadAfterTheLimit) {
  Duration elapsed{};
  Verdict verdict = Verdict::Wait;
  for (int i = 0; i < 100 && verdict != Verdict::Dead; ++i) {
    elapsed = check(0, elapsed).again - begin_;
    verdict = check(0, elapsed).verdict;
    if (verdict == Verdict::TimedOut) detector_.sent(record(0), true, at(elapsed));
  }
  EXPECT_EQ(verdict, Verdict::Dead);
  EXPECT_EQ(elapsed, time_to_failure(parameters_));
}

TEST_F(LossDetectorTest, SilentPeerIsAskedByTheOldestPacketAlone) {
  const Duration first = parameters_.rto_init;
  ASSERT_EQ(check(1, first, false).verdict, Verdict::TimedOut);
  detector_.sent(record(1), true, at(first));
  EXPECT_EQ(check(1, 3 * first, false).verdict, Verdict::Wait);
  EXPECT_EQ(check(1, 3 * first, true).verdict, Verdict::TimedOut);
}

TEST_F(LossDetectorTest, Pds121_UnansweredRetransmissionsPause) {
  EXPECT_EQ(detector_.may_leave(parameters_, record(0)), begin_);
  for (int i = 1; i <= 3; ++i) {
    detector_.heard(at(milliseconds(i)));  // of another packet
    detector_.sent(record(0), true, at(milliseconds(i)));
  }
  EXPECT_EQ(detector_.may_leave(parameters_, record(0)), at(milliseconds(3)));
  detector_.heard(at(milliseconds(4)));
  detector_.sent(record(0), true, at(milliseconds(4)));
  EXPECT_EQ(detector_.may_leave(parameters_, record(0)),
            at(milliseconds(4)) + parameters_.rto_init);
}

TEST_F(LossDetectorTest, Pds121_PacketThatNeverArrivesIsBounded) {
  parameters_.max_rto_retransmissions = 2;
  const int most = 2 + static_cast<int>(kQuickRetransmissions);
  for (int i = 1; i <= most; ++i) {
    record(0).not_before = at(milliseconds(i));
    ASSERT_EQ(check(0, milliseconds(i)).verdict, Verdict::Resend) << i;
    detector_.heard(at(milliseconds(i)));
    detector_.sent(record(0), true, at(milliseconds(i)));
  }
  record(0).not_before = at(milliseconds(most + 1));
  EXPECT_EQ(check(0, milliseconds(most + 1)).verdict, Verdict::Dead);
}

TEST_F(LossDetectorTest, Pds122_RefusedPacketLeavesWhenItsTimeIsOver) {
  record(0).not_before = at(milliseconds(1));
  EXPECT_EQ(check(0, microseconds(999)).verdict, Verdict::Wait);
  EXPECT_EQ(check(0, microseconds(999)).again, at(milliseconds(1)));
  EXPECT_EQ(check(0, milliseconds(1)).verdict, Verdict::Resend);
}

TEST_F(LossDetectorTest, Pds127_PacketOutsideTheWindowWaitsForIt) {
  const auto [verdict, again] = check(0, seconds(1), true, false);
  EXPECT_EQ(verdict, Verdict::OutsideWindow);
  EXPECT_EQ(record(0).last_sent, at(seconds(1)));
  EXPECT_EQ(again, at(seconds(1) + parameters_.rto_init)) << "the window may have moved by then";
}

TEST_F(LossDetectorTest, Pds90_ReportedPacketIsAskedForItsResponse) {
  report(0, microseconds(10));
  EXPECT_EQ(check(0, parameters_.rto_init).verdict, Verdict::Ask);
}

TEST_F(LossDetectorTest, Pds205_OrderedPacketBehindAGapIsNotAskedFor) {
  ordered_ = true;
  report(1, microseconds(10));
  EXPECT_EQ(check(1, parameters_.rto_init, false).verdict, Verdict::Wait);
}

TEST_F(LossDetectorTest, EndOfASilenceGivesOneShortTimeOut) {
  const Duration first = parameters_.rto_init;
  detector_.answer_took(milliseconds(500));  // long answers make long time-outs
  Duration elapsed = check(0, first).again - begin_;
  ASSERT_GT(elapsed, 10 * first);
  ASSERT_EQ(check(0, elapsed).verdict, Verdict::TimedOut);
  elapsed += seconds(1);
  EXPECT_TRUE(detector_.heard(at(elapsed)));
  EXPECT_FALSE(detector_.heard(at(elapsed)));
  EXPECT_EQ(check(1, elapsed, false).again, at(elapsed + first));
}

TEST_F(LossDetectorTest, Cms151_ProbeAfterASilenceShowsLosses) {
  ccc_.rules = cms::RecoveryRules{};
  ccc_.rules->silence = microseconds(100);
  ccc_.rules->silence_at_end = microseconds(50);
  ccc_.rules->retry = microseconds(200);
  ccc_.rules->unqueued_rtt = microseconds(20);
  const LossDetector::Outstanding outstanding{
      .nothing = false, .more_to_send = true, .unasked_tail = false, .may_ask = true};
  const auto silence = [&](Duration elapsed) {
    return detector_.silence(context(), outstanding, at(elapsed));
  };
  EXPECT_FALSE(silence(microseconds(99)).ask);
  EXPECT_EQ(silence(microseconds(99)).again, at(microseconds(100)));
  EXPECT_TRUE(silence(microseconds(100)).ask);
  const Time asked = at(microseconds(100));
  detector_.probe_left(asked);
  EXPECT_FALSE(silence(microseconds(299)).ask);  // not before `retry`
  const std::uint16_t opaque = LossDetector::probe_opaque(asked);
  EXPECT_FALSE(detector_.probe_answered(static_cast<std::uint16_t>(opaque ^ 1)));
  ASSERT_EQ(detector_.probe_answered(opaque), asked);
  EXPECT_FALSE(detector_.probe_answered(opaque));  // a copy
  report(0, microseconds(110));
  record(1).last_sent = asked;  // may have been behind the Probe
  detector_.presume_lost_before_probe(context(), window_, asked, microseconds(19), scratch_,
                                      at(microseconds(119)));
  EXPECT_EQ(numbers(), (Lost{2, 3, 4, 5, 6, 7}));
}

// ACKs of the packets before would put it off by a round trip each.
TEST_F(LossDetectorTest, Cms151_AtTheEnd_AcksDoNotPutTheProbeOff) {
  ccc_.rules = cms::RecoveryRules{};
  ccc_.rules->silence = microseconds(100);
  ccc_.rules->silence_at_end = microseconds(50);
  ccc_.rules->retry = microseconds(200);
  LossDetector::Outstanding outstanding{
      .nothing = false, .more_to_send = false, .unasked_tail = false, .may_ask = true};
  const auto silence = [&](Duration elapsed) {
    return detector_.silence(context(), outstanding, at(elapsed));
  };
  detector_.ack_heard(at(microseconds(40)));
  EXPECT_EQ(silence(microseconds(49)).again, at(microseconds(50)));
  EXPECT_TRUE(silence(microseconds(50)).ask);
  outstanding.more_to_send = true;
  EXPECT_EQ(silence(microseconds(50)).again, at(microseconds(140)));
  outstanding.more_to_send = false;
  detector_.probe_left(at(microseconds(50)));
  ASSERT_TRUE(detector_.probe_answered(LossDetector::probe_opaque(at(microseconds(50)))));
  detector_.ack_heard(at(microseconds(60)));
  EXPECT_EQ(silence(microseconds(60)).again, at(microseconds(250))) << "not before `retry`";
}

TEST_F(LossDetectorTest, Cms151_ProbeThatWaitedInAQueueShowsNothing) {
  ccc_.rules = cms::RecoveryRules{};
  ccc_.rules->unqueued_rtt = microseconds(20);
  const auto lost_after = [&](Duration rtt) {
    detector_.presume_lost_before_probe(context(), window_, at(microseconds(100)), rtt, scratch_,
                                        at(microseconds(200)));
    return numbers().size();
  };
  EXPECT_EQ(lost_after(microseconds(20)), 0U);
  EXPECT_EQ(lost_after(microseconds(19)), 8U);
}

TEST_F(LossDetectorTest, Pds128_TailIsTheNewestDataThatAskedForNoAck) {
  EXPECT_EQ(unasked_tail(window_), psn(7));
  record(7).ar = true;
  EXPECT_EQ(unasked_tail(window_), std::nullopt);
  send(1);
  EXPECT_EQ(unasked_tail(window_), psn(8));
  record(8).sacked = true;
  EXPECT_EQ(unasked_tail(window_), std::nullopt);
}

TEST_F(LossDetectorTest, Pds128_NewestInFlightThatAskedForNoAck) {
  record(7).ar = record(7).out_of_flight = true;  // refused
  record(6).sacked = true;
  record(5).packet = nullptr;  // acknowledged
  EXPECT_EQ(unasked_in_flight(window_), psn(4));
  record(4).ar = true;
  EXPECT_EQ(unasked_in_flight(window_), std::nullopt);
  for (int number = 0; number <= 4; ++number) record(number).out_of_flight = true;
  EXPECT_EQ(unasked_in_flight(window_), std::nullopt);
}

}  // namespace
}  // namespace uet::pds
