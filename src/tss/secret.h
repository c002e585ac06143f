// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Secret bytes: keys and IV masks. Their memory is zeroed when they end (TSS-60). No function here
// turns a secret into text, and secrets have no operator ==, which would not be constant in time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace uet::tss {

inline constexpr std::size_t kKeyBytes = 32;   // AES-256 (TSS-1)
inline constexpr std::size_t kMaskBytes = 12;  // as long as the IV (TSS-25)

// Zeroes `bytes` in a way that the compiler does not remove.
void wipe(std::span<std::byte> bytes);

// Equal or not, in a time that depends on the length alone. False if the lengths differ.
bool equal_secrets(std::span<const std::byte> a, std::span<const std::byte> b);

// `Bytes` secret bytes, all zero at first. A copy is a secret of its own.
template <std::size_t Bytes>
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::span<const std::byte, Bytes> bytes) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
  }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(bytes_); }

  std::span<const std::byte, Bytes> bytes() const { return bytes_; }
  std::span<std::byte, Bytes> writable() { return bytes_; }
  void clear() { wipe(bytes_); }

 private:
  std::array<std::byte, Bytes> bytes_{};
};

using Key = Secret<kKeyBytes>;
using IvMask = Secret<kMaskBytes>;

// A packet key with its IV mask: the 44 bytes of a derivation, or of a server-mode client (TSS-18).
struct KeyMaterial {
  Key key;
  IvMask mask;
};

}  // namespace uet::tss
