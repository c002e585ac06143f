// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers of ports and nodes, and the ways through them.
#include "netsim/topology.h"

namespace uet::netsim {
namespace {

constexpr std::uint32_t kTwoTierHostsPerLeaf = 8;
constexpr std::uint32_t kLeafSpineHostsPerLeaf = 64;
constexpr std::uint32_t kMostHosts = 1 << 20;

std::uint64_t path_hash(const NetPacket& packet, std::uint64_t salt) {
  const std::uint64_t addresses = std::uint64_t{packet.source} << 32 | packet.destination;
  Rng addressed(salt ^ addresses * 0x9E3779B97F4A7C15ULL);
  return Rng(addressed.next() ^ packet.entropy).next() >> 16;
}

TopologyConfig fat_tree(std::uint32_t hosts) {
  std::uint32_t half = 2;  // half the ports of a switch
  while (2 * half * half * half < hosts) ++half;
  return TopologyConfig{.tiers = 3,
                        .hosts_per_leaf = half,
                        .leaves = 2 * half * half,
                        .leaves_per_pod = half,
                        .leaf_uplinks = half,
                        .pod_uplinks = half};
}

}  // namespace

TopologyConfig topology_for(Shape shape, std::uint32_t hosts, std::uint32_t oversubscription,
                            std::string& complaint) {
  TopologyConfig config;
  if (shape == Shape::FatTree) {
    config = fat_tree(hosts);
  } else if (shape == Shape::OneSwitch) {
    config = TopologyConfig{.tiers = 1, .hosts_per_leaf = hosts, .leaves = 1};
  } else {
    config.tiers = 2;
    config.hosts_per_leaf = shape == Shape::TwoTier ? kTwoTierHostsPerLeaf : kLeafSpineHostsPerLeaf;
    config.leaf_uplinks = config.hosts_per_leaf;
    config.leaves = (hosts + config.hosts_per_leaf - 1) / config.hosts_per_leaf;
  }
  if (oversubscription == 0 || config.leaf_uplinks % oversubscription != 0) {
    complaint = "a leaf has " + std::to_string(config.leaf_uplinks) +
                " uplinks, which an oversubscription of " + std::to_string(oversubscription) +
                " does not divide";
    return config;
  }
  config.leaf_uplinks /= oversubscription;
  return config;
}

std::string Topology::complaint_about(const TopologyConfig& config) {
  if (config.tiers < 1 || config.tiers > 3) return "a network has 1 to 3 tiers";
  if (config.hosts_per_leaf == 0 || config.leaves == 0) return "there is no host";
  if (std::uint64_t{config.hosts_per_leaf} * config.leaves > kMostHosts) return "too many hosts";
  if (config.tiers == 1 && config.leaves != 1) return "one tier is one switch";
  if (config.tiers > 1 && config.leaf_uplinks == 0) return "leaves need uplinks";
  if (config.tiers == 3 && (config.leaves_per_pod == 0 || config.pod_uplinks == 0)) {
    return "three tiers need pods, and switches of pods need uplinks";
  }
  if (config.tiers == 3 && config.leaves % config.leaves_per_pod != 0) {
    return "the leaves do not fill the pods";
  }
  return {};
}

Topology::Topology(const TopologyConfig& config, std::uint64_t seed)
    : config_(config),
      hosts_(config.hosts_per_leaf * config.leaves),
      pods_(config.tiers == 3 ? config.leaves / config.leaves_per_pod : 1),
      first_aggregation_(hosts_ + config.leaves),
      first_spine_(first_aggregation_ + (config.tiers == 3 ? pods_ * config.leaf_uplinks : 0)) {
  const std::uint32_t spines = config.tiers == 1   ? 0
                               : config.tiers == 2 ? config.leaf_uplinks
                                                   : config.leaf_uplinks * config.pod_uplinks;
  const std::uint32_t nodes = first_spine_ + spines;
  Rng rng(seed);
  first_port_.push_back(0);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    first_port_.push_back(first_port_.back() + downlinks_of(node) + uplinks_of(node));
    salts_.push_back(rng.next());
  }
  links_.resize(first_port_.back());
  reverse_.resize(first_port_.back());
  connect_all();
}

std::uint32_t Topology::tier_of(std::uint32_t node) const {
  if (node < hosts_) return 0;
  if (node < first_aggregation_) return 1;
  return node < first_spine_ ? 2 : config_.tiers;
}

std::uint32_t Topology::downlinks_of(std::uint32_t node) const {
  if (node < hosts_) return 0;
  if (node < first_aggregation_) return config_.hosts_per_leaf;
  if (node < first_spine_) return config_.leaves_per_pod;
  return config_.tiers == 3 ? pods_ : config_.leaves;
}

std::uint32_t Topology::part_of(std::uint32_t node, std::uint32_t parts) const {
  if (is_host(node)) node = hosts_ + leaf_of(node);
  const bool leaf = node < first_aggregation_, spine = node >= first_spine_;
  const std::uint32_t begin = leaf ? hosts_ : spine ? first_spine_ : first_aggregation_;
  const std::uint32_t end = leaf ? first_aggregation_ : spine ? nodes() : first_spine_;
  const std::uint64_t place = node - begin;
  return static_cast<std::uint32_t>(place * parts / (end - begin));
}

std::uint32_t Topology::uplinks_of(std::uint32_t node) const {
  if (node < hosts_) return 1;
  if (node < first_aggregation_) return config_.tiers == 1 ? 0 : config_.leaf_uplinks;
  return node < first_spine_ ? config_.pod_uplinks : 0;
}

void Topology::connect(std::uint32_t down_port, std::uint32_t lower, std::uint32_t up_port,
                       std::uint32_t upper, std::uint64_t rate_bps) {
  const bool host = lower < hosts_;
  const auto other = config_.other_host_delays.find(lower);
  const Picoseconds delay =
      host && other != config_.other_host_delays.end() ? other->second : config_.hop_delay;
  links_[up_port] =
      Port::Link{.rate_bps = rate_bps, .delay = delay, .to = upper, .from_host = host};
  links_[down_port] =
      Port::Link{.rate_bps = rate_bps, .delay = delay, .to = lower, .last_hop = host};
  reverse_[up_port] = down_port;
  reverse_[down_port] = up_port;
}

void Topology::connect_all() {
  for (std::uint32_t host = 0; host < hosts_; ++host) {
    const std::uint32_t leaf = hosts_ + leaf_of(host);
    const auto other = config_.other_host_rates_bps.find(host);
    connect(first_port_[leaf] + host % config_.hosts_per_leaf, host, first_port_[host], leaf,
            other == config_.other_host_rates_bps.end() ? config_.host_rate_bps : other->second);
  }
  for (std::uint32_t leaf = 0; config_.tiers > 1 && leaf < config_.leaves; ++leaf) {
    const std::uint32_t node = hosts_ + leaf;
    for (std::uint32_t up = 0; up < config_.leaf_uplinks; ++up) {
      const std::uint32_t pod = config_.tiers == 3 ? leaf / config_.leaves_per_pod : 0;
      const std::uint32_t upper = first_aggregation_ + pod * config_.leaf_uplinks + up;
      const std::uint32_t place = config_.tiers == 3 ? leaf % config_.leaves_per_pod : leaf;
      connect(first_port_[upper] + place, node, first_port_[node] + config_.hosts_per_leaf + up,
              upper, config_.fabric_rate_bps);
    }
  }
  for (std::uint32_t node = first_aggregation_; node < first_spine_; ++node) {
    const std::uint32_t pod = (node - first_aggregation_) / config_.leaf_uplinks;
    const std::uint32_t place = (node - first_aggregation_) % config_.leaf_uplinks;
    for (std::uint32_t up = 0; up < config_.pod_uplinks; ++up) {
      const std::uint32_t spine = first_spine_ + place * config_.pod_uplinks + up;
      connect(first_port_[spine] + pod, node, first_port_[node] + config_.leaves_per_pod + up,
              spine, config_.fabric_rate_bps);
    }
  }
}

std::uint32_t Topology::leaf_uplink(std::uint32_t number) const {
  const std::uint32_t leaf = hosts_ + number % config_.leaves;
  const std::uint32_t up = number / config_.leaves % uplinks_of(leaf);
  return first_port_[leaf] + config_.hosts_per_leaf + up;
}

std::optional<std::uint32_t> Topology::uplink_of(std::uint32_t tier, std::uint32_t number,
                                                 std::uint32_t link) const {
  const std::uint32_t begin = tier == 1 ? hosts_ : tier == 2 ? first_aggregation_ : first_spine_;
  const std::uint32_t end = tier == 1 ? first_aggregation_ : tier == 2 ? first_spine_ : nodes();
  if (begin >= end || number >= end - begin) return std::nullopt;
  const std::uint32_t node = begin + number;
  const bool spine = node >= first_spine_;
  if (link >= (spine ? downlinks_of(node) : uplinks_of(node))) return std::nullopt;
  return first_port_[node] + (spine ? 0 : downlinks_of(node)) + link;
}

std::uint32_t Topology::down_port(std::uint32_t node, std::uint32_t host) const {
  const std::uint32_t tier = tier_of(node);
  if (tier == config_.tiers && config_.tiers > 1) {
    return first_port_[node] + (config_.tiers == 3 ? pod_of(host) : leaf_of(host));
  }
  if (tier == 1) {
    if (leaf_of(host) != node - hosts_) return kNoPort;
    return first_port_[node] + host % config_.hosts_per_leaf;
  }
  const std::uint32_t pod = (node - first_aggregation_) / config_.leaf_uplinks;
  if (pod_of(host) != pod) return kNoPort;
  return first_port_[node] + leaf_of(host) % config_.leaves_per_pod;
}

// Is there a way from the switch to the host that no link known to be down is on?
bool Topology::leads_to(std::uint32_t node, std::uint32_t host,
                        const std::vector<Port>& ports) const {
  if (is_host(node)) return node == host;
  if (const std::uint32_t down = down_port(node, host); down != kNoPort) {
    return !ports[down].link.avoided && leads_to(ports[down].link.to, host, ports);
  }
  const std::uint32_t first = first_port_[node] + downlinks_of(node);
  for (std::uint32_t up = 0; up < uplinks_of(node); ++up) {
    const Port::Link& link = ports[first + up].link;
    if (!link.avoided && leads_to(link.to, host, ports)) return true;
  }
  return false;
}

// The hash picks among the ports that lead there.
std::uint32_t Topology::avoiding(std::uint32_t node, const NetPacket& packet,
                                 const std::vector<Port>& ports, std::uint64_t hash) const {
  const std::uint32_t first = first_port_[node] + downlinks_of(node);
  const auto usable = [&](std::uint32_t port) {
    const Port::Link& link = ports[port].link;
    return !link.avoided && leads_to(link.to, packet.destination, ports);
  };
  std::uint32_t count = 0;
  for (std::uint32_t up = 0; up < uplinks_of(node); ++up) count += usable(first + up) ? 1 : 0;
  if (count == 0) return kNoPort;
  auto left = static_cast<std::uint32_t>(hash % count);
  for (std::uint32_t up = 0;; ++up) {
    if (usable(first + up) && left-- == 0) return first + up;
  }
}

std::uint32_t Topology::route(std::uint32_t node, const NetPacket& packet,
                              const std::vector<Port>& ports, Rng& rng) const {
  if (const std::uint32_t down = down_port(node, packet.destination); down != kNoPort) return down;
  const std::uint64_t hash =
      config_.spray_in_switches ? rng.next() >> 16 : path_hash(packet, salts_[node]);
  if (any_avoided_) return avoiding(node, packet, ports, hash);
  return first_port_[node] + downlinks_of(node) +
         static_cast<std::uint32_t>(hash % uplinks_of(node));
}

}  // namespace uet::netsim
