// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics in a run: each adds or swaps exactly once whatever gets lost, and brings back what was
// there before.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "ses/initiator.h"
#include "sim/run_plan.h"

namespace uet::sim {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::uint64_t load_word(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, kWord);
  return word;
}

}  // namespace

void Run::prepare_atomic(std::size_t number) {
  const OperationPlan& plan = plan_.operations[number];
  Operation& operation = operations_[number];
  for (std::size_t at = 0; at < plan.length; at += kWord) {
    std::memcpy(operation.memory->data() + at, &plan.operand, kWord);
  }
  if (plan.flavour != Flavour::Add) {
    operation.results = std::make_unique<GuardedMemory>(plan.length);
  }
}

Result<void> Run::submit_atomic(Endpoint& endpoint, std::size_t number) {
  const OperationPlan& plan = plan_.operations[number];
  Operation& operation = operations_[number];
  const Endpoint& target = endpoints_[static_cast<std::size_t>(plan.to)];
  const ses::IoSlice local{operation.memory->data(), plan.length};
  ses::IoSlice results;
  if (operation.results) results = {operation.results->data(), plan.length};
  std::uint64_t previous = previous_swap(number);
  const ses::IoSlice compare{reinterpret_cast<std::byte*>(&previous), kWord};
  ses::AtomicOp op;
  op.peer = &target.peer;
  op.local = {&local, 1};
  op.inject = plan.inject;
  op.delivery_complete = plan.delivery_complete;
  op.context = context_pointer(number + 1);
  op.user_flags = number * 3;
  op.key = window_keys_[static_cast<std::size_t>(target.plan->node)];
  op.remote_offset = plan.offset;
  op.op = plan.flavour == Flavour::Swap ? wire::AmoOp::Cswap : wire::AmoOp::Sum;
  op.datatype = wire::AmoDatatype::Uint64;
  op.kind = plan.flavour == Flavour::Add        ? ses::Kind::Atomic
            : plan.flavour == Flavour::FetchAdd ? ses::Kind::FetchAtomic
                                                : ses::Kind::CompareAtomic;
  if (operation.results) op.results = {&results, 1};
  if (plan.flavour == Flavour::Swap) op.compare = {&compare, 1};
  return world_.fep(endpoint.plan->node)
      .ses()
      .initiator()
      .post(*endpoint.context, op, world_.now());
}

// The operand that the context's previous swap left in the word of the same node.
std::uint64_t Run::previous_swap(std::size_t number) const {
  const OperationPlan& plan = plan_.operations[number];
  std::uint64_t previous = kUntouchedWord;
  for (std::size_t i = 0; i < number; ++i) {
    const OperationPlan& other = plan_.operations[i];
    const bool same = other.flavour == Flavour::Swap && other.from == plan.from &&
                      context_of(other.to).node == context_of(plan.to).node;
    if (same) previous = other.operand;
  }
  return previous;
}

// In ROD every swap finds the number of the one before it.
void Run::check_swap(std::size_t number) {
  if (!operation_counts(number)) return;
  if (load_word(operations_[number].results->data()) != previous_swap(number)) {
    fail("swap " + std::to_string(number) + ": not the number of the swap before it");
  }
}

// Counters only grow by odd amounts that are drawn from 2^63, so that no two fetches may see the
// same value of one.
void Run::check_fetched() {
  std::map<std::pair<int, std::uint64_t>, std::set<std::uint64_t>> seen;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const OperationPlan& plan = plan_.operations[i];
    if (plan.flavour != Flavour::FetchAdd || !operations_[i].ok) continue;
    GuardedMemory& results = *operations_[i].results;
    if (!results.guards_intact()) return fail("guard bytes of fetched values overwritten");
    for (std::size_t at = 0; at < plan.length; at += kWord) {
      const auto cell = std::make_pair(context_of(plan.to).node, plan.offset + at);
      if (!seen[cell].insert(load_word(results.data() + at)).second) {
        return fail("fetch " + std::to_string(i) + ": a value that another one has fetched");
      }
    }
  }
}

// The counters of a node as the operations must have left them; those that a dead node may or may
// not have changed, as they are.
void Run::expect_counters(int node, std::vector<std::byte>& window) {
  for (const bool dead : {false, true}) {
    for (const OperationPlan& op : plan_.operations) {
      if (!is_atomic(op.flavour) || context_of(op.to).node != node) continue;
      if (serves(context_of(op.from).node) == dead) continue;
      std::byte* place = window.data() + op.offset;
      for (std::size_t at = 0; at < op.length; at += kWord) {
        std::uint64_t word = load_word(place + at);
        word = op.flavour == Flavour::Swap ? op.operand : word + op.operand;
        if (dead) word = load_word(this->window(node) + op.offset + at);
        std::memcpy(place + at, &word, kWord);
      }
    }
  }
}

}  // namespace uet::sim
