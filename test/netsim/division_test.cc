// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A network that is divided over ranks gives the same results as a whole one, to the last digit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "netsim/lockstep.h"
#include "netsim/options.h"
#include "netsim/outcome.h"
#include "netsim/report.h"
#include "netsim/results.h"
#include "netsim/run_line.h"
#include "netsim/threads.h"
#include "netsim/trace.h"

namespace uet::netsim {
namespace {

using testing::HasSubstr;

// All that uet-sim can print of a run: JSON, table of flows, trace, page.
std::string printed(const RunSetup& setup, std::uint32_t ranks) {
  std::ostringstream out;
  Trace trace(out);
  Report report;
  std::optional<Outcome> outcome;
  const auto run = [&](Exchange* exchange) {
    Network network(setup.network, setup.traffic, exchange);
    network.watch(setup.trace_interval, [&](const Sample& sample) {
      trace.write(sample);
      report.keep(sample);
    });
    network.run(setup.limit, nullptr);
    Outcome gathered = gather_outcome(network, false);
    if (exchange == nullptr || exchange->rank() == 0) outcome = std::move(gathered);
  };
  if (ranks == 1) {
    run(nullptr);
  } else {
    run_in_threads(ranks, [&](Exchange& exchange) { run(&exchange); });
  }
  print_json(results_of(*outcome, 1, 0), out);
  print_csv(*outcome, out);
  return out.str() + report.html(*outcome);
}

// Returns what one rank prints.
std::string expect_same(std::string line, const std::string& matrix = {}) {
  RunSetup setup;
  if (!matrix.empty()) {
    const std::string file = testing::TempDir() + "division.cm";
    std::ofstream(file) << matrix;
    line += " --matrix " + file;
  }
  const ParseResult parsed = parse_line(line, setup);
  EXPECT_TRUE(parsed.run) << line << ": " << parsed.text;
  if (!parsed.run) return {};
  std::string whole = printed(setup, 1);
  EXPECT_EQ(whole, printed(setup, 2)) << line;
  EXPECT_EQ(whole, printed(setup, 3)) << line;
  return whole;
}

TEST(Division, Permutation_SameResults) {
  for (const char* shape : {"--hosts 64", "--hosts 60 --topology two-tier", "--hosts 24"}) {
    const std::string out =
        expect_same(std::string("--permutation --size 200000 --trace-every-us 3 ") + shape);
    EXPECT_THAT(out, testing::Not(HasSubstr("\"marks\": 0,")));
  }
}

TEST(Division, Incast_SameResults) {
  EXPECT_THAT(expect_same("--incast 24 --hosts 32 --size 100000"),
              testing::Not(HasSubstr("\"trims\": 0,")));
  EXPECT_THAT(expect_same("--incast 24 --hosts 32 --size 100000 --no-trimming --drop-at 1"),
              testing::Not(HasSubstr("\"data_drops\": 0,")));
}

TEST(Division, AllToAll_SameResults) {
  expect_same("--all-to-all 12 --hosts 16 --size 30000");
  expect_same("--all-to-all 12 --hosts 16 --size 30000 --serial --topology two-tier");
}

// A host passes on what it has received; hosts of all ranks are in the ring.
TEST(Division, RingAllReduce_SameResults) {
  expect_same("--ring-all-reduce 16 --hosts 16 --size 20000");
  expect_same("--ring-all-reduce 12 --hosts 32 --size 40000 --loss 0.01");
}

TEST(Division, EveryAlgorithm_SameResults) {
  for (const cms::AlgorithmRow& row : cms::kAlgorithms) {
    expect_same("--incast 6 --hosts 16 --size 100000 --cc " + std::string(row.name));
  }
}

TEST(Division, Chance_SameResults) {
  EXPECT_THAT(expect_same("--permutation --hosts 32 --size 200000 --loss 0.01 --control-loss 0.02"),
              testing::Not(HasSubstr("\"lost\": 0,")));
  expect_same("--permutation --hosts 32 --size 100000 --jitter-us 3 --spray-in-switches");
  EXPECT_THAT(expect_same("--permutation --hosts 32 --size 100000 --garbage 0.2"),
              testing::Not(HasSubstr("\"spoilt\": 0,")));
}

TEST(Division, Faults_SameResults) {
  EXPECT_THAT(expect_same("--permutation --hosts 32 --size 300000 --fail-links 4 --slow-links 2 "
                          "--fail-from-us 6 --fail-detect-us 10 --fail-until-us 40"),
              testing::Not(HasSubstr("\"lost\": 0,")));
  expect_same(
      "--permutation --hosts 32 --size 300000 --planes 4 --fail-planes 1 --fail-from-us 5 "
      "--fail-detect-us 15 --fail-until-us 50 --rates-us 2 30");
  EXPECT_THAT(expect_same("--incast 8 --hosts 16 --size 100000 --drain-gbps 30 --receive-pool "
                          "40000"),
              testing::Not(HasSubstr("\"receive_drops\": 0,")));
}

TEST(Division, LimitAndEmptyTime_SameResults) {
  expect_same("--incast 8 --hosts 16 --limit-us 30 --trace-every-us 0.05");
  expect_same("",
              "Nodes 16\n0->13 start 0 size 20000 id 1\n9->1 start 900us size 20000 id 2\n"
              "9->2 start 5ms size 20000 rod class 8\n");
}

// Of one host in five, told before the run or after it.
Outcome outcome_with_violations(const RunSetup& setup, Exchange* exchange, bool before) {
  Network network(setup.network, setup.traffic, exchange);
  const auto complain = [&] {
    for (std::size_t i = 3; i < network.host_count(); i += 5) {
      if (network.has_host(i)) network.violation("host " + std::to_string(i));
    }
  };
  if (before) complain();
  network.run(setup.limit, nullptr);
  if (!before) complain();
  return gather_outcome(network, false);
}

TEST(Division, Violations_EndAllRanksAndComeInOrder) {
  RunSetup setup;
  ASSERT_TRUE(parse_line("--permutation --hosts 64 --size 100000", setup).run);
  for (const bool before : {true, false}) {
    const Results whole = results_of(outcome_with_violations(setup, nullptr, before), 1, 0);
    Results divided;
    run_in_threads(3, [&](Exchange& exchange) {
      const Outcome outcome = outcome_with_violations(setup, &exchange, before);
      if (exchange.rank() == 0) divided = results_of(outcome, 1, 0);
    });
    EXPECT_EQ(whole.events == 0, before);
    EXPECT_EQ(whole.events, divided.events);
    ASSERT_EQ(whole.violations.size(), 10U) << "of 13";
    EXPECT_EQ(whole.violations, divided.violations);
  }
}

TEST(Division, Parts_AreEqualAndKeepHostsWithTheirLeaf) {
  std::string complaint;
  const Topology topology(topology_for(Shape::FatTree, 128, 1, complaint), 1);
  for (const std::uint32_t parts : {1U, 2U, 3U, 8U}) {
    std::vector<std::uint32_t> nodes(parts);
    for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
      const std::uint32_t part = topology.part_of(node, parts);
      ASSERT_LT(part, parts);
      ++nodes[part];
      if (!topology.is_host(node)) continue;
      const std::uint32_t leaf = topology.links()[topology.first_port(node)].to;
      EXPECT_EQ(part, topology.part_of(leaf, parts));
    }
    const auto [least, most] = std::ranges::minmax(nodes);
    EXPECT_LE(most - least, 7U) << parts;  // a leaf with its hosts, and a switch of each tier
  }
}

TEST(Division, IndivisibleNetworks_AreRefused) {
  RunSetup setup;
  const auto complaint = [&](const std::string& line) { return parse_line(line, setup).text; };
  EXPECT_THAT(complaint("--incast 2 --hosts 16 --topology one-switch --threads 2"),
              HasSubstr("one switch cannot be divided"));
  EXPECT_THAT(complaint("--incast 2 --hosts 16 --threads 9"), HasSubstr("the network has 8"));
  EXPECT_THAT(complaint("--incast 2 --hosts 16 --threads 2 --hop-us 0"), HasSubstr("--hop-us 0"));
  const std::string file = testing::TempDir() + "crossing.cm";
  std::ofstream(file) << "Nodes 16\n0->13 start 0 size 9 send_done_trigger 1\n"
                         "13->0 trigger 1 size 9\ntrigger id 1 oneshot\n";
  EXPECT_THAT(complaint("--threads 2 --matrix " + file),
              HasSubstr("takes no time; run this traffic on one rank"));
  EXPECT_EQ(complaint("--all-to-all 16 --serial --hosts 16 --threads 2"), "");
}

// Long heads too, as of ACKs with an SES response.
TEST(Lockstep, PacketsCrossWithAllTheyHave) {
  run_in_threads(2, [](Exchange& exchange) {
    Lockstep lockstep(&exchange);
    NetPacketPool pool;
    EventQueue events;
    const std::uint32_t other = 1 - exchange.rank();
    for (const std::size_t bytes : {std::size_t{16}, std::size_t{80}, NetPacket::kHeadBytes}) {
      NetPacket packet;
      packet.source = 70'000 + exchange.rank();
      packet.destination = 3;
      packet.pds_bytes = 4096;
      packet.wire_bytes = 4150;
      packet.entropy = 65'000;
      packet.dscp = 8;
      packet.ecn = Ecn::Ce;
      packet.traffic_class = TrafficClass::Trimmed;
      packet.trimmed = packet.trimmed_last_hop = true;
      std::ranges::fill(packet.new_head(bytes), std::byte(bytes));
      lockstep.send(other, 500, 9, packet);
      const Standing all = lockstep.meet({.next = 900, .finished = 2}, pool, events);
      EXPECT_EQ(all.next, 500);
      EXPECT_EQ(all.finished, 4U);
      EXPECT_FALSE(all.empty);
      ASSERT_EQ(events.size(), 1U);
      const Event event = events.pop();
      EXPECT_EQ(event.at, 500);
      EXPECT_EQ(event.kind(), EventKind::Arrival);
      EXPECT_EQ(event.subject(), 9U);
      EXPECT_EQ(event.packet->source, 70'000 + other);
      EXPECT_EQ(event.packet->destination, 3U);
      EXPECT_EQ(event.packet->pds_bytes, 4096U);
      EXPECT_EQ(event.packet->wire_bytes, 4150U);
      EXPECT_EQ(event.packet->entropy, 65'000U);
      EXPECT_EQ(event.packet->dscp, 8U);
      EXPECT_EQ(event.packet->ecn, Ecn::Ce);
      EXPECT_EQ(event.packet->traffic_class, TrafficClass::Trimmed);
      EXPECT_TRUE(event.packet->trimmed && event.packet->trimmed_last_hop);
      EXPECT_TRUE(std::ranges::equal(event.packet->head(), packet.head()));
      pool.give_back(event.packet);
    }
    EXPECT_TRUE(lockstep.meet({}, pool, events).empty);
  });
}

TEST(Threads, FailureOfOneRank_EndsTheOthers) {
  const auto rank = [](Exchange& exchange) {
    std::vector<Bytes> out(3), in(3);
    exchange.all_to_all(out, in);
    if (exchange.rank() == 1) throw std::runtime_error("no memory");
    exchange.all_to_all(out, in);
    ADD_FAILURE() << "rank " << exchange.rank() << " goes on";
  };
  EXPECT_THROW(run_in_threads(3, rank), std::runtime_error);
}

}  // namespace
}  // namespace uet::netsim
