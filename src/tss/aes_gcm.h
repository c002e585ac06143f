// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AES-256-GCM of OpenSSL with its contexts in memory of the caller's choice. EVP_CIPHER_CTX has its
// key schedules on the common heap, from which they would come into core files (TSS-60); these are
// the functions behind EVP, as provider-cipher(7) describes them. Knows no packet.
#pragma once

#include <openssl/core_dispatch.h>

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>

struct evp_cipher_st;  // OpenSSL's EVP_CIPHER

namespace uet::tss {

class AesGcm {
 public:
  // nullptr if OpenSSL has no such cipher. Fetched at the first call, never destroyed.
  static const AesGcm* get();

  struct Free {
    const AesGcm* of = nullptr;
    std::pmr::memory_resource* memory = nullptr;
    void operator()(void* context) const;
  };
  using Context = std::unique_ptr<void, Free>;
  // A context without a key, in `memory`, which outlives it; its end zeroes it. nullptr if there is
  // no memory.
  Context make(std::pmr::memory_resource& memory) const;
  // Zeroes the key schedule of `context`, which can only end then: frees and locks nothing.
  void zero(void* context) const;

  bool set_key(void* context, std::span<const std::byte> key) const;
  // Begins a text under the key that was set.
  bool begin(void* context, std::span<const std::byte> iv, bool encrypt) const;
  bool add_aad(void* context, std::span<const std::byte> aad) const;
  // Encrypts or decrypts as many bytes of the text.
  bool update(void* context, std::span<const std::byte> in, std::byte* out) const;
  // Ends the text and gives its ICV, or compares it in constant time (TSS-45).
  bool finish(void* context, std::span<std::byte> icv) const;
  bool verify(void* context, std::span<std::byte> icv) const;

  // Can contexts be in memory of the caller's choice? Otherwise make() leaves them on the heap.
  bool relocates() const { return relocates_; }

 private:
  AesGcm() = default;
  bool fetch();
  bool try_relocation();

  OSSL_FUNC_cipher_newctx_fn* new_ = nullptr;
  OSSL_FUNC_cipher_freectx_fn* free_ = nullptr;
  OSSL_FUNC_cipher_encrypt_init_fn* encrypt_init_ = nullptr;
  OSSL_FUNC_cipher_decrypt_init_fn* decrypt_init_ = nullptr;
  OSSL_FUNC_cipher_update_fn* update_ = nullptr;
  OSSL_FUNC_cipher_final_fn* final_ = nullptr;
  OSSL_FUNC_cipher_get_ctx_params_fn* get_params_ = nullptr;
  OSSL_FUNC_cipher_set_ctx_params_fn* set_params_ = nullptr;
  evp_cipher_st* cipher_ = nullptr;  // keeps its provider
  void* of_provider_ = nullptr;
  // A context without a key, the model of all others, and how many bytes one has at most.
  void* model_ = nullptr;
  std::size_t bytes_ = 0;
  bool relocates_ = false;
};

}  // namespace uet::tss
