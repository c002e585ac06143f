// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_job/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "uet_job/frames.h"

namespace uet::job {
namespace {

void require(bool good, const char* call) {
  if (!good) throw std::system_error(errno, std::generic_category(), call);
}

}  // namespace

Server::Server(std::uint32_t size, std::string token, bool loopback_only)
    : size_(size), token_(std::move(token)), ranks_(size, -1), blobs_(size), waiting_(size) {
  constexpr int kOn = 1;
  constexpr int kOff = 0;
  sockaddr_in6 own{};
  sockaddr_in own4{};
  // Of IPv6, which takes IPv4 too; where the kernel has none, of IPv4.
  listener_ = loopback_only ? -1 : socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool six = listener_ >= 0;
  if (!six) listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  require(listener_ >= 0, "socket");
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  require(epoll_ >= 0, "epoll_create1");
  if (six) {
    setsockopt(listener_, IPPROTO_IPV6, IPV6_V6ONLY, &kOff, sizeof kOff);
    own.sin6_family = AF_INET6;
    require(bind(listener_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0, "bind");
  } else {
    own4.sin_family = AF_INET;
    own4.sin_addr.s_addr = htonl(loopback_only ? INADDR_LOOPBACK : INADDR_ANY);
    require(bind(listener_, reinterpret_cast<const sockaddr*>(&own4), sizeof own4) == 0, "bind");
  }
  require(listen(listener_, SOMAXCONN) == 0, "listen");
  setsockopt(listener_, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  require(getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &length) == 0, "getsockname");
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener_}};
  require(epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event) == 0, "epoll_ctl");
}

Server::~Server() {
  for (const auto& [fd, connection] : connections_) close(fd);
  if (epoll_ >= 0) close(epoll_);
  if (listener_ >= 0) close(listener_);
}

void Server::run() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_, events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == listener_) {
      take_connections();
      continue;
    }
    const auto found = connections_.find(fd);
    if (found == connections_.end()) continue;
    const std::uint32_t what = events[static_cast<std::size_t>(i)].events;
    bool lives = true;
    if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) lives = read_from(fd, found->second);
    if (lives && (what & EPOLLOUT) != 0) lives = write_to(fd, found->second);
    if (!lives) end(fd);
  }
  drop_late_strangers();
}

void Server::take_connections() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (strangers_ >= kMostStrangers || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
      close(fd);  // a rank tries again
      continue;
    }
    connections_[fd].since = Clock::now();
    ++strangers_;
  }
}

void Server::drop_late_strangers() {
  if (strangers_ == 0) return;
  std::vector<int> late;
  for (const auto& [fd, connection] : connections_) {
    if (connection.rank == kStranger && Clock::now() - connection.since > kHelloPatience) {
      late.push_back(fd);
    }
  }
  for (const int fd : late) end(fd);
}

bool Server::read_from(int fd, Connection& connection) {
  std::array<char, 65536> block;
  const std::size_t room = connection.rank == kStranger
                               ? kHelloBytes - std::min(connection.in.size(), kHelloBytes - 1)
                               : block.size();
  const ssize_t got = recv(fd, block.data(), room, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  if (connection.closing) return true;
  connection.in.append(block.data(), static_cast<std::size_t>(got));
  return take_input(fd, connection);
}

bool Server::take_input(int fd, Connection& connection) {
  if (connection.rank == kStranger) {
    return connection.in.size() < kHelloBytes || greet(fd, connection);
  }
  std::string& in = connection.in;
  while (in.size() >= kFrameBytes) {
    const std::size_t bytes = get32(in.data() + 4);
    if (in[0] != static_cast<char>(Kind::Blob) || bytes > kMostBlobBytes) return false;
    if (in.size() < kFrameBytes + bytes) break;
    if (waiting_[connection.rank]) return false;  // answers its own question
    std::string blob = in.substr(kFrameBytes, bytes);
    in.erase(0, kFrameBytes + bytes);
    take_blob(fd, connection.rank, std::move(blob));
  }
  return true;
}

bool Server::greet(int fd, Connection& connection) {
  const std::string_view in = connection.in;
  const std::uint32_t rank = get32(in.data() + kMagic.size());
  const char* problem = nullptr;
  if (!in.starts_with(kMagic)) return false;
  if (!same_token(in.substr(kMagic.size() + 4, kTokenDigits), token_)) {
    problem = "the token is wrong";
  } else if (rank >= size_) {
    problem = "there is no such rank";
  } else if (ranks_[rank] >= 0) {
    problem = "the rank has joined already";
  }
  if (problem != nullptr) {
    connection.closing = true;
    send(fd, connection, std::make_shared<const std::string>(frame(Kind::Refusal, problem)));
    return true;
  }
  connection.in.clear();
  connection.rank = rank;
  --strangers_;
  ranks_[rank] = fd;
  send(fd, connection, std::make_shared<const std::string>(frame(Kind::Welcome, {})));
  return true;
}

void Server::send(int fd, Connection& connection, Text text) {
  connection.out.push_back(std::move(text));
  epoll_event event{.events = EPOLLIN | EPOLLOUT, .data = {.fd = fd}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

bool Server::write_to(int fd, Connection& connection) {
  while (!connection.out.empty()) {
    const std::string& text = *connection.out.front();
    const ssize_t sent =
        ::send(fd, text.data() + connection.out_at, text.size() - connection.out_at, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection.out_at += static_cast<std::size_t>(sent);
    if (connection.out_at < text.size()) return true;
    connection.out.pop_front();
    connection.out_at = 0;
  }
  if (connection.closing) return false;
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
  return true;
}

void Server::take_blob(int fd, std::uint32_t rank, std::string blob) {
  if (deserter_) {
    send(fd, connections_[fd], desertion());
    return;
  }
  blobs_[rank] = std::move(blob);
  waiting_[rank] = true;
  if (++waiting_count_ == size_) finish_round();
}

void Server::finish_round() {
  const std::size_t bytes = blobs_[0].size();
  bool equal = bytes * size_ <= kMostTableBytes;
  for (const std::string& blob : blobs_) equal = equal && blob.size() == bytes;
  std::string text = frame_header(equal ? Kind::Table : Kind::Unequal, equal ? bytes * size_ : 0);
  if (equal) {
    for (const std::string& blob : blobs_) text += blob;
  }
  tell_all_waiting(std::make_shared<const std::string>(std::move(text)));
}

void Server::tell_all_waiting(const Text& text) {
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (!waiting_[rank]) continue;
    waiting_[rank] = false;
    blobs_[rank] = {};
    send(ranks_[rank], connections_[ranks_[rank]], text);
  }
  waiting_count_ = 0;
}

void Server::end(int fd) {
  const std::uint32_t rank = connections_[fd].rank;
  connections_.erase(fd);
  close(fd);
  if (rank == kStranger) {
    --strangers_;
    return;
  }
  // Its place stays taken: a later connection with its number is not that rank.
  if (waiting_[rank]) --waiting_count_;
  waiting_[rank] = false;
  if (!deserter_) deserter_ = rank;
  tell_all_waiting(desertion());
}

Server::Text Server::desertion() const {
  return std::make_shared<const std::string>(
      frame(Kind::Deserted, "rank " + std::to_string(*deserter_) + " has left the job"));
}

}  // namespace uet::job
