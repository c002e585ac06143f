// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fields of a protected packet that stay in clear, and the values that follow from these fields
// alone: AAD, IV, rekey value. Pure functions; they know no key and no table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tss/secret.h"
#include "uet/base/address.h"
#include "uet/wire/pds.h"

namespace uet::tss {

inline constexpr std::size_t kIcvBytes = 16;
inline constexpr std::size_t kIvBytes = 12;
inline constexpr std::size_t kMaxHeaderBytes = 16;                // security header with SSI
inline constexpr std::uint32_t kMaxSdi = 0xFFFFFF;                // 24 bits
inline constexpr std::uint64_t kTscEnd = std::uint64_t{1} << 48;  // no TSC reaches it (TSS-36)

// Bytes of the security header (TSS-2).
constexpr std::size_t header_bytes(bool has_ssi) { return has_ssi ? 16 : 12; }
// Bytes that protection adds to a packet; the payload MTU shrinks by as much (TSS-61).
constexpr std::size_t overhead_bytes(bool has_ssi) { return header_bytes(has_ssi) + kIcvBytes; }

// The fields in front of the security header that the ICV covers: addresses as on the wire (TSS-7)
// and four bytes of the transport: both UDP ports, or the entropy header of the native form.
struct OuterFields {
  FabricAddress source;
  FabricAddress destination;  // of the family of `source`
  std::array<std::uint8_t, 4> transport{};
};
// UDP form (TSS-6). Both addresses are those on the wire, the source port as the packet leaves.
OuterFields udp_fields(const FepAddress& source, const FepAddress& destination);
// Native form (TSS-4). `entropy`: upper half of the entropy header; the lower half is 0 (WIRE 1.1).
OuterFields native_fields(const FabricAddress& source, const FabricAddress& destination,
                          std::uint16_t entropy);

// Authenticated and clear bytes in packet order (TSS-4, TSS-6).
class Aad {
 public:
  static constexpr std::size_t kMaxBytes = 2 * 16 + 4 + kMaxHeaderBytes;
  // `header`: the security header as it stands in the packet, 12 or 16 bytes.
  Aad(const OuterFields& outer, std::span<const std::byte> header);
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<std::byte, kMaxBytes> bytes_;
  std::size_t size_ = 0;
};

using Iv = std::array<std::byte, kIvBytes>;
// TSS-32: the 4-byte identity (SSI, else the IPv4 source, else the SDI as the reference provider
// does over IPv6), then epoch and TSC, XORed with `mask`; nullptr in direct mode.
Iv make_iv(const wire::SecurityHeader& header, const FabricAddress& source, const IvMask* mask);

// Which bits of the TSC choose the derived key (TSS-30): parameters of a secure domain, equal at
// all members.
struct RekeyRule {
  std::uint64_t mask = 0xFFFFFFFF0000;
  std::uint8_t shift = 16;
  friend bool operator==(const RekeyRule&, const RekeyRule&) = default;
};
// The result fits 32 bits, or the rule is not valid.
constexpr bool is_valid(const RekeyRule& rule) {
  return rule.shift < 48 && rule.mask < kTscEnd && rule.mask >> rule.shift <= 0xFFFFFFFF;
}
constexpr std::uint32_t rekey_value(std::uint64_t tsc, const RekeyRule& rule) {
  return static_cast<std::uint32_t>((tsc & rule.mask) >> rule.shift);
}

// Epochs that `received` is older than `current` (TSS-41); 0 if it is equal or newer.
constexpr std::uint16_t epoch_age(std::uint16_t current, std::uint16_t received) {
  const auto age = static_cast<std::uint16_t>(current - received);
  return age < 0x8000 ? age : std::uint16_t{0};
}

}  // namespace uet::tss
