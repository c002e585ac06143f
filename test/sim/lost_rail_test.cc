// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDS-227 between two Feps: a rail is cut while a transfer goes on, and both ends are told a little
// later. The time-out of a packet is a second, so that no packet may need it.
#include <gtest/gtest.h>

#include <string>

#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kBytes = 1 << 20;
constexpr Duration kCut = microseconds(300);
constexpr Duration kNever = seconds(100);

StageConfig two_rails(DeliveryMode mode) {
  StageConfig config;
  config.mode = mode;
  config.memory_bytes = kBytes;
  config.rails = 2;
  config.link.rate_bps = 10'000'000'000;
  config.link.latency = microseconds(10);
  config.link.queue_bytes = 64 << 20;
  config.fep.cms.algorithm = cms::Algorithm::Nscc;
  config.fep.cms.paths = cms::PathPolicy::RoundRobin;
  config.fep.cms.path_count = 8;
  config.fep.cms.path_inference = config.fep.cms.recovery = false;
  config.fep.cms.base_rtt = microseconds(25);
  config.fep.pds.rto_init = seconds(1);
  return config;
}

class LostRail : public ::testing::TestWithParam<std::tuple<DeliveryMode, int, int>> {};

// Whichever rail goes, and at whichever end.
TEST_P(LostRail, Pds227_CutUnderLoad_NoTimeOut) {
  const auto [mode, node, rail] = GetParam();
  Stage stage(two_rails(mode));
  stage.world().cut_rail(node, static_cast<std::uint8_t>(rail), kCut, kNever, microseconds(100),
                         microseconds(20));
  for (std::uintptr_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(stage.write(0, 1, i * (kBytes / 8), kBytes / 8, std::nullopt, i + 1).ok());
  }
  ASSERT_TRUE(stage.completes(0, 8));
  EXPECT_LT(stage.world().now(), time_from_ns(1'000'000'000) + milliseconds(5));
  EXPECT_EQ(stage.counters(0).rto_retransmissions, 0U);
  EXPECT_EQ(stage.fep(0).stats().cms.losses_by_rto + stage.fep(0).stats().cms.losses_by_path, 0U);
  EXPECT_EQ(stage.actor(1).memory, stage.actor(0).memory);
}

std::string name_of(const ::testing::TestParamInfo<LostRail::ParamType>& info) {
  const auto [mode, node, rail] = info.param;
  return std::string(mode == DeliveryMode::Rod ? "Rod" : "Rud") +
         (node == 0 ? "Source" : "Target") + "Rail" + std::to_string(rail);
}
INSTANTIATE_TEST_SUITE_P(Ends, LostRail,
                         ::testing::Combine(::testing::Values(DeliveryMode::Rud, DeliveryMode::Rod),
                                            ::testing::Values(0, 1), ::testing::Values(0, 1)),
                         name_of);

// All requests arrive, and no ACK: they went by the rail that is lost.
TEST(LostRailAcks, Pds227_LostAcks_AreRepeated) {
  StageConfig config = two_rails(DeliveryMode::Rud);
  config.fep.cms.paths = cms::PathPolicy::Single;
  Stage stage(config);
  for (std::size_t i = 1; i <= 2; ++i) {  // the second one proves the source
    ASSERT_TRUE(stage.write(0, 1, 0, 64).ok());
    ASSERT_TRUE(stage.completes(0, i));
  }
  const std::size_t acks = stage.acks(1).size();
  std::uint8_t rail = 0;
  stage.world().filter = [&](const Sighting& s) {
    if (s.from == 1) rail = s.packet->rail;
    return s.from == 1;
  };
  ASSERT_TRUE(stage.write(0, 1, 0, 16 * 1024).ok());
  stage.world().run_for(microseconds(200));
  ASSERT_GT(stage.acks(1).size(), acks);
  stage.world().filter = nullptr;
  stage.world().cut_rail(1, rail, Duration(0), kNever, microseconds(1), milliseconds(50));
  stage.world().run_for(milliseconds(1));
  EXPECT_EQ(stage.actor(0).sink.completions.size(), 3U) << "before their source is told";
  EXPECT_EQ(stage.requests(0).size(), 18U) << "and without a packet sent again";
}

}  // namespace
}  // namespace uet::sim
