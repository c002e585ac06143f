// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory for text that holds keys: not in core files, zero in forked children, not on a swap device
// where the limits allow it (TSS-60).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace uet::prov {

class SecretText {
 public:
  SecretText() = default;  // without space
  // Space for `bytes`; capacity() is 0 if there is no memory.
  explicit SecretText(std::size_t bytes);
  // Zeroes the text.
  ~SecretText();
  SecretText(SecretText&& other) noexcept;
  SecretText& operator=(SecretText&& other) noexcept;

  std::size_t capacity() const { return capacity_; }
  // The whole space, to be filled.
  std::span<char> space() { return {data_, capacity_}; }
  // The text is the first `bytes` of the space; the rest is zeroed.
  void resize(std::size_t bytes);
  std::string_view view() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace uet::prov
