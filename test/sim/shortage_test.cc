// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// More peers than PDCs, more messages than states: all get through, whatever waits for what.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Node 0 has few PDCs and no receive; all others send it what it must read later.
class WaitingSends : public ::testing::Test {
 protected:
  static constexpr int kSenders = 7;
  static constexpr std::size_t kPdcs = 4;  // two of them are the reserved pool's
  static constexpr std::size_t kBytes = 16 << 10;

  static StageConfig config_for(DeliveryMode mode) {
    StageConfig config;
    config.nodes = kSenders + 1;
    config.mode = mode;
    config.memory_bytes = kBytes * kSenders + 4096;
    config.fep.ses.eager_bytes = 4 << 10;
    config.configure = [](int node, fep::Config& fep) {
      if (node == 0) fep.pds.pdc_count = kPdcs;
    };
    return config;
  }
  explicit WaitingSends(DeliveryMode mode = DeliveryMode::Rud) : stage(config_for(mode)) {
    stage.actor(0).peer.hpc = true;  // it reads what it has not kept
  }
  void send_from_all() {
    for (int i = 1; i <= kSenders; ++i) ASSERT_TRUE(stage.send(i, 0, 0, kBytes).ok());
  }
  std::size_t completions(ses::Status status) {
    std::size_t count = 0;
    for (int i = 1; i <= kSenders; ++i) {
      count += static_cast<std::size_t>(
          std::ranges::count(stage.actor(i).sink.completions, status, &ses::Completion::status));
    }
    return count;
  }
  // One receive after the other, as late as an application likes.
  void receive_from_all() {
    for (std::size_t i = 0; i < kSenders; ++i) {
      ASSERT_TRUE(stage.receive(0, i * kBytes, kBytes).ok());
      ASSERT_TRUE(stage.completes(0, i + 1)) << i;
      EXPECT_EQ(stage.actor(0).sink.completions.back().status, ses::Status::Ok);
      EXPECT_EQ(stage.actor(0).sink.completions.back().length, kBytes);
    }
  }

  Stage stage;
};

class OrderedWaitingSends : public WaitingSends {
 protected:
  OrderedWaitingSends() : WaitingSends(DeliveryMode::Rod) {}
};

TEST_F(WaitingSends, Pds180_AllPeersGetThroughFewPdcs) {
  send_from_all();
  const auto all_are_here = [&] {
    return stage.fep(0).stats().ses.unexpected_messages == kSenders;
  };
  EXPECT_TRUE(stage.world().run_until(all_are_here, seconds(5)));
  EXPECT_EQ(completions(ses::Status::Ok), 0U);
  stage.world().run_for(seconds(20));  // longer than a dead peer is waited for
  receive_from_all();
  EXPECT_TRUE(stage.world().run_until([&] { return completions(ses::Status::Ok) == kSenders; },
                                      seconds(5)));
}

TEST_F(OrderedWaitingSends, Pds180_AllPeersGetThroughFewPdcs) {
  send_from_all();
  const auto all_are_here = [&] {
    return stage.fep(0).stats().ses.unexpected_messages == kSenders;
  };
  EXPECT_TRUE(stage.world().run_until(all_are_here, seconds(5)));
  stage.world().run_for(seconds(20));
  receive_from_all();
  EXPECT_TRUE(stage.world().run_until([&] { return completions(ses::Status::Ok) == kSenders; },
                                      seconds(5)));
}

// Peers whose sends wait do not keep out the writes of peers that come later.
TEST_F(WaitingSends, Pds181_ALaterPeerNeedNotWaitForReceives) {
  send_from_all();
  stage.world().run_for(seconds(2));
  for (int i = 1; i <= kSenders; ++i) {
    const Time posted = stage.world().now();
    ASSERT_TRUE(stage.write(i, 0, kBytes * kSenders, 64).ok());
    ASSERT_TRUE(stage.completes(i, 1)) << i;
    EXPECT_LT(stage.world().now() - posted, milliseconds(500)) << i;
  }
  EXPECT_EQ(completions(ses::Status::Ok), static_cast<std::size_t>(kSenders));
  receive_from_all();
}

// A send whose PDC was closed to free its place reports the target's death all the same.
TEST_F(WaitingSends, Pds125_TheTargetsDeathEndsAllSends) {
  send_from_all();
  stage.world().run_for(seconds(3));
  EXPECT_EQ(completions(ses::Status::Ok), 0U);
  stage.world().kill(0);
  EXPECT_TRUE(stage.world().run_until(
      [&] { return completions(ses::Status::PdsError) == kSenders; }, seconds(20)));
}

// All states are held by a message whose rest lies beyond the window, which a packet that found no
// state keeps closed.
TEST(StateShortage, Pds211_ThePacketThatHoldsCackIsTaken) {
  constexpr std::size_t kLong = 3000 * 1024;  // of a window of 1,024 packets
  StageConfig config;
  config.memory_bytes = 4 << 20;
  config.fep.ses.rx_messages = 2;  // of which one host has one
  config.link.queue_bytes = 64 << 20;
  Stage stage(config);
  stage.world().filter = drop_first(3, [](const Sighting& s) {
    const auto* header = s.header<wire::RequestHeader>();
    return s.from == 0 && header != nullptr && header->psn.value < 70003;
  });
  ASSERT_TRUE(stage.write(0, 1, kLong, 3 * 1024, {}, 1).ok());
  ASSERT_TRUE(stage.write(0, 1, 0, kLong, {}, 2).ok());
  ASSERT_TRUE(stage.completes(0, 2));
  for (const auto& completion : stage.actor(0).sink.completions) {
    EXPECT_EQ(completion.status, ses::Status::Ok);
  }
  EXPECT_EQ(stage.actor(1).memory.size(), stage.actor(0).memory.size());
  EXPECT_TRUE(std::equal(stage.actor(0).memory.begin(),
                         stage.actor(0).memory.begin() + kLong + 3 * 1024,
                         stage.actor(1).memory.begin()));
}

}  // namespace
}  // namespace uet::sim
