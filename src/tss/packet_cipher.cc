// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/packet_cipher.h"

#include <openssl/evp.h>

#include "uet/base/check.h"

namespace uet::tss {
namespace {

const unsigned char* chars(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* chars(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace

void PacketCipher::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

bool PacketCipher::set_key(const Key& key) {
  if (context_ == nullptr) context_.reset(EVP_CIPHER_CTX_new());
  if (context_ == nullptr) return false;
  const EVP_CIPHER* const cipher = keyed_ ? nullptr : EVP_aes_256_gcm();
  keyed_ = EVP_CipherInit_ex(context_.get(), cipher, nullptr, chars(key.bytes().data()), nullptr,
                             1) == 1;
  if (!keyed_) context_.reset();
  return keyed_;
}

void PacketCipher::forget() {
  context_.reset();
  keyed_ = false;
}

void PacketCipher::overwrite_key() {
  constexpr std::array<unsigned char, kKeyBytes> kZeros{};
  if (context_ != nullptr) {
    (void)EVP_CipherInit_ex(context_.get(), nullptr, nullptr, kZeros.data(), nullptr, 1);
  }
}

bool PacketCipher::begin(const Iv& iv, std::span<const std::byte> aad, bool encrypt) {
  UET_ASSERT(keyed_);
  int written = 0;
  return EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, chars(iv.data()),
                           encrypt ? 1 : 0) == 1 &&
         EVP_CipherUpdate(context_.get(), nullptr, &written, chars(aad.data()),
                          static_cast<int>(aad.size())) == 1;
}

bool PacketCipher::update(std::span<const std::byte> in, std::byte* out) {
  int written = 0;
  return in.empty() || EVP_CipherUpdate(context_.get(), chars(out), &written, chars(in.data()),
                                        static_cast<int>(in.size())) == 1;
}

bool PacketCipher::seal(const Iv& iv, std::span<const std::byte> aad, std::span<const Slice> pieces,
                        std::span<std::byte> out) {
  std::byte* at = out.data();
  bool good = begin(iv, aad, true);
  for (const Slice& piece : pieces) {
    UET_ASSERT(at + piece.length + kIcvBytes <= out.data() + out.size());
    good = good && update({piece.data, piece.length}, at);
    at += piece.length;
  }
  int written = 0;
  unsigned char rest[16];  // GCM leaves nothing for the end
  good = good && EVP_CipherFinal_ex(context_.get(), rest, &written) == 1 &&
         EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kIcvBytes, at) == 1;
  if (!good) wipe(out);
  return good;
}

bool PacketCipher::open(const Iv& iv, std::span<const std::byte> aad,
                        std::span<const std::byte> sealed, std::span<std::byte> out) {
  if (sealed.size() < kIcvBytes) return false;
  const auto text = sealed.first(sealed.size() - kIcvBytes);
  UET_ASSERT(out.size() >= text.size());
  std::array<std::byte, kIcvBytes> icv;
  std::copy(sealed.end() - kIcvBytes, sealed.end(), icv.begin());
  int written = 0;
  unsigned char rest[16];
  const bool good =
      begin(iv, aad, false) && update(text, out.data()) &&
      EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kIcvBytes, icv.data()) == 1 &&
      EVP_CipherFinal_ex(context_.get(), rest, &written) == 1;
  if (!good) wipe(out.first(text.size()));
  return good;
}

}  // namespace uet::tss
