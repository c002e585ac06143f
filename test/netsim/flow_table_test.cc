// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/flow_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace uet::netsim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Flows : ::testing::Test {
  Traffic traffic{.nodes = 2, .flows = std::vector<Flow>(4), .triggers = {}, .failures = {}};
  std::vector<std::string> complaints;

  // Flows 0 and 1 tell trigger 3, which starts flows 2 and 3.
  FlowTable table(Trigger trigger) {
    trigger.id = 3;
    traffic.triggers = {trigger};
    traffic.flows[0].sent_trigger = traffic.flows[1].sent_trigger = 3;
    traffic.flows[2].trigger = traffic.flows[3].trigger = 3;
    return FlowTable(traffic);
  }
  std::vector<std::uint32_t> finish(FlowTable& flows, std::uint32_t flow, bool good = true) {
    return note(flows, flow, good ? FlowEvent::Finished : FlowEvent::Failed);
  }
  std::vector<std::uint32_t> note(FlowTable& flows, std::uint32_t flow, FlowEvent event) {
    return flows.note(flow, event, 20,
                      [this](const std::string& what) { complaints.push_back(what); });
  }
};

TEST_F(Flows, FlowStartsOnce) {
  FlowTable flows(traffic);
  EXPECT_TRUE(flows.start(1, 10));
  EXPECT_FALSE(flows.start(1, 11));
  EXPECT_EQ(flows.records()[1].started, 10);
}

TEST_F(Flows, FinishedFlowsAreCounted) {
  FlowTable flows(traffic);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(flows.finished(), i);
    flows.start(i, 10);
    EXPECT_THAT(finish(flows, i), IsEmpty());
  }
  EXPECT_EQ(flows.finished(), 4U);
  EXPECT_EQ(flows.records()[3].finished, 20);
  EXPECT_THAT(complaints, IsEmpty());
}

TEST_F(Flows, BarrierStartsFlowsAfterItsCount) {
  FlowTable flows = table({.count = 2});
  flows.start(0, 10);
  flows.start(1, 10);
  EXPECT_THAT(finish(flows, 0), IsEmpty());
  EXPECT_THAT(finish(flows, 1), ElementsAre(2, 3));
}

TEST_F(Flows, OneShotFiresOnce) {
  FlowTable flows = table({});
  flows.start(0, 10);
  flows.start(1, 10);
  EXPECT_THAT(finish(flows, 0), ElementsAre(2, 3));
  EXPECT_THAT(finish(flows, 1), IsEmpty());
}

TEST_F(Flows, MultiShotFiresEachTime) {
  FlowTable flows = table({.repeats = true});
  flows.start(0, 10);
  flows.start(1, 10);
  EXPECT_THAT(finish(flows, 0), ElementsAre(2, 3));
  EXPECT_THAT(finish(flows, 1), ElementsAre(2, 3));
}

TEST_F(Flows, ReceivedFlowStartsOthersOnce) {
  FlowTable flows = table({});
  traffic.flows[0].sent_trigger = 0;
  traffic.flows[0].received_trigger = 3;
  EXPECT_THAT(note(flows, 1, FlowEvent::Received), IsEmpty()) << "it tells when it has been sent";
  EXPECT_THAT(note(flows, 0, FlowEvent::Received), ElementsAre(2, 3));
  flows.start(0, 10);
  EXPECT_THAT(finish(flows, 0), IsEmpty());
  EXPECT_THAT(note(flows, 4, FlowEvent::Received), IsEmpty());
  EXPECT_THAT(complaints, ElementsAre("something ended that was never posted"));
}

TEST_F(Flows, ErrorIsReportedAndStartsTheNextFlows) {
  FlowTable flows = table({});
  flows.start(0, 10);
  EXPECT_THAT(finish(flows, 0, false), ElementsAre(2, 3));
  EXPECT_THAT(complaints, ElementsAre("flow 0 ended with an error"));
  EXPECT_FALSE(flows.records()[0].good);
}

TEST_F(Flows, ImpossibleCompletionsAreReported) {
  FlowTable flows(traffic);
  finish(flows, 0);
  finish(flows, 4);
  flows.start(1, 10);
  finish(flows, 1);
  finish(flows, 1);
  EXPECT_THAT(complaints,
              ElementsAre("something ended that was never posted",
                          "something ended that was never posted", "flow 1 completed twice"));
  EXPECT_EQ(flows.finished(), 1U);
}

}  // namespace
}  // namespace uet::netsim
