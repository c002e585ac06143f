// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The event loop.
#include "netsim/network.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "base/prefetch.h"
#include "netsim/host_config.h"

namespace uet::netsim {
namespace {

constexpr std::size_t kMostViolations = 10;
constexpr std::uint64_t kReportEvents = 1 << 20;
constexpr std::size_t kViewBytes = 16384;

std::uint64_t largest_flow(const Traffic& traffic) {
  std::uint64_t largest = 0;
  for (const Flow& flow : traffic.flows) largest = std::max(largest, flow.bytes);
  return largest;
}

}  // namespace

Network::Network(const NetworkConfig& config, const Traffic& traffic)
    : config_(config),
      traffic_(traffic),
      memory_(largest_flow(traffic)),
      view_(kViewBytes),
      checks_(*this),
      meter_(config.rates_from, config.rates_until, config.avoid_from),
      fabric_(config_, events_, pool_, meter_, begin_),
      flows_(traffic) {
  make_hosts();
  for (std::uint32_t i = 0; i < traffic.flows.size(); ++i) {
    const Flow& flow = traffic.flows[i];
    if (flow.start) events_.push(now_ + *flow.start, EventKind::FlowStart, i);
  }
  for (std::uint32_t i = 0; i < config_.faults.size(); ++i) {
    events_.push(now_ + config_.faults[i].at, EventKind::Fault, i);
  }
}

Network::~Network() = default;

void Network::make_hosts() {
  using Peer = std::tuple<std::uint32_t, bool, std::uint8_t>;  // PDCs of its own for each (CMS-2)
  std::vector<std::set<Peer>> to(traffic_.nodes), from(traffic_.nodes);
  std::vector<std::size_t> flows(traffic_.nodes);
  for (const Flow& flow : traffic_.flows) {
    to[flow.source].insert({flow.destination, flow.rod, flow.traffic_class});
    from[flow.destination].insert({flow.source, flow.rod, flow.traffic_class});
    ++flows[flow.source];
  }
  const std::uint64_t memory_bytes = largest_flow(traffic_);
  for (std::uint32_t i = 0; i < traffic_.nodes; ++i) {
    const HostLoad load{.destinations = to[i].size(), .sources = from[i].size(), .flows = flows[i]};
    const std::uint64_t rate_bps = fabric_.port_of_host(i).link.rate_bps;
    const fep::Config fep = host_config(config_, i, rate_bps, load);
    hosts_.push_back(std::make_unique<Host>(*this, i, fep, config_.mode, memory_bytes));
  }
}

std::span<const std::byte> Network::view(const NetPacket& packet) {
  std::memcpy(view_.data(), packet.head.data(), packet.head_bytes);
  return {view_.data(), std::min<std::size_t>(packet.pds_bytes, view_.size())};
}

void Network::violation(const std::string& what) {
  if (violations_.size() < kMostViolations) {
    violations_.push_back("at " + std::to_string(microseconds(now_ - begin_)) + " us: " + what);
  }
}

// ---- packets ------------------------------------------------------------------------------------

void Network::send(NetPacket& packet) {
  checks_.on_sent(packet);
  meter_.on_sent(packet, now_ - begin_);
  fabric_.send(packet, now_);
}

// Hosts beyond those of the traffic take nothing.
void Network::arrive(std::uint32_t port, NetPacket* packet) {
  NetPacket* const arrived = fabric_.arrive(port, packet, now_);
  if (arrived == nullptr) return;
  const std::uint32_t host = fabric_.node_behind(port);
  if (host < hosts_.size()) return hosts_[host]->arrive(*arrived);
  pool_.give_back(arrived);
}

// ---- flows --------------------------------------------------------------------------------------

void Network::start_flow(std::uint32_t flow) {
  if (flows_.start(flow, now_)) hosts_[traffic_.flows[flow].source]->start(flow);
}

// The flows start as events of their own: a completion comes in the middle of a Fep's pass.
void Network::finished(std::uint32_t flow, bool good) {
  const auto complain = [this](const std::string& what) { violation(what); };
  for (const std::uint32_t next : flows_.finish(flow, good, now_, complain)) {
    events_.push(now_, EventKind::FlowStart, next);
  }
}

// ---- the loop -----------------------------------------------------------------------------------

void Network::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::Arrival:
      arrive(event.subject, event.packet);
      break;
    case EventKind::PortFree:
      if (fabric_.port_is_free(event.subject, now_)) hosts_[event.subject]->sent();
      break;
    case EventKind::Wake:
      hosts_[event.subject]->wake();
      break;
    case EventKind::Drain:
      hosts_[event.subject]->drain();
      break;
    case EventKind::FlowStart:
      start_flow(event.subject);
      break;
    case EventKind::Fault:
      fabric_.apply(config_.faults[event.subject]);
      break;
  }
}

// Of thousands of hosts the caches hold nothing, and an event would wait for one line of memory
// after the other. So what it needs is fetched before, and before that what leads there.
void Network::prefetch() const {
  constexpr std::size_t kFar = 24, kNear = 16;  // events ahead
  if (const Event* event = events_.upcoming(kFar); event != nullptr) {
    const bool arrival = event->kind == EventKind::Arrival;
    if (arrival) prefetched(*event->packet);
    if (arrival || event->kind == EventKind::PortFree) prefetched(fabric_.ports()[event->subject]);
    if (event->kind == EventKind::Wake) prefetched(*hosts_[event->subject]);
  }
  if (const Event* event = events_.upcoming(kNear); event != nullptr) {
    if (event->kind == EventKind::Arrival) prefetch_way(*event);
    if (event->kind == EventKind::PortFree) {
      const Port& port = fabric_.ports()[event->subject];
      port.prefetch_packets();
      if (port.link.from_host) prefetched(*hosts_[event->subject]);
    }
  }
}

void Network::prefetch_way(const Event& arrival) const {
  const std::uint32_t node = fabric_.node_behind(arrival.subject);
  if (node < hosts_.size()) {
    prefetched(*hosts_[node]);
  } else if (!fabric_.topology().is_host(node)) {
    const std::uint32_t next = fabric_.guess_next_port(node, *arrival.packet);
    if (next != Topology::kNoPort) prefetched(fabric_.ports()[next]);
  }
}

bool Network::quiet() const {
  return flows_.all_finished() && pool_.in_use() == 0 &&
         std::all_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return host->fep().quiescent(); });
}

void Network::run(Picoseconds limit, const std::function<void(const Progress&)>& report) {
  const Picoseconds end = begin_ + limit;
  while (!events_.empty() && violations_.empty()) {
    if (events_.top().at > end) break;
    // The network empties itself before idle timers come, some of them seconds later.
    if (flows_.all_finished() && pool_.in_use() == 0 && quiet()) break;
    const Event event = events_.pop();
    prefetch();
    now_ = event.at;
    if (now_ >= next_sample_) {
      sample_();
      next_sample_ = now_ + sample_interval_;
    }
    handle(event);
    if (++events_done_ % kReportEvents == 0 && report) {
      report(Progress{.now = now_ - begin_, .finished = flows_.finished(), .events = events_done_});
    }
  }
  checks_.at_end(flows_.all_finished());
}

}  // namespace uet::netsim
