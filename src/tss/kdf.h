// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a secure domain key to packet keys and IV masks: SP 800-108 in counter mode over AES-CMAC
// (TSS section 4). Knows contexts and labels, no packet and no table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>

#include "tss/cmac.h"
#include "tss/secret.h"
#include "uet/base/address.h"
#include "uet/base/result.h"

namespace uet::tss {

enum class KeyMode : std::uint8_t { Direct, Cluster, Server };  // TSS section 3

// A member of a secure domain as a derivation names it (TSS-15, TSS-16).
struct Identity {
  FabricAddress address;
  std::optional<std::uint32_t> ssi;
};

// The context of a derivation: epoch, rekey value and identity, 10 or 26 bytes (TSS-26, TSS-27).
// Over IPv6 the address stands in it although the domain uses SSIs (TSS-29). The bytes also name
// the derived key: equal contexts under one SDK give equal keys.
class DerivationContext {
 public:
  static constexpr std::size_t kMaxBytes = 26;
  DerivationContext() = default;
  DerivationContext(std::uint16_t epoch, std::uint32_t rekey, const Identity& identity);

  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }
  friend bool operator==(const DerivationContext&, const DerivationContext&) = default;

 private:
  std::array<std::byte, kMaxBytes> bytes_{};  // zero behind size_, so that == may compare all
  std::uint8_t size_ = 0;
};

// SP 800-108 in counter mode with a counter of one byte in front of `fixed` (TSS-24): fills `out`,
// at most 255 blocks of 16 bytes. False if OpenSSL fails; `out` is then zeroed.
bool expand(Cmac& prf, std::span<const std::byte> fixed, std::span<std::byte> out);

// Derives from one SDK. OpenSSL has the SDK only during a derivation.
class Kdf {
 public:
  // `memory`, where the SDK is, outlives this object. NoMemory as Cmac::make.
  static Result<Kdf> make(const Key& sdk,
                          std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());

  // 32 bytes of key and 12 of mask (TSS-25). `mode` chooses the label: "U1" (cluster) or "U2"
  // (server); direct mode derives nothing. False if OpenSSL fails; `out` is then zero.
  bool derive(KeyMode mode, const DerivationContext& context, KeyMaterial& out);
  // As PacketCipher::overwrite_key().
  void overwrite_key() { sdk_->clear(); }
  // A number by which this SDK can be recognised, and which tells nothing about the SDK. No
  // derivation of UET has this input, because it begins with a zero byte.
  const std::array<std::byte, Cmac::kBytes>& fingerprint() const { return fingerprint_; }

 private:
  struct Free {
    std::pmr::memory_resource* memory;
    void operator()(Key* key) const;
  };
  Kdf(Cmac prf, Key* sdk, std::pmr::memory_resource& memory)
      : prf_(std::move(prf)), sdk_(sdk, Free{&memory}) {}
  Cmac prf_;  // without key between two calls
  std::unique_ptr<Key, Free> sdk_;
  std::array<std::byte, Cmac::kBytes> fingerprint_{};
};

}  // namespace uet::tss
