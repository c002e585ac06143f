// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a 4 KiB packet with its payload by reference costs one end: ns per data packet, with its
// share of posting, ACKs and completions. uet_count_packets counts instructions for the same.
#include <benchmark/benchmark.h>

#include <fstream>
#include <limits>
#include <vector>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "packet_rig.h"

namespace uet::bench {
namespace {

void run(benchmark::State& state, const Traffic& traffic) {
  PacketRig rig(traffic);
  std::chrono::duration<double> before{};
  std::uint64_t packets_before = 0;
  double best = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    if (!rig.round()) break;
    const double seconds = (rig.measured() - before).count();
    state.SetIterationTime(seconds);
    before = rig.measured();
    const std::uint64_t packets = rig.data_packets();
    best = std::min(best, seconds / static_cast<double>(packets - packets_before));
    packets_before = packets;
  }
  if (!rig.ok()) state.SkipWithError("writes do not complete");
  using benchmark::Counter;
  const auto packets = static_cast<double>(std::max<std::uint64_t>(rig.data_packets(), 1));
  state.counters["ns/packet"] = rig.measured().count() * 1e9 / packets;
  // Of the best iteration: what it is where nothing else has the core and the caches.
  state.counters["best"] = best * 1e9;
  state.counters["ACKs/packet"] = static_cast<double>(rig.acks_sent()) / packets;
  if (traffic.lose_one_in > 0) {
    state.counters["again/packet"] = static_cast<double>(rig.sent_again()) / packets;
  }
}

cms::Algorithm algorithm_of(const benchmark::State& state) {
  return state.range(0) == 0 ? cms::Algorithm::None : cms::Algorithm::Nscc;
}

void PacketSendAck(benchmark::State& state) {
  run(state, {.measured = End::Sender, .algorithm = algorithm_of(state)});
}
BENCHMARK(PacketSendAck)->ArgName("nscc")->Arg(0)->Arg(1)->UseManualTime();

void PacketReceiveAck(benchmark::State& state) {
  run(state, {.measured = End::Receiver, .algorithm = algorithm_of(state)});
}
BENCHMARK(PacketReceiveAck)->ArgName("nscc")->Arg(0)->Arg(1)->UseManualTime();

// One packet in 8 is lost once: what a retransmission costs is 8 times the difference to
// PacketSendAck without NSCC.
void PacketRetransmit(benchmark::State& state) {
  run(state, {.measured = End::Sender, .lose_one_in = 8, .algorithm = cms::Algorithm::None});
}
BENCHMARK(PacketRetransmit)->UseManualTime();

// The PDCs have writes of `packets` packets in turn, 10 at a time, so that each acknowledges its
// own: two of one PDC would share an ACK. A Fep has 32,768 at most.
void PacketAmongPdcs(benchmark::State& state) {
  run(state, {.measured = state.range(2) == 0 ? End::Sender : End::Receiver,
              .pdcs = static_cast<std::size_t>(state.range(0)),
              .message_bytes = static_cast<std::uint64_t>(state.range(1)) * kPayloadBytes,
              .messages_in_flight = 10,
              .algorithm = cms::Algorithm::None});
}
BENCHMARK(PacketAmongPdcs)
    ->ArgNames({"pdcs", "packets", "receiver"})
    ->ArgsProduct({{10, 100, 1000, 10000, 32000}, {1, 16}, {0, 1}})
    ->UseManualTime();

double resident_bytes() {
  malloc_trim(0);  // what is free is not resident
  std::ifstream statm("/proc/self/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// work() in a process of its own: what it answers, or less than 0. Memory that something before it
// has given back to malloc is in use there as soon as a table is cleared in it.
template <class Work>
double in_child(Work&& work) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  malloc_trim(0);
  const pid_t child = fork();
  if (child == 0) {
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // where it began, and no longer moving
    const double answer = work();
    _exit(write(ends[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  close(ends[1]);
  double answer = -1;
  if (child < 0 || read(ends[0], &answer, sizeof answer) != sizeof answer) answer = -1;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return answer;
}

// Not a time: what a PDC that has sent `packets` packets keeps when it is idle, as the mean of both
// ends. The sender has a congestion context for each PDC, the receiver one for all.
void PdcMemory(benchmark::State& state) {
  constexpr std::size_t kPdcs = 10000;
  const auto grown_by = [&](std::size_t pdcs) {
    return in_child([&] {
      const double before = resident_bytes();
      PacketRig rig(
          {.pdcs = pdcs,
           .message_bytes = static_cast<std::uint64_t>(state.range(0)) * kPayloadBytes,
           .messages_in_flight = 1,
           .algorithm = state.range(1) == 0 ? cms::Algorithm::None : cms::Algorithm::Nscc});
      for (std::size_t i = 0; i < pdcs; ++i) rig.round();
      return rig.ok() ? resident_bytes() - before : -1;
    });
  };
  for (auto _ : state) {
    const double few = grown_by(100);
    const double many = grown_by(kPdcs);
    if (few < 0 || many < 0) state.SkipWithError("writes do not complete");
    state.counters["bytes/PDC"] = (many - few) / (kPdcs - 100) / 2;
  }
}
BENCHMARK(PdcMemory)
    ->ArgNames({"packets", "nscc"})
    ->Args({1, 0})
    ->Args({256, 0})
    ->Args({256, 1})
    ->Iterations(1);

// A list of all peers for the live page, each with a PDC and a congestion context.
void ListPeers(benchmark::State& state) {
  PacketRig rig({.pdcs = static_cast<std::size_t>(state.range(0)), .messages_in_flight = 1});
  std::vector<pds::PeerView> views;
  for (auto _ : state) rig.sender().list_peers(views);
  if (!rig.ok()) state.SkipWithError("writes do not complete");
}
BENCHMARK(ListPeers)->ArgName("pdcs")->Arg(1)->Arg(100)->Arg(10000);

}  // namespace
}  // namespace uet::bench
