// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The numbers of CMS section 9: each does what it says, and what CMS 9.5 wants counted is counted.
#include "cms/tuning.h"

#include "cms/credit_pacer.h"
#include "cms/path.h"
#include "cms/rccc.h"
#include "nscc_model.h"

namespace uet::cms::test {
namespace {

template <class Change>
Parameters tuned(Change change, bool trimming = true) {
  Parameters p = reference_network(trimming);
  change(p.tuning);
  return p;
}

template <class Change>
NsccConstants constants(Change change) {
  return nscc_constants(tuned(change), us(12));
}

// CMS 2.1, CMS 9.2: what is given takes the place of the rule.
TEST(Tuning, Cms101_WindowsWithinWhatIsSaid) {
  EXPECT_EQ(Model(tuned([](Tuning& t) { t.max_window_bdp = 2; })).s.max_bytes, 300'000);
  Model small(tuned([](Tuning& t) { t.initial_window_bytes = 50'000; }));
  EXPECT_EQ(small.s.cwnd_bytes, 50'000);
  EXPECT_EQ(small.s.max_bytes, 225'000);
  Model least(tuned([](Tuning& t) { t.min_window_bytes = 10'000; }));
  least.loss(1, 224'000);
  EXPECT_EQ(least.s.cwnd_bytes, 10'000);
  Model mtu(tuned([](Tuning& t) { t.min_window_bytes = 100; }));
  mtu.loss(1, 224'000);
  EXPECT_EQ(mtu.s.cwnd_bytes, 4096);
}

// CMS 2.1: BDPs are those of the slower end, if its rate is known; what a receiver grants is not.
TEST(Tuning, BdpsAreThoseOfTheSlowerEnd) {
  Parameters p = reference_network(true);
  p.remote_rate_bps = 25'000'000'000;
  EXPECT_EQ(nscc_constants(p, us(12)).bdp_bytes(), 37'500);
  EXPECT_EQ(Model(p).s.max_bytes, 56'250);
  EXPECT_EQ(CreditPacer(p, us(100)).spacing(64).count(), 1324);
  p.remote_rate_bps = 400'000'000'000;
  EXPECT_EQ(nscc_constants(p, us(12)).bdp_bytes(), 150'000);
}

TEST(Tuning, Cms102_LeastWindow_HoldsForShorterBaseRtt) {
  Model m(tuned([](Tuning& t) { t.min_window_bytes = 200'000; }));
  m.ack(1, 4096, false, 4);  // Wmax would be 75,000
  EXPECT_EQ(m.s.max_bytes, 200'000);
  EXPECT_EQ(m.s.cwnd_bytes, 200'000);
}

TEST(Tuning, GainsTakeThePlaceOfTheRules) {
  const NsccConstants c = constants([](Tuning& t) {
    t.target_qdelay_us = 5;
    t.alpha_bytes_per_us = 100;
    t.fi_bytes = 200;
    t.eta_bytes = 300;
    t.fi_scale = 0.7;
    t.adjust_bytes = 400;
    t.adjust_period_us = 6;
  });
  EXPECT_EQ(c.target_qdelay_us, 5);
  EXPECT_EQ(c.alpha_bytes_per_us, 100);
  EXPECT_EQ(c.fi_bytes(), 200);
  EXPECT_EQ(c.eta_bytes(), 300);
  EXPECT_EQ(c.fi_scale(), 0.7);
  EXPECT_EQ(c.adjust_bytes(), 400);
  EXPECT_EQ(c.adjust_period_us(), 6);
}

TEST(Tuning, TheReferenceNetworkScalesTheGains) {
  const NsccConstants c = constants([](Tuning& t) {
    t.reference_rate_mbps = 50'000;
    t.reference_rtt_us = 6;
  });
  expect_close(c.scaling_a, 4);  // 150,000 B against 37,500 B
  expect_close(c.fi_bytes(), 81'920);
}

TEST(Tuning, DecreasesAreAsStrongAndAsFrequentAsSaid) {
  const auto cut = [](Model& m, double now) {
    m.s.avg_delay_us = 30;
    m.s.avg_delay_time = at(now);
    m.ack(now, 4096, true, 42);
  };
  Model strong(tuned([](Tuning& t) {
    t.gamma = 1;
    t.max_md_jump = 0.1;
  }));
  cut(strong, 100);
  EXPECT_NEAR(strong.s.cwnd_bytes, 225'000 * 0.3, 700);  // 1 - 21/30, then an increase of eta
  Model rare(tuned([](Tuning& t) { t.decrease_spacing_rtts = 10; }));
  cut(rare, 100);
  EXPECT_GT(rare.s.cwnd_bytes, 224'000);  // 120 us have not passed
  cut(rare, 130);
  EXPECT_LT(rare.s.cwnd_bytes, 120'000);
}

TEST(Tuning, QuickAdaptBelowItsGateAndBeyondItsThreshold) {
  const auto fires = [](const Parameters& p, std::uint64_t achieved, double delay) {
    Model m(p);
    m.s.qa_end_time = at(1);
    m.s.achieved_bytes = achieved;
    m.ack(20, 4096, true, 12 + delay);
    return m.s.counts->quick_adapts == 1;
  };
  const auto with = [](double gate, double threshold) {
    return tuned(
        [&](Tuning& t) {
          t.qa_gate = gate;
          t.qa_threshold_us = threshold;
        },
        false);
  };
  EXPECT_TRUE(fires(with(3, 20), 20'000, 21));
  EXPECT_FALSE(fires(with(3, 20), 20'000, 19));
  EXPECT_FALSE(fires(with(4, 20), 20'000, 21));  // 225,000 / 16 = 14,062
  EXPECT_FALSE(fires(with(3, 0), 20'000, 21));   // 48 by rule
}

TEST(Tuning, ToleranceAndAverage) {
  Model quiet(tuned([](Tuning& t) { t.quiet_us = 4; }));
  EXPECT_EQ(nscc_quiet_us(quiet.s, quiet.c), 4);
  Model slow(tuned([](Tuning& t) { t.delay_average_rtts = 4; }));
  slow.ack(12, 4096, false, 20);
  expect_close(slow.s.avg_delay_us, 2);  // 8 us with the weight 12 / 48
}

TEST(Tuning, Cms703_SyntheticMarksFromWhereSaid) {
  for (const double times : {1.5, 3.0}) {
    Model m(tuned([&](Tuning& t) { t.synthetic_ecn_at = times; }, false));
    m.s.avg_delay_us = 30;
    m.ack(100, 4096, false, 12 + 24);  // 2 target delays
    EXPECT_EQ(m.s.counts->acks_cut, times < 2 ? 1U : 0U) << times;
  }
}

TEST(Tuning, Cms142_TheBaseRttIsRaisedAfterSoManyRtts) {
  Model m(tuned([](Tuning& t) { t.raise_after_rtts = 10; }));
  m.ack(1, 4096, false, 30);
  m.ack(119, 4096, false, 30);
  EXPECT_EQ(m.s.base_rtt_us, 12);
  m.ack(125, 4096, false, 30);
  EXPECT_EQ(m.s.base_rtt_us, 30);
}

TEST(Tuning, Cms210_SpeculativeAllowance) {
  Parameters p = tuned([](Tuning& t) { t.speculative_bdp = 0.5; });
  p.algorithm = Algorithm::Rccc;
  Rccc ccc(p, 1, at(1));
  ccc.on_new_data(1'000'000, at(1));
  ccc.on_sent(74'999, at(1));
  EXPECT_TRUE(ccc.may_send(4096));
  ccc.on_sent(1, at(1));
  EXPECT_FALSE(ccc.may_send(4096));
}

TEST(Tuning, Cms215_CreditRequestAfterSoManyRtts) {
  Parameters p = tuned([](Tuning& t) { t.credit_request_rtts = 5; });
  p.algorithm = Algorithm::Rccc;
  Rccc ccc(p, 1, at(1));
  ccc.on_new_data(1'000'000, at(1));
  ccc.take_target(1);
  ccc.on_sent(160'000, at(2));
  AckFeedback all;
  all.newly_received_bytes = 160'000;
  ccc.on_ack(all, at(14));
  EXPECT_EQ(ccc.request_due(at(14)), at(2 + 60));
}

TEST(Tuning, Cms221_Cms222_TurnsOfTheReceiver) {
  const CreditPacer pacer(tuned([](Tuning& t) {
                            t.grant_bytes = 8192;
                            t.pacer_fraction = 0.5;
                          }),
                          std::chrono::milliseconds(20));
  EXPECT_EQ(pacer.turn_units(), 32U);
  EXPECT_EQ(pacer.spacing(32), std::chrono::nanoseconds(1311));  // 8,192 B at 50 Gb/s
}

// CMS-150, CMS-151.
TEST(Tuning, Cms150_Cms151_WhenLossesAreRecoveredFrom) {
  Parameters p = tuned(
      [](Tuning& t) {
        t.recovery_windows = 0.5;
        t.recovery_packets = 10;
        t.recovery_silence_rtts = 2;
        t.recovery_retry_rtts = 4;
      },
      false);
  p.paths = PathPolicy::Oblivious;
  p.path_count = 64;
  const RecoveryRules rules = Nscc(p, at(0)).recovery().value();
  EXPECT_EQ(rules.bytes, 112'500U);  // half of 225,000
  EXPECT_EQ(rules.retry, 2 * rules.silence);
  p.tuning.recovery_windows = 0;
  EXPECT_EQ(Nscc(p, at(0)).recovery()->bytes, 40'960U);
  p.tuning.recovery_silence_rtts = 3;
  EXPECT_EQ(Nscc(p, at(0)).recovery()->silence, rules.silence * 3 / 2);
}

TEST(Tuning, Cms412_PenaltiesOfPaths) {
  Parameters p = tuned([](Tuning& t) {
    t.penalty_nack = 2;
    t.penalty_limit = 3;
    t.path_ban_after = 0;
    t.path_rest_rtts = 0;  // all at one time
  });
  p.paths = PathPolicy::Bitmap;
  p.path_count = 4;
  Rng rng(7);
  PathSelector paths(p, false, rng);
  const std::uint16_t bad = paths.next(rng, at(1));
  const auto skips = [&] {
    int rounds = 0;
    while (rounds < 50) {
      ++rounds;
      for (int i = 0; i < 4; ++i) {
        if (paths.next(rng, at(1)) == bad) return rounds;
      }
    }
    return rounds;
  };
  paths.on_feedback(bad, PathFeedback::Nack, at(1));
  Counters counters;
  paths.count(counters);
  EXPECT_EQ(counters.paths, 4U);
  EXPECT_EQ(counters.paths_penalised, 1U);
  const int after_one = skips();
  for (int i = 0; i < 5; ++i) paths.on_feedback(bad, PathFeedback::Nack, at(1));
  const int after_many = skips();
  EXPECT_GE(after_many, after_one);
  EXPECT_LE(after_many, 4);  // the limit, not ten
}

TEST(Tuning, Cms413_Cms414_RingExplorationAndFreeze) {
  Parameters p = tuned([](Tuning& t) {
    t.reps_ring = 2;
    t.reps_explore_bdp = 0;
    t.reps_freeze_us = 50;
    t.reps_explore_packets = 3;
  });
  p.paths = PathPolicy::Reps;
  p.path_count = 64;
  Rng rng(7);
  PathSelector paths(p, false, rng);
  const auto counted = [&] {
    Counters counters;
    paths.count(counters);
    return counters;
  };
  std::uint16_t good[3];
  for (std::uint16_t& entropy : good) {
    entropy = paths.next(rng, at(1));
    paths.on_feedback(entropy, PathFeedback::Good, at(1));
    paths.on_feedback(entropy, PathFeedback::Good, at(1));
  }
  EXPECT_EQ(counted().paths_random, 1U);  // the first; then the ring had one each time
  EXPECT_EQ(counted().paths_recycled, 2U);
  paths.on_feedback(good[2], PathFeedback::Timeout, at(2));
  EXPECT_EQ(counted().paths_frozen, 1U);
  paths.next(rng, at(51));
  EXPECT_TRUE(paths.frozen());
  const Counters before = counted();
  for (int i = 0; i < 3; ++i) paths.next(rng, at(53));
  EXPECT_FALSE(paths.frozen());
  EXPECT_EQ(counted().paths_random, before.paths_random + 3);
}

// ---- CMS 9.5 ------------------------------------------------------------------------------------

TEST(Counting, EachReactionOnce) {
  Model m;
  m.ack(1, 4096, false, 13.5);  // RISE
  m.ack(2, 4096, false, 30);    // FAIR
  m.ack(3, 4096, true, 14);     // HOLD
  m.ack(4, 4096, true, 30);     // CUT
  m.ack(5, 4096, false, {});
  m.ack(6, 4096, false, 14, 64);
  m.ack(7, 4096, false, 14, 0, true);
  const Counters& c = *m.s.counts;
  EXPECT_EQ(c.acks_rise, 2U);
  EXPECT_EQ(c.acks_fair, 1U);
  EXPECT_EQ(c.acks_hold, 1U);
  EXPECT_EQ(c.acks_cut, 1U);
  EXPECT_EQ(c.acks_without_sample, 1U);
  EXPECT_EQ(c.acks_limited, 1U);
  EXPECT_EQ(c.marks_received, 2U);
  EXPECT_EQ(c.rtt_samples, 6U);
  EXPECT_EQ(c.rtt_invalid, 1U);
  EXPECT_EQ(c.pend_received, 1U);
  EXPECT_EQ(c.restores_received, 1U);
}

// Example 5 of CMS 2.6: one quick adapt, after which 4,096 + 8,192 bytes are ignored.
TEST(Counting, QuickAdaptAndWhatItIgnores) {
  Model m;
  m.s.qa_end_time.reset();
  m.s.inflight_bytes = 225'000;
  m.trim(20, 4096);
  m.ack(25, 8192, true, 25);
  m.trim(30, 4096);
  m.trim(41.5, 4096);
  EXPECT_EQ(m.s.counts->quick_adapts, 1U);
  EXPECT_EQ(m.s.counts->cuts, 1U);
  EXPECT_EQ(m.s.counts->bytes_ignored, 0U);
  m.trim(43, 4096);
  m.ack(44, 8192, true, 40);
  EXPECT_EQ(m.s.counts->acks_ignored, 1U);
  EXPECT_EQ(m.s.counts->bytes_ignored, 12'288U);
}

TEST(Counting, LossesTrimsAndHoldings) {
  const SharedParameters shared(reference_network());
  Nscc ccc(shared, at(1));
  ccc.on_sent(40'960, at(1));
  ccc.on_nack(wire::NackCode::Trimmed, 4096, true, {}, at(20));
  ccc.on_nack(wire::NackCode::TrimmedLastHop, 4096, false, {}, at(20));
  ccc.on_inferred_loss(4096, LossCause::Path, at(21));
  ccc.on_inferred_loss(4096, LossCause::OutOfOrder, at(21));
  ccc.on_inferred_loss(4096, LossCause::Rto, at(21));
  ccc.on_inferred_loss(4096, LossCause::RepeatedRto, at(21));
  ccc.on_spurious_loss(4096);
  Counters c = ccc.holdings();
  c.add(shared.counts());
  EXPECT_EQ(c.contexts, 1U);
  EXPECT_EQ(c.window_bytes, ccc.window_bytes());
  EXPECT_EQ(c.inflight_bytes, 40'960U - 5 * 4096);
  EXPECT_EQ(c.base_rtt_ns, 12'000U);
  EXPECT_GT(c.avg_delay_ns, 0U);
  EXPECT_EQ(c.trims_in_fabric, 1U);
  EXPECT_EQ(c.trims_at_last_hop, 1U);
  EXPECT_EQ(c.marks_received, 1U);
  EXPECT_EQ(c.losses_by_path, 1U);
  EXPECT_EQ(c.losses_out_of_order, 1U);
  EXPECT_EQ(c.losses_by_rto, 2U);
  EXPECT_EQ(c.losses_spurious, 1U);
}

TEST(Counting, Credit) {
  Parameters p = reference_network();
  p.algorithm = Algorithm::Rccc;
  const SharedParameters shared(p);
  Rccc ccc(shared, 1, at(1));
  ccc.on_new_data(1'000'000, at(1));
  ccc.on_sent(60'000, at(1));
  ccc.on_credit(64, at(14));  // ends speculation, with 90,000 left of 150,000
  ccc.on_credit(64, at(15));  // a copy
  ccc.on_sent(4000, at(15));
  Counters c = ccc.holdings();
  c.add(shared.counts());
  EXPECT_EQ(c.credit_dropped_bytes, 90'000U);
  EXPECT_EQ(c.credit_received_bytes, 16'384U);
  EXPECT_EQ(c.credit_spent_bytes, 64'000U);
  EXPECT_EQ(c.contexts, 1U);
}

TEST(Counting, AddsAllExceptTimes) {
  Counters a, b;
  a.acks_cut = 3;
  a.base_rtt_ns = 10;
  a.window_bytes = 100;
  b.acks_cut = 4;
  b.base_rtt_ns = 7;
  b.window_bytes = 11;
  a.add(b);
  EXPECT_EQ(a.acks_cut, 7U);
  EXPECT_EQ(a.window_bytes, 111U);
  EXPECT_EQ(a.base_rtt_ns, 10U);
  a.forget_holdings();
  EXPECT_EQ(a.acks_cut, 7U);
  EXPECT_EQ(a.window_bytes, 0U);
  EXPECT_EQ(a.base_rtt_ns, 0U);
}

}  // namespace
}  // namespace uet::cms::test
