// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the tests of same-host rings share.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>

#include <functional>

#include "nic/local.h"
#include "nic_testing.h"

namespace uet::nic {

inline constexpr Duration kStep = std::chrono::milliseconds(1);

// A NIC whose network goes nowhere, with rings around it.
struct Host {
  explicit Host(std::uint16_t port, std::size_t ring_bytes = kMinRingBytes,
                std::optional<std::uint32_t> sdi = {})
      : address{own_loopback_address(), port} {
    auto inner = std::make_unique<FakeNic>(address);
    below = inner.get();
    std::unique_ptr<Nic> lower = std::move(inner);
    std::string message;
    auto wrapped = LocalNic::wrap(lower, ring_bytes, message, sdi);
    if (wrapped) nic = std::move(wrapped).value();
    error = message;
  }
  std::size_t send(const PacketSet& packets) { return nic->tx_burst(packets.all()); }
  // All that is there after a few passes.
  std::vector<Arrival> receive() {
    std::vector<Arrival> all;
    std::array<RxPacket, kRxBurst> out;
    for (int pass = 0; pass < 3; ++pass) {
      const std::size_t count = nic->rx_burst(out, now += kStep);
      for (std::size_t i = 0; i < count; ++i) all.emplace_back(out[i]);
    }
    return all;
  }
  std::optional<FepAddress> lost_address() {
    const auto lost = nic->poll_dead_peer();
    return lost ? std::optional(lost->address) : std::nullopt;
  }
  bool readable(int timeout_ms = 0) const {
    pollfd fd{.fd = nic->wait_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&fd, 1, timeout_ms) == 1;
  }

  FepAddress address;
  FakeNic* below = nullptr;
  std::unique_ptr<LocalNic> nic;
  std::string error;
  Time now{};
};

// Closes what is left of it.
struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    in = FileDescriptor(ends[0]);
    out = FileDescriptor(ends[1]);
  }
  FileDescriptor in;   // to read from
  FileDescriptor out;  // to write to
};

// Runs `role` in a child process; returns its process id.
inline pid_t start(const std::function<void()>& role) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    role();
    ::_exit(0);
  }
  return child;
}

}  // namespace uet::nic
