// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Recognises keys with which this process has sealed packets, so that such a key is never started
// as a new one: its TSCs would come again (TSS-37). Holds fingerprints, no key.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "tss/cmac.h"

namespace uet::tss {

using Fingerprint = std::array<std::byte, Cmac::kBytes>;  // Kdf::fingerprint

class UsedKeys {
 public:
  static constexpr std::size_t kMost = 256;  // the oldest one is forgotten for the next one

  bool contains(const Fingerprint& key) const {
    const std::size_t count = std::min(added_, kMost);
    return std::find(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(count), key) !=
           keys_.begin() + static_cast<std::ptrdiff_t>(count);
  }
  void add(const Fingerprint& key) {
    if (!contains(key)) keys_[added_++ % kMost] = key;
  }

 private:
  std::array<Fingerprint, kMost> keys_{};
  std::size_t added_ = 0;
};

}  // namespace uet::tss
