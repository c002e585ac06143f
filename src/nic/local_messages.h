// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages with which the sender and the receiver of a ring begin (local.h). They are
// structures of this host's byte order, and other versions of this library read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace uet::nic {

// The protocol version of a peer: the sender of a direction wakes a receiver that sleeps by a
// message through the socket. Sending this message never blocks, whatever the receiver does.
inline constexpr std::uint8_t kWakesThroughSocket = 1;

// The first message of the sender of a direction, with the memory's descriptor.
struct LocalOffer {
  std::uint64_t ring_bytes = 0;
  std::uint64_t instance = 0;
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;
  std::uint8_t is_ipv6 = 0;
  std::uint8_t speaks = kWakesThroughSocket;
  std::array<std::uint8_t, 4> reserved{};
};

// The answer to an offer, sent before the receiver announces its sleep for the first time.
struct LocalWelcome {
  std::uint64_t instance = 0;
  std::uint64_t speaks = kWakesThroughSocket;
};

// The answer to the offer of an older library, with the descriptor of an eventfd to write to.
struct OldLocalWelcome {
  std::uint64_t instance = 0;
};

// Identifies the peer NIC: a process that has the address later is another instance, and so is
// another NIC of the same process. The kernel reports the process id.
struct LocalInstance {
  std::int64_t process = 0;
  std::uint64_t number = 0;  // as the peer says
  friend bool operator==(const LocalInstance&, const LocalInstance&) = default;
};

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace uet::nic
