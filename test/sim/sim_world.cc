// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/sim_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/sim_frame.h"

namespace uet::sim {
namespace {

constexpr std::size_t kMaxNodes = 8;
constexpr std::size_t kTrimmedBytes = 24 - 8;  // what a switch keeps besides UDP (PDS-148)
constexpr int kMaxPasses = 64;                 // progress passes at one point of virtual time
constexpr std::uint64_t kMaxSteps = 30'000'000;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t mix(std::uint64_t hash, std::span<const std::byte> bytes) {
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    hash = mix(hash, word);
  }
  for (; i < bytes.size(); ++i) hash = mix(hash, std::to_integer<std::uint64_t>(bytes[i]));
  return hash;
}

std::span<const std::byte> text_of(const SimPacket& packet) {
  return packet.plain.empty() ? packet.bytes : packet.plain;
}

}  // namespace

FepAddress address_of(std::uint8_t x, std::uint8_t y) {
  FepAddress address;
  address.ip.bytes = {10, 0, x, y};
  return address;
}

int SimWorld::add_node(const NodeConfig& config) {
  const int number = node_count();
  auto node = std::make_unique<Node>();
  node->config = config;
  node->nic =
      std::make_unique<SimNic>(config.nic, now_, [this, number](SimPacket&& packet, Time leaves) {
        transmit(number, std::move(packet), leaves);
      });
  nic::Nic* top = node->nic.get();
  if (config.security) {
    node->secured = std::make_unique<SecuredNic>(*node->nic, *config.security, now_);
    top = &node->secured->top();
  }
  node->fep = std::make_unique<fep::Fep>(config.fep, *top, now_);
  nodes_.push_back(std::move(node));
  links_.resize(kMaxNodes * kMaxNodes);
  for (int other = 0; other <= number; ++other) {
    const auto a = static_cast<std::size_t>(number), b = static_cast<std::size_t>(other);
    links_[kMaxNodes * a + b] = std::make_unique<SimLink>(default_link_, rng_.next());
    if (a != b) links_[kMaxNodes * b + a] = std::make_unique<SimLink>(default_link_, rng_.next());
    for (const auto& link : {links_[kMaxNodes * a + b].get(), links_[kMaxNodes * b + a].get()}) {
      if (link != nullptr) link->set_faults(faults_);
    }
  }
  return number;
}

SimLink& SimWorld::link(int from, int to) {
  return *links_[kMaxNodes * static_cast<std::size_t>(from) + static_cast<std::size_t>(to)];
}

void SimWorld::at(Time when, std::function<void()> what) {
  events_.push(Event{std::max(when, now_), order_++, std::move(what)});
}

void SimWorld::posted(int node) {
  Node& n = *nodes_[static_cast<std::size_t>(node)];
  if (!n.alive) return;
  n.fep->push(now_);
  wake(node, now_);
}

void SimWorld::kill(int node) { nodes_[static_cast<std::size_t>(node)]->alive = false; }

void SimWorld::set_faults(bool on) {
  faults_ = on;
  for (auto& link : links_) {
    if (link) link->set_faults(on);
  }
}

void SimWorld::inject(SimPacket packet, int to, Duration delay) {
  after(delay,
        [this, to, packet = std::move(packet)]() mutable { deliver(-1, to, std::move(packet)); });
}

int SimWorld::node_at(const FepAddress& address) const {
  int found = -1;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->config.nic.address != address) continue;
    found = static_cast<int>(i);
    if (nodes_[i]->alive) break;
  }
  return found;
}

void SimWorld::cut_rail(int node, std::uint8_t rail, Duration start, Duration end, Duration told,
                        Duration gone) {
  const LostRail own{{}, rail};
  const LostRail of_peer{nic(node).local_address(), rail};
  after(start, [this, node, rail] { nic(node).cut(rail, true); });
  after(end, [this, node, rail] { nic(node).cut(rail, false); });
  if (start + told < end) {
    after(start + told, [this, node, own] {
      nic(node).lose(own);
      wake(node, now_);
    });
    after(end, [this, node, own] { nic(node).regain(own); });
  }
  for (int peer = 0; peer < node_count() && start + told + gone < end; ++peer) {
    if (peer == node) continue;
    after(start + told + gone, [this, peer, of_peer] {
      nic(peer).lose(of_peer);
      wake(peer, now_);
    });
    after(end, [this, peer, of_peer] { nic(peer).regain(of_peer); });
  }
}

bool SimWorld::is_on_cut_rail(int from, int to, std::uint8_t rail) {
  return (from >= 0 && nic(from).is_cut(rail)) || nic(to).is_cut(rail);
}

void SimWorld::transmit(int from, SimPacket&& packet, Time leaves) {
  const int to = node_at(packet.destination);
  if (nic(from).oversized() > 0 && complaint_.empty()) complaint_ = "a packet exceeds the MTU";
  if (nic(from).control_behind_data() && complaint_.empty()) {
    complaint_ = "a control packet waits behind data (PDS-226)";
  }
  const bool secured = this->secured(from) != nullptr;
  if (secured && complaint_.empty()) {
    SecuredNic& nic = *this->secured(from);
    complaint_ = secrecy_.judge(packet, nic.key_name(*nic.domain().active()));
  }
  bool dropped = !alive(from) || to < 0;
  if (filter || on_sent) {
    const auto parsed = wire::parse(text_of(packet));
    const Sighting sighting{
        .at = now_, .from = from, .to = to, .packet = &packet, .parsed = &parsed};
    if (on_sent) on_sent(sighting);
    if (filter && filter(sighting)) dropped = true;
  }
  if (dropped || is_on_cut_rail(from, to, packet.rail)) return;
  const auto wire_bytes = static_cast<std::uint32_t>(packet.bytes.size()) + kIpUdpBytes;
  const SimLink::Fate fate = link(from, to).send(wire_bytes, packet.ecn, leaves);
  packet.ecn = fate.ecn;
  packet.trimmed = fate.trimmed;
  if (framing_ ? !pass_as_frame(packet, fate.damaged, secured)
               : fate.damaged && !damage(packet, secured)) {
    return;
  }
  if (packet.trimmed) {
    packet.bytes.resize(std::min(packet.bytes.size(), kTrimmedBytes));
    packet.plain.clear();
  }
  for (int copy = 0; copy < fate.copies; ++copy) {
    const bool last = copy + 1 == fate.copies;
    // std::function wants something that can be copied: the packet itself is shared.
    auto shared = std::make_shared<SimPacket>(last ? std::move(packet) : packet);
    at(fate.arrival[copy], [this, from, to, shared] { deliver(from, to, std::move(*shared)); });
  }
}

// False: a check sequence drops the packet. A protected one needs none: transport security drops it
// (TSS-8).
bool SimWorld::damage(SimPacket& packet, bool secured) {
  if (!secured) return false;
  flip_bit(packet, rng_);
  packet.plain.clear();
  return true;
}

// False: the receiver drops the packet. Otherwise it arrives as it was sent, or trimmed; a
// protected packet may be damaged, which transport security will notice.
bool SimWorld::pass_as_frame(SimPacket& packet, bool damaged, bool secured) {
  std::vector<std::byte> frame = frame_of(packet, *framing_);
  if (packet.trimmed) {
    trim(frame, *framing_);
  } else if (damaged) {
    sim::damage(frame, *framing_, rng_);
  }
  SimPacket arrived = packet;
  const bool good = read_frame(frame, *framing_, arrived) == wire::FrameVerdict::Ok;
  const bool same = good && arrived.source == packet.source && arrived.ecn == packet.ecn &&
                    arrived.entropy == packet.entropy && arrived.trimmed == packet.trimmed &&
                    (packet.trimmed || arrived.bytes == packet.bytes);
  const bool noticed = good == same || (secured && damaged);
  if (!noticed || (!good && !damaged)) complaint_ = "a frame arrives as something else";
  if (good && arrived.bytes != packet.bytes) arrived.plain.clear();
  if (!good) ++frames_refused_;
  if (good) packet = std::move(arrived);
  return good;
}

void SimWorld::deliver(int from, int to, SimPacket&& packet) {
  if (!alive(to) || (from >= 0 && is_on_cut_rail(from, to, packet.rail))) return;
  trace_hash_ = mix(trace_hash_, static_cast<std::uint64_t>(to_ns(now_)));
  trace_hash_ = mix(trace_hash_, static_cast<std::uint64_t>(from * 64 + to));
  trace_hash_ = mix(trace_hash_, packet.bytes);
  ++packets_delivered_;
  if (on_delivered) {
    const auto parsed = wire::parse(text_of(packet));
    on_delivered(
        Sighting{.at = now_, .from = from, .to = to, .packet = &packet, .parsed = &parsed});
  }
  nic(to).receive(std::move(packet));
  wake(to, now_);
}

void SimWorld::wake(int node, Time when) {
  if (when == kNever) return;
  Node& n = *nodes_[static_cast<std::size_t>(node)];
  when = std::max(when, now_);
  if (const auto interval = n.config.progress_interval.count(); interval > 0) {
    const auto ns = to_ns(when);
    when = time_from_ns((ns + interval - 1) / interval * interval);
  }
  if (when >= n.wake_at) return;
  n.wake_at = when;
  at(when, [this, node, when] {
    Node& woken = *nodes_[static_cast<std::size_t>(node)];
    if (woken.wake_at != when) return;  // an earlier one has been there
    woken.wake_at = kNever;
    progress(node);
  });
}

void SimWorld::progress(int node) {
  Node& n = *nodes_[static_cast<std::size_t>(node)];
  if (!n.alive) return;
  int passes = 1;
  while (n.fep->progress(now_) && passes < kMaxPasses) ++passes;
  const auto soon = now_ + std::chrono::microseconds(1);
  if (passes == kMaxPasses || !n.nic->rx_empty()) wake(node, soon);
  Time deadline = std::min(n.fep->next_deadline(), n.nic->room_at());
  if (n.secured != nullptr) deadline = std::min(deadline, n.secured->next_deadline());
  if (deadline != kNever) wake(node, std::max(deadline, soon));
}

void SimWorld::step() {
  // The top is const only to protect the order, which moving `what` does not touch.
  Event event = std::move(const_cast<Event&>(events_.top()));
  events_.pop();
  now_ = event.at;
  event.what();
  if (++steps_ == kMaxSteps && complaint_.empty()) complaint_ = "livelock: too many events";
}

bool SimWorld::run_until(const std::function<bool()>& done, Duration limit) {
  const Time end = now_ + limit;
  while (!done()) {
    if (!complaint_.empty() || events_.empty()) return false;
    if (events_.top().at > end) {
      now_ = end;
      return false;
    }
    step();
  }
  return complaint_.empty();
}

void SimWorld::run_for(Duration span) {
  const Time end = now_ + span;
  run_until([] { return false; }, span);
  if (complaint_.empty()) now_ = end;  // also when nothing was left to happen
}

}  // namespace uet::sim
