// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The whole core: two Feps joined by memory, one thread, a clock that only counts passes. Both
// ends' work is in the figures: ns per data packet means sending it, receiving it and its share of
// ACKs.
#include <benchmark/benchmark.h>

#include <vector>

#include "counting_sink.h"
#include "fep/fep.h"
#include "memory_nic.h"
#include "ses/initiator.h"

namespace uet::bench {
namespace {

constexpr std::size_t kBatch = 64;  // messages in flight
constexpr std::size_t kWriteBytes = 1 << 20;
constexpr std::size_t kPayloadMtu = 8192;
constexpr std::uint64_t kMaxPasses = 1 << 20;  // of one round, before it counts as stuck

FepAddress address(std::uint8_t last_byte) {
  FepAddress fep;
  fep.ip.bytes = {10, 0, 0, last_byte};
  return fep;
}

fep::Config config(cms::Algorithm algorithm) {
  fep::Config config;
  config.ses.payload_mtu = kPayloadMtu;
  config.cms.algorithm = algorithm;
  config.cms.mtu_bytes = kPayloadMtu + 256;
  config.cms.link_rate_bps = 400'000'000'000;  // round trips of 2 us need a window of many packets
  config.memory_regions = 16;
  return config;
}

// One end.
struct Side {
  Side(std::uint8_t last_byte, cms::Algorithm algorithm)
      : nic(address(last_byte), 1024), fep(config(algorithm), nic, Time{}) {
    ses::ContextConfig context_config;
    context_config.resource_index = ResourceIndex{1};
    context_config.initiator = InitiatorId{last_byte};
    context_config.rx_size = 1 << 15;
    auto opened = fep.ses().open_context(context_config, sink);
    if (!opened) return;
    context = opened.value();
    fep.ses().enable(*context);
  }

  MemoryNic nic;
  CountingSink sink;
  fep::Fep fep;
  ses::Context* context = nullptr;
};

struct Pair {
  explicit Pair(cms::Algorithm algorithm) : left(1, algorithm), right(2, algorithm) {
    MemoryNic::join(left.nic, right.nic);
    peer.fep = right.nic.local_address();
    peer.resource_index = ResourceIndex{1};
    peer.initiator = InitiatorId{2};
  }

  // Passes at both ends until `done()`; false if that does not come.
  template <class Done>
  bool run_until(Done&& done) {
    for (std::uint64_t pass = 0; pass < kMaxPasses; ++pass) {
      if (done()) return true;
      now += std::chrono::microseconds(1);
      left.fep.progress(now);
      right.fep.progress(now);
    }
    return false;
  }

  Time now{};
  Side left;
  Side right;
  ses::Peer peer;
};

void report(benchmark::State& state, Pair& pair, std::uint64_t bytes) {
  const fep::Stats sender = pair.left.fep.stats();
  const fep::Stats receiver = pair.right.fep.stats();
  if (pair.left.sink.bad + pair.right.sink.bad > 0) state.SkipWithError("an operation failed");
  if (sender.pds.rto_retransmissions > 0) state.SkipWithError("packets were sent twice");
  const auto packets = static_cast<double>(sender.pds.requests_sent);
  using benchmark::Counter;
  state.counters["packets/s"] = Counter(packets, Counter::kIsRate);
  state.counters["s/packet"] = Counter(packets, Counter::kIsRate | Counter::kInvert);
  state.counters["ACKs/packet"] = static_cast<double>(receiver.pds.acks_sent) / packets;
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

cms::Algorithm algorithm_of(const benchmark::State& state) {
  return state.range(0) == 0 ? cms::Algorithm::None : cms::Algorithm::Nscc;
}

// 64 tagged messages of 64 B per iteration, receives posted first.
void FepTaggedSend64(benchmark::State& state) {
  Pair pair(algorithm_of(state));
  std::array<std::byte, 64> out{};
  std::array<std::byte, 64> in{};
  const ses::IoSlice in_slice{in.data(), in.size()};
  const ses::IoSlice out_slice{out.data(), out.size()};
  ses::ReceiveOp receive;
  receive.local = {&in_slice, 1};
  receive.tagged = true;
  receive.tag = 7;
  ses::SendOp send;
  send.local = {&out_slice, 1};
  send.peer = &pair.peer;
  send.tag = 7;
  std::uint64_t messages = 0;
  for (auto _ : state) {
    bool posted = true;
    for (std::size_t i = 0; i < kBatch; ++i) {
      posted &= pair.right.fep.ses().receive(*pair.right.context, receive, pair.now).ok();
      posted &= pair.left.fep.ses().initiator().post(*pair.left.context, send, pair.now).ok();
    }
    messages += kBatch;
    const bool done = pair.run_until(
        [&] { return pair.left.sink.good == messages && pair.right.sink.good == messages; });
    if (!posted || !done) {
      state.SkipWithError("messages do not complete");
      return;
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(messages));
  report(state, pair, messages * out.size());
}
BENCHMARK(FepTaggedSend64)->ArgName("nscc")->Arg(0)->Arg(1);

// The same to one of many receives with tags of their own, in any order; each is posted again.
void FepTaggedSendAmong(benchmark::State& state) {
  Pair pair(cms::Algorithm::None);
  const auto posted = static_cast<std::uint64_t>(state.range(0));
  std::array<std::byte, 64> out{};
  std::array<std::byte, 64> in{};
  const ses::IoSlice in_slice{in.data(), in.size()};
  const ses::IoSlice out_slice{out.data(), out.size()};
  ses::ReceiveOp receive;
  receive.local = {&in_slice, 1};
  receive.tagged = true;
  ses::SendOp send;
  send.local = {&out_slice, 1};
  send.peer = &pair.peer;
  bool good = true;
  const auto post = [&](std::uint64_t tag) {
    receive.tag = tag;
    good &= pair.right.fep.ses().receive(*pair.right.context, receive, pair.now).ok();
  };
  for (std::uint64_t tag = 0; tag < posted; ++tag) post(tag);
  Rng rng(1);
  std::uint64_t messages = 0;
  std::array<std::uint64_t, kBatch> tags{};
  for (auto _ : state) {
    for (std::uint64_t& tag : tags) {
      send.tag = tag = rng.below(posted);
      post(tag);  // so that there is one for each message, however often its tag is drawn
      good &= pair.left.fep.ses().initiator().post(*pair.left.context, send, pair.now).ok();
    }
    messages += kBatch;
    const bool done = pair.run_until(
        [&] { return pair.left.sink.good == messages && pair.right.sink.good == messages; });
    if (!good || !done) {
      state.SkipWithError("messages do not complete");
      return;
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(messages));
  report(state, pair, messages * out.size());
}
BENCHMARK(FepTaggedSendAmong)->ArgName("posted")->RangeMultiplier(10)->Range(10, 10000);

// One write or read of 1 MiB per iteration; the copies of the NIC and into memory are included.
void rma(benchmark::State& state, bool read) {
  Pair pair(algorithm_of(state));
  std::vector<std::byte> local(kWriteBytes);
  std::vector<std::byte> remote(kWriteBytes);
  ri::MemoryRegion region;
  region.base = remote.data();
  region.length = remote.size();
  region.access = ri::kRemoteRead | ri::kRemoteWrite;
  const ses::IoSlice slice{local.data(), local.size()};
  ses::RmaOp op;
  op.local = {&slice, 1};
  op.peer = &pair.peer;
  auto key = pair.right.fep.regions().add(region);
  if (!key) {
    state.SkipWithError("the region cannot be registered");
    return;
  }
  op.key = key.value();
  if (read) op.kind = ses::Kind::Read;
  std::uint64_t operations = 0;
  for (auto _ : state) {
    ses::Ses& ses = pair.left.fep.ses();
    const bool posted = ses.initiator().post(*pair.left.context, op, pair.now).ok();
    ++operations;
    if (!posted || !pair.run_until([&] { return pair.left.sink.good == operations; })) {
      state.SkipWithError("the operation does not complete");
      return;
    }
  }
  report(state, pair, operations * kWriteBytes);
}
void FepWrite1MiB(benchmark::State& state) { rma(state, false); }
BENCHMARK(FepWrite1MiB)->ArgName("nscc")->Arg(0)->Arg(1);
void FepRead1MiB(benchmark::State& state) { rma(state, true); }
BENCHMARK(FepRead1MiB)->ArgName("nscc")->Arg(0)->Arg(1);

}  // namespace
}  // namespace uet::bench
