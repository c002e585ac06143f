// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connection matrices: what is read, what is refused and with which words; generated traffic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "netsim/traffic.h"
#include "uet/pds/api.h"

namespace uet::netsim {
namespace {

using testing::HasSubstr;

std::optional<Traffic> read(const std::string& text, std::string* complaint = nullptr) {
  std::istringstream in(text);
  std::string why;
  auto traffic = read_matrix(in, why);
  EXPECT_EQ(traffic.has_value(), why.empty()) << why;
  if (complaint != nullptr) *complaint = why;
  return traffic;
}

std::string refusal(const std::string& text) {
  std::string complaint;
  EXPECT_FALSE(read(text, &complaint).has_value()) << text;
  return complaint;
}

TEST(Matrix, Connections_StartInMicrosecondsOrUnits) {
  const auto traffic = read(
      "Nodes 16\nConnections 4\n# a comment\n\n0->13 start 0 size 2000000\n"
      "13->0 id 7 start 40 size 64 prio 3\n1->2 start 1.5us size 4294963200\r\n"
      "3->4 start 7ps size 1\n");
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->nodes, 16U);
  ASSERT_EQ(traffic->flows.size(), 4U);
  EXPECT_EQ(traffic->flows[0].source, 0U);
  EXPECT_EQ(traffic->flows[0].destination, 13U);
  EXPECT_EQ(traffic->flows[0].bytes, 2'000'000U);
  EXPECT_EQ(traffic->flows[1].id, 7U);
  EXPECT_EQ(traffic->flows[1].start, 40'000'000);
  EXPECT_EQ(traffic->flows[2].start, 1'500'000);
  EXPECT_EQ(traffic->flows[3].start, 7);
}

TEST(Matrix, ReadsTriggersAndFailures) {
  const auto traffic = read(
      "Nodes 4\nConnections 3\nTriggers 2\nFailures 1\n"
      "0->1 id 1 start 0 size 10 send_done_trigger 1\n0->2 id 2 trigger 1 size 20 msg 4\n"
      "0->3 id 3 msg start 0 size 20 recv_done_trigger 2\n"
      "trigger id 1 oneshot\ntrigger id 2 barrier count 2\n"
      "failure switch_type AGG switch_id 3 link_id 1\n");
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->flows[0].sent_trigger, 1U);
  EXPECT_EQ(traffic->flows[0].received_trigger, 0U);
  EXPECT_EQ(traffic->flows[1].trigger, 1U);
  EXPECT_EQ(traffic->flows[2].received_trigger, 2U);
  EXPECT_FALSE(traffic->flows[1].start.has_value());
  EXPECT_EQ(traffic->triggers[1].count, 2U);
  ASSERT_EQ(traffic->failures.size(), 1U);
  EXPECT_EQ(traffic->failures[0].kind, MatrixFailure::Switch::Aggregation);
  EXPECT_EQ(traffic->failures[0].switch_id, 3U);
}

TEST(Matrix, RefusesWithTheLineAndTheReason) {
  EXPECT_EQ(refusal("Nodes 4\n0->4 start 0 size 1\n"),
            "line 2: host 4 is not one of the 4 that 'Nodes' promised");
  EXPECT_EQ(refusal("Nodes 4\n0->0 start 0 size 1\n"),
            "line 2: source and destination are the same host");
  EXPECT_EQ(refusal("Nodes 4\n\n0->1 start 0\n"), "line 3: the connection has no size");
  EXPECT_EQ(refusal("Nodes 4\n0->1 size 5\n"),
            "line 2: the connection has neither start nor trigger");
  EXPECT_EQ(refusal("Nodes 4\n0->1 start 0 trigger 1 size 5\n"),
            "line 2: the connection has both start and trigger");
  EXPECT_THAT(refusal("Nodes 4\n0->1 start 0 size 1e6\n"), HasSubstr("line 2: after 'size'"));
  EXPECT_THAT(refusal("Nodes 4\n0->1 start soon size 1\n"), HasSubstr("line 2: after 'start'"));
  EXPECT_THAT(refusal("Nodes 4\n0->1 size\n"), HasSubstr("not nothing"));
  EXPECT_THAT(refusal("Nodes 4\nx->1 start 0 size 1\n"), HasSubstr("line 2: 'x->1' is not"));
  EXPECT_THAT(refusal("Nodes 4\n0->1 begin 0 size 1\n"), HasSubstr("line 2: 'begin' is not known"));
  EXPECT_THAT(refusal("0->1 start 0 size 1\n"), HasSubstr("line 1: 'Nodes'"));
  EXPECT_THAT(refusal("Nodes 4\nhello\n"), HasSubstr("line 2: 'hello' is neither"));
  EXPECT_THAT(refusal("Nodes 1\n"), HasSubstr("line 1: after 'Nodes' comes a number from 2"));
  EXPECT_THAT(refusal("Nodes 4\n0->1 start 0 size 1\ntrigger id 1 twice\n"), HasSubstr("line 3"));
  EXPECT_THAT(refusal("Nodes 4\n0->1 start 0 size 1\ntrigger id 1\n"), HasSubstr("oneshot nor"));
  EXPECT_THAT(refusal("Nodes 4\nfailure switch_type LEAF\n"), HasSubstr("TOR, AGG or CORE"));
}

TEST(Matrix, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(refusal(""), "the file has no line 'Nodes'");
  EXPECT_EQ(refusal("Nodes 4\n"), "there is no connection");
  EXPECT_EQ(refusal("Nodes 4\nConnections 2\n0->1 start 0 size 1\n"),
            "the file promises 2 connections and has 1");
  EXPECT_EQ(refusal("Nodes 4\n0->1 start 0 size 1 send_done_trigger 3\n"),
            "trigger 3 is used and not defined");
  EXPECT_EQ(refusal("Nodes 4\n0->1 trigger 3 size 1\ntrigger id 3 oneshot\n"),
            "trigger 3 starts a connection, and no connection tells it");
  EXPECT_EQ(refusal("Nodes 4\n0->1 start 0 size 1\ntrigger id 3 oneshot\ntrigger id 3 oneshot\n"),
            "trigger 3 is defined twice");
}

TEST(Matrix, ReadsModeAndClassOfAConnection) {
  const std::string text =
      "Nodes 4\nConnections 2\n0->1 start 0.000007 size 5 rod\n1->2 start 12.5 size 5 class 8\n";
  const auto traffic = read(text);
  ASSERT_TRUE(traffic);
  EXPECT_TRUE(traffic->flows[0].rod);
  EXPECT_EQ(traffic->flows[0].traffic_class, 0);
  EXPECT_FALSE(traffic->flows[1].rod);
  EXPECT_EQ(traffic->flows[1].traffic_class, pds::class_of_dscp(8));
  std::ostringstream out;
  write_matrix(*traffic, out);
  EXPECT_EQ(out.str(), text);
  EXPECT_THAT(refusal("Nodes 4\n0->1 start 0 size 5 class 64\n"), HasSubstr("from 0 to 63"));
}

TEST(Matrix, WrittenMatrixIsReadBackUnchanged) {
  const Traffic ring = ring_all_reduce(8, 4, 1000);
  std::ostringstream out;
  write_matrix(ring, out);
  const auto again = read(out.str());
  ASSERT_TRUE(again);
  std::ostringstream twice;
  write_matrix(*again, twice);
  EXPECT_EQ(out.str(), twice.str());
  EXPECT_EQ(again->flows.size(), 4U * 6);
  EXPECT_EQ(again->triggers.size(), 4U * 5);
}

TEST(Traffic, PermutationSendsAndReceivesOnceEach) {
  const Traffic traffic = permutation(128, 5, 3);
  std::set<std::uint32_t> from, to;
  for (const Flow& flow : traffic.flows) {
    EXPECT_NE(flow.source, flow.destination);
    from.insert(flow.source);
    to.insert(flow.destination);
  }
  EXPECT_EQ(from.size(), 128U);
  EXPECT_EQ(to.size(), 128U);
}

TEST(Traffic, IncastAndOutcastHaveOneEndInCommon) {
  std::set<std::uint32_t> sources;
  for (const Flow& flow : incast(64, 9, 5, 2).flows) {
    EXPECT_EQ(flow.destination, 0U);
    sources.insert(flow.source);
  }
  EXPECT_EQ(sources.size(), 9U);
  EXPECT_FALSE(sources.contains(0));
  for (const Flow& flow : outcast(64, 9, 5, 2).flows) EXPECT_EQ(flow.source, 0U);
}

TEST(Traffic, SerialAllToAllChainsTheFlowsOfAHost) {
  const Traffic traffic = all_to_all(16, 4, 5, true);
  EXPECT_EQ(traffic.flows.size(), 12U);
  EXPECT_EQ(complaint_about(traffic), "");
  std::map<std::uint32_t, int> started;
  for (const Flow& flow : traffic.flows) started[flow.source] += flow.start.has_value() ? 1 : 0;
  for (const auto& [source, count] : started) EXPECT_EQ(count, 1) << source;
  for (const Flow& flow : all_to_all(16, 4, 5, false).flows) EXPECT_TRUE(flow.start.has_value());
}

}  // namespace
}  // namespace uet::netsim
