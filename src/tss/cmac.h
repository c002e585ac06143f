// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AES-256-CMAC under one key (TSS-23). Holds the key schedule, which is zeroed at the end: a MAC
// runs no second one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "tss/secret.h"
#include "uet/base/packet.h"
#include "uet/base/result.h"

struct evp_mac_ctx_st;  // OpenSSL's EVP_MAC_CTX

namespace uet::tss {

class Cmac {
 public:
  static constexpr std::size_t kBytes = 16;
  // NoMemory if OpenSSL has no memory or no CMAC.
  static Result<Cmac> make(const Key& key);
  // As PacketCipher::overwrite_key().
  void overwrite_key();
  // The MAC of `pieces` as one text. False if OpenSSL fails.
  bool mac(std::span<const Slice> pieces, std::span<std::byte, kBytes> out);

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  explicit Cmac(evp_mac_ctx_st* context) : context_(context) {}

  std::unique_ptr<evp_mac_ctx_st, Free> context_;
};

}  // namespace uet::tss
