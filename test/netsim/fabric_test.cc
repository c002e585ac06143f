// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets on their way through switches and links, without hosts.
#include "netsim/fabric.h"

#include <gtest/gtest.h>

#include <optional>

namespace uet::netsim {
namespace {

constexpr Picoseconds kMs = 1'000'000'000;

struct Arrival {
  std::uint32_t host = 0;
  Picoseconds at = 0;
};

// Two leaves with two hosts each, one spine; each link takes 1 us.
struct FabricTest : ::testing::Test {
  FabricTest() {
    config.topology = {.tiers = 2, .hosts_per_leaf = 2, .leaves = 2, .leaf_uplinks = 1};
  }
  Fabric& fabric() {
    if (!made) made.emplace(config, events, pool, meter, 0);
    return *made;
  }
  NetPacket& packet(std::uint32_t source, std::uint32_t destination) {
    NetPacket& made_packet = *pool.take();
    made_packet = {};
    made_packet.source = source;
    made_packet.destination = destination;
    made_packet.wire_bytes = 1250;  // 0.1 us at 100 Gb/s
    return made_packet;
  }
  // Runs until no event is left.
  std::vector<Arrival> run() {
    std::vector<Arrival> arrivals;
    while (!events.empty()) {
      const Event event = events.pop();
      now = event.at;
      if (event.kind() == EventKind::PortFree) {
        fabric().port_is_free(event.subject(), now);
      } else if (NetPacket* arrived = fabric().arrive(event.subject(), event.packet, now)) {
        arrivals.push_back({fabric().node_behind(event.subject()), now});
        pool.give_back(arrived);
      }
    }
    return arrivals;
  }
  std::uint64_t lost() {
    std::uint64_t sum = 0;
    for (const Port& port : fabric().ports()) sum += port.counters.lost;
    return sum;
  }

  NetworkConfig config;
  EventQueue events;
  NetPacketPool pool;
  Meter meter{0, kMs, 0};
  Picoseconds now = 0;
  std::optional<Fabric> made;
};

TEST_F(FabricTest, PacketTakesEachLinkInTurn) {
  fabric().send(packet(0, 3), 0);
  const auto arrivals = run();
  ASSERT_EQ(arrivals.size(), 1U);
  EXPECT_EQ(arrivals[0].host, 3U);
  EXPECT_EQ(arrivals[0].at, 4 * (kPsPerUs + kPsPerUs / 10)) << "four links";
}

TEST_F(FabricTest, SecondPacketWaitsForTheFirst) {
  fabric().send(packet(0, 1), 0);
  fabric().send(packet(0, 1), 0);
  const auto arrivals = run();
  ASSERT_EQ(arrivals.size(), 2U);
  EXPECT_EQ(arrivals[1].at - arrivals[0].at, kPsPerUs / 10);
}

TEST_F(FabricTest, FailedLinkSwallowsPacketsUntilItIsUp) {
  const std::uint32_t uplink = fabric().topology().leaf_uplink(0);
  fabric().apply({.port = uplink, .kind = Fault::Kind::Down});
  fabric().send(packet(0, 3), 0);
  fabric().send(packet(3, 0), 0);
  EXPECT_TRUE(run().empty());
  EXPECT_EQ(lost(), 2U) << "both ways";
  EXPECT_EQ(pool.in_use(), 0U);
  fabric().apply({.port = uplink, .kind = Fault::Kind::Up});
  fabric().send(packet(0, 3), now);
  EXPECT_EQ(run().size(), 1U);
}

TEST_F(FabricTest, RateOfALinkMayChange) {
  const std::uint32_t port = fabric().topology().first_port(0);
  fabric().apply({.port = port, .kind = Fault::Kind::Rate, .rate_bps = 10'000'000'000});
  fabric().send(packet(0, 1), 0);
  const auto arrivals = run();
  ASSERT_EQ(arrivals.size(), 1U);
  EXPECT_EQ(arrivals[0].at, 2 * kPsPerUs + kPsPerUs + kPsPerUs / 10);
}

TEST_F(FabricTest, LossIsBetweenSwitchesOnly) {
  config.loss = 1;
  fabric().send(packet(0, 1), 0);
  EXPECT_EQ(run().size(), 1U) << "below one leaf";
  fabric().send(packet(0, 3), now);
  EXPECT_TRUE(run().empty());
  EXPECT_EQ(lost(), 1U);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(FabricTest, ControlLossSparesData) {
  config.control_loss = 1;
  fabric().send(packet(0, 3), 0);
  EXPECT_EQ(run().size(), 1U);
  NetPacket& control = packet(0, 3);
  control.traffic_class = TrafficClass::Control;
  fabric().send(control, now);
  EXPECT_TRUE(run().empty());
}

TEST_F(FabricTest, WithoutAWayThePacketIsCounted) {
  const std::uint32_t uplink = fabric().topology().leaf_uplink(0);
  fabric().apply({.port = uplink, .kind = Fault::Kind::Avoid});
  fabric().send(packet(0, 3), 0);
  EXPECT_TRUE(run().empty());
  EXPECT_EQ(fabric().unroutable(), 1U);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(FabricTest, HostsPortReportsEachPacketThatHasLeft) {
  fabric().send(packet(0, 1), 0);
  bool reported = false;
  while (!events.empty()) {
    const Event event = events.pop();
    if (event.kind() == EventKind::PortFree) {
      EXPECT_EQ(event.subject(), fabric().topology().first_port(0)) << "a switch reports nothing";
      reported |= fabric().port_is_free(event.subject(), event.at);
    } else if (NetPacket* arrived = fabric().arrive(event.subject(), event.packet, event.at)) {
      pool.give_back(arrived);
    }
  }
  EXPECT_TRUE(reported);
}

}  // namespace
}  // namespace uet::netsim
