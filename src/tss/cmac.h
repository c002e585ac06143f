// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AES-256-CMAC (TSS-23). The context is kept, its key schedule only from set_key() to forget_key():
// it is on the common heap, where a core file would have it (TSS-60).
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
  // Replaces the key in place. False if OpenSSL fails.
  bool set_key(const Key& key);
  // Overwrites the key schedule where it is.
  void forget_key();
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
