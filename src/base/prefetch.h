// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What has left the processor's caches is fetched ahead, all its lines at once: what reads it would
// wait for each in turn. Costs a few instructions where it had not left.
#pragma once

#include <cstddef>

namespace uet {

inline void prefetch(const void* begin, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const auto* at = static_cast<const std::byte*>(begin);
  for (std::size_t offset = 0; offset < bytes; offset += kLine) {
    __builtin_prefetch(at + offset, 1);
  }
}

template <class T>
T& prefetched(T& object) {
  prefetch(&object, sizeof(T));
  return object;
}

}  // namespace uet
