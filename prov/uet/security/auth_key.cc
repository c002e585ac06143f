// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/auth_key.h"

#include "uet/fi_ext_uet.h"

namespace uet::prov {
namespace {

std::uint32_t number_at(const std::uint8_t* bytes, std::size_t size) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < size; ++i) number = number << 8 | bytes[i];
  return number;
}

}  // namespace

Result<AuthKey> read_auth_key(const std::uint8_t* bytes, std::size_t size) {
  const bool is_long = size == FI_UET_TSS_AUTH_KEY_SIZE;
  if (bytes == nullptr || (size != FI_UET_AUTH_KEY_SIZE && size != 4 && !is_long)) {
    return Error::Invalid;
  }
  if (size != FI_UET_AUTH_KEY_SIZE && bytes[0] != 0) return Error::Invalid;
  AuthKey key{JobId{number_at(bytes, is_long ? 4 : size)}, {}};
  if (!is_long) return key;
  if (bytes[4] != 0) return Error::Invalid;
  SecureIdentity& identity = key.identity.emplace();
  identity.sdi = number_at(bytes + 4, 4);
  const std::uint32_t ssi = number_at(bytes + 8, 4);
  if (ssi != 0) identity.ssi = ssi;
  return key;
}

}  // namespace uet::prov
