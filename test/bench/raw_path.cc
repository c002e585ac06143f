// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ceiling of a path: a bare loop that sends and receives packets of the same sizes as UET
// packets, without uet's back ends. scripts/bench puts the provider's figures beside it.
//
// Use: uet_raw_path server|client MODE NIC ADDRESS PEER BYTES SECONDS
//   MODE: latency (half round trip in us), bandwidth (MB/s of payload), rate (packets/s), memory:
//   bandwidth of payload that comes from and goes to 16 MiB at either end (kernel UDP alone)
//   NIC: as FI_UET_NIC; the interface is FI_UET_IFACE. Also uring and uring:sqpoll: kernel UDP by
//   io_uring.
//   BYTES: payload of a packet.
// The client prints "result: NUMBER UNIT lost=N". In the streams the server answers every
// kAnswerEvery-th packet, and no more than kWindow are on their way.
#include <arpa/inet.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "raw_wire.h"

namespace {

using uet::bench::RawChoice;
using uet::bench::RawWire;
using Kind = uet::bench::RawKind;
using Message = uet::bench::RawMessage;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kWindow = 64;
constexpr std::uint64_t kAnswerEvery = 16;
constexpr std::chrono::milliseconds kLostAfter{20};
constexpr std::chrono::seconds kServerPatience{3};
constexpr std::size_t kBurst = uet::bench::kRawBurst;
constexpr std::size_t kMemoryBytes = 16 << 20;  // as much as 16 writes of 1 MiB

uet::FabricAddress address_of(const char* text) {
  uet::FabricAddress ip;
  if (::inet_pton(AF_INET, text, ip.bytes.data()) != 1) {
    std::fprintf(stderr, "%s is no IPv4 address\n", text);
    std::exit(2);
  }
  return ip;
}

std::unique_ptr<RawWire> open_wire(const RawChoice& choice) {
  const std::string back_end = choice.nic.substr(0, choice.nic.find(':'));
  const bool packet_sockets = back_end == "packet" || choice.nic == "shared:packet";
  if (packet_sockets) return uet::bench::open_raw_packet(choice);
  if (back_end == "udp" || back_end == "shared") return uet::bench::open_raw_udp(choice);
#ifdef UET_RAW_URING
  if (back_end == "uring") return uet::bench::open_raw_uring(choice);
#endif
#ifdef UET_RAW_DPDK
  if (back_end == "dpdk") return uet::bench::open_raw_dpdk(choice);
#endif
#ifdef UET_RAW_XDP
  if (back_end == "xdp") return uet::bench::open_raw_xdp(choice);
#endif
#ifdef UET_RAW_VERBS
  if (back_end == "verbs") return uet::bench::open_raw_verbs(choice);
#endif
  std::fprintf(stderr, "there is no raw path for %s\n", choice.nic.c_str());
  return nullptr;
}

// Yields where there is nothing to do.
class Path {
 public:
  explicit Path(std::unique_ptr<RawWire> wire) : wire_(std::move(wire)) {}

  // Waits until the wire has taken all messages.
  void send(std::span<const Message> messages, bool with_payload) {
    while (!messages.empty()) {
      const std::size_t sent = wire_->send(messages, with_payload);
      messages = messages.subspan(sent);
      if (sent == 0) ::sched_yield();
    }
  }

  template <class Take>
  void receive(Take take) {
    const std::size_t count = wire_->receive(arrived_);
    for (const Message& message : std::span(arrived_).first(count)) take(message);
    if (count == 0) ::sched_yield();
  }

 private:
  std::unique_ptr<RawWire> wire_;
  std::array<Message, kBurst> arrived_;
};

void serve(Path& path, bool latency) {
  std::uint64_t received = 0;
  std::uint64_t answered = 0;
  bool ended = false;
  Clock::time_point last = Clock::now() + std::chrono::seconds(10);
  while (!ended && Clock::now() < last) {
    path.receive([&](const Message& message) {
      last = Clock::now() + kServerPatience;
      ended = ended || message.kind == Kind::End;
      received = std::max(received, message.number);
    });
    if (received < answered + (latency ? 1 : kAnswerEvery)) continue;
    const Message answer{Kind::Answer, received};
    path.send(std::span(&answer, 1), latency);
    answered = received;
  }
}

struct Outcome {
  double seconds = 0;
  std::uint64_t packets = 0;
  std::uint64_t lost = 0;
};

Outcome drive(Path& path, bool latency, double seconds) {
  Outcome outcome;
  const std::uint64_t window = latency ? 1 : kWindow;
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  Clock::time_point begin = Clock::now();
  Clock::time_point last_answer = begin;
  const auto warm_up = std::chrono::duration<double>(seconds / 5);
  const auto measured = std::chrono::duration<double>(seconds);
  bool warm = false;
  std::array<Message, kBurst> burst;
  while (true) {
    const Clock::time_point at = Clock::now();
    if (!warm && at - begin > warm_up) {
      warm = true;
      begin = at;
      outcome = {};
    }
    if (warm && at - begin > measured) break;
    const std::uint64_t room = window - (sent - answered);
    if (room >= (latency ? 1 : kAnswerEvery)) {
      for (std::uint64_t i = 0; i < room; ++i) burst[i] = {Kind::Data, ++sent};
      path.send(std::span(burst).first(room), true);
    }
    path.receive([&](const Message& message) {
      if (message.kind != Kind::Answer || message.number <= answered) return;
      outcome.packets += message.number - answered;
      answered = message.number;
      last_answer = at;
    });
    if (sent > answered && at - last_answer > kLostAfter) {
      outcome.lost += sent - answered;
      answered = sent;
      last_answer = at;
    }
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const Message end{Kind::End, 0};
  for (int i = 0; i < 20; ++i) path.send(std::span(&end, 1), false);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr,
                 "use: uet_raw_path server|client latency|bandwidth|rate|memory NIC ADDRESS PEER "
                 "BYTES SECONDS\n");
    return 2;
  }
  const std::string mode = argv[2];
  const bool latency = mode == "latency";
  const char* const interface = std::getenv("FI_UET_IFACE");
  const auto bytes = static_cast<std::size_t>(std::strtoul(argv[6], nullptr, 10));
  const double seconds = std::strtod(argv[7], nullptr);
  const bool memory = mode == "memory";
  if (memory && (std::string(argv[3]) != "udp" || bytes == 0 || kMemoryBytes % bytes != 0)) {
    std::fprintf(stderr, "memory is for NIC udp, and BYTES a power of two up to 16 MiB\n");
    return 2;
  }
  auto wire = open_wire({.nic = argv[3],
                         .interface = interface != nullptr ? interface : "",
                         .self = address_of(argv[4]),
                         .peer = address_of(argv[5]),
                         .bytes = bytes,
                         .memory_bytes = memory ? kMemoryBytes : 0});
  if (wire == nullptr) return 1;
  Path path(std::move(wire));
  if (std::string(argv[1]) == "server") {
    serve(path, latency);
  } else {
    const Outcome outcome = drive(path, latency, seconds);
    const auto packets = static_cast<double>(outcome.packets);
    const double result = latency ? outcome.seconds / packets / 2 * 1e6
                          : mode == "rate"
                              ? packets / outcome.seconds
                              : packets * static_cast<double>(bytes) / outcome.seconds / 1e6;
    std::printf("result: %.3f %s lost=%llu\n", result,
                latency          ? "us"
                : mode == "rate" ? "packets/s"
                                 : "MB/s",
                static_cast<unsigned long long>(outcome.lost));
  }
  return 0;
}
