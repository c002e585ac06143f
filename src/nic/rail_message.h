// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages by which two RailsNics agree that an address is a further one of a process. They go
// only to peers whose address has further ones (kRails). 28 bytes:
//
//   0  magic      "\xFFuetrail"; no PDS header begins so (WIRE 2.1)
//   8  kind       RailMessage::Kind
//   9  rail       1 to 3; 0: of the first address. Of Gone: the rail that was lost
//  10  port       of both addresses
//  12  address    IPv4: of Hello the first address of its sender, of Proof the further one
//  16  cookie     of Challenge and Proof; of Known and Gone the one for the first address, so that
//                 a Gone is not forged
//  24  nonce      of Hello; the other ones of that exchange repeat it, so that answers are not
//  forged
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "uet/base/address.h"
#include "uet/wire/be.h"

namespace uet::nic {

struct RailMessage {
  enum class Kind : std::uint8_t {
    Hello = 1,      // from a further address: "I am a further address of `address`"
    Challenge = 2,  // the answer, if that is not known yet
    Proof = 3,      // from the first address, with the cookie that the further one got
    Known = 4,      // to the further address: packets from there are taken
    Unknown = 5,    // to a further address whose packets are not taken
    Gone = 6,       // over another rail: "my end of this rail has lost its carrier"
  };
  static constexpr std::size_t kBytes = 28;
  using Bytes = std::array<std::byte, kBytes>;

  Kind kind{};
  std::uint8_t rail = 0;
  std::uint16_t port = 0;
  std::array<std::uint8_t, 4> address{};
  std::uint64_t cookie = 0;
  std::uint32_t nonce = 0;

  Bytes encode() const {
    Form form;
    form.kind = static_cast<std::uint8_t>(kind);
    form.rail = rail;
    form.port = port;
    form.address = address;
    form.cookie = cookie;
    form.nonce = nonce;
    Bytes bytes;
    wire::store(bytes.data(), form);
    return bytes;
  }
  // Nothing if it is none.
  static std::optional<RailMessage> decode(std::span<const std::byte> bytes) {
    if (bytes.size() != kBytes) return {};
    Form form;
    std::memcpy(&form, bytes.data(), kBytes);
    if (form.magic != kMagic || form.kind < 1 || form.kind > 6) return {};
    return RailMessage{
        static_cast<Kind>(form.kind), form.rail, form.port, form.address, form.cookie, form.nonce};
  }

 private:
  static constexpr std::array<std::uint8_t, 8> kMagic{0xFF, 'u', 'e', 't', 'r', 'a', 'i', 'l'};
  struct Form {
    std::array<std::uint8_t, 8> magic = kMagic;
    std::uint8_t kind = 0;
    std::uint8_t rail = 0;
    wire::be16 port;
    std::array<std::uint8_t, 4> address{};
    wire::be64 cookie;
    wire::be32 nonce;
  };
  static_assert(sizeof(Form) == kBytes && alignof(Form) == 1);
};

}  // namespace uet::nic
