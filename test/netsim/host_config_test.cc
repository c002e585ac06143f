// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/host_config.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <vector>

#include "fep/fep.h"
#include "uet/nic/nic.h"

namespace uet::netsim {
namespace {

constexpr std::uint64_t kRate = 100'000'000'000;

TEST(HostConfig, PdcsSufficeForPeersThatHaveNotAnswered) {
  const fep::Config idle = host_config({}, 0, kRate, {});
  const fep::Config busy = host_config({}, 0, kRate, {.destinations = 3, .sources = 4});
  EXPECT_EQ(busy.pds.pdc_count - idle.pds.pdc_count, 2U * 3 + 8 * 4);
  EXPECT_EQ(busy.ses.contexts, 4U);
}

TEST(HostConfig, LinkRateIsThatOfTheHost) {
  NetworkConfig network;
  EXPECT_EQ(host_config(network, 0, kRate, {}).cms.link_rate_bps, kRate);
  network.remote_rate_bps = kRate / 4;
  EXPECT_EQ(host_config(network, 0, kRate, {}).cms.remote_rate_bps, kRate / 4);
}

TEST(HostConfig, PacketsCoverAWindowForEachDestination) {
  const auto packets = [](std::uint64_t rate, std::size_t destinations) {
    return host_config({}, 0, rate, {.destinations = destinations}).packets;
  };
  EXPECT_GT(packets(kRate, 8), packets(kRate, 4));
  EXPECT_GT(packets(4 * kRate, 4), packets(kRate, 4));
  EXPECT_EQ(packets(kRate, 1'000'000), std::size_t{1} << 16) << "a bound";
}

TEST(HostConfig, MessagesAreAsManyAsFlowsWithinBounds) {
  EXPECT_EQ(host_config({}, 0, kRate, {.flows = 0}).ses.tx_messages, 4U);
  EXPECT_EQ(host_config({}, 0, kRate, {.flows = 77}).ses.tx_messages, 77U);
  EXPECT_EQ(host_config({}, 0, kRate, {.flows = 1'000'000}).ses.tx_messages, 4096U);
}

// CMS-800: a run is a function of its seed.
TEST(HostConfig, Cms800_HostsDrawDifferentNumbers) {
  NetworkConfig network;
  network.seed = 5;
  const std::uint64_t first = host_config(network, 1, kRate, {}).seed;
  EXPECT_EQ(host_config(network, 1, kRate, {}).seed, first);
  EXPECT_NE(host_config(network, 2, kRate, {}).seed, first);
  network.seed = 6;
  EXPECT_NE(host_config(network, 1, kRate, {}).seed, first);
}

class SilentNic : public nic::Nic {
 public:
  // `most_received`: that of nic::NicCaps.
  explicit SilentNic(std::size_t most_received) { caps_.most_received = most_received; }
  std::size_t rx_burst(std::span<RxPacket>, Time) override { return 0; }
  std::size_t tx_burst(std::span<const Packet* const> in) override { return in.size(); }
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return {}; }

 private:
  nic::NicCaps caps_;
};

// Bytes of the heap for a Fep and all that it owns, with what the heap adds.
double bytes_of_fep(const fep::Config& config, std::size_t most_received) {
  constexpr std::size_t kFeps = 1000;
  SilentNic nic(most_received);
  std::vector<std::unique_ptr<fep::Fep>> feps(kFeps);
  const auto in_use = [] {
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<double>(heap.uordblks) + static_cast<double>(heap.hblkhd);
  };
  const double before = in_use();
  for (auto& fep : feps) fep = std::make_unique<fep::Fep>(config, nic, Time{});
  return (in_use() - before) / kFeps;
}

// CMS-806: there may be 65,536 hosts.
TEST(HostConfig, Cms806_FepThatHasSentNothingIsSmall) {
  const double idle = bytes_of_fep(host_config({}, 0, kRate, {}), 1);
  if (idle == 0) GTEST_SKIP() << "this heap does not tell what is in use (a sanitizer's)";
  EXPECT_LT(idle, 14'000);
  const HostLoad busy{.destinations = 100, .sources = 100, .flows = 1000};
  EXPECT_LT(bytes_of_fep(host_config({}, 0, kRate, busy), 1), 16'000);
  EXPECT_LT(bytes_of_fep(fep::Config{}, nic::kRxBurst), 20'000) << "the provider's sizes";
}

}  // namespace
}  // namespace uet::netsim
