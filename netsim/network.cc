// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The event loop.
#include "netsim/network.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/prefetch.h"
#include "netsim/host_config.h"

namespace uet::netsim {
namespace {

constexpr std::uint64_t kReportEvents = 1 << 20;
constexpr std::size_t kViewBytes = 16384;

std::uint64_t largest_flow(const Traffic& traffic) {
  std::uint64_t largest = 0;
  for (const Flow& flow : traffic.flows) largest = std::max(largest, flow.bytes);
  return largest;
}

bool at_rest(const std::vector<std::unique_ptr<Host>>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(),
                     [](const auto& host) { return host == nullptr || host->fep().quiescent(); });
}

}  // namespace

Network::Network(const NetworkConfig& config, const Traffic& traffic, Exchange* exchange)
    : config_(config),
      traffic_(traffic),
      memory_(largest_flow(traffic)),
      view_(kViewBytes),
      lockstep_(exchange),
      checks_(*this),
      meter_(config.rates_from, config.rates_until, config.avoid_from),
      flows_(traffic) {
  for (std::uint32_t plane = 0; plane < config_.planes; ++plane) {
    planes_.push_back(std::make_unique<Fabric>(config_, events_, pool_, meter_, begin_, plane));
    if (exchange != nullptr) planes_.back()->divide(lockstep_);
  }
  ports_per_plane_ = static_cast<std::uint32_t>(planes_[0]->ports().size());
  make_hosts();
  for (std::uint32_t i = 0; i < traffic.flows.size(); ++i) {
    const Flow& flow = traffic.flows[i];
    if (!flow.start || !has_host(flow.source)) continue;
    events_.push(now_ + *flow.start, EventKind::FlowStart, i);
  }
  for (std::uint32_t i = 0; i < config_.faults.size(); ++i) {
    events_.push(now_ + config_.faults[i].at, EventKind::Fault, i);
  }
}

Network::~Network() = default;

void Network::make_hosts() {
  // PDCs of its own for each (CMS-2, PDS-9).
  using Peer = std::tuple<std::uint32_t, bool, std::uint8_t, std::size_t>;
  std::vector<std::set<Peer>> to(traffic_.nodes), from(traffic_.nodes);
  std::vector<std::size_t> flows(traffic_.nodes);
  const std::size_t classes = config_.fep.pds.pdcs_per_destination;
  for (const Flow& flow : traffic_.flows) {
    const std::size_t size_class = std::min<std::size_t>(
        pds::size_class_of(flow.bytes, config_.fep.ses.payload_mtu), classes - 1);
    const std::size_t pdc = flow.rod ? 0 : size_class;
    to[flow.source].insert({flow.destination, flow.rod, flow.traffic_class, pdc});
    from[flow.destination].insert({flow.source, flow.rod, flow.traffic_class, pdc});
    ++flows[flow.source];
  }
  const std::uint64_t memory_bytes = largest_flow(traffic_);
  hosts_.resize(traffic_.nodes);
  for (std::uint32_t i = 0; i < traffic_.nodes; ++i) {
    if (!lockstep_.has(fabric().topology(), i)) continue;
    const HostLoad load{.destinations = to[i].size(), .sources = from[i].size(), .flows = flows[i]};
    const std::uint64_t rate_bps = config_.planes * fabric().port_of_host(i).link.rate_bps;
    const fep::Config fep = host_config(config_, i, rate_bps, load);
    hosts_[i] = std::make_unique<Host>(*this, i, fep, config_.mode, memory_bytes);
  }
}

std::span<const std::byte> Network::view(const NetPacket& packet) {
  std::ranges::copy(packet.head(), view_.begin());
  return {view_.data(), std::min<std::size_t>(packet.pds_bytes, view_.size())};
}

void Network::violation(const std::string& what) {
  if (violations_.size() < kMostViolations) {
    violations_.push_back({.at = now_, .key = key_, .text = what});
  }
}

// ---- packets ------------------------------------------------------------------------------------

void Network::send(NetPacket& packet, std::uint32_t plane) {
  checks_.on_sent(packet);
  meter_.on_sent(packet, now_ - begin_);
  planes_[plane]->send(packet, now_);
}

// Hosts beyond those of the traffic take nothing.
void Network::arrive(std::uint32_t subject, NetPacket* packet) {
  const auto [fabric, port] = place_of(subject);
  NetPacket* const arrived = fabric.arrive(port, packet, now_);
  if (arrived == nullptr) return;
  const std::uint32_t host = fabric.node_behind(port);
  if (host < hosts_.size()) return hosts_[host]->arrive(*arrived);
  pool_.give_back(arrived);
}

// ---- flows --------------------------------------------------------------------------------------

void Network::start_flow(std::uint32_t flow) {
  if (flows_.start(flow, now_)) hosts_[traffic_.flows[flow].source]->start(flow);
}

// The flows start as events of their own: a completion comes in the middle of a Fep's pass.
void Network::note(std::uint32_t flow, FlowEvent event) {
  const auto complain = [this](const std::string& what) { violation(what); };
  for (const std::uint32_t next : flows_.note(flow, event, now_, complain)) {
    events_.push(now_, EventKind::FlowStart, next);
  }
}

// ---- the loop -----------------------------------------------------------------------------------

void Network::port_is_free(std::uint32_t subject) {
  const auto [fabric, port] = place_of(subject);
  if (fabric.port_is_free(port, now_)) hosts_[port]->sent();
}

void Network::apply(const Fault& fault) {
  using Kind = Fault::Kind;
  Fabric& fabric = *planes_[fault.plane];
  if (fault.kind != Kind::PlaneDown && fault.kind != Kind::PlaneLost &&
      fault.kind != Kind::PlaneUp) {
    return fabric.apply(fault);
  }
  if (fault.kind != Kind::PlaneLost) fabric.set_up(fault.kind == Kind::PlaneUp);
  if (fault.kind == Kind::PlaneDown) return;
  for (const auto& host : hosts_) {
    if (host != nullptr) host->note_plane(fault.plane, fault.kind == Kind::PlaneUp);
  }
}

void Network::handle(const Event& event) {
  switch (event.kind()) {
    case EventKind::Arrival:
      arrive(event.subject(), event.packet);
      break;
    case EventKind::PortFree:
      port_is_free(event.subject());
      break;
    case EventKind::Wake:
      hosts_[event.subject()]->wake();
      break;
    case EventKind::Drain:
      hosts_[event.subject()]->drain();
      break;
    case EventKind::FlowStart:
      start_flow(event.subject());
      break;
    case EventKind::Fault:
      apply(config_.faults[event.subject()]);
      break;
  }
}

// Of thousands of hosts the caches hold nothing, and an event would wait for one line of memory
// after the other. So what it needs is fetched before, and before that what leads there.
void Network::prefetch() const {
  constexpr std::size_t kFar = 24, kNear = 16;  // events ahead
  if (const Event* event = events_.upcoming(kFar); event != nullptr) {
    const bool arrival = event->kind() == EventKind::Arrival;
    if (arrival) prefetched(*event->packet);
    if (arrival || event->kind() == EventKind::PortFree) {
      const auto [fabric, number] = place_of(event->subject());
      prefetched(fabric.ports()[number]);
    }
    if (event->kind() == EventKind::Wake) prefetched(*hosts_[event->subject()]);
  }
  if (const Event* event = events_.upcoming(kNear); event != nullptr) {
    if (event->kind() == EventKind::Arrival) prefetch_way(*event);
    if (event->kind() == EventKind::PortFree) {
      const auto [fabric, number] = place_of(event->subject());
      const Port& port = fabric.ports()[number];
      port.prefetch_packets();
      if (port.link.from_host) prefetched(*hosts_[number]);
    }
  }
}

void Network::prefetch_way(const Event& arrival) const {
  const auto [fabric, port] = place_of(arrival.subject());
  const std::uint32_t node = fabric.node_behind(port);
  if (node < hosts_.size()) {
    prefetched(*hosts_[node]);
    checks_.prefetch(*arrival.packet);
  } else if (!fabric.topology().is_host(node)) {
    const std::uint32_t next = fabric.guess_next_port(port, *arrival.packet);
    if (next != Topology::kNoPort) prefetched(fabric.ports()[next]);
  }
}

Standing Network::meet() {
  const Standing own{.next = events_.empty() ? kPsNever : events_.top().at,
                     .now = now_,
                     .finished = flows_.finished(),
                     .events = events_done_,
                     .empty = pool_.in_use() == 0,
                     .violated = !violations_.empty()};
  return lockstep_.meet(own, pool_, events_);
}

// Every rank takes the faults; they count once.
void Network::run_until(Picoseconds end) {
  while (!events_.empty() && events_.top().at < end) {
    const Event event = events_.pop();
    prefetch();
    now_ = event.at;
    key_ = event.key;
    handle(event);
    if (event.kind() != EventKind::Fault || lockstep_.rank() == 0) ++events_done_;
  }
}

void Network::run(Picoseconds limit, const std::function<void(const Progress&)>& report) {
  const Picoseconds end = begin_ + limit;
  const Picoseconds window = Lockstep::window(config_.topology);
  std::uint64_t next_report = kReportEvents;
  Standing all;
  for (;;) {
    all = meet();
    if (all.violated || all.next > end) break;
    // The network empties itself before idle timers come, some of them seconds later.
    const bool finished = all.finished == traffic_.flows.size();
    if (finished && all.empty && lockstep_.everywhere(at_rest(hosts_))) break;
    if (all.events >= next_report && report && lockstep_.rank() == 0) {
      report(Progress{.now = all.now - begin_, .finished = all.finished, .events = all.events});
      next_report = all.events + kReportEvents;
    }
    Picoseconds until = std::min(all.next + window, end + 1);
    if (sample_interval_ > 0) {
      if (all.next >= next_sample_) {
        const Sample sample = gather_sample(*this, all.next);
        if (lockstep_.rank() == 0) sample_(sample);
        next_sample_ = all.next + sample_interval_;
      }
      until = std::min(until, next_sample_);
    }
    run_until(until);
  }
  now_ = all.now;
  key_ = UINT64_MAX;
  checks_.at_end(all.finished == traffic_.flows.size());
}

}  // namespace uet::netsim
