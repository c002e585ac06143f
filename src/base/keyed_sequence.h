// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers that other hosts see and must not predict: PDC ids, first PSNs. Each is SipHash-2-4 of
// its place in the sequence under a key of 128 bits, so that those seen tell neither the key nor
// the others. The numbers of Rng do: its state follows from a few of them.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace uet {

class KeyedSequence {
 public:
  // `secret` must be known nowhere else.
  explicit constexpr KeyedSequence(std::uint64_t secret)
      : key0_(siphash(secret, ~secret, 0)), key1_(siphash(secret, ~secret, 1)) {}

  constexpr std::uint64_t next() { return siphash(key0_, key1_, count_++); }

 private:
  std::uint64_t key0_;
  std::uint64_t key1_;
  std::uint64_t count_ = 0;
};

}  // namespace uet
