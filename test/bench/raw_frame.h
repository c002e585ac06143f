// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whole frames for raw paths: headers that are written once, and what is ours of what arrives.
#pragma once

#include <cstring>
#include <optional>

#include "nic/interface.h"
#include "raw_wire.h"
#include "wire/frame.h"

namespace uet::bench {

class RawFrame {
 public:
  // Nothing, and says why, if the peer does not answer ARP.
  static std::optional<RawFrame> open(const RawChoice& choice);

  // The interface that sends and receives the frames.
  const nic::Interface& interface() const { return interface_; }

  std::size_t bytes(bool with_payload) const {
    return headers(with_payload).length + kRawHeaderBytes + (with_payload ? bytes_ : 0);
  }
  void write(std::byte* out, const RawMessage& message, bool with_payload) const {
    const Headers& in_front = headers(with_payload);
    std::memcpy(out, in_front.bytes.data(), in_front.length);
    write_raw(out + in_front.length, message, with_payload ? bytes_ : 0);
  }
  // False: the frame is not from this benchmark.
  bool read(std::span<const std::byte> frame, RawMessage& message) const {
    constexpr std::size_t kUdpPortAt = 14 + 20 + 2;
    const std::size_t behind = headers(true).length;
    if (frame.size() < behind + kRawHeaderBytes) return false;
    if (std::memcmp(&frame[12], &headers(true).bytes[12], 2) != 0) return false;
    if (std::memcmp(&frame[kUdpPortAt], &headers(true).bytes[kUdpPortAt], 2) != 0) return false;
    std::memcpy(&message, &frame[behind], sizeof message);
    return true;
  }

 private:
  struct Headers {
    std::array<std::byte, wire::kMaxFrameHeaderBytes> bytes{};
    std::size_t length = 0;
  };
  const Headers& headers(bool with_payload) const { return headers_[with_payload ? 1 : 0]; }

  nic::Interface interface_;
  std::array<Headers, 2> headers_;
  std::size_t bytes_ = 0;
};

}  // namespace uet::bench
