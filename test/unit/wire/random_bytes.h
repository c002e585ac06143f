// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random fields for the property tests.
#pragma once

#include "base/rng.h"

namespace uet::wire {

// `width` random bits as a T.
template <class T>
T random_bits(Rng& rng, unsigned width) {
  return static_cast<T>(rng.next() >> (64 - width));
}

inline bool random_bool(Rng& rng) { return random_bits<int>(rng, 1) != 0; }

}  // namespace uet::wire
