// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Integers as they lie on the wire: arrays of bytes, most significant first, alignment 1, so that a
// header struct may sit at any address of a packet. Knows nothing of headers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace uet::wire {

constexpr std::uint16_t byteswap(std::uint16_t v) { return __builtin_bswap16(v); }
constexpr std::uint32_t byteswap(std::uint32_t v) { return __builtin_bswap32(v); }
constexpr std::uint64_t byteswap(std::uint64_t v) { return __builtin_bswap64(v); }

// The number an enumerator stands for; std::to_underlying comes only with C++23.
template <class Enum>
constexpr std::underlying_type_t<Enum> to_underlying(Enum e) {
  return static_cast<std::underlying_type_t<Enum>>(e);
}

// An unsigned integer of exactly `Bytes` bytes on the wire that reads and writes as a T. Writing a
// value too large for its bytes keeps the low-order ones.
template <class T, std::size_t Bytes>
class BigEndian {
  static_assert(Bytes <= sizeof(T));

 public:
  using value_type = T;
  static constexpr unsigned kBits = 8 * Bytes;

  constexpr BigEndian() = default;
  constexpr BigEndian(T value) { set(value); }
  constexpr BigEndian& operator=(T value) {
    set(value);
    return *this;
  }
  constexpr operator T() const { return get(); }

  constexpr T get() const {
    if constexpr (Bytes == sizeof(T)) {
      const T raw = std::bit_cast<T>(bytes_);
      return std::endian::native == std::endian::little ? byteswap(raw) : raw;
    } else {
      T value = 0;
      for (std::uint8_t byte : bytes_) value = static_cast<T>(value << 8 | byte);
      return value;
    }
  }
  constexpr void set(T value) {
    if constexpr (Bytes == sizeof(T)) {
      const T raw = std::endian::native == std::endian::little ? byteswap(value) : value;
      bytes_ = std::bit_cast<std::array<std::uint8_t, Bytes>>(raw);
    } else {
      for (std::size_t i = Bytes; i-- > 0; value = static_cast<T>(value >> 8)) {
        bytes_[i] = static_cast<std::uint8_t>(value);
      }
    }
  }

 private:
  std::array<std::uint8_t, Bytes> bytes_{};
};

using be16 = BigEndian<std::uint16_t, 2>;
using be24 = BigEndian<std::uint32_t, 3>;
using be32 = BigEndian<std::uint32_t, 4>;
using be64 = BigEndian<std::uint64_t, 8>;

static_assert(sizeof(be16) == 2 && alignof(be16) == 1);
static_assert(sizeof(be24) == 3 && alignof(be24) == 1);
static_assert(sizeof(be32) == 4 && alignof(be32) == 1);
static_assert(sizeof(be64) == 8 && alignof(be64) == 1);

// The header struct that lies at the front of `bytes`, which must be at least sizeof(Header) long.
// No copy: what a processor has just written in several parts it can read as a whole only once all
// of them are in the cache, which takes longer than the rest of a decoder. load, overlay and store
// are the only ways between bytes and structs.
template <class Header>
const Header& load(std::span<const std::byte> bytes) {
  static_assert(alignof(Header) == 1);
  return *reinterpret_cast<const Header*>(bytes.data());
}

// Access to the bytes of a header that is to be written; `out` has at least sizeof(Header) bytes.
template <class Header>
Header& overlay(std::byte* out) {
  static_assert(alignof(Header) == 1);
  return *reinterpret_cast<Header*>(out);
}

// Writes a header struct to `out` (sizeof(Header) bytes) and returns what it wrote.
template <class Header>
std::size_t store(std::byte* out, const Header& header) {
  static_assert(alignof(Header) == 1);
  std::memcpy(out, &header, sizeof header);
  return sizeof header;
}

}  // namespace uet::wire
