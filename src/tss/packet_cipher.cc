// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/packet_cipher.h"

#include <algorithm>
#include <array>

#include "uet/base/check.h"

namespace uet::tss {

bool PacketCipher::set_key(const Key& key, std::pmr::memory_resource& memory) {
  if (aes_ == nullptr) aes_ = AesGcm::get();
  if (aes_ == nullptr) return false;
  if (context_ == nullptr) context_ = aes_->make(memory);
  keyed_ = context_ != nullptr && aes_->set_key(context_.get(), key.bytes());
  if (!keyed_) context_.reset();
  return keyed_;
}

void PacketCipher::forget() {
  context_.reset();
  keyed_ = false;
}

void PacketCipher::overwrite_key() {
  keyed_ = false;
  if (context_ != nullptr) aes_->zero(context_.get());
}

bool PacketCipher::begin(const Iv& iv, std::span<const std::byte> aad, bool encrypt) {
  return keyed_ && aes_->begin(context_.get(), iv, encrypt) && aes_->add_aad(context_.get(), aad);
}

bool PacketCipher::seal(const Iv& iv, std::span<const std::byte> aad, std::span<const Slice> pieces,
                        std::span<std::byte> out) {
  std::byte* at = out.data();
  bool good = begin(iv, aad, true);
  for (const Slice& piece : pieces) {
    UET_ASSERT(at + piece.length + kIcvBytes <= out.data() + out.size());
    good = good && aes_->update(context_.get(), {piece.data, piece.length}, at);
    at += piece.length;
  }
  good = good && aes_->finish(context_.get(), {at, kIcvBytes});
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
  const bool good = begin(iv, aad, false) && aes_->update(context_.get(), text, out.data()) &&
                    aes_->verify(context_.get(), icv);
  if (!good) wipe(out.first(text.size()));
  return good;
}

}  // namespace uet::tss
