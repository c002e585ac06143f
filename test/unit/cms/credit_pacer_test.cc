// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RCCC at the receiver: turns, their pace and who is left out. Worked examples of CMS 3.6.
#include "cms/credit_pacer.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace uet::cms {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr Time kStart = time_from_ns(1'000'000);

Parameters at_rate(std::uint64_t bps) {
  Parameters p;
  p.algorithm = Algorithm::Rccc;
  p.mtu_bytes = 4096;
  p.link_rate_bps = bps;
  p.tuning.unsolicited_bdp = 0;
  return p;
}

class CreditPacerTest : public ::testing::Test {
 protected:
  explicit CreditPacerTest(const Parameters& parameters = at_rate(100'000'000'000))
      : pacer(parameters, milliseconds(20)) {}
  struct Turn {
    double t_us;
    char source;
    std::uint32_t units;
  };
  // Wakes exactly at each turn until no source asks for credit.
  std::vector<Turn> run(std::size_t most = 1000) {
    std::vector<Turn> turns;
    while (pacer.next_turn() != kNever && turns.size() < most) {
      now = std::max(now, pacer.next_turn());
      std::array<std::uint32_t, 3> before{};
      for (std::size_t i = 0; i < 3; ++i) before[i] = sources[i].granted_units;
      const CreditSource* granted = pacer.grant(now);
      if (granted == nullptr) continue;
      const auto i = static_cast<std::size_t>(granted - sources.data());
      turns.push_back({to_us(now - kStart), static_cast<char>('A' + i),
                       (granted->granted_units - before[i]) & 0xFFFFFF});
    }
    return turns;
  }

  CreditPacer pacer;
  std::array<CreditSource, 3> sources;
  Time now = kStart;
};

TEST_F(CreditPacerTest, Cms222_Spacing) {
  EXPECT_EQ(pacer.turn_units(), 64U);
  EXPECT_EQ(pacer.spacing(64), nanoseconds(1324));  // 1.323960 us
  EXPECT_EQ(pacer.spacing(4), nanoseconds(83));     // 1,024 B: 0.082747 us
  const CreditPacer slow(at_rate(10'000'000'000), milliseconds(20));
  EXPECT_EQ(slow.spacing(64), nanoseconds(13240));  // 13.239596 us
}

TEST_F(CreditPacerTest, Cms228_TheSlowerRateDecides) {
  Parameters limited = at_rate(100'000'000'000);
  limited.receive_rate_bps = 10'000'000'000;
  EXPECT_EQ(CreditPacer(limited, milliseconds(20)).spacing(64), nanoseconds(13240));
}

TEST_F(CreditPacerTest, Cms221_Cms222_RoundRobinOfTheWorkedExample) {
  pacer.on_target(sources[0], 160, now);
  pacer.on_target(sources[1], 64, now);
  pacer.on_target(sources[2], 100, now);
  const auto turns = run();
  const std::vector<Turn> expected{{0, 'A', 64},      {1.3240, 'B', 64}, {2.6479, 'C', 64},
                                   {3.9719, 'A', 64}, {5.2958, 'C', 36}, {6.0406, 'A', 32}};
  ASSERT_EQ(turns.size(), expected.size());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    EXPECT_NEAR(turns[i].t_us, expected[i].t_us, 1e-3) << i;
    EXPECT_EQ(turns[i].source, expected[i].source) << i;
    EXPECT_EQ(turns[i].units, expected[i].units) << i;
  }
  pacer.on_target(sources[0], 161, now);
  EXPECT_NEAR(to_us(pacer.next_turn() - kStart), 6.7025, 1.1e-3);
}

TEST_F(CreditPacerTest, Cms220_OldTargetsChangeNothing) {
  EXPECT_TRUE(pacer.on_target(sources[0], 100, now));
  EXPECT_FALSE(pacer.on_target(sources[0], 60, now));
  EXPECT_FALSE(pacer.on_target(sources[0], 100, now));
  EXPECT_TRUE(pacer.on_target(sources[0], 130, now));
  run();
  EXPECT_EQ(sources[0].granted_units, 130U);
  EXPECT_FALSE(pacer.on_target(sources[0], 130, now));
  EXPECT_EQ(pacer.next_turn(), kNever);
}

TEST_F(CreditPacerTest, Cms201_GrantsWrap) {
  sources[0].target_units = sources[0].granted_units = 0xFFFFC0;
  EXPECT_TRUE(pacer.on_target(sources[0], 0x40, now));
  const auto turns = run();
  ASSERT_EQ(turns.size(), 2U);
  EXPECT_EQ(sources[0].granted_units, 0x40U);
}

TEST_F(CreditPacerTest, Cms225_AllWhoAskGetTheSame) {
  for (CreditSource& source : sources) pacer.on_target(source, 100'000, now);
  for (int i = 0; i < 300; ++i) {
    for (CreditSource& source : sources) source.last_heard = now;
    run(1);
  }
  EXPECT_EQ(sources[0].granted_units, 100 * 64U);
  EXPECT_EQ(sources[1].granted_units, 100 * 64U);
  EXPECT_EQ(sources[2].granted_units, 100 * 64U);
}

// A pass that comes a millisecond late grants two turns, not 755.
TEST_F(CreditPacerTest, Cms227_ALatePassGrantsTheBucketOnly) {
  pacer.on_target(sources[0], 100'000, now);
  ASSERT_NE(pacer.grant(now), nullptr);
  now += milliseconds(1);
  int turns = 0;
  while (pacer.grant(now) != nullptr) ++turns;
  EXPECT_EQ(turns, 2);
}

TEST_F(CreditPacerTest, Cms226_ASilentSourceIsSuspendedUntilItSpeaks) {
  pacer.on_target(sources[0], 100'000, now);
  pacer.on_target(sources[1], 100'000, now);
  now += milliseconds(1);
  EXPECT_EQ(pacer.grant(now), &sources[0]);
  now += milliseconds(41);
  pacer.on_arrival(sources[1], {}, now);
  sources[1].last_heard = now;
  EXPECT_EQ(pacer.grant(now), &sources[1]);
  EXPECT_EQ(pacer.grant(now), &sources[1]);  // the first one has lost its place
  EXPECT_EQ(sources[0].target_units, 64U);
  EXPECT_TRUE(pacer.on_target(sources[0], 100'000, now));
  now += milliseconds(1);
  EXPECT_EQ(pacer.grant(now), &sources[1]);
  EXPECT_EQ(pacer.grant(now), &sources[0]);
}

// Among many a turn comes late: who has been granted nothing since it was heard owes nothing.
TEST_F(CreditPacerTest, Cms226_WhoWaitsForItsTurnIsNotSilent) {
  pacer.on_target(sources[0], 100'000, now);
  now += milliseconds(500);
  EXPECT_EQ(pacer.grant(now), &sources[0]);
  EXPECT_EQ(sources[0].granted_units, 64U);
  now += milliseconds(39);  // twice the time-out is 40 ms
  EXPECT_EQ(pacer.grant(now), &sources[0]);
  now += milliseconds(39);
  EXPECT_EQ(pacer.grant(now), nullptr);
  EXPECT_EQ(sources[0].target_units, 128U);
}

TEST_F(CreditPacerTest, Cms226_ArrivedBytesAreNoLongerUnseen) {
  pacer.on_target(sources[0], 64, now);
  run();
  EXPECT_EQ(sources[0].unseen_bytes, 64U * 256);
  pacer.on_arrival(sources[0], {.bytes = 10'000}, now);
  EXPECT_EQ(sources[0].unseen_bytes, 64U * 256 - 10'000);
  pacer.on_arrival(sources[0], {.bytes = 100'000}, now);  // speculative packets count too
  EXPECT_EQ(sources[0].unseen_bytes, 0U);
}

TEST_F(CreditPacerTest, RemovedSourceHasNoTurn) {
  pacer.on_target(sources[0], 100, now);
  pacer.on_target(sources[1], 64, now);
  pacer.remove(sources[0]);
  EXPECT_EQ(run().size(), 1U);
  EXPECT_EQ(sources[0].granted_units, 0U);
}

// A Credit that grants nothing new is spaced like 1,024 bytes, or what is told.
TEST_F(CreditPacerTest, Cms223_AZeroGrantTakesItsTime) {
  const auto second_turn = [&](CreditPacer& of, CreditSource& source) {
    of.on_target(source, 64, now);
    EXPECT_EQ(of.grant(now), &source);
    of.on_zero_grant(now);
    of.on_target(source, 128, now);
    const Time next = of.next_turn();
    of.on_zero_grant(now);
    EXPECT_EQ(of.next_turn(), next) << "a source waits";
    return next - now;
  };
  EXPECT_EQ(second_turn(pacer, sources[0]), nanoseconds(1324 + 83));
  Parameters free = at_rate(100'000'000'000);
  free.tuning.zero_grant_bytes = 0;
  CreditPacer other(free, milliseconds(20));
  EXPECT_EQ(second_turn(other, sources[1]), nanoseconds(1324));
}

// ---- unsolicited credit (CMS-223)
// ----------------------------------------------------------------

class UnsolicitedCredit : public CreditPacerTest {
 protected:
  UnsolicitedCredit() : CreditPacerTest(parameters()) {}
  static Parameters parameters() {
    Parameters p = at_rate(100'000'000'000);
    p.base_rtt = microseconds(12);     // a BDP is 150,000 bytes
    p.tuning.unsolicited_bdp = 0.275;  // 161 units
    return p;
  }
};

TEST_F(UnsolicitedCredit, Cms223_InTurnUpToTheBoundWithoutRequests) {
  pacer.on_target(sources[0], 100, now);
  pacer.on_target(sources[1], 10, now);
  const auto asked = run(3);
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_EQ(asked[2].source, 'A') << "requested credit precedes unsolicited credit";
  EXPECT_EQ(sources[0].granted_units, 100U);
  EXPECT_EQ(sources[1].granted_units, 10U);
  pacer.on_arrival(sources[0], {.target = 100, .bytes = 100 * 256}, now);
  const auto turns = run();
  for (std::size_t i = 1; i < turns.size(); ++i) {
    EXPECT_NE(turns[i].source, turns[i - 1].source) << "round robin";
  }
  EXPECT_EQ(sources[0].granted_units, 100U + 161U);
  EXPECT_EQ(sources[1].granted_units, 10U + 161U);
}

TEST_F(UnsolicitedCredit, Cms223_WhoAsksAgainGoesBeforeTheIdle) {
  pacer.on_target(sources[0], 10, now);
  pacer.on_target(sources[1], 10, now);
  run(3);  // both have what they asked for, one a turn more
  pacer.on_target(sources[2], 200, now);
  EXPECT_EQ(run(1).at(0).source, 'C');
  pacer.on_target(sources[0], 500, now);
  std::uint32_t asked = 0;
  for (const Turn& turn : run(6)) asked += turn.source == 'B' ? 0 : 1;
  EXPECT_EQ(asked, 6U);
  run();
  EXPECT_EQ(sources[0].granted_units, 500U + 161U);
  EXPECT_EQ(sources[1].granted_units, 10U + 161U);
  EXPECT_EQ(sources[2].granted_units, 200U + 161U);
}

// Its window limits what it asks for: more credit would leave at once and wait in the network.
TEST_F(UnsolicitedCredit, Cms223_AfterWhatWasAskedForHasArrived) {
  pacer.on_target(sources[0], 200, now);
  EXPECT_EQ(run(4).size(), 4U);
  EXPECT_EQ(pacer.grant(pacer.next_turn()), nullptr);
  pacer.on_arrival(sources[0], {.target = 200, .bytes = 135 * 256}, now);
  EXPECT_EQ(pacer.grant(pacer.next_turn()), nullptr);
  pacer.on_arrival(sources[0], {.target = 200, .bytes = 256}, now);
  EXPECT_EQ(pacer.grant(pacer.next_turn()), &sources[0]) << "all but one turn has arrived";
  EXPECT_EQ(sources[0].granted_units, 264U);
}

TEST_F(UnsolicitedCredit, Cms223_ATrimmedPacketHasUsedItsCredit) {
  pacer.on_target(sources[0], 80, now);
  EXPECT_EQ(run(2).size(), 2U);
  EXPECT_EQ(pacer.grant(pacer.next_turn()), nullptr);
  pacer.on_arrival(sources[0], {.target = 80, .trimmed = true}, now);
  EXPECT_EQ(pacer.grant(pacer.next_turn()), &sources[0]);
}

// Packets that are lost never arrive, and their repetition needs credit.
TEST_F(UnsolicitedCredit, Cms223_CreditIsLostAfterOneToTwoRoundTrips) {
  pacer.on_target(sources[0], 200, now);
  EXPECT_EQ(run(4).size(), 4U);
  const std::vector<Turn> unasked = run(1);
  ASSERT_EQ(unasked.size(), 1U);
  EXPECT_GE(unasked[0].t_us, 12);
  EXPECT_LE(unasked[0].t_us, 24 + to_us(pacer.spacing(pacer.turn_units())));
}

// Many sources cost no more.
TEST_F(UnsolicitedCredit, Cms223_FruitlessLook_TakesTheTimeOfATurn) {
  pacer.on_target(sources[0], 200, now);
  run(4);
  now = pacer.next_turn();
  EXPECT_EQ(pacer.grant(now), nullptr);
  EXPECT_EQ(pacer.next_turn(), now + pacer.spacing(pacer.turn_units()));
}

TEST_F(UnsolicitedCredit, Cms223_WhoIsGoneGetsNothing) {
  pacer.on_target(sources[0], 10, now);
  pacer.on_target(sources[1], 10, now);
  run(2);
  pacer.remove(sources[0]);
  run();
  EXPECT_EQ(sources[0].granted_units, 10U);
  EXPECT_EQ(sources[1].granted_units, 171U);
}

TEST_F(CreditPacerTest, Cms223_OffWhereItIsZero) {
  pacer.on_target(sources[0], 10, now);
  run();
  EXPECT_EQ(sources[0].granted_units, 10U);
  EXPECT_EQ(pacer.next_turn(), kNever);
}

}  // namespace
}  // namespace uet::cms
