// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Test idea 6 of SES section 13: a long deferrable send without a receive, between two FEPs.
#include <gtest/gtest.h>

#include <cstring>

#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kLength = 1 << 20;

class Deferral : public testing::TestWithParam<double> {
 protected:
  static StageConfig config() {
    StageConfig config;
    config.memory_bytes = 2 * kLength;
    config.link.loss = GetParam();
    config.fep.ses.rendezvous = false;
    config.fep.ses.deferrable = true;
    config.fep.ses.unexpected_bytes_per_context = 2048;  // less than its data need
    return config;
  }
  Deferral() : stage_(config()) { stage_.actor(1).peer.ai_full = true; }

  ses::Counters target() { return stage_.fep(1).stats().ses; }
  std::size_t restarts_asked_for() const {
    std::size_t count = 0;
    for (const Seen& seen : stage_.requests(1)) {
      wire::SesRequest request;
      if (!wire::SesRequest::decode(seen.request->next_hdr, seen.rest(), request)) continue;
      count += request.opcode == wire::SesOpcode::DeferrableRtr ? 1 : 0;
    }
    return count;
  }

  Stage stage_;
};

// SES-66, SES-70
TEST_P(Deferral, Idea6_NothingIsKeptUntilAReceiveAsksForIt) {
  ASSERT_TRUE(stage_.send(0, 1, 0, kLength).ok());
  stage_.world().run_for(milliseconds(500));
  EXPECT_TRUE(stage_.actor(0).sink.completions.empty());
  EXPECT_EQ(target().messages_parked, 1u);
  EXPECT_EQ(target().unexpected_refused, 0u);
  EXPECT_EQ(restarts_asked_for(), 0u);
  ASSERT_TRUE(stage_.receive(1, 0, kLength).ok());
  ASSERT_TRUE(stage_.completes(1, 1));
  ASSERT_TRUE(stage_.completes(0, 1));
  stage_.world().run_for(milliseconds(500));
  for (const int node : {0, 1}) {
    ASSERT_EQ(stage_.actor(node).sink.completions.size(), 1u);
    EXPECT_EQ(stage_.actor(node).sink.completions[0].status, ses::Status::Ok);
    EXPECT_EQ(stage_.actor(node).sink.completions[0].length, kLength);
  }
  EXPECT_EQ(std::memcmp(stage_.actor(0).memory.data(), stage_.actor(1).memory.data(), kLength), 0);
  EXPECT_EQ(target().messages_parked, 1u);
  EXPECT_GE(restarts_asked_for(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Loss, Deferral, testing::Values(0.0, 0.02));

}  // namespace
}  // namespace uet::sim
