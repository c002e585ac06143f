// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Shapes and ways: every host reaches every other, in the number of hops that the shape has; the
// entropy value picks the way, and links known to be down are avoided.
#include "netsim/topology.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace uet::netsim {
namespace {

struct Walk {
  std::uint32_t hops = 0;
  std::vector<std::uint32_t> ports;
  bool arrived = false;
};

class Roads {
 public:
  explicit Roads(const TopologyConfig& config) : topology(config, 7) {
    EXPECT_EQ(Topology::complaint_about(config), "");
    ports.resize(topology.links().size());
    for (std::size_t i = 0; i < ports.size(); ++i) ports[i].link = topology.links()[i];
  }

  Walk walk(std::uint32_t from, std::uint32_t to, std::uint16_t entropy = 50000) {
    Walk walk;
    NetPacket packet;
    packet.source = from;
    packet.destination = to;
    packet.entropy = entropy;
    std::uint32_t port = topology.first_port(from);
    for (;;) {
      walk.ports.push_back(port);
      ++walk.hops;
      const std::uint32_t node = ports[port].link.to;
      if (topology.is_host(node)) {
        walk.arrived = node == to;
        return walk;
      }
      port = topology.route(node, packet, ports, rng);
      if (port == Topology::kNoPort || walk.hops > 10) return walk;
    }
  }

  Topology topology;
  std::vector<Port> ports;
  Rng rng{3};
};

TopologyConfig shape(Shape shape, std::uint32_t hosts, std::uint32_t oversubscription = 1) {
  std::string complaint;
  const TopologyConfig config = topology_for(shape, hosts, oversubscription, complaint);
  EXPECT_EQ(complaint, "");
  return config;
}

TEST(Topology, EveryHostReachesEveryOther) {
  for (const Shape of : {Shape::OneSwitch, Shape::TwoTier, Shape::FatTree}) {
    Roads roads(shape(of, 32));
    for (std::uint32_t from = 0; from < 32; ++from) {
      for (std::uint32_t to = 0; to < 32; ++to) {
        if (from == to) continue;
        const Walk walk = roads.walk(from, to, static_cast<std::uint16_t>(from * 77 + to));
        EXPECT_TRUE(walk.arrived) << from << " to " << to;
        EXPECT_LE(walk.hops, roads.topology.longest_path());
      }
    }
  }
}

TEST(Topology, Cms809_SizesOfTheNamedShapes) {
  EXPECT_EQ(Roads(shape(Shape::FatTree, 128)).topology.hosts(), 128U);
  EXPECT_EQ(Roads(shape(Shape::FatTree, 1024)).topology.hosts(), 1024U);
  EXPECT_EQ(Roads(shape(Shape::FatTree, 432)).topology.hosts(), 432U);
  const TopologyConfig large = shape(Shape::LeafSpine, 8192);
  EXPECT_EQ(large.leaves, 128U);
  EXPECT_EQ(large.leaf_uplinks, 64U);
  EXPECT_EQ(shape(Shape::FatTree, 1024, 4).leaf_uplinks, 2U);
  std::string complaint;
  (void)topology_for(Shape::FatTree, 1024, 3, complaint);
  EXPECT_EQ(complaint, "a leaf has 8 uplinks, which an oversubscription of 3 does not divide");
}

TEST(Topology, HopsGrowWithTheDistance) {
  Roads roads(shape(Shape::FatTree, 128));  // 4 hosts a leaf, 16 a pod
  EXPECT_EQ(roads.walk(0, 1).hops, 2U);
  EXPECT_EQ(roads.walk(0, 5).hops, 4U);
  EXPECT_EQ(roads.walk(0, 127).hops, 6U);
}

TEST(Topology, Cms805_EntropyPicksTheWayAndKeepsIt) {
  Roads roads(shape(Shape::FatTree, 128));
  std::set<std::vector<std::uint32_t>> ways;
  for (std::uint16_t entropy = 0; entropy < 400; ++entropy) {
    ways.insert(roads.walk(0, 127, entropy).ports);
    EXPECT_EQ(roads.walk(0, 127, entropy).ports, roads.walk(0, 127, entropy).ports);
  }
  EXPECT_EQ(ways.size(), 16U);  // 4 aggregation switches with 4 uplinks each
}

TEST(Topology, EntropyValuesSpreadEvenly) {
  Roads roads(shape(Shape::FatTree, 128));
  std::map<std::vector<std::uint32_t>, int> uses;
  for (std::uint16_t entropy = 0; entropy < 16000; ++entropy)
    ++uses[roads.walk(0, 127, entropy).ports];
  for (const auto& [way, count] : uses) EXPECT_NEAR(count, 1000, 150);
}

TEST(Topology, LinksKnownToBeDownAreAvoidedAtBothEnds) {
  Roads roads(shape(Shape::FatTree, 128));
  const std::uint32_t up = roads.topology.leaf_uplink(0);  // of the leaf of hosts 0 to 3
  roads.ports[up].link.avoided = true;
  roads.ports[roads.topology.reverse(up)].link.avoided = true;
  roads.topology.set_any_avoided(true);
  for (std::uint16_t entropy = 0; entropy < 400; ++entropy) {
    for (const auto& [from, to] : {std::pair{0U, 127U}, {127U, 0U}, {5U, 1U}}) {
      const Walk walk = roads.walk(from, to, entropy);
      EXPECT_TRUE(walk.arrived);
      for (const std::uint32_t port : walk.ports) EXPECT_FALSE(roads.ports[port].link.avoided);
    }
  }
}

TEST(Topology, WithoutAWayThereIsNoPort) {
  TopologyConfig config = shape(Shape::TwoTier, 16);
  config.leaf_uplinks = 1;
  Roads roads(config);
  roads.ports[roads.topology.leaf_uplink(0)].link.avoided = true;
  roads.topology.set_any_avoided(true);
  EXPECT_FALSE(roads.walk(0, 15).arrived);
  EXPECT_TRUE(roads.walk(0, 1).arrived);
}

TEST(Topology, RefusesWhatIsNoNetwork) {
  EXPECT_EQ(Topology::complaint_about({.tiers = 4}), "a network has 1 to 3 tiers");
  EXPECT_EQ(Topology::complaint_about({.tiers = 2, .hosts_per_leaf = 8, .leaves = 2}),
            "leaves need uplinks");
  EXPECT_EQ(Topology::complaint_about({.tiers = 3,
                                       .hosts_per_leaf = 8,
                                       .leaves = 3,
                                       .leaves_per_pod = 2,
                                       .leaf_uplinks = 2,
                                       .pod_uplinks = 2}),
            "the leaves do not fill the pods");
}

}  // namespace
}  // namespace uet::netsim
