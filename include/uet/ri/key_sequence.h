// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory keys of the provider's choice: numbers of 48 bits that repeat only after all 2^48, and
// that nobody can tell from those given out before without the secret.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace uet::ri {

using KeySecret = std::array<std::uint64_t, 2>;

// SipHash-2-4 of the 8 bytes of `word`.
constexpr std::uint64_t keyed_hash(const KeySecret& secret, std::uint64_t word) {
  std::uint64_t v0 = secret[0] ^ 0x736F6D6570736575;
  std::uint64_t v1 = secret[1] ^ 0x646F72616E646F6D;
  std::uint64_t v2 = secret[0] ^ 0x6C7967656E657261;
  std::uint64_t v3 = secret[1] ^ 0x7465646279746573;
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
  for (const std::uint64_t block : {word, std::uint64_t{8} << 56}) {  // the last one: the length
    v3 ^= block;
    rounds(2);
    v0 ^= block;
  }
  v2 ^= 0xFF;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

// A Feistel network over a counter: a permutation, so that no number comes twice.
class KeySequence {
 public:
  static constexpr int kBits = 48;

  explicit constexpr KeySequence(const KeySecret& secret) : secret_(secret) {}

  constexpr std::uint64_t next() { return permuted(count_++ & ((std::uint64_t{1} << kBits) - 1)); }
  // Where `number` of kBits bits goes.
  constexpr std::uint64_t permuted(std::uint64_t number) const {
    std::uint64_t left = number >> kHalf;
    std::uint64_t right = number & kHalfMask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed = left ^ (keyed_hash(secret_, round << kHalf | right) & kHalfMask);
      left = right;
      right = mixed;
    }
    return left << kHalf | right;
  }

 private:
  static constexpr int kHalf = kBits / 2;
  static constexpr std::uint64_t kHalfMask = (std::uint64_t{1} << kHalf) - 1;
  static constexpr std::uint64_t kRounds = 8;

  KeySecret secret_;
  std::uint64_t count_ = 0;
};

}  // namespace uet::ri
