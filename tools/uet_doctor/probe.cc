// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>
#include <vector>

namespace uet::doctor {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kFirstPort = 4793;
constexpr std::uint16_t kLastPort = 5816;
constexpr std::uint32_t kMagic = 0x55455450;  // "UETP"; its first byte is no type of PDS
constexpr std::size_t kLargestTested = 9000;
constexpr std::size_t kLeastTested = 576;
constexpr int kBursts = 30;
constexpr int kBurst = 10;
constexpr milliseconds kPatience{300};
constexpr std::uint8_t kEct0 = 2;
constexpr std::uint8_t kCe = 3;
constexpr std::uint8_t kDscp = 46 << 2;

// The header of a probe; zeros up to its length follow.
struct Probe {
  std::uint32_t magic = kMagic;
  std::uint32_t number = 0;
  std::uint8_t tos_there = 0;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address parse(const std::string& host, std::uint16_t port) {
  Address address;
  auto* const in = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const in6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &in->sin_addr) == 1) {
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    address.length = sizeof *in;
  } else if (::inet_pton(AF_INET6, host.c_str(), &in6->sin6_addr) == 1) {
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    address.length = sizeof *in6;
  } else {
    throw std::runtime_error(host + " is not a numeric address");
  }
  return address;
}

void set(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

// A datagram with its TOS or traffic class, which the kernel hands over beside it.
struct Datagram {
  std::array<std::byte, kLargestTested + 64> bytes;
  std::size_t length = 0;
  Address from;
  std::uint8_t tos = 0;
};

bool receive_datagram(int fd, Datagram& datagram) {
  std::array<std::byte, 64> control;
  iovec data{datagram.bytes.data(), datagram.bytes.size()};
  msghdr header{};
  header.msg_name = &datagram.from.storage;
  header.msg_namelen = sizeof datagram.from.storage;
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t length = ::recvmsg(fd, &header, MSG_DONTWAIT);
  if (length < static_cast<ssize_t>(sizeof(Probe))) return false;
  datagram.length = static_cast<std::size_t>(length);
  datagram.from.length = header.msg_namelen;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    const bool tos = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS;
    const bool tclass = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS;
    if (tos || tclass) std::memcpy(&datagram.tos, CMSG_DATA(c), 1);
  }
  Probe probe;
  std::memcpy(&probe, datagram.bytes.data(), sizeof probe);
  return probe.magic == kMagic;
}

}  // namespace

ProbeSocket::ProbeSocket(const std::string& host) {
  for (port_ = kFirstPort; fd_ < 0; ++port_) {
    if (port_ > kLastPort)
      throw std::runtime_error("no free UDP port from 4793 to 5816 at " + host);
    Address address = parse(host, port_);
    ipv6_ = address.storage.ss_family == AF_INET6;
    fd_ = ::socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (::bind(fd_, address.any(), address.length) == 0) break;
    const int error = errno;
    ::close(fd_);
    fd_ = -1;
    if (error != EADDRINUSE) {
      throw std::runtime_error("binding a UDP socket to " + host + ": " + std::strerror(error));
    }
  }
  if (ipv6_) {
    set(fd_, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set(fd_, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  } else {
    set(fd_, IPPROTO_IP, IP_RECVTOS, 1);
    set(fd_, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  }
}

ProbeSocket::~ProbeSocket() {
  if (fd_ >= 0) ::close(fd_);
}

void ProbeSocket::answer(const std::function<bool()>& done) {
  Datagram datagram;
  while (!done()) {
    pollfd ready{fd_, POLLIN, 0};
    ::poll(&ready, 1, 20);
    while (receive_datagram(fd_, datagram)) {
      Probe probe;
      std::memcpy(&probe, datagram.bytes.data(), sizeof probe);
      probe.tos_there = datagram.tos;
      std::memcpy(datagram.bytes.data(), &probe, sizeof probe);
      set(fd_, ipv6_ ? IPPROTO_IPV6 : IPPROTO_IP, ipv6_ ? IPV6_TCLASS : IP_TOS, datagram.tos);
      ::sendto(fd_, datagram.bytes.data(), datagram.length, 0, datagram.from.any(),
               datagram.from.length);
    }
  }
}

void ProbeSocket::connect_to(const std::string& host, std::uint16_t port) {
  Address address = parse(host, port);
  if (::connect(fd_, address.any(), address.length) != 0) {
    throw std::runtime_error("UDP to " + host + ": " + std::strerror(errno));
  }
}

bool ProbeSocket::send(std::uint32_t number, std::uint8_t tos, std::size_t ip_bytes) {
  std::vector<std::byte> bytes(std::max(ip_bytes, header_bytes() + sizeof(Probe)) - header_bytes());
  Probe probe;
  probe.number = number;
  std::memcpy(bytes.data(), &probe, sizeof probe);
  set(fd_, ipv6_ ? IPPROTO_IPV6 : IPPROTO_IP, ipv6_ ? IPV6_TCLASS : IP_TOS, tos);
  // The socket may first tell that an earlier probe was refused (ECONNREFUSED).
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (::send(fd_, bytes.data(), bytes.size(), 0) >= 0) return true;
    if (errno == EMSGSIZE) return false;
  }
  return true;
}

std::optional<ProbeSocket::Arrival> ProbeSocket::receive(milliseconds patience) {
  Datagram datagram;
  const auto end = Clock::now() + patience;
  do {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    pollfd ready{fd_, POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (!receive_datagram(fd_, datagram)) continue;
    Probe probe;
    std::memcpy(&probe, datagram.bytes.data(), sizeof probe);
    return Arrival{probe.number, probe.tos_there, datagram.tos};
  } while (Clock::now() < end);
  return std::nullopt;
}

// A busy end may answer late: what comes during a later burst, or after the last, is not lost.
void ProbeSocket::examine_loss(ProbeResult& result) {
  std::set<std::uint32_t> missing;
  int silent_bursts = 0;
  const auto wait_for = [&](std::uint32_t first) {
    const std::size_t before = missing.size();
    const auto start = Clock::now();
    while (missing.lower_bound(first) != missing.end()) {
      const auto arrival = receive(kPatience);
      if (!arrival) break;
      missing.erase(arrival->number);
      slowest_ = std::max(slowest_, std::chrono::ceil<milliseconds>(Clock::now() - start));
    }
    return missing.size() < before;
  };
  for (int burst = 0; burst < kBursts && silent_bursts < 3; ++burst) {
    const std::uint32_t first = next_number_;
    for (int i = 0; i < kBurst; ++i) {
      missing.insert(next_number_);
      send(next_number_++, kEct0, 0);
    }
    result.sent += kBurst;
    silent_bursts = wait_for(first) ? 0 : silent_bursts + 1;
  }
  wait_for(0);
  result.answered = result.sent - static_cast<int>(missing.size());
}

void ProbeSocket::examine_ecn(ProbeResult& result) {
  for (const std::uint8_t ecn : {kEct0, kCe}) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      const std::uint32_t number = next_number_++;
      send(number, kDscp | ecn, 0);
      auto arrival = receive(kPatience);
      while (arrival && arrival->number != number) arrival = receive(kPatience);
      if (!arrival) continue;
      const bool arrives = (arrival->tos_there & 3) == ecn;
      const bool returns = arrives && (arrival->tos_here & 3) == ecn;
      (ecn == kCe ? result.ce_arrives : result.ect_arrives) = arrives;
      (ecn == kCe ? result.ce_returns : result.ect_returns) = returns;
      result.dscp_kept = (arrival->tos_there & ~3) == kDscp && (arrival->tos_here & ~3) == kDscp;
      break;
    }
  }
}

bool ProbeSocket::passes(std::size_t ip_bytes) {
  const milliseconds patience = std::clamp(4 * slowest_, milliseconds(50), kPatience);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::uint32_t number = next_number_++;
    if (!send(number, 0, ip_bytes)) return false;
    auto arrival = receive(patience);
    while (arrival && arrival->number != number) arrival = receive(patience);
    if (arrival) return true;
  }
  return false;
}

void ProbeSocket::examine_mtu(ProbeResult& result) {
  int mtu = 0;
  socklen_t length = sizeof mtu;
  ::getsockopt(fd_, ipv6_ ? IPPROTO_IPV6 : IPPROTO_IP, ipv6_ ? IPV6_MTU : IP_MTU, &mtu, &length);
  result.wished_bytes = std::min(kLargestTested, static_cast<std::size_t>(std::max(mtu, 0)));
  if (passes(result.wished_bytes)) {
    result.passed_bytes = result.wished_bytes;
    return;
  }
  std::size_t low = kLeastTested - 1;  // passes, as far as known; `high` does not
  std::size_t high = result.wished_bytes;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (passes(middle) ? low : high) = middle;
  }
  result.passed_bytes = low < kLeastTested ? 0 : low;
}

ProbeResult ProbeSocket::examine(const std::string& host, std::uint16_t port) {
  connect_to(host, port);
  ProbeResult result;
  examine_loss(result);
  if (result.answered == 0) return result;
  examine_ecn(result);
  examine_mtu(result);
  return result;
}

}  // namespace uet::doctor
