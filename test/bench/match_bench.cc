// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finding things among many: the receive of a message, the unexpected message of a receive, the
// sender of a packet. The argument is how many there are.
#include <benchmark/benchmark.h>

#include <vector>

#include "av/av.h"
#include "base/rng.h"
#include "ses/match.h"

namespace uet::ses {
namespace {

constexpr FepAddress kSource{};

// Receives with exact tags; messages come in the order of the receives (0: each takes the oldest)
// or in any order (1).
void MatchPosted(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<PostedReceive> receives(count);
  MatchQueue queue(true, count, false);
  for (std::size_t i = 0; i < count; ++i) {
    receives[i].tagged = true;
    receives[i].tag = i;
    receives[i].sequence = i;
    queue.put(receives[i]);
  }
  Rng rng(1);
  std::uint64_t next = 0;
  std::uint64_t sequence = count;
  for (auto _ : state) {
    const std::uint64_t tag = state.range(1) == 0 ? next++ % count : rng.below(count);
    PostedReceive* receive = queue.find_receive({tag, InitiatorId{}, kSource});
    benchmark::DoNotOptimize(receive);
    MatchQueue::remove(*receive);
    receive->sequence = sequence++;
    queue.put(*receive);
  }
  for (PostedReceive& receive : receives) MatchQueue::remove(receive);
}
BENCHMARK(MatchPosted)
    ->ArgNames({"posted", "any"})
    ->ArgsProduct({{10, 100, 1000, 10000, 100000}, {0, 1}});

void MatchUnexpected(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<RxMessage> messages(count);
  MatchQueue queue(true, count, false);
  for (std::size_t i = 0; i < count; ++i) {
    messages[i].kind = Kind::TaggedSend;
    messages[i].match_bits = i;
    queue.add(messages[i]);
  }
  Rng rng(1);
  std::uint64_t next = 0;
  MatchCriteria criteria;
  criteria.tagged = true;
  for (auto _ : state) {
    criteria.tag = state.range(1) == 0 ? next++ % count : rng.below(count);
    Envelope* message = queue.find_unexpected(criteria);
    benchmark::DoNotOptimize(message);
    MatchQueue::remove(*message);
    queue.add(*message);
  }
  for (RxMessage& message : messages) MatchQueue::remove(message);
}
BENCHMARK(MatchUnexpected)
    ->ArgNames({"waiting", "any"})
    ->ArgsProduct({{10, 100, 1000, 10000, 100000}, {0, 1}});

void FindSource(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  av::Av av;
  av.reserve(count);
  std::vector<av::UetAddress> peers;
  for (std::size_t i = 0; i < count; ++i) {
    FepAddress fep;
    fep.ip.bytes = {10, static_cast<std::uint8_t>(i >> 16), static_cast<std::uint8_t>(i >> 8),
                    static_cast<std::uint8_t>(i)};
    fep.port = 4793;
    peers.push_back(av::default_address(fep));
    benchmark::DoNotOptimize(av.insert(peers.back()).ok());
  }
  Rng rng(1);
  for (auto _ : state) {
    const av::UetAddress& peer = peers[rng.below(count)];
    benchmark::DoNotOptimize(av.find_source(peer.fep(), peer.initiator_id));
  }
  state.counters["bytes/peer"] = static_cast<double>(av.bytes()) / static_cast<double>(count);
}
BENCHMARK(FindSource)->ArgName("peers")->RangeMultiplier(10)->Range(10, 100000);

}  // namespace
}  // namespace uet::ses
