// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/cmac.h"

#include <openssl/evp.h>
#include <openssl/params.h>

namespace uet::tss {
namespace {

const unsigned char* bytes_of(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

}  // namespace

void Cmac::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

Result<Cmac> Cmac::make(const Key& key) {
  EVP_MAC* const kind = EVP_MAC_fetch(nullptr, "CMAC", nullptr);
  if (kind == nullptr) return Error::NoMemory;
  Cmac cmac(EVP_MAC_CTX_new(kind));
  EVP_MAC_free(kind);
  char cipher[] = "AES-256-CBC";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("cipher", cipher, 0),
                               OSSL_PARAM_construct_end()};
  if (cmac.context_ == nullptr || EVP_MAC_init(cmac.context_.get(), bytes_of(key.bytes().data()),
                                               key.bytes().size(), params) != 1) {
    return Error::NoMemory;
  }
  return cmac;
}

bool Cmac::set_key(const Key& key) {
  return EVP_MAC_init(context_.get(), bytes_of(key.bytes().data()), key.bytes().size(), nullptr) ==
         1;
}

void Cmac::forget_key() { (void)set_key(Key()); }

bool Cmac::mac(std::span<const Slice> pieces, std::span<std::byte, kBytes> out) {
  bool good = EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1;
  for (const Slice& piece : pieces) {
    if (piece.length == 0) continue;
    good = good && EVP_MAC_update(context_.get(), bytes_of(piece.data), piece.length) == 1;
  }
  std::size_t length = 0;
  return good && EVP_MAC_final(context_.get(), reinterpret_cast<unsigned char*>(out.data()),
                               &length, out.size()) == 1;
}

}  // namespace uet::tss
