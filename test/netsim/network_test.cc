// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The event loop with real Feps: calibration, triggers, faults, sameness of runs, end of runs.
#include "netsim/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "netsim/run_line.h"

namespace uet::netsim {
namespace {

// Events of all kinds and of 20 subjects at 5 times, taken in the order in which they come.
std::vector<std::pair<Picoseconds, std::uint64_t>> order_of_events(std::uint64_t seed) {
  std::vector<std::pair<Picoseconds, std::uint32_t>> events;
  for (std::uint32_t i = 0; i < 600; ++i) events.emplace_back(i % 5, i / 5);
  Rng rng(seed);
  for (std::size_t i = events.size(); i > 1; --i) std::swap(events[i - 1], events[rng.below(i)]);
  EventQueue queue;
  for (const auto& [at, number] : events) {
    queue.push(at, static_cast<EventKind>(number / 20), number % 20);
  }
  std::vector<std::pair<Picoseconds, std::uint64_t>> order;
  while (!queue.empty()) {
    const Event event = queue.pop();
    order.emplace_back(event.at, event.key);
  }
  return order;
}

TEST(EventQueue, EqualTimes_OrderDoesNotDependOnCreation) {
  const auto order = order_of_events(1);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(order, order_of_events(2));
}

TEST(EventQueue, EqualEvents_ComeInTheOrderOfCreation) {
  EventQueue queue;
  std::array<NetPacket, 50> packets;
  for (NetPacket& packet : packets) queue.push(7, EventKind::Arrival, 3, &packet);
  for (NetPacket& packet : packets) EXPECT_EQ(queue.pop().packet, &packet);
}

// CMS-800: soon, within the days of the calendar, or years away; while others are taken.
TEST(EventQueue, EarliestComesFirstWhereverItWasPutDown) {
  EventQueue queue;
  Rng rng(3);
  std::set<std::pair<Picoseconds, std::uint64_t>> model;  // time, creation: all are alike
  Picoseconds now = 1'000 * kPsPerUs;
  for (int step = 0; step < 200'000; ++step) {
    // Bursts and lulls, the longest of which leave the calendar empty.
    if (model.empty() || rng.chance(step / 1000 % 2 == 0 ? 0.6 : 0.4)) {
      constexpr std::array kReach{20'000ULL, 50 * 1'000'000ULL, 100 * 1'000'000ULL,
                                  10'000 * 1'000'000ULL};
      const Picoseconds at = now + static_cast<Picoseconds>(rng.below(kReach[rng.below(4)]));
      model.emplace(at, queue.pushed());
      queue.push(at, EventKind::Wake, 0);
      continue;
    }
    ASSERT_EQ(queue.top().at, model.begin()->first);
    const Event event = queue.pop();
    ASSERT_EQ(std::pair(event.at, event.order), *model.begin());
    model.erase(model.begin());
    now = event.at;
    ASSERT_EQ(queue.size(), model.size());
  }
}

TEST(EventQueue, TellsWhatComesSoon) {
  EventQueue queue;
  for (std::uint32_t i = 0; i < 5; ++i) queue.push(100 - i, EventKind::Wake, i);
  EXPECT_EQ(queue.upcoming(0), nullptr);  // events of that day are not sorted yet
  EXPECT_EQ(queue.pop().subject(), 4U);
  ASSERT_NE(queue.upcoming(2), nullptr);
  EXPECT_EQ(queue.upcoming(2)->subject(), 1U);
  EXPECT_EQ(queue.upcoming(4), nullptr);
}

TEST(Clock, SerializationIsExact) {
  EXPECT_EQ(serialization(4150, 100'000'000'000), 332'000);
  EXPECT_EQ(serialization(64, 400'000'000'000), 1'280);
  EXPECT_EQ(serialization(9216, 1'000'000'000), 73'728'000);
}

// CMS-809: 2 MB are 490 packets of 4,150 bytes, and take 176.2 us.
TEST(Network, Cms809_CalibratedSingleFlow) {
  const Results results = run_line("--hosts 16", "Nodes 16\n0->13 start 0 size 2000000\n");
  EXPECT_NEAR(results.fct.worst, 176.2, 0.1);
  EXPECT_EQ(results.data_packets, 490U);
}

TEST(Network, SameSeedSameRun) {
  const std::string line = "--hosts 16 --incast 6 --size 300000 --loss 0.01 --jitter-us 2";
  const Results a = run_line(line + " --seed 5"), b = run_line(line + " --seed 5");
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.fct.mean, b.fct.mean);
  EXPECT_EQ(a.retransmissions, b.retransmissions);
  EXPECT_NE(a.events, run_line(line + " --seed 6").events);
}

// CMS-807.
TEST(Network, TriggersStartFlowsInTurn) {
  const Results results = run_line("",
                                   "Nodes 16\nTriggers 2\n0->9 start 0 size 2000000 id 1 "
                                   "send_done_trigger 1\n1->10 id 2 start 0 size 1000000 "
                                   "send_done_trigger 1\n2->11 id 3 trigger 1 size 2000000\n"
                                   "trigger id 1 barrier count 2\ntrigger id 9 oneshot\n");
  EXPECT_NEAR(results.makespan_us, 2 * 176.2, 4);
  EXPECT_NEAR(results.fct.worst, 176.2, 4);
}

// CMS-807. The destination has all bytes half a round trip before the source knows it.
TEST(Network, ReceivedFlowsStartOthersEarlier) {
  const auto makespan = [](const std::string& end) {
    return run_line("", "Nodes 16\nTriggers 1\n0->9 start 0 size 200000 id 1 " + end +
                            "_done_trigger 1\n9->4 id 2 trigger 1 size 200000\n"
                            "trigger id 1 oneshot\n")
        .makespan_us;
  };
  EXPECT_NEAR(makespan("send") - makespan("recv"), 7, 1);
}

// CMS-803.
TEST(Network, LostPacketsAreCountedAndSentAgain) {
  const Results results = run_line("--hosts 16 --incast 1 --size 4000000 --loss 0.02");
  EXPECT_GT(results.lost, 20U);
  EXPECT_GE(results.retransmissions, 20U);
}

// run_line() expects that no property of CMS 8.4 is violated.
TEST(Network, EveryAlgorithm_FillsTheLinkOfAnIncast) {
  for (const cms::AlgorithmRow& row : cms::kAlgorithms) {
    if (row.algorithm == cms::Algorithm::None) continue;  // nothing shrinks its windows
    const std::string line = "--hosts 16 --incast 4 --size 1000000 --cc " + std::string(row.name);
    const Results results = run_line(line);
    EXPECT_GT(results.goodput_gbps, 75) << line;
    EXPECT_GT(results.jain, 0.9) << line;
  }
}

// Receivers that grant at the rate of their links fill a fabric that carries half of that.
TEST(Network, Cms230_RcccAndSirdSpareAnOversubscribedFabric) {
  const std::string line =
      "--hosts 16 --permutation --oversubscription 2 --paths mixed --size 1000000 --cc ";
  const Results blind = run_line(line + "rccc --tune cc_oversubscription_control=no");
  for (const char* cc : {"sird", "rccc"}) {
    const Results results = run_line(line + cc);
    EXPECT_LT(results.retransmissions, 0.8 * static_cast<double>(blind.retransmissions)) << cc;
    EXPECT_LT(results.fct.worst, blind.fct.worst) << cc;
  }
}

// CMS 8.4, 7: nonsense in what peers report neither stops a flow (one packet per round trip at
// least: 2.3 Gb/s) nor breaks what must hold in every run.
TEST(Network, Cms820_GarbageInFeedbackStopsNothing) {
  for (const char* cc : {"nscc", "rccc", "both", "swift", "sird"}) {
    for (const char* garbage :
         {"0.2 --garbage-kind any", "1 --garbage-kind rcvd-bytes", "1 --garbage-kind service-time",
          "0.2 --garbage-kind credit", "1 --garbage-kind pend", "1 --garbage-kind mark"}) {
      const std::string line = std::string("--hosts 16 --incast 2 --size 400000 --cc ") + cc;
      const Results results = run_line(line + " --garbage " + garbage);
      EXPECT_GT(results.goodput_gbps, 2 * 2.3) << line << ' ' << garbage;
    }
  }
  EXPECT_GT(run_line("--hosts 16 --incast 2 --garbage 1 --garbage-kind mark").spoilt, 10U);
  const std::string rod = "--hosts 16 --incast 2 --size 400000 --rod --garbage 0.2";
  EXPECT_GT(run_line(rod).goodput_gbps, 2 * 2.3);
}

TEST(Network, RodArrivesInOrderOnOnePath) {
  const Results results = run_line("--hosts 16 --incast 2 --rod --size 1000000");
  EXPECT_GT(results.goodput_gbps, 70);
}

TEST(Network, SlowLinksSlowTheFlowsThatUseThem) {
  const std::string matrix = "Nodes 16\n0->13 start 0 size 2000000\n";
  const Results all = run_line(
      "--slow-links 2 --slow-gbps 10 --topology two-tier --leaf-uplinks 1 --hosts 16", matrix);
  EXPECT_GT(all.fct.worst, 1600);
  EXPECT_LT(run_line("--topology two-tier", matrix).fct.worst, 200);
}

TEST(Network, SlowPodLinks_AreOfFirstAggregationSwitch) {
  std::string flows, slow;  // of half of its pod, so that they need half of its links
  for (int i = 0; i < 8; ++i) {
    flows += std::to_string(i) + "->" + std::to_string(127 - i) + " start 0 size 1000000\n";
  }
  for (int i = 0; i < 4; ++i) {
    slow += "failure switch_type AGG switch_id 0 link_id " + std::to_string(i) + "\n";
  }
  const double whole = run_line("", "Nodes 128\n" + flows).fct.worst;
  const double by_option = run_line("--slow-pod-links 4", "Nodes 128\n" + flows).fct.worst;
  EXPECT_GT(by_option, 1.2 * whole);
  EXPECT_EQ(by_option, run_line("", "Nodes 128\nFailures 4\n" + flows + slow).fct.worst);
}

// CMS-32: a slower host has a slower link both ways, with a queue for it, and its Fep knows.
TEST(Network, AHostMayHaveALinkOfItsOwn) {
  const std::string to = "Nodes 16\n0->13 start 0 size 4000000\n";
  const Results slow = run_line("--host-gbps 13=25", to);
  EXPECT_NEAR(slow.goodput_gbps, 24.3, 0.5);
  EXPECT_LE(slow.last_hop_queue.max, 71'000);  // 1.5 BDP of it
  const std::string from = "Nodes 16\n13->0 start 0 size 4000000\n";
  EXPECT_NEAR(run_line("--host-gbps 13=25", from).goodput_gbps, 24.5, 0.3);
  RunSetup setup;
  ASSERT_TRUE(parse_line("--incast 1 --hosts 16 --host-gbps 13=25 --remote-gbps 50", setup).run);
  const Network network(setup.network, setup.traffic);
  EXPECT_EQ(network.host(13).fep().config().cms.path_rate_bps(), 25'000'000'000U);
  EXPECT_EQ(network.host(12).fep().config().cms.path_rate_bps(), 50'000'000'000U);
}

// Two hops of 1 us each way become one of 1 us and one of 101 us; the idle RTT stays what hosts are
// told.
TEST(Network, AHostMayBeFarAway) {
  const std::string to = "Nodes 16\n0->1 start 0 size 4000\n";
  const double near = run_line("--topology one-switch", to).fct.worst;
  EXPECT_NEAR(run_line("--topology one-switch --host-hop-us 1=101", to).fct.worst, near + 200, 0.1);
  RunSetup setup;
  ASSERT_TRUE(parse_line("--incast 1 --hosts 16 --host-hop-us 1=101", setup).run);
  EXPECT_LT(*setup.network.fep.cms.base_rtt, std::chrono::microseconds(20));
}

// None of many hosts that begin at once waits until others have proved that they exist.
TEST(Network, ManyNewSourcesAreTakenAtOnce) {
  const Results results = run_line("--incast 40 --size 50000");
  EXPECT_EQ(results.finished, 40U);
  EXPECT_LT(results.fct.worst, 400);  // the bytes of all take 163 us
}

TEST(Network, FlowsOfOneHostMayDifferInModeAndClass) {
  const Results results =
      run_line("--pdcs 3",
               "Nodes 16\n0->13 start 0 size 2000000 rod\n0->13 start 0 size 2000000\n"
               "0->13 start 0 size 1000000 class 8\n0->13 start 0 size 1000000 class 8\n");
  EXPECT_EQ(results.finished, 4U);
  EXPECT_GT(results.context_jain, 0.999);  // of three contexts, with 2 MB each
  EXPECT_LT(results.jain, 0.95);
}

// One of four uplinks is down. A scheme without feedback from the paths continues to use it.
TEST(Network, PacketsOnDeadLinksAreCounted) {
  const std::string line = "--topology two-tier --leaf-uplinks 4 --hosts 16 --rto-us 50 ";
  const std::string flow = "Nodes 16\n0->13 start 0 size 8000000\n";
  EXPECT_EQ(run_line(line, flow).dead_share, 0);
  const std::string fault = line + "--fail-links 1 --fail-from-us 50 --fail-until-us 600 --paths ";
  const double oblivious = run_line(fault + "oblivious", flow).dead_share;
  EXPECT_GT(oblivious, 0.005);
  EXPECT_LT(run_line(fault + "mixed", flow).dead_share, oblivious / 2);
}

TEST(Network, RatesAreThoseOfTheIntervalOnly) {
  RunSetup setup;
  ASSERT_TRUE(parse_line("--outcast 1 --hosts 16 --size 4000000 --rates-us 50 150", setup).run);
  Network network(setup.network, setup.traffic);
  network.run(setup.limit, {});
  const Flow& flow = setup.traffic.flows[0];
  EXPECT_NEAR(network.meter().gbps(flow.source, flow.destination), 100, 1);
  EXPECT_EQ(network.meter().gbps(flow.destination, flow.source), 0);
}

// CMS-150, CMS-151: what an incast loses at its beginning is found long before the time-out.
TEST(Network, Cms150_NoTrimming_LossesFoundBeforeTimeOut) {
  const std::string line = "--incast 8 --paths mixed --no-trimming --size 500000";
  const Results with = run_line(line);
  const Results without = run_line(line + " --no-recovery");
  EXPECT_GT(with.data_drops, 100U);
  EXPECT_EQ(with.rto_retransmissions, 0U);
  EXPECT_GT(without.rto_retransmissions, 100U);
  EXPECT_LT(with.fct.worst, 0.8 * without.fct.worst);
}

// CMS-505, CMS-14: many sources whose first packets are trimmed to headers, and headers lost.
TEST(Network, Cms226_ManySourcesWaitTheirTurnForCredit) {
  const Results results =
      run_line("--incast 127 --size 100000 --cc rccc --paths mixed --tune cc_unsolicited_bdp=0");
  EXPECT_LT(results.fct.worst, 1150);  // ideal: 1,060 us
  EXPECT_GT(results.jain, 0.9);
}

TEST(Network, AFailureOfTheMatrixMakesItsLinkSlow) {
  const Results results = run_line(
      "--topology two-tier --leaf-uplinks 1",
      "Nodes 16\nFailures 1\n0->13 start 0 size 2000000\nfailure switch_type TOR switch_id 0 "
      "link_id 0\n");
  EXPECT_GT(results.fct.worst, 4 * 162);
}

// The only way of the leaf is gone for a while; time-outs bring the flow through.
TEST(Network, AFlapIsSurvived) {
  const Results results = run_line(
      "--topology two-tier --leaf-uplinks 1 --hosts 16 --fail-links 1 --fail-from-us 50 "
      "--fail-until-us 250",
      "Nodes 16\n0->13 start 0 size 2000000\n");
  EXPECT_GT(results.lost, 0U);
  EXPECT_GT(results.rto_retransmissions, 0U);
  EXPECT_LT(results.fct.worst, 2000);
}

TEST(Network, RoutingAvoidsAFailedLinkOnceItIsDetected) {
  const std::string line =
      "--hosts 128 --incast 1 --size 8000000 --fail-links 32 --fail-from-us 20";
  const Results stale = run_line(line);
  const Results avoided = run_line(line + " --fail-detect-us 10");
  EXPECT_GT(stale.lost, 4 * avoided.lost);
  EXPECT_LT(avoided.fct.worst, stale.fct.worst);
}

TEST(Network, ALimitEndsTheRunUnfinished) {
  RunSetup setup;
  ASSERT_TRUE(parse_line("--hosts 16 --incast 2 --limit-us 30", setup).run);
  Network network(setup.network, setup.traffic);
  network.run(setup.limit, nullptr);
  const Results results = results_of(outcome_of(network), 1, 0);
  EXPECT_EQ(results.finished, 0U);
  EXPECT_LE(results.simulated_us, 30);
  EXPECT_TRUE(results.violations.empty());
}

}  // namespace
}  // namespace uet::netsim
