// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hosts, switches and links under one virtual clock: the event loop. One thread; a run is a
// function of configuration, traffic and seed (CMS-800). A rank of a divided network (Lockstep) has
// all ports and knows all flows, but only its own hosts, and only its own switches get packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netsim/checks.h"
#include "netsim/event_queue.h"
#include "netsim/fabric.h"
#include "netsim/flow_table.h"
#include "netsim/host.h"
#include "netsim/lockstep.h"
#include "netsim/meter.h"
#include "netsim/network_config.h"
#include "netsim/packet.h"
#include "netsim/sample.h"
#include "netsim/shared_pages.h"
#include "netsim/traffic.h"

namespace uet::netsim {

// A property of CMS 8.4 that does not hold.
struct Violation {
  Picoseconds at = 0;
  std::uint64_t key = 0;  // of the event at which it was found (event_key)
  std::string text;
};

struct Progress {
  Picoseconds now = 0;
  std::size_t finished = 0;
  std::uint64_t events = 0;
};

class Network {
 public:
  // Traffic is one that complaint_about finds nothing wrong with, for at most topology's hosts.
  // `exchange`: with the other ranks of a divided network, about which complaint_about_division
  // finds nothing wrong; must live longer. nullptr: one rank.
  Network(const NetworkConfig& config, const Traffic& traffic, Exchange* exchange = nullptr);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Until all flows are done and the network is empty, a check has failed, or `limit` is over. All
  // ranks call it; `report` is called from time to time by rank 0.
  void run(Picoseconds limit, const std::function<void(const Progress&)>& report);

  // To be called before run(), by all ranks: rank 0 calls `sample` when the clock has passed
  // another `interval`.
  void watch(Picoseconds interval, std::function<void(const Sample&)> sample) {
    sample_interval_ = interval;
    sample_ = std::move(sample);
    next_sample_ = now_;
  }

  Picoseconds now() const { return now_; }
  // When the clock started.
  Picoseconds begin() const { return begin_; }
  double simulated_us() const { return microseconds(now_ - begin_); }
  const Traffic& traffic() const { return traffic_; }
  const std::vector<FlowRecord>& flows() const { return flows_.records(); }
  const Fabric& fabric(std::size_t plane = 0) const { return *planes_[plane]; }
  const NetworkConfig& config() const { return config_; }
  std::size_t host_count() const { return hosts_.size(); }
  const Host& host(std::size_t number) const { return *hosts_[number]; }
  // Is it of this rank? host() is for those only.
  bool has_host(std::size_t number) const { return hosts_[number] != nullptr; }
  Lockstep& lockstep() { return lockstep_; }
  const Meter& meter() const { return meter_; }
  std::uint64_t events() const { return events_done_; }
  // The first few violations of the properties of CMS 8.4; empty if there were none.
  static constexpr std::size_t kMostViolations = 10;
  const std::vector<Violation>& violations() const { return violations_; }
  void violation(const std::string& what);

  // For hosts.
  NetPacketPool& pool() { return pool_; }
  std::byte* memory() { return memory_.data(); }
  void send(NetPacket& packet, std::uint32_t plane);
  void delivered(const NetPacket& packet) {
    checks_.on_delivered(packet);
    meter_.on_delivered(packet, now_ - begin_);
  }
  // `kind`: Drain or Wake.
  void call_at(Picoseconds at, EventKind kind, std::uint32_t host) { events_.push(at, kind, host); }
  void note(std::uint32_t flow, FlowEvent event);
  Checks& checks() { return checks_; }
  // The packet as a NIC would show it: valid until the next call.
  std::span<const std::byte> view(const NetPacket& packet);

 private:
  // A port of a plane, as events name it.
  struct Place {
    Fabric& fabric;
    std::uint32_t port;
  };
  Place place_of(std::uint32_t subject) const {
    if (planes_.size() == 1) return {*planes_[0], subject};
    return {*planes_[subject / ports_per_plane_], subject % ports_per_plane_};
  }

  void make_hosts();
  void port_is_free(std::uint32_t subject);
  void apply(const Fault& fault);
  void handle(const Event& event);
  void arrive(std::uint32_t subject, NetPacket* packet);
  void start_flow(std::uint32_t flow);
  void prefetch() const;
  void prefetch_way(const Event& arrival) const;
  Standing meet();
  void run_until(Picoseconds end);

  const NetworkConfig config_;
  const Traffic& traffic_;
  SharedPages memory_;
  std::vector<std::byte> view_;
  Picoseconds now_ = 1'000 * kPsPerUs;  // not 0, which the core may take for a time in the past
  Picoseconds begin_ = now_;
  EventQueue events_;
  std::uint64_t key_ = 0;  // of the event that is being handled
  Lockstep lockstep_;
  NetPacketPool pool_;
  Checks checks_;
  Meter meter_;
  std::vector<std::unique_ptr<Fabric>> planes_;
  std::uint32_t ports_per_plane_ = 0;
  FlowTable flows_;
  std::function<void(const Sample&)> sample_;
  Picoseconds sample_interval_ = 0;  // 0: no samples are taken
  Picoseconds next_sample_ = kPsNever;
  std::uint64_t events_done_ = 0;
  std::vector<Violation> violations_;
  std::vector<std::unique_ptr<Host>> hosts_;  // nullptr: of another rank; go first
};

}  // namespace uet::netsim
