// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One run of a plan: posts what the plan says, takes the completions, judges. See workload.h for
// what is promised; the first broken promise is kept as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/closing_contexts.h"
#include "sim/key_management.h"
#include "sim/nasty.h"
#include "sim/sim_world.h"
#include "sim/wire_monitor.h"
#include "sim/workload.h"

namespace uet::sim {

inline constexpr std::byte kUntouched{0xE7};  // what unwritten memory holds
inline constexpr std::byte kScribble{0xDD};   // what a buffer holds after its operation
inline constexpr std::uint64_t kUntouchedWord = 0xE7E7E7E7E7E7E7E7;
inline constexpr std::uint64_t kLibraryNumber = 0x11B;  // pattern of the read-only regions
// Operation contexts: the number of an operation + 1, or this + the number of a receive.
inline constexpr std::uint64_t kReceiveTag = std::uint64_t{1} << 32;

constexpr bool is_atomic(Flavour flavour) { return flavour >= Flavour::Add; }

void* context_pointer(std::uint64_t number);

// Memory with guard bytes on both sides.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t length);
  std::byte* data() { return bytes_.data() + kGuard; }
  std::size_t length() const { return bytes_.size() - 2 * kGuard; }
  bool guards_intact() const;
  // Nothing was written at or behind `from`.
  bool untouched_from(std::size_t from) const;

 private:
  static constexpr std::size_t kGuard = 64;
  std::vector<std::byte> bytes_;
};

class Run {
 public:
  Run(const Plan& plan, bool verbose);
  ~Run();
  Outcome execute();

 private:
  class Sink final : public ses::CompletionSink {
   public:
    Sink(Run& run, int context) : run_(run), context_(context) {}
    void complete(const ses::Completion& completion) noexcept override;
    bool can_take_event() noexcept override;
    bool reserve_receive() noexcept override { return can_take_event(); }
    void release_receive() noexcept override {}
    void remote_access(ses::Kind, std::uint64_t) noexcept override {}
    // Half of the contexts answer reads with copies, the others from the region.
    bool counts_reads() const noexcept override { return context_ % 2 == 1; }

   private:
    Run& run_;
    int context_;
  };
  struct Endpoint {
    const ContextPlan* plan = nullptr;
    std::unique_ptr<Sink> sink;
    ses::Context* context = nullptr;
    ses::Peer peer;                       // how others name it
    std::vector<std::size_t> operations;  // numbers, in posting order
    std::vector<std::size_t> receives;
    std::size_t next_operation = 0;
    std::size_t next_receive = 0;
  };
  struct Operation {
    std::unique_ptr<GuardedMemory> memory;
    std::unique_ptr<GuardedMemory> results;  // of atomics that bring values back
    bool posted = false;
    int completions = 0;
    bool ok = false;
    bool cancelled = false;
    int events = 0;  // RemoteWrite completions, or matched receives
  };
  // A message in a multi-receive buffer.
  struct Placed {
    std::size_t message = 0;
    std::size_t offset = 0;
    std::size_t length = 0;
  };
  struct Receive {
    std::unique_ptr<GuardedMemory> memory;
    bool posted = false;
    int completions = 0;         // of a multi-receive: last entries
    int message = -1;            // number of the operation that it took
    bool looking = false;        // a peek with its properties is under way
    bool claimed = false;        // and has found a message
    std::vector<Placed> placed;  // multi
    bool broken = false;         // multi: holds parts of messages that came to nothing
  };

  void build();
  NodeConfig node_config(int node) const;
  LinkConfig link_config() const;
  void add_successor();
  void build_node(int node);
  void schedule();
  void post_operation(Endpoint& endpoint, Duration retry);
  void post_receive(Endpoint& endpoint, Duration retry);
  void cancel_operation(Endpoint& endpoint, std::size_t number);
  void cancel_sends_to_successor();
  void check_fence(std::size_t number);
  Result<void> submit(Endpoint& endpoint, std::size_t number);
  Result<void> submit_atomic(Endpoint& endpoint, std::size_t number);
  void send_hostile_packet();
  void capture(const Sighting& sighting);
  void replay();
  void on_completion(int context, const ses::Completion& completion);
  void on_operation(std::size_t number, const ses::Completion& completion);
  void on_receive(std::size_t number, const ses::Completion& completion);
  void on_multi_receive(std::size_t number, const ses::Completion& completion);
  void on_look(std::size_t number, const ses::Completion& completion);
  void on_message(std::size_t number, const ses::Completion& completion, std::size_t message);
  std::optional<std::size_t> message_of(const ses::Completion& completion) const;
  void look(Endpoint& endpoint, std::size_t number);
  void check_released(std::size_t number);
  void check_order_in_buffers();
  void on_remote_write(int context, const ses::Completion& completion);
  void check_read(std::size_t number);
  void prepare_atomic(std::size_t number);
  std::uint64_t previous_swap(std::size_t number) const;
  void check_swap(std::size_t number);
  void check_fetched();
  void expect_counters(int node, std::vector<std::byte>& window);
  void check_writes_before(std::size_t message);
  void check_order();
  void check_memory();
  bool all_done() const;
  bool at_rest();
  std::string unfinished();
  void finish();
  void cancel_receives();
  void close_datagram_contexts();
  void close_all();
  void fail(const std::string& what);

  // Without a message, until they are cancelled.
  bool some_receives_stay() const {
    return may_lose_peer() || plan_.cancels || plan_.multi_receives;
  }
  bool may_lose_peer() const { return plan_.killed_node >= 0 || plan_.behind_black_hole >= 0; }
  // A sender may withdraw a message, or its successor knows nothing of it when the rest is read.
  bool may_abandon() const {
    return plan_.cancels || plan_.returns_after != Duration{0} || plan_.behind_black_hole >= 0;
  }
  bool lives(int node) const { return world_.alive(node); }
  // Nothing is promised of what goes from or to the other nodes, but that it ends.
  bool serves(int node) const { return lives(node) && node != plan_.behind_black_hole; }
  bool operation_counts(std::size_t number) const;  // both ends serve
  bool must_be_heard_of(std::size_t number) const;  // by its target's application
  const ContextPlan& context_of(int context) const {
    return plan_.contexts[static_cast<std::size_t>(context)];
  }
  std::byte* window(int node) { return windows_[static_cast<std::size_t>(node)]->data(); }

  const Plan& plan_;
  SimWorld world_;
  WireMonitor monitor_;
  std::unique_ptr<KeyManagement> keys_;  // if the nodes are secured
  Rng rng_;                              // of the workload alone
  Strangers strangers_;
  ClosingContexts closing_;
  std::vector<Endpoint> endpoints_;
  std::vector<Operation> operations_;
  std::vector<Receive> receives_;
  std::vector<std::unique_ptr<GuardedMemory>> windows_;
  std::vector<std::unique_ptr<GuardedMemory>> libraries_;
  std::vector<Rkey> window_keys_;
  std::vector<Rkey> library_keys_;
  SimPacket last_packet_;                            // raw material for hostile packets
  std::vector<std::pair<int, SimPacket>> captured_;  // with the node that they went to
  std::uint64_t captures_ = 0;
  Rng replay_rng_;
  bool cancelling_ = false;
  Time end_of_faults_;
  std::string failure_;
};

}  // namespace uet::sim
