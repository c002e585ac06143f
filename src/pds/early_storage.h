// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bytes of packets that arrived before their predecessors (PDS-164), as many for each number of
// the pool of EarlyPacket. Memory comes for a few neighbours at a time and is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace uet::pds {

class EarlyStorage {
 public:
  static constexpr std::size_t kPackets = 4096;

  // `bytes_each`: for a packet.
  explicit EarlyStorage(std::size_t bytes_each) : bytes_each_(bytes_each) {}

  std::size_t bytes_each() const { return bytes_each_; }
  // The bytes of packet `number`, below kPackets, at an address that stays. nullptr: there is no
  // memory.
  std::byte* room(std::uint16_t number) noexcept {
    if (parts_ == nullptr) parts_.reset(new (std::nothrow) Parts);
    if (parts_ == nullptr) return nullptr;
    std::unique_ptr<std::byte[]>& part = (*parts_)[number / kPart];
    if (part == nullptr) part.reset(new (std::nothrow) std::byte[kPart * bytes_each_]);
    return part == nullptr ? nullptr : part.get() + number % kPart * bytes_each_;
  }

 private:
  static constexpr std::size_t kPart = 16;
  using Parts = std::array<std::unique_ptr<std::byte[]>, kPackets / kPart>;

  std::size_t bytes_each_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace uet::pds
