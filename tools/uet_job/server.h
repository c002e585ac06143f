// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The master of a job: takes the connections of its ranks and does their all-gathers. Bounded:
// connections without the token get one small buffer for a few seconds. Never blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace uet::job {

class Server {
 public:
  static constexpr std::size_t kMostStrangers = 64;
  static constexpr std::chrono::seconds kHelloPatience{10};

  // Listens at a port that the kernel chooses, of all addresses or of loopback alone. Throws
  // std::system_error.
  Server(std::uint32_t size, std::string token, bool loopback_only);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  // Readable when run() has something to do; run() also wants a call each second.
  int fd() const { return epoll_; }
  void run();
  // The first rank that has left after it had joined.
  std::optional<std::uint32_t> deserter() const { return deserter_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Text = std::shared_ptr<const std::string>;
  static constexpr std::uint32_t kStranger = UINT32_MAX;

  struct Connection {
    std::uint32_t rank = kStranger;
    Clock::time_point since;
    std::string in;
    std::deque<Text> out;
    std::size_t out_at = 0;  // of the first text: bytes that are sent
    bool closing = false;    // when all is sent
  };

  void take_connections();
  void drop_late_strangers();
  // False: the connection is over.
  bool read_from(int fd, Connection& connection);
  bool write_to(int fd, Connection& connection);
  bool take_input(int fd, Connection& connection);
  bool greet(int fd, Connection& connection);
  void send(int fd, Connection& connection, Text text);
  void take_blob(int fd, std::uint32_t rank, std::string blob);
  void finish_round();
  void tell_all_waiting(const Text& text);
  void end(int fd);
  Text desertion() const;

  std::uint32_t size_;
  std::string token_;
  int listener_ = -1;
  int epoll_ = -1;
  std::uint16_t port_ = 0;
  std::map<int, Connection> connections_;
  std::size_t strangers_ = 0;
  std::vector<int> ranks_;          // descriptor by rank, -1: none
  std::vector<std::string> blobs_;  // of this round, by rank
  std::vector<bool> waiting_;       // which ranks have given theirs
  std::uint32_t waiting_count_ = 0;
  std::optional<std::uint32_t> deserter_;
};

}  // namespace uet::job
