// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RCCC at the source: the worked examples of CMS 3.6 and what class Rccc adds to them.
#include "cms/rccc.h"

#include <gtest/gtest.h>

namespace uet::cms {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Time kStart = time_from_ns(1'000'000);

// 100 Gb/s x 12 us: BDP 150,000, Wmax 225,000 (CMS 2.1).
Parameters worked_example(Algorithm algorithm) {
  Parameters p;
  p.algorithm = algorithm;
  p.mtu_bytes = 4096;
  p.link_rate_bps = 100'000'000'000;
  p.base_rtt = microseconds(12);
  p.trimming = true;
  return p;
}

// ---- Rules --------------------------------------------------------------------------------------

struct TargetCase {
  std::uint64_t backlog, rtx;
  std::int64_t credit;
  bool speculative;
  std::uint32_t granted;
  std::optional<std::uint64_t> window;
  std::size_t active;
  std::uint32_t target;
};

TEST(Credit, Cms214_TargetsOfTheWorkedExample) {
  const TargetCase cases[] = {
      {100'000, 0, 0, false, 1000, {}, 1, 1391},
      {1'000'000, 0, 0, false, 1000, {}, 1, 1879},
      {1'000'000, 0, 0, false, 1000, 60'000, 1, 1251},
      {1'000'000, 8192, 20'000, false, 1000, 60'000, 1, 1173},
      {5000, 0, 225'000, true, 0, {}, 1, 16},
      {1'000'000, 0, 150'000, true, 0, {}, 1, 293},
      {1'000'000, 0, 0, false, 1000, {}, 3, 1293},
  };
  for (const TargetCase& c : cases) {
    const CreditState state{c.credit, c.granted, c.speculative, c.backlog, c.rtx};
    const TargetLimits limits{225'000, c.window, 4096, c.active};
    EXPECT_EQ(credit_target(state, limits), c.target);
  }
}

TEST(Credit, Cms214_NothingWaitsNothingIsAskedFor) {
  EXPECT_EQ(credit_target({-1200, 1000, false, 0, 0}, {225'000, {}, 4096, 1}), 1000U);
}

// However many contexts share, the answer allows one packet: otherwise none would ask again.
TEST(Credit, Cms214_AtLeastOnePacketIsAskedFor) {
  const CreditState state{-4000, 1000, false, 1'000'000, 0};
  const std::uint32_t target = credit_target(state, {225'000, {}, 4096, 1000});
  EXPECT_GT((target - 1000) * kCreditUnit, 4000U);
}

TEST(Credit, Cms213_ACounterCountsOnce) {
  CreditState state{-1200, 1000, false, 0, 0};
  EXPECT_TRUE(credit_on_update(state, 1064, 225'000));
  EXPECT_EQ(state.credit_bytes, 15'184);
  EXPECT_FALSE(credit_on_update(state, 1064, 225'000));
  EXPECT_FALSE(credit_on_update(state, 1032, 225'000));
  EXPECT_EQ(state.credit_bytes, 15'184);
  EXPECT_EQ(state.granted_units, 1064U);
  credit_on_update(state, 9000, 225'000);
  EXPECT_EQ(state.credit_bytes, 225'000);
}

TEST(Credit, Cms201_CountersWrap) {
  EXPECT_EQ(credit_ahead(0x000040, 0xFFFFC0), 128U);
  EXPECT_EQ(credit_ahead(0xFFFFC0, 0x000040), 0U);
  EXPECT_EQ(credit_ahead(0x800000, 0), 0U);
  EXPECT_EQ(credit_ahead(0x7FFFFF, 0), 0x7FFFFFU);
  CreditState state{0, 0xFFFFC0, false, 0, 0};
  credit_on_update(state, 0x000040, 225'000);
  EXPECT_EQ(state.credit_bytes, 32'768);
  state.backlog_bytes = 256;
  state.credit_bytes = 0;
  state.granted_units = 0xFFFFFF;
  EXPECT_EQ(credit_target(state, {225'000, {}, 4096, 1}), 0U);
}

TEST(Credit, Cms212_TheFirstAnswerEndsSpeculation) {
  CreditState state{90'000, 0, true, 0, 0};
  credit_end_speculation(state);
  EXPECT_EQ(state.credit_bytes, 0);
  credit_on_update(state, 64, 225'000);
  EXPECT_EQ(state.credit_bytes, 16'384);
  credit_end_speculation(state);
  EXPECT_EQ(state.credit_bytes, 16'384);  // once only
  CreditState overdrawn{-700, 0, true, 0, 0};
  credit_end_speculation(overdrawn);
  EXPECT_EQ(overdrawn.credit_bytes, -700);
}

// ---- class Rccc ---------------------------------------------------------------------------------

class RcccTest : public ::testing::Test {
 protected:
  explicit RcccTest(Algorithm algorithm = Algorithm::Rccc)
      : rccc(worked_example(algorithm), 3, kStart) {}
  // Sends while it may; the bytes sent.
  std::uint64_t send_all(std::uint32_t bytes = 4096) {
    std::uint64_t sent = 0;
    for (; rccc.may_send(bytes) && sent < 10'000'000; sent += bytes) rccc.on_sent(bytes, now);
    return sent;
  }
  void ack(std::uint64_t bytes) {
    AckFeedback feedback;
    feedback.newly_received_bytes = bytes;
    rccc.on_ack(feedback, now);
  }
  Rccc rccc;
  Time now = kStart;
};

class BothTest : public RcccTest {
 protected:
  BothTest() : RcccTest(Algorithm::Both) {}
};

TEST_F(RcccTest, Cms210_Cms211_OneBdpMayGoBeforeAnyCredit) {
  EXPECT_EQ(send_all(), 37U * 4096);  // the first multiple above 150,000
  EXPECT_FALSE(rccc.may_send(1));
}

TEST_F(RcccTest, Cms211_CreditIsSpentByRetransmissionsToo) {
  send_all();
  ack(37 * 4096);
  rccc.on_credit(64, now);
  const std::uint64_t sent = send_all();
  EXPECT_GE(sent, 64U * 256 - 4096);
  EXPECT_LE(sent, 64U * 256 + 4096);
  EXPECT_FALSE(rccc.may_send(1));
}

TEST_F(RcccTest, Cms215_NotTold_AsksAtOnceThenAfterTwoRtts) {
  rccc.on_new_data(4096, now);
  send_all();
  EXPECT_EQ(rccc.request_due(now), kNever);  // something is in flight
  ack(37 * 4096);
  EXPECT_EQ(rccc.request_due(now), now);
  EXPECT_EQ(rccc.take_target(1), 23U);  // 4,096 and what was overdrawn
  EXPECT_EQ(rccc.request_due(now), now + microseconds(24));
  now += microseconds(24);
  EXPECT_TRUE(rccc.start_request(now));
  EXPECT_EQ(rccc.request_due(now), now + microseconds(48));
  EXPECT_TRUE(rccc.start_request(now));
  EXPECT_EQ(rccc.request_due(now), now + microseconds(96));
  rccc.on_credit(16, now);
  EXPECT_EQ(rccc.request_due(now), kNever);
}

// Each ACK repeats the counter, those of keepalives too: the wait goes on.
TEST_F(RcccTest, Cms215_ARepeatedCounterIsNoCredit) {
  send_all();
  ack(37 * 4096);
  rccc.on_credit(5, now);
  send_all();
  ack(4096);
  rccc.on_new_data(4096, now);
  rccc.take_target(1);
  const Time due = rccc.request_due(now);
  ASSERT_EQ(due, now + microseconds(24));
  while (now < due) {
    now += microseconds(8);
    ack(0);
    rccc.on_credit(5, now);
  }
  EXPECT_LE(rccc.request_due(now), now);
}

TEST_F(RcccTest, ADataPacketMayAskInsteadOfAControlPacket) {
  send_all();
  ack(37 * 4096);
  EXPECT_FALSE(rccc.may_send(4096));
  rccc.on_request_impossible(now);
  EXPECT_EQ(send_all(), 4096U);
}

TEST_F(RcccTest, Cms216_AfterALongPauseOneBdpMayGoAgain) {
  send_all();
  now += microseconds(1);
  ack(37 * 4096);
  rccc.on_credit(64, now);
  now += microseconds(119);
  rccc.on_new_data(4096, now);
  EXPECT_LE(send_all(), 64U * 256 + 4096);
  rccc.on_backlog_left(4096);
  ack(37 * 4096);
  now += microseconds(121);
  rccc.on_new_data(4096, now);
  EXPECT_EQ(send_all(), 37U * 4096);
}

TEST_F(RcccTest, Cms241_ThreeSilentRequests_FallBackToNscc) {
  rccc.on_new_data(1'000'000, now);
  send_all();
  ack(37 * 4096);
  rccc.take_target(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(rccc.start_request(now));
    EXPECT_TRUE(rccc.asks_for_credit());
  }
  EXPECT_TRUE(rccc.start_request(now));  // it may have no processor to answer with
  EXPECT_EQ(send_all(), 4096U);
  ack(4096);
  EXPECT_FALSE(rccc.start_request(now));  // it has, and gives none
  EXPECT_FALSE(rccc.asks_for_credit());
  EXPECT_EQ(rccc.request_due(now), kNever);
  EXPECT_EQ(send_all(), rccc.window_bytes() / 4096 * 4096);
  rccc.on_credit(64, now);  // it gives credit after all
  EXPECT_TRUE(rccc.asks_for_credit());
}

TEST_F(RcccTest, Cms241_NoAckYet_GoesOnAskingForCredit) {
  rccc.on_new_data(1'000'000, now);
  send_all();
  rccc.on_nack(wire::NackCode::NoPdcAvail, 37 * 4096, false, {}, now);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(rccc.start_request(now));
  EXPECT_TRUE(rccc.asks_for_credit());
  EXPECT_EQ(send_all(), 4096U);  // one packet goes: whether the peer lives its time-outs tell
  rccc.on_inferred_loss(4096, LossCause::Rto, now);
  EXPECT_LE(rccc.request_due(now), now + milliseconds(100));  // and it goes on asking
}

TEST_F(BothTest, Cms5_Cms240_APacketNeedsTheLeaveOfBoth) {
  rccc.on_new_data(1'000'000, now);
  send_all();
  EXPECT_FALSE(rccc.may_send(4096));  // no credit, though the window is not full
  EXPECT_LT(rccc.inflight_bytes(), static_cast<std::int64_t>(rccc.window_bytes()));
  rccc.on_credit(2000, now);
  send_all();
  EXPECT_GT(rccc.inflight_bytes() + 4096, static_cast<std::int64_t>(rccc.window_bytes()));
  EXPECT_FALSE(rccc.may_send(4096));  // credit, but no window
}

TEST_F(BothTest, Cms240_LastHopTrimsDoNotTouchTheWindow) {
  send_all();
  const std::uint64_t window = rccc.window_bytes();
  rccc.on_nack(wire::NackCode::TrimmedLastHop, 4096, false, {}, now);
  EXPECT_EQ(rccc.window_bytes(), window);
  EXPECT_EQ(rccc.inflight_bytes(), 36 * 4096);
  rccc.on_nack(wire::NackCode::Trimmed, 4096, false, {}, now);
  EXPECT_LT(rccc.window_bytes(), window);
}

TEST_F(RcccTest, RcccAloneIsNotBoundByTheWindow) {
  rccc.on_new_data(1'000'000, now);
  send_all();
  rccc.on_credit(800, now);
  send_all();
  EXPECT_GT(rccc.inflight_bytes(), static_cast<std::int64_t>(rccc.window_bytes()));
}

TEST(MakeCcc, Cms5_RcccIsMadeWhereItIsConfiguredAndNamed) {
  for (const Algorithm algorithm : {Algorithm::Rccc, Algorithm::Both}) {
    const auto ccc = make_ccc(worked_example(algorithm), kStart, std::uint8_t{9});
    ASSERT_NE(ccc->by_credit(), nullptr);
    EXPECT_EQ(ccc->by_credit()->ccc_id(), 9);
    EXPECT_EQ(make_ccc(worked_example(algorithm), kStart)->by_credit(), nullptr);
  }
  EXPECT_EQ(make_ccc(worked_example(Algorithm::Nscc), kStart, 9)->by_credit(), nullptr);
}

// CMS-150: by what is in flight, not by the window, which credit may never fill.
TEST(Recovery, Cms150_UnderCreditByWhatIsInFlight) {
  Parameters p = worked_example(Algorithm::Rccc);
  p.paths = PathPolicy::Oblivious;
  p.path_count = 64;
  Rccc by_credit(p, 1, kStart);
  EXPECT_EQ(by_credit.recovery().value().bytes, 5 * 4096U) << "the least";
  by_credit.on_sent(40'000, kStart);
  EXPECT_EQ(by_credit.recovery()->bytes, 60'000U);
  by_credit.on_sent(300'000, kStart);
  EXPECT_EQ(by_credit.recovery()->bytes, 225'000U);
  p.algorithm = Algorithm::Both;
  EXPECT_EQ(Rccc(p, 1, kStart).recovery()->bytes, 225'000U);
}

}  // namespace
}  // namespace uet::cms
