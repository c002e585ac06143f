// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A network of FEPs under a virtual clock. The core is the one that ships; only its NICs, the time
// and the links between them are made here. A seed replays a run exactly: trace_hash() tells.
//
// Nothing happens between events, so the clock jumps from one to the next: a packet arrives, a
// deadline of a FEP passes, a full transmit queue drains, or an event that at() planned is due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "fep/fep.h"
#include "sim/sim_link.h"
#include "sim/sim_nic.h"
#include "sim/sim_security.h"
#include "wire/frame.h"
#include "wire/parse.h"

namespace uet::sim {

struct NodeConfig {
  fep::Config fep;
  NicConfig nic;
  // An application that computes: it gives the FEP time only at multiples of this; 0 = at once.
  Duration progress_interval{0};
  std::optional<NodeSecurity> security;  // none: packets in clear
};

// A packet as a test sees it; valid during the call.
struct Sighting {
  Time at;
  int from = -1;  // node; -1 = made by the test
  int to = -1;    // node; -1 = no node has the address
  const SimPacket* packet = nullptr;
  // Of a protected packet, the text.
  const std::optional<wire::ParsedPacket>* parsed = nullptr;

  // The header as a T (wire::RequestHeader, ...), or nullptr.
  template <class T>
  const T* header() const {
    return parsed->has_value() ? std::get_if<T>(&(*parsed)->header) : nullptr;
  }
};

class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed) : rng_(seed) {}
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  // Links that are made from now on; every pair of nodes (and a node with itself) has two.
  void set_default_link(const LinkConfig& link) { default_link_ = link; }
  // From now on packets travel as frames of this form, are damaged and trimmed as such, and read by
  // the receiver; without it only a packet's fate is simulated, and damaged ones are dropped.
  void set_framing(const wire::FrameFormat& format) { framing_ = format; }
  // Returns the number of the node: 0, 1, 2 ... It may have the address of one that was killed, and
  // is what others reach there from then on.
  int add_node(const NodeConfig& config);
  int node_count() const { return static_cast<int>(nodes_.size()); }
  fep::Fep& fep(int node) { return *nodes_[static_cast<std::size_t>(node)]->fep; }
  SimNic& nic(int node) { return *nodes_[static_cast<std::size_t>(node)]->nic; }
  // nullptr: its packets are in clear.
  SecuredNic* secured(int node) { return nodes_[static_cast<std::size_t>(node)]->secured.get(); }
  SimLink& link(int from, int to);

  Time now() const { return now_; }
  Rng& rng() { return rng_; }
  // Calls `what` when the clock gets there.
  void at(Time when, std::function<void()> what);
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  // To be called after operations were posted on a node: sends what is ready.
  void posted(int node);
  // The node vanishes: nothing leaves it, nothing reaches it, its FEP gets no more time.
  void kill(int node);
  bool alive(int node) const { return nodes_[static_cast<std::size_t>(node)]->alive; }
  // From `start` until `end`, counted from now, the rail of the node carries nothing. The node is
  // told after `told`, and its peers after another `gone`; none is if the rail is back by then.
  void cut_rail(int node, std::uint8_t rail, Duration start, Duration end, Duration told,
                Duration gone);
  // Cuts or mends one direction.
  void set_partition(int from, int to, bool cut) { link(from, to).set_up(!cut); }
  // Random faults of all links.
  void set_faults(bool on);
  // A packet that no node sent arrives at `to` after `delay`, whatever the links do.
  void inject(SimPacket packet, int to, Duration delay);

  // Runs until `done` (asked after each event). False: `limit` of virtual time is over, nothing is
  // left to happen, or the run was given up (see complaint()).
  bool run_until(const std::function<bool()>& done, Duration limit);
  // Runs for this long.
  void run_for(Duration span);

  // Called for every packet that leaves a NIC. True drops it.
  std::function<bool(const Sighting&)> filter;
  // Called for every packet that leaves a NIC (dropped or not), and for every one that arrives.
  std::function<void(const Sighting&)> on_sent;
  std::function<void(const Sighting&)> on_delivered;

  // Mixes time, route and bytes of every delivered packet.
  std::uint64_t trace_hash() const { return trace_hash_; }
  std::uint64_t packets_delivered() const { return packets_delivered_; }
  // Damaged frames that a receiver noticed.
  std::uint64_t frames_refused() const { return frames_refused_; }
  // Why the run was given up (a livelock, an oversized packet); empty if all is well.
  const std::string& complaint() const { return complaint_; }

 private:
  struct Node {
    NodeConfig config;
    std::unique_ptr<SimNic> nic;
    std::unique_ptr<SecuredNic> secured;
    std::unique_ptr<fep::Fep> fep;
    Time wake_at = kNever;
    bool alive = true;
  };
  struct Event {
    Time at;
    std::uint64_t order;
    std::function<void()> what;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  void transmit(int from, SimPacket&& packet, Time leaves);
  bool pass_as_frame(SimPacket& packet, bool damaged, bool secured);
  bool damage(SimPacket& packet, bool secured);
  void deliver(int from, int to, SimPacket&& packet);
  void progress(int node);
  static bool pass(Node& node, Time now);
  void wake(int node, Time when);
  void step();
  int node_at(const FepAddress& address) const;
  bool is_on_cut_rail(int from, int to, std::uint8_t rail);

  Rng rng_;
  Time now_ = time_from_ns(1'000'000'000);  // not 0, so that nobody takes 0 for a time in the past
  std::uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<SimLink>> links_;  // kMaxNodes * from + to
  LinkConfig default_link_;
  std::optional<wire::FrameFormat> framing_;
  WireSecrecy secrecy_;
  std::uint64_t frames_refused_ = 0;
  bool faults_ = true;
  std::uint64_t trace_hash_ = 0xCBF29CE484222325ULL;
  std::uint64_t packets_delivered_ = 0;
  std::uint64_t steps_ = 0;
  std::string complaint_;
};

// 10.0.x.y with the standard's port.
FepAddress address_of(std::uint8_t x, std::uint8_t y);

}  // namespace uet::sim
