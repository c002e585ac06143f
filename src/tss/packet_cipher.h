// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AES-256-GCM under one key (TSS-1): seals and opens the bytes behind the security header. The
// OpenSSL context is kept, so that sealing and opening allocate nothing. Knows no header.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <span>

#include "tss/aes_gcm.h"
#include "tss/clear_fields.h"
#include "tss/secret.h"
#include "uet/base/packet.h"

namespace uet::tss {

class PacketCipher {
 public:
  PacketCipher() = default;  // without a key
  bool has_key() const { return keyed_; }
  // The first key allocates the context in `memory`, which outlives this object; a later one
  // replaces the key in place. False if there is no memory; the cipher then has no key.
  bool set_key(const Key& key,
               std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());
  // Zeroes the key schedule and frees the context.
  void forget();
  // In a forked child, where another thread of the parent may have been in any call of this object:
  // overwrites the key schedule where it is, frees nothing. Seals and opens nothing any more.
  void overwrite_key();

  // Encrypts `pieces`, in order, to `out`, and writes the ICV behind them. `out` has space for the
  // bytes of all pieces and kIcvBytes, and overlaps no piece. No IV may come twice under one key
  // (TSS-32): the caller sees to that. False if OpenSSL fails; `out` is then zeroed.
  bool seal(const Iv& iv, std::span<const std::byte> aad, std::span<const Slice> pieces,
            std::span<std::byte> out);
  // Decrypts `sealed`, whose last kIcvBytes are the ICV, to `out`, which has space for the bytes in
  // front of the ICV. False if `sealed` is too short or the ICV does not match; `out` is then
  // zeroed, so that no byte of an unverified packet remains (TSS-40). OpenSSL compares the ICV in
  // constant time (TSS-45).
  bool open(const Iv& iv, std::span<const std::byte> aad, std::span<const std::byte> sealed,
            std::span<std::byte> out);

 private:
  bool begin(const Iv& iv, std::span<const std::byte> aad, bool encrypt);

  const AesGcm* aes_ = nullptr;  // as soon as there was a key
  AesGcm::Context context_;
  bool keyed_ = false;
};

}  // namespace uet::tss
