// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Strong types for the numbers that UET names, so that a PDC id is never taken for a message id.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace uet {

template <class Tag, class Rep>
struct Id {
  Rep value{};
  constexpr auto operator<=>(const Id&) const = default;
};

using PdcId = Id<struct PdcIdTag, std::uint16_t>;                  // 0 is reserved (PDS-27)
using MsgId = Id<struct MsgIdTag, std::uint16_t>;                  // 0 is not valid (SES-27)
using JobId = Id<struct JobIdTag, std::uint32_t>;                  // 24 bits
using PidOnFep = Id<struct PidOnFepTag, std::uint16_t>;            // 12 bits
using ResourceIndex = Id<struct ResourceIndexTag, std::uint16_t>;  // 12 bits
using InitiatorId = Id<struct InitiatorIdTag, std::uint32_t>;      // 32 bits
using RiGeneration = Id<struct RiGenerationTag, std::uint8_t>;     // wraps; equality only (SES-152)
using Rkey = Id<struct RkeyTag, std::uint64_t>;                    // WIRE 4.3

inline constexpr std::uint32_t kMaxJobId = 0xFFFFFF;
inline constexpr std::uint16_t kMaxPidOnFep = 0xFFF;
inline constexpr std::uint16_t kMaxResourceIndex = 0xFFF;

// The PDCIDs that begin with `number` in their first `bits` bits: those of one FEP among several
// that receive at the same UDP port.
struct PdcIdShare {
  std::uint8_t number = 0;
  std::uint8_t bits = 0;  // 0: all PDCIDs, since there is one FEP

  constexpr std::uint32_t size() const { return 65536U >> bits; }
  // The one that ends as `any` does.
  constexpr PdcId of(std::uint16_t any) const {
    return PdcId{static_cast<std::uint16_t>(number * size() + any % size())};
  }
  friend constexpr bool operator==(const PdcIdShare&, const PdcIdShare&) = default;
};

// Packet sequence number: 32 bits, compared as a serial number, so that it may wrap.
struct Psn {
  std::uint32_t value{};

  friend constexpr bool operator==(Psn, Psn) = default;
  // Distance from b to a, negative when a is older.
  friend constexpr std::int32_t operator-(Psn a, Psn b) {
    return static_cast<std::int32_t>(a.value - b.value);
  }
  friend constexpr Psn operator+(Psn a, std::int32_t n) {
    return Psn{a.value + static_cast<std::uint32_t>(n)};
  }
  friend constexpr Psn operator-(Psn a, std::int32_t n) {
    return Psn{a.value - static_cast<std::uint32_t>(n)};
  }
  friend constexpr bool operator<(Psn a, Psn b) { return (a - b) < 0; }
  friend constexpr bool operator>(Psn a, Psn b) { return (a - b) > 0; }
  friend constexpr bool operator<=(Psn a, Psn b) { return (a - b) <= 0; }
  friend constexpr bool operator>=(Psn a, Psn b) { return (a - b) >= 0; }
  constexpr Psn& operator++() {
    ++value;
    return *this;
  }
};

// How packets are delivered (PDS section 2).
enum class DeliveryMode : std::uint8_t { Rud, Rod, Rudi, Uud };

// ECN field of the IP header (RFC 3168 bit values).
enum class Ecn : std::uint8_t { NotEct = 0, Ect1 = 1, Ect0 = 2, Ce = 3 };

}  // namespace uet

template <class Tag, class Rep>
struct std::hash<uet::Id<Tag, Rep>> {
  std::size_t operator()(const uet::Id<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
