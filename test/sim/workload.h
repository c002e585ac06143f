// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the nodes of a simulation do, drawn from a seed, and the oracles that judge it: every byte
// lands once at the right place, every operation completes exactly once with the expected status,
// ROD keeps order, all pools are full at rest, and all of it within bounded virtual time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/key_management.h"
#include "sim/sim_world.h"
#include "uet/ses/api.h"
#include "wire/frame.h"

namespace uet::sim {

// How the FEP of one node is configured, and what its address says that peers may send it. The
// payload MTU is everybody's.
struct ConfigurationPlan {
  fep::Config fep;
  bool hpc = true;  // what can be read, RUDI
  bool ai_full = true;
  bool optimized = true;
  std::uint32_t spare_mtu_bytes = 0;  // its IP MTU is so much larger than it need be
};

// One endpoint of a node.
struct ContextPlan {
  int node = 0;
  DeliveryMode mode = DeliveryMode::Rud;
  std::uint16_t resource_index = 0;
  std::uint32_t initiator = 0;
};

enum class Flavour : std::uint8_t {
  Send,
  TaggedSend,
  Write,      // to a place of its own
  Read,       // from the read-only region
  SlotWrite,  // to a place that later writes of this ROD context overwrite (WAW)
  SlotRead,   // of that place (RAW, WAR)
  BadKey,     // write under a key that does not exist
  BadRight,   // write to the read-only region
  BadBounds,  // write that ends one byte behind the region
  BadIndex,   // write to a resource index that does not exist
  Datagram,   // between contexts of mode Uud: may get lost, and comes twice if a link copies it
  Add,        // to counters that all contexts share
  FetchAdd,   // the same, bringing their values back
  Swap,       // ROD: compare-and-swap from this context's previous number to the next
};

// One operation of an initiator; its number names it on the wire (data) and in its payload.
struct OperationPlan {
  Flavour flavour = Flavour::Send;
  int from = 0;  // context
  int to = 0;    // context
  std::uint32_t length = 0;
  std::uint64_t tag = 0;
  bool with_data = false;
  bool inject = false;
  bool delivery_complete = false;
  bool fence = false;
  std::optional<Duration> cancel_after;  // cancelled then, unless it has ended
  std::uint32_t slices = 1;
  std::uint64_t offset = 0;   // in the region
  std::uint64_t operand = 0;  // Add, FetchAdd: to each counter; Swap: the next number
  Duration post_after{0};     // after the previous operation of this context
};

struct ReceivePlan {
  int context = 0;
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  int source = -1;  // context; -1 = anyone
  std::uint32_t capacity = 0;
  std::uint32_t slices = 1;
  bool multi = false;  // takes message after message; as many as there are messages suffice
  std::uint32_t min_free = 0;
  Duration post_after{0};  // after the previous receive of this context
};

struct PartitionPlan {
  int from = 0;
  int to = 0;
  Duration start{0};
  Duration end{0};
};

// A rail of a node carries nothing for a while, and the node and then its peers are told so.
struct RailPlan {
  int node = 0;
  std::uint8_t rail = 0;
  Duration start{0};
  Duration end{0};
  Duration told{0};  // after `start`
  Duration gone{0};  // after that
};

// Everything about one run; all of it follows from the seed.
struct Plan {
  std::uint64_t seed = 0;
  int nodes = 2;
  fep::Config fep;  // of every node; its ConfigurationPlan changes some of it
  std::vector<ConfigurationPlan> configurations;  // of each node
  LinkConfig link;
  std::optional<wire::FrameFormat> framing;  // none: packets as such
  std::optional<SecurityPlan> security;      // none: packets in clear
  std::size_t nic_tx_queue = 1024;
  std::size_t nic_rx_queue = 4096;
  Duration progress_interval{0};
  bool relative = true;
  bool directed_receive = false;
  bool provider_keys = true;
  bool hpc = true;              // the peers' addresses say so, unless a ConfigurationPlan differs
  bool cancels = false;         // some sends are cancelled: not every receive finds a message
  bool multi_receives = false;  // some receives are; those left over are cancelled at the end
  bool looks = false;           // receives claim a message that is there already
  double refuse_events = 0;     // chance that a full CQ refuses remote data
  std::uint64_t window_bytes = 0;   // writable region of each node
  std::uint64_t library_bytes = 0;  // read-only region of each node
  std::vector<ContextPlan> contexts;
  std::vector<OperationPlan> operations;  // per context in this order
  std::vector<ReceivePlan> receives;      // per context in this order
  std::vector<PartitionPlan> partitions;
  std::uint8_t rails = 1;  // of each node
  std::vector<RailPlan> lost_rails;
  int hostile_packets = 0;
  bool closing_contexts = false;  // some contexts are closed while they have work
  int nasty_sequences = 0;        // of strangers: each packet is legal, the whole is not (nasty.h)
  int killed_node = -1;
  Duration returns_after{0};  // another process at its address, so long after; 0 = none
  Duration kill_at{0};
  // Large packets from and to this node are lost for ever (LinkConfig::largest_packet); -1: none.
  // Operations of it may fail, each in bounded time.
  int behind_black_hole = -1;
  bool shipped_limits = false;  // every node has the limits that the provider ships
  Duration faults_end{0};       // after this the network is good

  std::string describe() const;
};

Plan draw_plan(std::uint64_t seed);

struct Outcome {
  std::string failure;  // empty = every oracle is content
  std::uint64_t trace_hash = 0;
  std::uint64_t packets = 0;
  std::uint64_t retransmissions = 0;
  Duration virtual_time{0};
};

// Prints every packet as a line of text when `verbose`.
Outcome run_plan(const Plan& plan, bool verbose = false);

// draw_plan and run_plan; `failure` ends with the command line that repeats the run.
Outcome run_seed(std::uint64_t seed, bool verbose = false);

// The bytes of message `number`: different for every number, and naming it in the first 8.
void fill_pattern(std::uint64_t number, std::byte* to, std::size_t length);
bool has_pattern(std::uint64_t number, const std::byte* at, std::size_t length);

}  // namespace uet::sim
