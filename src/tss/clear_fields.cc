// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/clear_fields.h"

#include <algorithm>
#include <cstring>

#include "uet/base/check.h"
#include "uet/wire/be.h"

namespace uet::tss {
namespace {

std::size_t address_bytes(const FabricAddress& address) { return address.is_ipv6 ? 16 : 4; }

}  // namespace

OuterFields udp_fields(const FepAddress& source, const FepAddress& destination) {
  const auto high = [](std::uint16_t port) { return static_cast<std::uint8_t>(port >> 8); };
  const auto low = [](std::uint16_t port) { return static_cast<std::uint8_t>(port); };
  return {.source = source.ip,
          .destination = destination.ip,
          .transport = {high(source.port), low(source.port), high(destination.port),
                        low(destination.port)}};
}

OuterFields native_fields(const FabricAddress& source, const FabricAddress& destination,
                          std::uint16_t entropy) {
  return {.source = source,
          .destination = destination,
          .transport = {static_cast<std::uint8_t>(entropy >> 8), static_cast<std::uint8_t>(entropy),
                        0, 0}};
}

Aad::Aad(const OuterFields& outer, std::span<const std::byte> header) {
  UET_ASSERT(header.size() <= kMaxHeaderBytes);
  const auto add = [this](const void* from, std::size_t count) {
    std::memcpy(bytes_.data() + size_, from, count);
    size_ += count;
  };
  add(outer.source.bytes.data(), address_bytes(outer.source));
  add(outer.destination.bytes.data(), address_bytes(outer.destination));
  add(outer.transport.data(), outer.transport.size());
  add(header.data(), header.size());
}

Iv make_iv(const wire::SecurityHeader& header, const FabricAddress& source, const IvMask* mask) {
  Iv iv;
  std::byte* const at = iv.data();
  if (header.sp) {
    wire::store(at, wire::be32(header.ssi));
  } else if (source.is_ipv6) {
    wire::store(at, wire::be32(header.sdi));
  } else {
    std::memcpy(at, source.bytes.data(), 4);
  }
  wire::store(at + 4, wire::be64(std::uint64_t{header.epoch} << 48 | header.counter));
  if (mask != nullptr) {
    const auto bits = mask->bytes();
    std::transform(iv.begin(), iv.end(), bits.begin(), iv.begin(),
                   [](std::byte a, std::byte b) { return a ^ b; });
  }
  return iv;
}

}  // namespace uet::tss
