// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/secret.h"

#include <openssl/crypto.h>

namespace uet::tss {

void wipe(std::span<std::byte> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

bool equal_secrets(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace uet::tss
