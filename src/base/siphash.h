// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A keyed hash: without the key, no value can be predicted from other values.
#pragma once

#include <bit>
#include <cstdint>

namespace uet {

// SipHash-2-4 of the eight bytes of `message`, little endian.
constexpr std::uint64_t siphash(std::uint64_t key0, std::uint64_t key1, std::uint64_t message) {
  std::uint64_t v0 = key0 ^ 0x736F6D6570736575ULL;
  std::uint64_t v1 = key1 ^ 0x646F72616E646F6DULL;
  std::uint64_t v2 = key0 ^ 0x6C7967656E657261ULL;
  std::uint64_t v3 = key1 ^ 0x7465646279746573ULL;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto absorb = [&](std::uint64_t block) {
    v3 ^= block;
    rounds(2);
    v0 ^= block;
  };
  absorb(message);
  absorb(std::uint64_t{sizeof message} << 56);
  v2 ^= 0xFF;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace uet
