// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The shape of a folded Clos network of one to three tiers, and which port of a switch a packet
// takes: down by its destination, up by a hash over addresses and entropy value (CMS-805).
//
// Nodes are numbered: hosts, leaves, then (three tiers) aggregation switches, then spines. A host
// has one port; a switch has its ports in one row, those that lead down first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netsim/port.h"

namespace uet::netsim {

struct TopologyConfig {
  // That of the slowest link of a host.
  std::uint64_t slowest_host_bps() const {
    std::uint64_t slowest_bps = host_rate_bps;
    for (const auto& [host, bps] : other_host_rates_bps) slowest_bps = std::min(slowest_bps, bps);
    return slowest_bps;
  }

  std::uint32_t tiers = 3;           // 1: one switch
  std::uint32_t hosts_per_leaf = 0;  // ports of a leaf that lead down
  std::uint32_t leaves = 0;          // in all
  std::uint32_t leaves_per_pod = 0;  // three tiers
  std::uint32_t leaf_uplinks = 0;    // one to each spine; three tiers: to each switch of the pod
  std::uint32_t pod_uplinks = 0;  // three tiers: of each aggregation switch, to spines of its own
  std::uint64_t host_rate_bps = 100'000'000'000;
  std::map<std::uint32_t, std::uint64_t> other_host_rates_bps = {};  // hosts whose links differ
  std::uint64_t fabric_rate_bps = 100'000'000'000;                   // between switches
  Picoseconds hop_delay = kPsPerUs;
  std::map<std::uint32_t, Picoseconds> other_host_delays = {};  // hosts whose links are longer
  bool spray_in_switches = false;  // up-ports are drawn per packet, whatever its entropy says
};

enum class Shape : std::uint8_t {
  OneSwitch,
  TwoTier,    // leaves of 8 hosts
  LeafSpine,  // leaves of 64 hosts
  FatTree,    // three tiers, all switches alike (CMS-809)
};

// The smallest network of this shape for `hosts`; `oversubscription` divides a leaf's uplinks.
// `complaint` says why there is none.
TopologyConfig topology_for(Shape shape, std::uint32_t hosts, std::uint32_t oversubscription,
                            std::string& complaint);

class Topology {
 public:
  // `config` is one that complaint_about finds nothing wrong with.
  Topology(const TopologyConfig& config, std::uint64_t seed);
  // Empty if the numbers make a network.
  static std::string complaint_about(const TopologyConfig& config);

  const TopologyConfig& config() const { return config_; }
  std::uint32_t hosts() const { return hosts_; }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(first_port_.size()) - 1; }
  bool is_host(std::uint32_t node) const { return node < hosts_; }
  // Which of `parts` parts of the network the node belongs to: equal parts of each tier, and hosts
  // with their leaf.
  std::uint32_t part_of(std::uint32_t node, std::uint32_t parts) const;
  // The links of all ports, in the order of port numbers; the network copies them.
  const std::vector<Port::Link>& links() const { return links_; }
  std::uint32_t first_port(std::uint32_t node) const { return first_port_[node]; }
  // The port at the other end of the cable.
  std::uint32_t reverse(std::uint32_t port) const { return reverse_[port]; }
  // Ports that lead up from leaves, taken in turn from leaf to leaf: the cables that faults name.
  std::uint32_t leaf_uplink(std::uint32_t number) const;
  std::uint32_t leaf_uplink_count() const { return config_.leaves * uplinks_of(hosts_); }

  // Uplink `link` of switch `number` of this tier (1: leaves); of a spine a link that leads down.
  std::optional<std::uint32_t> uplink_of(std::uint32_t tier, std::uint32_t number,
                                         std::uint32_t link) const;

  // The port of switch `node` that the packet leaves by, or kNoPort if none leads there.
  static constexpr std::uint32_t kNoPort = UINT32_MAX;
  std::uint32_t route(std::uint32_t node, const NetPacket& packet, const std::vector<Port>& ports,
                      Rng& rng) const;
  // Links on the longest way between two hosts.
  std::uint32_t longest_path() const { return 2 * config_.tiers; }
  // Routing must look at Port::Link::avoided.
  void set_any_avoided(bool any) { any_avoided_ = any; }

 private:
  std::uint32_t tier_of(std::uint32_t node) const;
  std::uint32_t uplinks_of(std::uint32_t node) const;
  std::uint32_t downlinks_of(std::uint32_t node) const;
  std::uint32_t leaf_of(std::uint32_t host) const { return host / config_.hosts_per_leaf; }
  std::uint32_t pod_of(std::uint32_t host) const { return leaf_of(host) / config_.leaves_per_pod; }
  // The port down to the host, or kNoPort if the host is not below the switch.
  std::uint32_t down_port(std::uint32_t node, std::uint32_t host) const;
  bool leads_to(std::uint32_t node, std::uint32_t host, const std::vector<Port>& ports) const;
  std::uint32_t avoiding(std::uint32_t node, const NetPacket& packet,
                         const std::vector<Port>& ports, std::uint64_t hash) const;
  void connect(std::uint32_t down_port, std::uint32_t lower, std::uint32_t up_port,
               std::uint32_t upper, std::uint64_t rate_bps);
  void connect_all();

  const TopologyConfig config_;
  std::uint32_t hosts_;
  std::uint32_t pods_;
  std::uint32_t first_aggregation_;  // node numbers
  std::uint32_t first_spine_;
  std::vector<std::uint32_t> first_port_;
  std::vector<Port::Link> links_;
  std::vector<std::uint32_t> reverse_;
  std::vector<std::uint64_t> salts_;  // by node: switches hash differently
  bool any_avoided_ = false;
};

}  // namespace uet::netsim
