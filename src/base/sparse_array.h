// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table that begins as all zero bytes and of which most is never used. It takes no memory before
// the first element is made, and then only for the neighbours of elements that were made: a small
// one where elements lie anywhere, as PDC ids do.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "uet/base/check.h"

namespace uet {

// `kSize` elements, of which `kPart` neighbours share an allocation; both powers of two.
template <class T, std::size_t kSize, std::size_t kPart>
class SparseArray {
 public:
  // All zero bytes must be a T, one without anything in it.
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert((kSize & (kSize - 1)) == 0 && (kPart & (kPart - 1)) == 0 && kPart <= kSize);

  SparseArray() = default;
  SparseArray(const SparseArray&) = delete;
  SparseArray& operator=(const SparseArray&) = delete;
  ~SparseArray() {
    if (parts_ == kNoParts.data()) return;
    for (std::size_t i = 0; i < kParts; ++i) {
      if (parts_[i] != kZeros.data()) std::free(const_cast<std::byte*>(parts_[i]));
    }
    delete[] parts_;
  }

  static constexpr std::size_t size() { return kSize; }
  // All zero bytes if it was never made.
  const T& operator[](std::size_t index) const {
    UET_ASSERT(index < kSize);
    return reinterpret_cast<const T*>(parts_[index / kPart])[index % kPart];
  }
  // The element, to write to. nullptr: there is no memory for it.
  T* make(std::size_t index) noexcept {
    UET_ASSERT(index < kSize);
    const std::byte* part = parts_[index / kPart];
    if (part == kZeros.data()) [[unlikely]] {
      part = make_part(index / kPart);
      if (part == nullptr) return nullptr;
    }
    return reinterpret_cast<T*>(const_cast<std::byte*>(part)) + index % kPart;
  }
  // The same; throws bad_alloc instead.
  T& at(std::size_t index) {
    T* element = make(index);
    if (element == nullptr) throw std::bad_alloc();
    return *element;
  }

 private:
  static constexpr std::size_t kParts = kSize / kPart;
  alignas(T) static constexpr std::array<std::byte, kPart * sizeof(T)> kZeros{};
  static constexpr std::array<const std::byte*, kParts> kNoParts = [] {
    std::array<const std::byte*, kParts> parts{};
    parts.fill(kZeros.data());
    return parts;
  }();

  [[gnu::noinline, gnu::cold]] const std::byte* make_part(std::size_t number) noexcept {
    if (parts_ == kNoParts.data()) {
      auto* parts = new (std::nothrow) const std::byte*[kParts];
      if (parts == nullptr) return nullptr;
      std::copy(kNoParts.begin(), kNoParts.end(), parts);
      parts_ = parts;
    }
    auto* part = static_cast<const std::byte*>(std::calloc(kPart, sizeof(T)));
    if (part != nullptr) const_cast<const std::byte**>(parts_)[number] = part;
    return part;
  }

  const std::byte* const* parts_ = kNoParts.data();
};

}  // namespace uet
