// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ceiling of a back end: a bare loop of tx_burst and rx_burst with packets as UET's are,
// without any protocol above. scripts/bench_nic puts the provider's figures beside it.
//
// Use: uet_raw_path server|client MODE NIC ADDRESS PEER BYTES SECONDS
//   MODE: latency (half round trip in us), bandwidth (MB/s of payload), rate (packets/s)
//   NIC: as FI_UET_NIC; modules lie in the directory UET_MODULES. BYTES: payload of a packet.
// The client prints "result: NUMBER UNIT lost=N". In the streams the server answers every
// kAnswerEvery-th packet, and no more than kWindow are on their way.
#include <arpa/inet.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "uet/nic/registry.h"

namespace {

using uet::nic::kRxBurst;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kHeaderBytes = 72;  // PDS and SES headers of a tagged send, about
constexpr std::uint64_t kWindow = 64;
constexpr std::uint64_t kAnswerEvery = 16;
constexpr std::chrono::milliseconds kLostAfter{20};
constexpr std::chrono::seconds kServerPatience{3};

enum class Kind : std::uint64_t { Data, Answer, End };

struct Message {
  Kind kind = Kind::Data;
  std::uint64_t number = 0;  // Data: its own; Answer: how many have arrived
};

uet::FabricAddress address_of(const char* text) {
  uet::FabricAddress ip;
  if (::inet_pton(AF_INET, text, ip.bytes.data()) != 1) {
    std::fprintf(stderr, "%s is no IPv4 address\n", text);
    std::exit(2);
  }
  return ip;
}

uet::Time now() {
  return uet::Time(std::chrono::duration_cast<uet::Duration>(Clock::now().time_since_epoch()));
}

class Path {
 public:
  Path(std::unique_ptr<uet::nic::Nic> nic, uet::FepAddress peer, std::size_t bytes)
      : nic_(std::move(nic)), peer_(peer), payload_(bytes, std::byte{0x5A}) {
    for (auto& packet : packets_) packet = std::make_unique<uet::Packet>();
  }

  // Waits for room: one packet, or as many as fit one burst.
  void send(std::span<const Message> messages, bool with_payload) {
    std::array<const uet::Packet*, uet::nic::kTxBurst> burst;
    const std::size_t count = std::min(messages.size(), burst.size());
    for (std::size_t i = 0; i < count; ++i) {
      uet::Packet& packet = *packets_[i];
      packet.reset();
      std::byte* head = packet.append(kHeaderBytes);
      std::memset(head, 0, kHeaderBytes);
      std::memcpy(head, &messages[i], sizeof(Message));
      packet.to = peer_;
      packet.payload_stays = true;
      const auto length = static_cast<std::uint32_t>(with_payload ? payload_.size() : 0);
      packet.payload[0] = {payload_.data(), length};
      burst[i] = &packet;
    }
    for (std::size_t done = 0; done < count;) {
      const std::size_t sent = nic_->tx_burst(std::span(burst).subspan(done, count - done));
      done += sent;
      if (sent == 0) ::sched_yield();
    }
  }

  template <class Take>
  void receive(Take take) {
    const std::size_t count = nic_->rx_burst(arrived_, now());
    for (const uet::RxPacket& packet : std::span(arrived_).first(count)) {
      if (packet.bytes.size() < kHeaderBytes) continue;
      Message message;
      std::memcpy(&message, packet.bytes.data(), sizeof message);
      take(message);
    }
    if (count == 0) ::sched_yield();
  }
  const std::vector<std::byte>& payload() const { return payload_; }
  uet::nic::Nic& nic() { return *nic_; }

 private:
  std::unique_ptr<uet::nic::Nic> nic_;
  uet::FepAddress peer_;
  std::vector<std::byte> payload_;
  std::array<std::unique_ptr<uet::Packet>, uet::nic::kTxBurst> packets_;
  std::array<uet::RxPacket, kRxBurst> arrived_;
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
  std::array<Message, uet::nic::kTxBurst> burst;
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
                 "use: uet_raw_path server|client latency|bandwidth|rate NIC ADDRESS PEER BYTES "
                 "SECONDS\n");
    return 2;
  }
  const std::string mode = argv[2];
  const bool latency = mode == "latency";
  uet::nic::NicConfig config;
  if (!uet::nic::set_back_end(config, argv[3])) return 2;
  const char* modules = std::getenv("UET_MODULES");
  config.modules = modules != nullptr ? modules : "";
  config.ip = address_of(argv[4]);
  std::string message;
  auto nic = uet::nic::open_nic(config, message);
  if (!nic) {
    std::fprintf(stderr, "%s\n", message.c_str());
    return 1;
  }
  const auto bytes = static_cast<std::size_t>(std::strtoul(argv[6], nullptr, 10));
  const double seconds = std::strtod(argv[7], nullptr);
  Path path(std::move(nic).value(), {address_of(argv[5]), uet::kUetUdpPort}, bytes);
  const std::uint64_t region = path.nic().register_memory(path.payload());
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
  if (region != 0) path.nic().forget_memory(region);
  return 0;
}
