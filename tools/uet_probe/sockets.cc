// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UDP form takes two sockets, since answers come to another port than requests leave from.
#include "sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "uet/wire/be.h"
#include "wire/crc.h"
#include "wire/frame.h"

namespace uet::probe {
namespace {

constexpr std::size_t kRoom = 65536;
constexpr std::size_t kEntropyHeaderBytes = 4;

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

int family_of(const FabricAddress& ip) { return ip.is_ipv6 ? AF_INET6 : AF_INET; }

socklen_t length_of(const FabricAddress& ip) {
  return ip.is_ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

SocketAddress socket_address(const FepAddress& fep) {
  SocketAddress address{};
  if (fep.ip.is_ipv6) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(fep.port);
    std::memcpy(&address.v6.sin6_addr, fep.ip.bytes.data(), 16);
  } else {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(fep.port);
    std::memcpy(&address.v4.sin_addr, fep.ip.bytes.data(), 4);
  }
  return address;
}

FepAddress fep_of(const SocketAddress& address) {
  FepAddress fep;
  fep.ip.is_ipv6 = address.any.sa_family == AF_INET6;
  if (fep.ip.is_ipv6) {
    fep.port = ntohs(address.v6.sin6_port);
    std::memcpy(fep.ip.bytes.data(), &address.v6.sin6_addr, 16);
  } else {
    fep.port = ntohs(address.v4.sin_port);
    std::memcpy(fep.ip.bytes.data(), &address.v4.sin_addr, 4);
  }
  return fep;
}

[[noreturn]] void fail(const std::string& what, const std::string& remedy) {
  throw std::runtime_error(what + ": " + std::strerror(errno) + remedy);
}

class Socket {
 public:
  Socket(int family, int type, int protocol)
      : fd_(::socket(family, type | SOCK_CLOEXEC, protocol)) {
    if (fd_ < 0) {
      fail("cannot open a socket", type == SOCK_RAW ? "; the native form needs CAP_NET_RAW" : "");
    }
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return fd_; }
  void bind(const FepAddress& at, const std::string& remedy) const {
    const SocketAddress address = socket_address(at);
    if (::bind(fd_, &address.any, length_of(at.ip)) == 0) return;
    fail("cannot bind to " + to_text(at.ip) + " port " + std::to_string(at.port), remedy);
  }
  void send(std::span<const std::byte> bytes, const FepAddress& to) const {
    const SocketAddress address = socket_address(to);
    if (::sendto(fd_, bytes.data(), bytes.size(), 0, &address.any, length_of(to.ip)) >= 0) return;
    throw std::system_error(errno, std::generic_category(), "cannot send to " + to_text(to.ip));
  }
  // Cuts `bytes` to what came.
  FepAddress receive(std::vector<std::byte>& bytes) const {
    SocketAddress from{};
    socklen_t length = sizeof from;
    bytes.resize(kRoom);
    const ssize_t received = ::recvfrom(fd_, bytes.data(), bytes.size(), 0, &from.any, &length);
    bytes.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
    return fep_of(from);
  }

 private:
  int fd_;
};

// Waits for a packet at one of two sockets. Returns which, or -1 when the time is over.
int wait_for(int first, int second, std::chrono::steady_clock::time_point end) {
  std::array<pollfd, 2> waiting = {{{.fd = first, .events = POLLIN, .revents = 0},
                                    {.fd = second, .events = POLLIN, .revents = 0}}};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    const int timeout = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    const int ready = ::poll(waiting.data(), second < 0 ? 1 : 2, timeout);
    if (ready == 0) return -1;
    if (ready < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category(), "poll");
    }
    return (waiting[0].revents & POLLIN) != 0 ? 0 : 1;
  }
}

Slice slice_of(const std::vector<std::byte>& bytes) {
  return {bytes.data(), static_cast<std::uint32_t>(bytes.size())};
}

class UdpLine final : public Line {
 public:
  explicit UdpLine(const Ends& ends)
      : ends_(ends),
        listener_(family_of(ends.own), SOCK_DGRAM, 0),
        sender_(family_of(ends.own), SOCK_DGRAM, 0) {
    listener_.bind({ends.own, ends.own_port},
                   "; something else has the port: name another address by --from, or the port "
                   "by which the peer knows this one by --own-port");
    sender_.bind({ends.own, ends.entropy}, "; name another one by --entropy");
  }

  void send(std::span<const std::byte> packet) override {
    std::vector<std::byte> bytes(packet.begin(), packet.end());
    if (ends_.crc) {
      const Slice piece = slice_of(bytes);
      const auto trailer = wire::crc_trailer(
          wire::udp_packet_crc({ends_.own, ends_.entropy}, ends_.peer, {&piece, 1}));
      bytes.insert(bytes.end(), trailer.begin(), trailer.end());
    }
    sender_.send(bytes, ends_.peer);
  }

  std::optional<Heard> receive(std::chrono::milliseconds patience) override {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const int at = wait_for(listener_.get(), sender_.get(), end);
      if (at < 0) return {};
      Heard heard;
      const Socket& socket = at == 0 ? listener_ : sender_;
      const FepAddress from = socket.receive(heard.bytes);
      if (!(from.ip == ends_.peer.ip) || heard.bytes.empty()) continue;
      heard.entropy = from.port;
      heard.at_source_port = at != 0;
      const std::uint16_t port = at == 0 ? ends_.own_port : ends_.entropy;
      if (ends_.crc) heard.crc_wrong = !take_trailer(heard.bytes, from, {ends_.own, port});
      return heard;
    }
  }

  std::uint16_t entropy() const override { return ends_.entropy; }
  std::uint16_t peer_port() const override { return ends_.peer.port; }

 private:
  static bool take_trailer(std::vector<std::byte>& bytes, const FepAddress& from,
                           const FepAddress& to) {
    if (bytes.size() < wire::kCrcTrailerBytes) return false;
    std::array<std::byte, wire::kCrcTrailerBytes> trailer{};
    std::copy(bytes.end() - wire::kCrcTrailerBytes, bytes.end(), trailer.begin());
    bytes.resize(bytes.size() - wire::kCrcTrailerBytes);
    const Slice piece = slice_of(bytes);
    return wire::crc_trailer(wire::udp_packet_crc(from, to, {&piece, 1})) == trailer;
  }

  const Ends ends_;
  Socket listener_;
  Socket sender_;
};

class NativeLine final : public Line {
 public:
  NativeLine(const Ends& ends, std::uint8_t protocol)
      : ends_(ends), socket_(family_of(ends.own), SOCK_RAW, protocol) {
    socket_.bind({ends.own, 0}, "");
  }

  void send(std::span<const std::byte> packet) override {
    std::vector<std::byte> bytes(kEntropyHeaderBytes);
    bytes[0] = static_cast<std::byte>(ends_.entropy >> 8);
    bytes[1] = static_cast<std::byte>(ends_.entropy);
    bytes.insert(bytes.end(), packet.begin(), packet.end());
    if (ends_.crc) {
      const auto trailer = wire::crc_trailer(crc_of(ends_.own, ends_.peer.ip, bytes));
      bytes.insert(bytes.end(), trailer.begin(), trailer.end());
    }
    socket_.send(bytes, {ends_.peer.ip, 0});
  }

  std::optional<Heard> receive(std::chrono::milliseconds patience) override {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      if (wait_for(socket_.get(), -1, end) < 0) return {};
      std::vector<std::byte> bytes;
      const FepAddress from = socket_.receive(bytes);
      if (!(from.ip == ends_.peer.ip)) continue;
      // IPv4 comes with its header.
      if (!ends_.own.is_ipv6) {
        const std::size_t header =
            bytes.empty() ? 0 : (std::to_integer<std::size_t>(bytes[0]) & 0xF) * 4;
        if (bytes.size() < header) continue;
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
      }
      if (bytes.size() < kEntropyHeaderBytes) continue;
      Heard heard;
      heard.entropy = static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[0]) << 8 |
                                                 std::to_integer<unsigned>(bytes[1]));
      if (ends_.crc) heard.crc_wrong = !take_trailer(bytes);
      if (bytes.size() < kEntropyHeaderBytes) continue;
      heard.bytes.assign(bytes.begin() + kEntropyHeaderBytes, bytes.end());
      return heard;
    }
  }

  std::uint16_t entropy() const override { return ends_.entropy; }
  std::uint16_t peer_port() const override { return 0; }

 private:
  static std::uint32_t crc_of(const FabricAddress& from, const FabricAddress& to,
                              std::span<const std::byte> bytes) {
    const std::size_t length = from.is_ipv6 ? 16 : 4;
    std::uint32_t crc = 0;
    for (const FabricAddress* ip : {&from, &to}) {
      crc = wire::crc32c(std::as_bytes(std::span(ip->bytes).first(length)), crc);
    }
    return wire::crc32c(bytes, crc);
  }
  bool take_trailer(std::vector<std::byte>& bytes) const {
    if (bytes.size() < kEntropyHeaderBytes + wire::kCrcTrailerBytes) return false;
    std::array<std::byte, wire::kCrcTrailerBytes> trailer{};
    std::copy(bytes.end() - wire::kCrcTrailerBytes, bytes.end(), trailer.begin());
    bytes.resize(bytes.size() - wire::kCrcTrailerBytes);
    return wire::crc_trailer(crc_of(ends_.peer.ip, ends_.own, bytes)) == trailer;
  }

  const Ends ends_;
  Socket socket_;
};

}  // namespace

std::unique_ptr<Line> open_udp(const Ends& ends) { return std::make_unique<UdpLine>(ends); }

std::unique_ptr<Line> open_native(const Ends& ends, std::uint8_t protocol) {
  return std::make_unique<NativeLine>(ends, protocol);
}

FabricAddress local_address_to(const FabricAddress& peer) {
  const Socket socket(family_of(peer), SOCK_DGRAM, 0);
  const SocketAddress to = socket_address({peer, kUetUdpPort});
  SocketAddress from{};
  socklen_t length = sizeof from;
  if (::connect(socket.get(), &to.any, length_of(peer)) != 0 ||
      ::getsockname(socket.get(), &from.any, &length) != 0) {
    fail("no way to " + to_text(peer), "");
  }
  return fep_of(from).ip;
}

FabricAddress resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    throw std::runtime_error("cannot resolve " + host + ": " + ::gai_strerror(error));
  }
  SocketAddress address{};
  std::memcpy(&address, found->ai_addr, std::min<std::size_t>(found->ai_addrlen, sizeof address));
  ::freeaddrinfo(found);
  return fep_of(address).ip;
}

std::string to_text(const FabricAddress& ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family_of(ip), ip.bytes.data(), text.data(), text.size());
  return text.data();
}

}  // namespace uet::probe
