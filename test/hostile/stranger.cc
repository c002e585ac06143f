// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See stranger.h.
#include "stranger.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "wire/parse.h"

namespace uet::hostile {

namespace {

constexpr std::uint16_t kUetPort = 4793;
constexpr std::uint64_t kBatch = 16;  // packets between two looks at the clock

int open_socket(int type, int protocol) {
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
  return fd;
}

}  // namespace

Bytes semantics(const wire::SesRequest& request, std::size_t payload) {
  Bytes bytes(wire::kMaxSesHeaderBytes);
  bytes.resize(request.encode(bytes.data()));
  bytes.resize(bytes.size() + payload, std::byte{0x5A});
  return bytes;
}

// The line of eth0 in /proc/net/dev: 8 numbers of what came, then of what was sent.
FrameBytes frame_bytes() {
  std::ifstream devices("/proc/self/net/dev");
  for (std::string line; std::getline(devices, line);) {
    const std::size_t name = line.find("eth0:");
    if (name == std::string::npos) continue;
    std::istringstream numbers(line.substr(name + 5));
    FrameBytes bytes;
    numbers >> bytes.came;
    for (std::uint64_t skipped = 0, i = 0; i < 7; ++i) numbers >> skipped;
    numbers >> bytes.sent;
    return bytes;
  }
  throw std::runtime_error("this host has no eth0");
}

Stranger::Stranger(const Knowledge& knowledge, double packets_per_second)
    : known_(knowledge),
      interval_(1 / packets_per_second),
      own_socket_(open_socket(SOCK_DGRAM, 0)),
      raw_socket_(open_socket(SOCK_RAW, IPPROTO_RAW)) {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr = known_.own;
  own.sin_port = htons(kUetPort);
  if (::bind(own_socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
    throw std::runtime_error("the stranger's UET port is taken");
  }
}

Stranger::~Stranger() {
  ::close(own_socket_);
  ::close(raw_socket_);
}

void Stranger::begin() {
  begin_ = std::chrono::steady_clock::now();
  sent_ = 0;
}

void Stranger::wait_for_turn() {
  if (++sent_ % kBatch != 0) return;
  const std::chrono::duration<double> due(static_cast<double>(sent_) * interval_);
  const auto turn = begin_ + std::chrono::duration_cast<std::chrono::nanoseconds>(due);
  std::this_thread::sleep_until(turn);
}

void Stranger::send(const Bytes& bytes) {
  ::sendto(own_socket_, bytes.data(), bytes.size(), MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&known_.victim), sizeof known_.victim);
  wait_for_turn();
}

void Stranger::send_as(const sockaddr_in& from, const sockaddr_in& to, const Bytes& bytes) {
  Bytes frame(sizeof(iphdr) + sizeof(udphdr));
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.saddr = from.sin_addr.s_addr;
  ip.daddr = to.sin_addr.s_addr;
  ip.tot_len = htons(static_cast<std::uint16_t>(frame.size() + bytes.size()));
  udphdr udp{};
  udp.source = from.sin_port;
  udp.dest = to.sin_port;
  udp.len = htons(static_cast<std::uint16_t>(sizeof udp + bytes.size()));
  std::memcpy(frame.data(), &ip, sizeof ip);
  std::memcpy(frame.data() + sizeof ip, &udp, sizeof udp);
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  ::sendto(raw_socket_, frame.data(), frame.size(), MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&to), sizeof to);
  wait_for_turn();
}

sockaddr_in Stranger::invented() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x0A640000U | static_cast<std::uint32_t>(draw() & 0x3FFFF));
  address.sin_port = htons(kUetPort);
  return address;
}

std::optional<StrangerPdc> Stranger::open(PdcId own, bool rod) {
  const Psn start{static_cast<std::uint32_t>(draw()) | 0x10000U};
  wire::ControlHeader noop;
  noop.isrod = rod;
  noop.syn = true;
  noop.ar = true;
  noop.psn = start;
  noop.spdcid = own;
  const auto ack = ack_of(packet(noop), own);
  if (!ack) return {};
  return StrangerPdc{own, ack->spdcid, start};
}

std::optional<wire::AckHeader> Stranger::ack_of(const Bytes& bytes, PdcId own) {
  discard_answers();
  for (int i = 0; i < 10; ++i) {
    send(bytes);
    pollfd waiting{own_socket_, POLLIN, 0};
    while (::poll(&waiting, 1, 100) > 0) {
      std::byte buffer[2048];
      const ssize_t length = ::recv(own_socket_, buffer, sizeof buffer, 0);
      if (length <= 0) break;
      const auto answer = wire::parse(std::span(buffer, static_cast<std::size_t>(length)));
      const auto* ack = answer ? std::get_if<wire::AckHeader>(&answer->header) : nullptr;
      if (ack != nullptr && ack->dpdcid == own) return *ack;
    }
  }
  return {};
}

void Stranger::discard_answers() {
  std::byte buffer[64];
  while (::recv(own_socket_, buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC) >= 0) {
  }
}

}  // namespace uet::hostile
