// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The read keys of rendezvous sends (SES-60). They name a message in progress, not registered
// memory: the index of a message and a random number, marked in the byte that SES-132 leaves to the
// vendor, so that no key of a region is ever one. A target that knows them knows more than SES-56
// says: the whole message can be read under such a key, so nothing of it needs to be kept.
#pragma once

#include <cstdint>

#include "uet/base/types.h"

namespace uet::ses {

inline constexpr std::uint64_t kMessageKeyMark = 0x02;  // bits 55..48; registered memory has 0x01

constexpr Rkey message_key(MsgId id, std::uint32_t nonce) {
  return Rkey{kMessageKeyMark << 48 | std::uint64_t{nonce} << 16 | id.value};
}
constexpr bool is_message_key(Rkey key) { return key.value >> 48 == kMessageKeyMark; }
constexpr MsgId message_of(Rkey key) { return MsgId{static_cast<std::uint16_t>(key.value)}; }

}  // namespace uet::ses
