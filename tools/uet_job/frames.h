// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What ranks and uet_run say to each other over TCP: a hello of fixed size from the rank, then
// frames. All numbers are big-endian. Knows no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace uet::job {

inline constexpr std::size_t kTokenDigits = 32;
inline constexpr std::string_view kMagic = "UETJ0001";
inline constexpr std::size_t kHelloBytes = kMagic.size() + 4 + kTokenDigits;
inline constexpr std::size_t kFrameBytes = 8;  // header: kind, 3 zero bytes, length of what follows
inline constexpr std::size_t kMostBlobBytes = 1U << 20;
inline constexpr std::size_t kMostTableBytes = 256U << 20;

enum class Kind : std::uint8_t {
  Welcome = 1,   // the hello was right
  Refusal = 2,   // it was not; a text follows
  Blob = 3,      // from a rank: its part of an all-gather
  Table = 4,     // to all: the parts of all, in rank order
  Unequal = 5,   // to all instead: the parts differ in length, or are too long together
  Deserted = 6,  // to all instead: a rank has left; a text follows
};

inline void put32(std::string& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<char>(value >> shift));
}

inline std::uint32_t get32(const char* at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(at[i]);
  return value;
}

inline std::string frame_header(Kind kind, std::size_t bytes) {
  std::string header{static_cast<char>(kind), 0, 0, 0};
  put32(header, static_cast<std::uint32_t>(bytes));
  return header;
}

inline std::string frame(Kind kind, std::string_view body) {
  return frame_header(kind, body.size()).append(body);
}

inline std::string hello(std::uint32_t rank, std::string_view token) {
  std::string text(kMagic);
  put32(text, rank);
  return text.append(token);
}

// Takes as long for any wrong token of the right length.
inline bool same_token(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (one[i] ^ other[i]));
  }
  return difference == 0;
}

}  // namespace uet::job
