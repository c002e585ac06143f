// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the probe sends and hears packets, whatever carries them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace uet::probe {

// A packet from the peer, from the PDS prologue to the end of the payload.
struct Heard {
  std::vector<std::byte> bytes;
  std::uint16_t entropy = 0;  // UDP source port, or of the entropy header
  // It came to the port that requests leave from, which is no return address (WIRE 1.1).
  bool at_source_port = false;
  bool crc_wrong = false;  // a CRC trailer was wanted (WIRE 1.4) and was missing or wrong
};

class Line {
 public:
  virtual ~Line() = default;
  // Throws std::system_error where the host cannot send.
  virtual void send(std::span<const std::byte> packet) = 0;
  // The next packet from the peer; nothing if none arrives in time.
  virtual std::optional<Heard> receive(std::chrono::milliseconds patience) = 0;
  // The entropy value of all that is sent.
  virtual std::uint16_t entropy() const = 0;
  // Answers of a peer with one source port for everything (kernel UDP) come from this; 0: it has no
  // ports.
  virtual std::uint16_t peer_port() const = 0;
};

}  // namespace uet::probe
