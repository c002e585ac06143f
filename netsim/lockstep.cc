// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/lockstep.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace uet::netsim {
namespace {

// A packet on a link that crosses, and the bytes of its head behind it.
struct Crossing {
  Picoseconds at = 0;
  std::uint32_t subject = 0;
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t pds_bytes = 0;
  std::uint32_t wire_bytes = 0;
  std::uint16_t entropy = 0;
  std::uint16_t head_bytes = 0;
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::NotEct;
  TrafficClass traffic_class = TrafficClass::Data;
  bool trimmed = false;
  bool trimmed_last_hop = false;
};

void take_packet(Reader& reader, NetPacketPool& pool, EventQueue& events) {
  const auto from = reader.take<Crossing>();
  const std::span<const std::byte> head = reader.take(from.head_bytes);
  NetPacket& packet = *pool.take();
  packet.source = from.source;
  packet.destination = from.destination;
  packet.pds_bytes = from.pds_bytes;
  packet.wire_bytes = from.wire_bytes;
  packet.entropy = from.entropy;
  packet.dscp = from.dscp;
  packet.ecn = from.ecn;
  packet.traffic_class = from.traffic_class;
  packet.trimmed = from.trimmed;
  packet.trimmed_last_hop = from.trimmed_last_hop;
  std::ranges::copy(head, packet.new_head(head.size()).begin());
  events.push(from.at, EventKind::Arrival, from.subject, &packet);
}

// A trigger takes no time, so that all hosts it has to do with must be on one rank.
std::string complaint_about_triggers(const Topology& topology, const Traffic& traffic,
                                     std::uint32_t ranks) {
  std::map<std::uint32_t, std::uint32_t> hosts;  // by trigger, one of them
  for (const Flow& flow : traffic.flows) {
    const std::array<std::pair<std::uint32_t, std::uint32_t>, 3> ends{
        {{flow.trigger, flow.source},
         {flow.sent_trigger, flow.source},
         {flow.received_trigger, flow.destination}}};
    for (const auto& [trigger, host] : ends) {
      if (trigger == 0) continue;
      const std::uint32_t first = hosts.try_emplace(trigger, host).first->second;
      if (topology.part_of(first, ranks) == topology.part_of(host, ranks)) continue;
      return "trigger " + std::to_string(trigger) + " leads from host " + std::to_string(first) +
             " to host " + std::to_string(host) +
             ", which other ranks have, and takes no time; run this traffic on one rank";
    }
  }
  return {};
}

}  // namespace

std::string complaint_about_division(const NetworkConfig& config, const Traffic& traffic,
                                     std::uint32_t ranks) {
  const TopologyConfig& topology = config.topology;
  if (ranks == 1) return {};
  if (topology.tiers == 1) return "one switch cannot be divided; run it on one rank";
  if (ranks > topology.leaves) {
    return "each rank needs a leaf, and the network has " + std::to_string(topology.leaves) +
           "; use as many ranks at most";
  }
  if (topology.hop_delay == 0) {
    return "packets cross from rank to rank in no time with --hop-us 0; use a longer hop, or one "
           "rank";
  }
  return complaint_about_triggers(Topology(topology, config.seed), traffic, ranks);
}

void Standing::add(const Standing& other) {
  next = std::min(next, other.next);
  now = std::max(now, other.now);
  finished += other.finished;
  events += other.events;
  empty &= other.empty;
  violated |= other.violated;
}

Lockstep::Lockstep(Exchange* exchange)
    : exchange_(exchange), out_(ranks(), Bytes(sizeof(Standing))), in_(ranks()) {}

Picoseconds Lockstep::window(const TopologyConfig& topology) {
  return topology.hop_delay > 0 ? topology.hop_delay : kPsPerUs;
}

void Lockstep::send(std::uint32_t rank, Picoseconds at, std::uint32_t subject,
                    const NetPacket& packet) {
  Bytes& out = out_[rank];
  append(out, Crossing{.at = at,
                       .subject = subject,
                       .source = packet.source,
                       .destination = packet.destination,
                       .pds_bytes = packet.pds_bytes,
                       .wire_bytes = packet.wire_bytes,
                       .entropy = packet.entropy,
                       .head_bytes = packet.head_bytes,
                       .dscp = packet.dscp,
                       .ecn = packet.ecn,
                       .traffic_class = packet.traffic_class,
                       .trimmed = packet.trimmed,
                       .trimmed_last_hop = packet.trimmed_last_hop});
  append_bytes(out, packet.head());
  earliest_sent_ = std::min(earliest_sent_, at);
}

// Each buffer has the standing of its rank in front of the packets.
Standing Lockstep::meet(Standing own, NetPacketPool& pool, EventQueue& events) {
  own.next = std::min(own.next, earliest_sent_);
  own.empty &= earliest_sent_ == kPsNever;
  earliest_sent_ = kPsNever;
  if (exchange_ == nullptr) return own;
  for (Bytes& out : out_) std::memcpy(out.data(), &own, sizeof(own));
  exchange_->all_to_all(out_, in_);
  for (Bytes& out : out_) out.resize(sizeof(Standing));
  for (std::uint32_t from = 0; from < ranks(); ++from) {
    if (from == rank()) continue;
    Reader reader(in_[from]);
    own.add(reader.take<Standing>());
    while (!reader.done()) take_packet(reader, pool, events);
  }
  return own;
}

bool Lockstep::everywhere(bool here) {
  if (exchange_ == nullptr) return here;
  std::vector<Bytes> out(ranks(), Bytes(1, static_cast<std::byte>(here))), in(ranks());
  exchange_->all_to_all(out, in);
  for (std::uint32_t from = 0; from < ranks(); ++from) {
    here &= from == rank() || in[from].at(0) == std::byte{1};
  }
  return here;
}

std::vector<Bytes> Lockstep::gather(Bytes own) {
  std::vector<Bytes> out(ranks()), in(ranks());
  if (rank() == 0) {
    if (exchange_ != nullptr) exchange_->all_to_all(out, in);
    in[0] = std::move(own);
    return in;
  }
  out[0] = std::move(own);
  exchange_->all_to_all(out, in);
  return {};
}

}  // namespace uet::netsim
