// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The addresses at which no process has a socket, as the kernel reports them for packets of a UDP
// socket (ICMP port unreachable). A report is a hint: another host can forge one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "uet/base/address.h"

namespace uet::nic {

class UdpRefusals {
 public:
  // Addresses that wait for take(); further ones are forgotten.
  static constexpr std::size_t kMost = 64;

  // Asks the kernel for reports about packets of the socket (IP_RECVERR). From then on a call on
  // the socket may fail with the errno of a report, once for each, and read() has to follow.
  // False: the kernel refuses.
  bool watch(int fd, bool is_ipv6);
  bool watching() const { return watching_; }
  // Reads all reports, and the kernel's own errors. `via`: that of the socket. True: a host had
  // sent one.
  bool read(int fd, std::uint8_t via = 0);
  // The oldest address, once.
  std::optional<FepAddress> take();

 private:
  bool watching_ = false;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::array<FepAddress, kMost> addresses_{};
};

}  // namespace uet::nic
