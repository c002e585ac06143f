// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The command line: accepted and refused options, and their effect; the formats of the output.
#include "netsim/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "netsim/run_line.h"

namespace uet::netsim {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& line) {
  RunSetup setup;
  const ParseResult result = parse_line(line, setup);
  EXPECT_FALSE(result.run) << line;
  EXPECT_EQ(result.status, 2) << line;
  return result.text;
}

TEST(Options, DefaultsAreTheCalibratedFabric) {  // CMS-809, CMS-32
  RunSetup setup;
  ASSERT_TRUE(parse_line("--incast 2", setup).run);
  const NetworkConfig& network = setup.network;
  EXPECT_EQ(network.topology.tiers, 3U);
  EXPECT_EQ(network.fep.cms.base_rtt, Duration(14'022));
  EXPECT_EQ(network.queues.data_limit_bytes, 178'450U);
  EXPECT_EQ(network.last_hop_limit_bytes, 267'675U);
  EXPECT_NEAR(network.queues.ecn_low_bytes, 35'690, 1);
  EXPECT_NEAR(network.queues.ecn_high_bytes, 142'760, 1);
  EXPECT_TRUE(network.queues.trimming);
  EXPECT_NEAR(to_us(network.fep.pds.rto_init), 100.7, 0.1);
  EXPECT_EQ(network.fep.cms.mtu_bytes, 4190U);
  ASSERT_TRUE(parse_line("--incast 2 --no-trimming", setup = {}).run);
  EXPECT_EQ(setup.network.queues.data_limit_bytes, 892'250U);
  EXPECT_EQ(setup.network.last_hop_limit_bytes, 892'250U);
  EXPECT_NEAR(to_us(setup.network.fep.pds.rto_init), 443.3, 0.1);
}

TEST(Options, Cms33_LastHopMarksOnlyWithoutCredit) {
  for (const auto& [algorithm, marks] :
       {std::pair{"nscc", true}, std::pair{"rccc", false}, std::pair{"both", false}}) {
    RunSetup setup;
    ASSERT_TRUE(parse_line(std::string("--incast 2 --cc ") + algorithm, setup).run);
    EXPECT_EQ(setup.network.ecn_on_last_hop, marks) << algorithm;
  }
}

TEST(Options, RefuseWithTheReason) {
  EXPECT_THAT(refusal(""), HasSubstr("name one of --matrix"));
  EXPECT_THAT(refusal("--incast 2 --permutation"), HasSubstr("name one of --matrix"));
  EXPECT_THAT(refusal("--incast"), HasSubstr("--incast"));
  EXPECT_THAT(refusal("--incast 2 --speed 5"), HasSubstr("--speed"));
  EXPECT_THAT(refusal("--incast 2 --cc magic"), HasSubstr("--cc: 'magic' is none of both, none,"));
  EXPECT_THAT(refusal("--sweep x --hosts 3"), HasSubstr("--hosts: not beside --sweep; write it"));
  EXPECT_THAT(refusal("--incast 2 --jobs 3"), HasSubstr("--sweep"));
  EXPECT_THAT(refusal("--incast 2 --loss 2"), HasSubstr("--loss"));
  EXPECT_THAT(refusal("--incast 20 --hosts 8"), HasSubstr("this traffic has 21"));
  EXPECT_THAT(refusal("--incast 2 --oversubscription 3"), HasSubstr("does not divide"));
  EXPECT_THAT(refusal("--incast 2 --fail-links 9999"), HasSubstr("only 128 uplinks"));
  EXPECT_THAT(refusal("--incast 2 --slow-pod-links 129"), HasSubstr("so many"));
  EXPECT_THAT(refusal("--incast 2 --topology two-tier --slow-pod-links 1"), HasSubstr("so many"));
  EXPECT_THAT(refusal("--incast 2 --host-gbps 128=25"), HasSubstr("a host from 0 to 127"));
  EXPECT_THAT(refusal("--incast 2 --host-gbps 3:25"), HasSubstr("HOST=GBPS"));
  EXPECT_THAT(refusal("--incast 2 --host-gbps 3=0"), HasSubstr("HOST=GBPS"));
  EXPECT_THAT(refusal("--incast 2 --host-hop-us 128=5"), HasSubstr("a host from 0 to 127"));
  EXPECT_THAT(refusal("--incast 2 --host-hop-us 3=-5"), HasSubstr("HOST=US"));
  EXPECT_THAT(refusal("--incast 2 --rates-us 20 10"), HasSubstr("--rates-us"));
  EXPECT_THAT(refusal("--matrix /nowhere.cm"), HasSubstr("/nowhere.cm: cannot be read"));
}

TEST(Options, TuneSetsAnyValueOfTheTable) {
  RunSetup setup;
  ASSERT_TRUE(parse_line("--incast 2 --tune rto_max_us=700,cc_gamma=0.5 --tune cc_gamma=0.25 "
                         "--tune ack_trigger_bytes=65536,cc_linger_ms=7",
                         setup)
                  .run);
  const fep::Config& fep = setup.network.fep;
  EXPECT_EQ(fep.pds.rto_cap, Duration(700'000));
  EXPECT_EQ(fep.cms.tuning.gamma, 0.25);
  EXPECT_EQ(fep.pds.ack_gen_trigger_bytes, 65536U);
  EXPECT_EQ(fep.cms.ack_gen_trigger_bytes, 65536U);
  EXPECT_EQ(fep.cms.linger, std::chrono::milliseconds(7));
  EXPECT_THAT(refusal("--incast 2 --tune rto_maxus=7"), HasSubstr("did you mean rto_max_us?"));
  EXPECT_THAT(refusal("--incast 2 --tune cc_gamma=2"), HasSubstr("allowed: 0 to 1"));
  EXPECT_THAT(refusal("--incast 2 --tune cc_pend_low=0.9"), HasSubstr("less than cc_pend_high"));
  EXPECT_THAT(refusal("--incast 2 --tune @/nowhere"), HasSubstr("@/nowhere: cannot be read"));
  const ParseResult help = parse_line("--tune help", setup);
  EXPECT_FALSE(help.run);
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.text, HasSubstr("cc_gamma  (0 to 1; default: 0.8)"));
}

TEST(Options, HelpNamesEveryGroup) {
  RunSetup setup;
  const ParseResult help = parse_line("--help", setup);
  EXPECT_FALSE(help.run);
  EXPECT_EQ(help.status, 0);
  for (const char* word : {"--matrix", "--topology", "--trimming", "--cc", "--loss", "--json"}) {
    EXPECT_THAT(help.text, HasSubstr(word));
  }
}

TEST(Output, JsonHasWhatIsPromised) {
  const Results results = run_line("--hosts 16 --incast 3 --size 100000");
  std::ostringstream out;
  print_json(results, out);
  const auto json = nlohmann::json::parse(out.str());
  for (const char* key : {"min", "mean", "p99", "worst"}) {
    EXPECT_GT(json.at("fct_us").at(key).get<double>(), 0) << key;
  }
  EXPECT_LE(json.at("fct_us").at("min"), json.at("fct_us").at("mean"));
  EXPECT_LE(json.at("fct_us").at("mean"), json.at("fct_us").at("worst"));
  EXPECT_GT(json.at("jain").get<double>(), 0.5);
  EXPECT_GT(json.at("goodput_gbps").get<double>(), 10);
  EXPECT_TRUE(json.at("retransmissions").is_number_unsigned());
  EXPECT_TRUE(json.at("trims").is_number_unsigned());
  EXPECT_GT(json.at("queue_bytes").get<double>(), 0);
}

TEST(Output, CsvHasALineForEachFlow) {
  RunSetup setup;
  ASSERT_TRUE(parse_line("--hosts 16 --incast 3 --size 10000", setup).run);
  Network network(setup.network, setup.traffic);
  network.run(setup.limit, nullptr);
  std::ostringstream out;
  print_csv(outcome_of(network), out);
  std::istringstream lines(out.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line,
            "id,source,destination,bytes,start_us,fct_us,gbps,source_sent,source_resent,rate_gbps");
  int count = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 9);
    EXPECT_THAT(line, HasSubstr(",0,10000,0.000,"));
    ++count;
  }
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace uet::netsim
