// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Helpers of the tests of tss: bytes from text, and the key and addresses of the known answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tss/secret.h"
#include "uet/base/address.h"

namespace uet::tss {

using Bytes = std::vector<std::byte>;

inline Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

// `count` bytes that count up from `first`.
inline Bytes counting(std::uint8_t first, std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

inline Key key_of(std::span<const std::byte> bytes) {
  return Key(std::span<const std::byte, kKeyBytes>(bytes.data(), kKeyBytes));
}
// The key of K1 to K6, G1, N1 to N6, S1 and S2: 00 01 .. 1f.
inline Key known_key() { return key_of(counting(0, kKeyBytes)); }

inline FabricAddress ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  FabricAddress address;
  address.bytes = {a, b, c, d};
  return address;
}
// fd00::`last`
inline FabricAddress ipv6(std::uint8_t last) {
  FabricAddress address{.is_ipv6 = true};
  address.bytes[0] = 0xFD;
  address.bytes[15] = last;
  return address;
}

}  // namespace uet::tss
