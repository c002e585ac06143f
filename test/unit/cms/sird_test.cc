// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SIRD: bound, buckets and lost credit at the receiver, the mark of a source (NSDI 2025).
#include "cms/sird.h"

#include <gtest/gtest.h>

#include <array>

#include "cms/credit_pacer.h"
#include "cms/rccc.h"

namespace uet::cms {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Time kStart = time_from_ns(1'000'000);

// 100 Gb/s x 12 us: BDP 150,000, B 225,000, a turn of 16,384 and enough credit 75,000.
Parameters network() {
  Parameters p;
  p.algorithm = Algorithm::Sird;
  p.mtu_bytes = 4096;
  p.link_rate_bps = 100'000'000'000;
  p.base_rtt = microseconds(12);
  p.trimming = true;
  return p;
}

TEST(SirdLimits, Bounds_FollowTheBdp) {
  const SirdLimits limits = sird_limits(network(), 16'384);
  EXPECT_DOUBLE_EQ(limits.all, 225'000);
  EXPECT_DOUBLE_EQ(limits.largest, 150'000);
  EXPECT_EQ(credit_period(network()), Duration(microseconds(96)));
  EXPECT_EQ(sird_enough_bytes(network()), 75'000);
  Parameters slow = network();
  slow.link_rate_bps = 1'000'000;
  EXPECT_DOUBLE_EQ(sird_limits(slow, 16'384).all, 16'384);  // one turn at least
}

TEST(SirdBucket, Marks_ShrinkItAndTheirAbsenceWidensIt) {
  const SirdLimits limits = sird_limits(network(), 16'384);
  SirdBucket bucket;
  EXPECT_DOUBLE_EQ(bucket.bytes(limits), 150'000);
  bucket.on_arrival(150'000, true, limits);
  EXPECT_DOUBLE_EQ(bucket.bytes(limits), 150'000 * 0.96);
  for (int i = 0; i < 1000; ++i) bucket.on_arrival(150'000, true, limits);
  EXPECT_DOUBLE_EQ(bucket.bytes(limits), 16'384);
  bucket.on_arrival(16'384, false, limits);
  EXPECT_DOUBLE_EQ(bucket.bytes(limits), 16'384 + 4096);
  for (int i = 0; i < 1000; ++i) bucket.on_arrival(150'000, false, limits);
  EXPECT_DOUBLE_EQ(bucket.bytes(limits), 150'000);
}

TEST(OutstandingCredit, LostCredit_IsForgottenAfterTwoPeriods) {
  OutstandingCredit credit;
  credit.enter(10);
  credit.grant(1000);
  credit.arrive(300);
  credit.enter(11);
  credit.grant(50);
  EXPECT_EQ(credit.bytes(), 750);
  credit.enter(12);
  EXPECT_EQ(credit.bytes(), 50);
  credit.enter(20);
  EXPECT_EQ(credit.bytes(), 0);
  credit.arrive(500);
  EXPECT_EQ(credit.bytes(), 0);
}

class SirdPacer : public ::testing::Test {
 protected:
  // Grants until nothing is due for `us`; the bytes granted.
  std::uint64_t grant_for(double us) {
    const Time end = now + Duration(static_cast<std::int64_t>(us * 1000));
    std::uint64_t bytes = 0;
    while (pacer.next_turn() <= end) {
      now = std::max(now, pacer.next_turn());
      if (pacer.grant(now) != nullptr) bytes += pacer.last_grant_bytes();
    }
    now = end;
    return bytes;
  }
  void arrive(CreditSource& source, std::uint32_t bytes, std::uint32_t target) {
    pacer.on_target(source, target, now);
    pacer.on_arrival(source, {.target = target, .bytes = bytes}, now);
  }

  CreditPacer pacer{network(), milliseconds(20)};
  std::array<CreditSource, 3> sources;
  Time now = time_from_ns(96'000 * 100);  // a period begins
};

TEST_F(SirdPacer, Bound_OfOneAndOfAllSources) {
  pacer.on_target(sources[0], 4000, now);
  EXPECT_EQ(grant_for(30), 9U * 16'384);  // within 150,000
  EXPECT_LT(pacer.next_turn(), kNever);
  pacer.on_target(sources[1], 4000, now);
  pacer.on_target(sources[2], 4000, now);
  EXPECT_EQ(grant_for(30), 4U * 16'384);  // within 225,000 together
}

TEST_F(SirdPacer, Arrival_PermitsTheNextTurn) {
  pacer.on_target(sources[0], 4000, now);
  grant_for(30);
  EXPECT_GT(pacer.next_turn(), now);
  arrive(sources[0], 16'384, 4000);
  EXPECT_LE(pacer.next_turn(), now);
  EXPECT_EQ(grant_for(10), 16'384U);
}

TEST_F(SirdPacer, LostCredit_BlocksForTwoPeriodsAtMost) {
  pacer.on_target(sources[0], 100'000, now);
  grant_for(30);
  EXPECT_EQ(grant_for(60), 0U);
  EXPECT_GE(grant_for(110), 16'384U);
}

TEST_F(SirdPacer, SenderMark_ShrinksTheBucket) {
  pacer.on_target(sources[0], 60'000, now);
  for (int i = 0; i < 400; ++i) {
    grant_for(2);
    // It knows what it was granted and asks for no more, though it has asked for more before.
    arrive(sources[0], 16'384, sources[0].granted_units);
  }
  EXPECT_LT(sources[0].sird.bucket_bytes(sird_limits(network(), 16'384)), 60'000);
  EXPECT_EQ(sources[0].sird.by_network.bytes(sird_limits(network(), 16'384)), 150'000);
}

TEST_F(SirdPacer, LastPackets_AreNoMark) {
  pacer.on_target(sources[0], 64, now);
  grant_for(2);
  for (int i = 0; i < 100; ++i) arrive(sources[0], 16'384, 64);
  EXPECT_EQ(sources[0].sird.bucket_bytes(sird_limits(network(), 16'384)), 150'000);
}

TEST_F(SirdPacer, NetworkMark_ShrinksTheBucket) {
  pacer.on_target(sources[0], 60'000, now);
  for (int i = 0; i < 100; ++i) {
    pacer.on_arrival(sources[0], {.target = 60'000, .bytes = 16'384, .ce = true}, now);
  }
  EXPECT_LT(sources[0].sird.bucket_bytes(sird_limits(network(), 16'384)), 150'000);
}

TEST_F(SirdPacer, TrimmedPacket_HasUsedItsCredit) {
  pacer.on_target(sources[0], 4000, now);
  grant_for(30);
  for (int i = 0; i < 4; ++i) {
    pacer.on_arrival(sources[0], {.target = 4000, .ce = true, .trimmed = true}, now);
  }
  EXPECT_EQ(grant_for(10), 16'384U);
}

// The mark: as much credit as is enough, and no demand.
TEST(SirdSource, EnoughCredit_AsksForNothing) {
  const std::unique_ptr<Ccc> ccc = make_ccc(network(), kStart, std::uint8_t{1});
  Rccc& source = *ccc->by_credit();
  source.on_new_data(1'000'000, kStart);
  source.on_credit(64, kStart);  // 16,384 bytes
  const std::uint32_t wanted = credit_ahead(source.take_target(8), 64);
  EXPECT_GT(wanted * kCreditUnit, 150'000U);  // all of it: shares are the receivers' business
  source.on_credit(320, kStart);              // 81,920
  EXPECT_EQ(source.take_target(8), 320U);
  ccc->on_sent(8192, kStart);
  EXPECT_GT(credit_ahead(source.take_target(8), 320), 0U);
}

}  // namespace
}  // namespace uet::cms
