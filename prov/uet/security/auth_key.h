// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The content of an auth_key (SES-145, TSS-68). It is never a key of transport security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "security/transport_security.h"
#include "uet/base/result.h"
#include "uet/base/types.h"

namespace uet::prov {

struct AuthKey {
  JobId job;
  std::optional<SecureIdentity> identity;  // of the long form only
};

// Short form: a JobID of 3 bytes, or 4 with a zero first byte. Long form, recognised by its size
// FI_UET_TSS_AUTH_KEY_SIZE: JobID, SDI and SSI in 4 bytes each, the first byte of JobID and SDI 0;
// an SSI of 0 means that of the key file. All big-endian. Invalid for anything else.
Result<AuthKey> read_auth_key(const std::uint8_t* bytes, std::size_t size);

}  // namespace uet::prov
