// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Plain UDP packets to the other end and back, on a port of uet's range: what the path does to
// them before any transport has a say. The other end returns each as it came.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace uet::doctor {

// The result of the probes.
struct ProbeResult {
  int sent = 0;
  int answered = 0;
  bool ect_arrives = false;  // ECN-capable packets reach the other end as such
  bool ect_returns = false;  // and come back as such
  bool ce_arrives = false;   // packets that are marked as congestion was met
  bool ce_returns = false;
  bool dscp_kept = false;        // both ways
  std::size_t wished_bytes = 0;  // largest IP packet that the local interface sends
  std::size_t passed_bytes = 0;  // largest that came through both ways
};

class ProbeSocket {
 public:
  // Binds to the first free UDP port of uet's range at `host`, a numeric address.
  explicit ProbeSocket(const std::string& host);
  ~ProbeSocket();
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;

  std::uint16_t port() const { return port_; }
  // Returns every probe to its sender until `done`.
  void answer(const std::function<bool()>& done);
  // Sends probes to `host`, a numeric address, and waits for their return; a few seconds at most.
  ProbeResult examine(const std::string& host, std::uint16_t port);

 private:
  struct Arrival {
    std::uint32_t number = 0;
    std::uint8_t tos_there = 0;  // as the other end saw it
    std::uint8_t tos_here = 0;
  };
  void connect_to(const std::string& host, std::uint16_t port);
  // `ip_bytes`: length with IP and UDP headers. False: too long for the interface.
  bool send(std::uint32_t number, std::uint8_t tos, std::size_t ip_bytes);
  std::optional<Arrival> receive(std::chrono::milliseconds patience);
  void examine_loss(ProbeResult& result);
  void examine_ecn(ProbeResult& result);
  void examine_mtu(ProbeResult& result);
  // Sends up to three times; true if one comes back.
  bool passes(std::size_t ip_bytes);
  std::size_t header_bytes() const { return ipv6_ ? 48 : 28; }

  int fd_ = -1;
  bool ipv6_ = false;
  std::uint16_t port_ = 0;
  std::uint32_t next_number_ = 1;
  std::chrono::milliseconds slowest_{0};  // answer so far
};

}  // namespace uet::doctor
