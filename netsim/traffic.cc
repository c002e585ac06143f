// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Generated traffic.
#include "netsim/traffic.h"

#include <algorithm>
#include <numeric>

#include "base/rng.h"

namespace uet::netsim {
namespace {

std::vector<std::uint32_t> shuffled(std::vector<std::uint32_t> numbers, Rng& rng) {
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[rng.below(i)]);
  return numbers;
}

// All hosts but 0: in order, or shuffled.
std::vector<std::uint32_t> others(std::uint32_t nodes, std::uint64_t seed) {
  std::vector<std::uint32_t> numbers(nodes - 1);
  std::iota(numbers.begin(), numbers.end(), 1U);
  if (seed == 0) return numbers;
  Rng rng(seed);
  return shuffled(std::move(numbers), rng);
}

Flow flow(std::uint32_t source, std::uint32_t destination, std::uint64_t bytes) {
  return Flow{.source = source, .destination = destination, .bytes = bytes, .id = 0, .start = 0};
}

void number(Traffic& traffic) {
  std::uint32_t id = 0;
  for (Flow& flow : traffic.flows) flow.id = ++id;
}

// `next` starts when its source knows that `before` is done: as the source or the destination of
// it.
void chain(Traffic& traffic, Flow& before, Flow& next) {
  const auto id = static_cast<std::uint32_t>(traffic.triggers.size() + 1);
  traffic.triggers.push_back(Trigger{.id = id});
  (next.source == before.source ? before.sent_trigger : before.received_trigger) = id;
  next.trigger = id;
  next.start.reset();
}

}  // namespace

Traffic incast(std::uint32_t nodes, std::uint32_t count, std::uint64_t bytes, std::uint64_t seed) {
  Traffic traffic{.nodes = nodes, .flows = {}, .triggers = {}, .failures = {}};
  const std::vector<std::uint32_t> sources = others(nodes, seed);
  for (std::uint32_t i = 0; i < count; ++i) traffic.flows.push_back(flow(sources[i], 0, bytes));
  number(traffic);
  return traffic;
}

Traffic outcast(std::uint32_t nodes, std::uint32_t count, std::uint64_t bytes, std::uint64_t seed) {
  Traffic traffic = incast(nodes, count, bytes, seed);
  for (Flow& flow : traffic.flows) std::swap(flow.source, flow.destination);
  return traffic;
}

// One cycle through all hosts, so that no host sends to itself.
Traffic permutation(std::uint32_t nodes, std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::uint32_t> cycle(nodes);
  std::iota(cycle.begin(), cycle.end(), 0U);
  Rng rng(seed);
  cycle = shuffled(std::move(cycle), rng);
  Traffic traffic{.nodes = nodes, .flows = {}, .triggers = {}, .failures = {}};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    traffic.flows.push_back(flow(cycle[i], cycle[(i + 1) % nodes], bytes));
  }
  number(traffic);
  return traffic;
}

Traffic all_to_all(std::uint32_t nodes, std::uint32_t count, std::uint64_t bytes, bool serial) {
  Traffic traffic{.nodes = nodes, .flows = {}, .triggers = {}, .failures = {}};
  for (std::uint32_t source = 0; source < count; ++source) {
    for (std::uint32_t step = 1; step < count; ++step) {
      traffic.flows.push_back(flow(source, (source + step) % count, bytes));
      if (serial && step > 1) chain(traffic, *(traffic.flows.end() - 2), traffic.flows.back());
    }
  }
  number(traffic);
  return traffic;
}

Traffic ring_all_reduce(std::uint32_t nodes, std::uint32_t count, std::uint64_t bytes) {
  Traffic traffic{.nodes = nodes, .flows = {}, .triggers = {}, .failures = {}};
  const std::uint32_t steps = 2 * (count - 1);
  for (std::uint32_t begin = 0; begin < count; ++begin) {
    for (std::uint32_t step = 0; step < steps; ++step) {
      const std::uint32_t from = (begin + step) % count;
      traffic.flows.push_back(flow(from, (from + 1) % count, bytes));
      if (step > 0) chain(traffic, *(traffic.flows.end() - 2), traffic.flows.back());
    }
  }
  number(traffic);
  return traffic;
}

}  // namespace uet::netsim
