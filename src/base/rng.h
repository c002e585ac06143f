// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The only source of randomness in the core: seeded by the host, so that a seed replays a run.
#pragma once

#include <cstdint>

namespace uet {

// SplitMix64: 64 bits of state, every seed is good. Not for secrets.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound); bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // Uniform in [low, high].
  constexpr std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  // True with the given probability (0 to 1).
  constexpr bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
  }

 private:
  std::uint64_t state_;
};

}  // namespace uet
