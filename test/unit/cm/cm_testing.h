// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For tests of connection management: addresses, data, and the messages that a machine sends.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cm/connections.h"
#include "cm/listener.h"
#include "cm/machine.h"

namespace uet::cm {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline FepAddress fep(std::uint8_t host, std::uint16_t port = 4793) {
  FepAddress address;
  address.ip.bytes = {10, 0, 0, host};
  address.port = port;
  return address;
}
inline av::UetAddress name(std::uint8_t host, std::uint16_t index, std::uint16_t port = 4793) {
  return av::default_address(fep(host, port), ResourceIndex{index});
}
inline std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view text(const Data& data) {
  return {reinterpret_cast<const char*>(data.bytes.data()), data.length};
}

// The next message of the machine, which must be of this type.
inline Outgoing expect_message(Machine& machine, MessageType type) {
  const Outgoing* next = machine.next_message();
  if (next == nullptr) {
    ADD_FAILURE() << "no message of type " << static_cast<int>(type);
    return {};
  }
  Outgoing out = *next;
  machine.pop_message();
  EXPECT_EQ(out.message.type, type);
  return out;
}
// As the receiver gets it.
inline Message received(const Outgoing& out) {
  MessageBytes wire;
  const std::size_t length = encode(out.message, wire);
  const auto message = decode(std::span(wire).first(length), out.message.answers.fep());
  EXPECT_TRUE(message);
  return message.value_or(Message{});
}

}  // namespace uet::cm
