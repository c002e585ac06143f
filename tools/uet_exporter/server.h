// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Answers GET /metrics over HTTP (libmicrohttpd), and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

struct MHD_Daemon;

namespace uet::exporter {

class Server {
 public:
  // Serves until it is destroyed, from a thread of its own in which `text` is called. `address`: an
  // IP address; port 0: any. Throws std::runtime_error with the reason.
  Server(const std::string& address, std::uint16_t port, std::function<std::string()> text);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  std::uint16_t port() const;

 private:
  std::function<std::string()> text_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace uet::exporter
