// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory keys that the provider chooses: numbers of 48 bits that repeat only after all 2^48, and
// that cannot be predicted from earlier keys without the secret.
#pragma once

#include <array>
#include <cstdint>

#include "base/siphash.h"

namespace uet::ri {

using KeySecret = std::array<std::uint64_t, 2>;

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
      const std::uint64_t hash = siphash(secret_[0], secret_[1], round << kHalf | right);
      const std::uint64_t mixed = left ^ (hash & kHalfMask);
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
