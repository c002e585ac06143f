// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/aes_gcm.h"

#include <malloc.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tss/clear_fields.h"
#include "tss/secret.h"

namespace uet::tss {
namespace {

constexpr std::size_t kContextAlignment = alignof(std::max_align_t);

const unsigned char* chars(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

const AesGcm* AesGcm::get() {
  // Kept by this pointer to the end of the process: contexts may end after static objects.
  static const AesGcm* const kOnly = []() -> const AesGcm* {
    std::unique_ptr<AesGcm> functions(new AesGcm);
    if (!functions->fetch()) return nullptr;
    functions->relocates_ = functions->try_relocation();
    return functions.release();
  }();
  return kOnly;
}

bool AesGcm::fetch() {
  cipher_ = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  if (cipher_ == nullptr) return false;
  const OSSL_PROVIDER* const provider = EVP_CIPHER_get0_provider(cipher_);
  int no_store = 0;
  const OSSL_ALGORITHM* all = OSSL_PROVIDER_query_operation(provider, OSSL_OP_CIPHER, &no_store);
  const OSSL_DISPATCH* function = nullptr;
  for (; all != nullptr && all->algorithm_names != nullptr && function == nullptr; ++all) {
    const std::string_view names = all->algorithm_names;
    const std::string name(names.substr(0, names.find(':')));
    if (EVP_CIPHER_is_a(cipher_, name.c_str()) == 1) function = all->implementation;
  }
  for (; function != nullptr && function->function_id != 0; ++function) {
    switch (function->function_id) {
      case OSSL_FUNC_CIPHER_NEWCTX:
        new_ = OSSL_FUNC_cipher_newctx(function);
        break;
      case OSSL_FUNC_CIPHER_FREECTX:
        free_ = OSSL_FUNC_cipher_freectx(function);
        break;
      case OSSL_FUNC_CIPHER_ENCRYPT_INIT:
        encrypt_init_ = OSSL_FUNC_cipher_encrypt_init(function);
        break;
      case OSSL_FUNC_CIPHER_DECRYPT_INIT:
        decrypt_init_ = OSSL_FUNC_cipher_decrypt_init(function);
        break;
      case OSSL_FUNC_CIPHER_UPDATE:
        update_ = OSSL_FUNC_cipher_update(function);
        break;
      case OSSL_FUNC_CIPHER_FINAL:
        final_ = OSSL_FUNC_cipher_final(function);
        break;
      case OSSL_FUNC_CIPHER_GET_CTX_PARAMS:
        get_params_ = OSSL_FUNC_cipher_get_ctx_params(function);
        break;
      case OSSL_FUNC_CIPHER_SET_CTX_PARAMS:
        set_params_ = OSSL_FUNC_cipher_set_ctx_params(function);
        break;
      default:
        break;
    }
  }
  of_provider_ = OSSL_PROVIDER_get0_provider_ctx(provider);
  if (new_ == nullptr || free_ == nullptr || encrypt_init_ == nullptr || decrypt_init_ == nullptr ||
      update_ == nullptr || final_ == nullptr || get_params_ == nullptr || set_params_ == nullptr) {
    return false;
  }
  model_ = new_(of_provider_);
  if (model_ != nullptr) bytes_ = malloc_usable_size(model_);
  return model_ != nullptr;
}

// A copy of the model works on its own, and the model does not change: contexts without a key point
// neither to themselves nor to memory of their own.
bool AesGcm::try_relocation() {
  std::vector<std::byte> before(bytes_);
  std::memcpy(before.data(), model_, bytes_);
  relocates_ = true;
  const Context copy = make(*std::pmr::new_delete_resource());
  Context plain(new_(of_provider_), Free{this, nullptr});
  if (copy == nullptr || plain == nullptr) return false;
  std::array<std::byte, kKeyBytes> key;
  key.fill(std::byte{0x5A});
  std::array<std::array<std::byte, 64 + kIcvBytes>, 2> sealed{};
  std::size_t at = 0;
  for (void* const context : {copy.get(), plain.get()}) {
    const std::span<std::byte> out(sealed[at++]);
    if (!set_key(context, key) || !begin(context, Iv{}, true) || !add_aad(context, key) ||
        !update(context, out.first(64), out.data()) || !finish(context, out.last(kIcvBytes))) {
      return false;
    }
  }
  return sealed[0] == sealed[1] && std::memcmp(before.data(), model_, bytes_) == 0;
}

AesGcm::Context AesGcm::make(std::pmr::memory_resource& memory) const {
  if (!relocates_) return {new_(of_provider_), Free{this, nullptr}};
  void* context = nullptr;
  try {
    context = memory.allocate(bytes_, kContextAlignment);
  } catch (const std::bad_alloc&) {
    return {nullptr, Free{this, nullptr}};
  }
  std::memcpy(context, model_, bytes_);
  return {context, Free{this, &memory}};
}

void AesGcm::Free::operator()(void* context) const {
  if (memory == nullptr) return of->free_(context);
  OPENSSL_cleanse(context, of->bytes_);
  memory->deallocate(context, of->bytes_, kContextAlignment);
}

void AesGcm::zero(void* context) const {
  constexpr std::array<std::byte, kKeyBytes> kZeros{};
  if (relocates_) {
    OPENSSL_cleanse(context, bytes_);
  } else {
    (void)set_key(context, kZeros);
  }
}

bool AesGcm::set_key(void* context, std::span<const std::byte> key) const {
  return encrypt_init_(context, chars(key), key.size(), nullptr, 0, nullptr) == 1;
}

bool AesGcm::begin(void* context, std::span<const std::byte> iv, bool encrypt) const {
  const auto init = encrypt ? encrypt_init_ : decrypt_init_;
  return init(context, nullptr, 0, chars(iv), iv.size(), nullptr) == 1;
}

bool AesGcm::add_aad(void* context, std::span<const std::byte> aad) const {
  std::size_t written = 0;
  return update_(context, nullptr, &written, aad.size(), chars(aad), aad.size()) == 1;
}

bool AesGcm::update(void* context, std::span<const std::byte> in, std::byte* out) const {
  std::size_t written = 0;
  return in.empty() || update_(context, reinterpret_cast<unsigned char*>(out), &written, in.size(),
                               chars(in), in.size()) == 1;
}

bool AesGcm::finish(void* context, std::span<std::byte> icv) const {
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, icv.data(), icv.size()),
      OSSL_PARAM_construct_end()};
  unsigned char rest[16];  // GCM leaves nothing for the end
  std::size_t written = 0;
  return final_(context, rest, &written, sizeof rest) == 1 && get_params_(context, params) == 1;
}

bool AesGcm::verify(void* context, std::span<std::byte> icv) const {
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, icv.data(), icv.size()),
      OSSL_PARAM_construct_end()};
  unsigned char rest[16];
  std::size_t written = 0;
  return set_params_(context, params) == 1 && final_(context, rest, &written, sizeof rest) == 1;
}

}  // namespace uet::tss
