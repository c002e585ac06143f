// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/kdf.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "uet/base/check.h"
#include "uet/wire/be.h"

namespace uet::tss {
namespace {

constexpr std::uint16_t kDerivedBits = 352;  // TSS-25
static_assert(kDerivedBits == 8 * (kKeyBytes + kMaskBytes));
// Label, zero byte, context, L: the PRF input behind the counter (TSS-24).
constexpr std::size_t kMaxFixedBytes = 2 + 1 + DerivationContext::kMaxBytes + 2;

Slice slice(std::span<const std::byte> bytes) {
  return {bytes.data(), static_cast<std::uint32_t>(bytes.size())};
}

}  // namespace

DerivationContext::DerivationContext(std::uint16_t epoch, std::uint32_t rekey,
                                     const Identity& identity) {
  const bool long_form = identity.address.is_ipv6;  // TSS-29
  std::byte* at = bytes_.data() + (long_form ? 4 : 0);
  at += wire::store(at, wire::be16(epoch));
  at += wire::store(at, wire::be32(rekey));
  if (long_form) {
    std::memcpy(at, identity.address.bytes.data(), 16);
    at += 16;
  } else if (identity.ssi) {
    at += wire::store(at, wire::be32(*identity.ssi));
  } else {
    std::memcpy(at, identity.address.bytes.data(), 4);
    at += 4;
  }
  size_ = static_cast<std::uint8_t>(at - bytes_.data());
}

bool expand(Cmac& prf, std::span<const std::byte> fixed, std::span<std::byte> out) {
  UET_ASSERT(out.size() <= 255 * Cmac::kBytes);
  Secret<Cmac::kBytes> block;
  std::byte counter{0};
  for (std::size_t done = 0; done < out.size(); done += Cmac::kBytes) {
    counter = static_cast<std::byte>(std::to_integer<unsigned>(counter) + 1);
    const std::array<Slice, 2> input = {Slice{&counter, 1}, slice(fixed)};
    if (!prf.mac(input, block.writable())) {
      wipe(out);
      return false;
    }
    const std::size_t count = std::min(Cmac::kBytes, out.size() - done);
    std::copy_n(block.bytes().begin(), count, out.begin() + static_cast<std::ptrdiff_t>(done));
  }
  return true;
}

void Kdf::Free::operator()(Key* key) const {
  std::destroy_at(key);
  memory->deallocate(key, sizeof(Key), alignof(Key));
}

Result<Kdf> Kdf::make(const Key& sdk, std::pmr::memory_resource& memory) {
  Result<Cmac> prf = Cmac::make(sdk);
  if (!prf.ok()) return prf.error();
  Key* own = nullptr;
  try {
    own = new (memory.allocate(sizeof(Key), alignof(Key))) Key(sdk);
  } catch (const std::bad_alloc&) {
    return Error::NoMemory;
  }
  Kdf kdf(std::move(prf).value(), own, memory);
  constexpr char kText[] = "\0uet fingerprint";
  const Slice text = slice(std::as_bytes(std::span(kText)));
  if (!kdf.prf_.mac({&text, 1}, kdf.fingerprint_)) return Error::NoMemory;
  kdf.prf_.forget_key();
  return kdf;
}

bool Kdf::derive(KeyMode mode, const DerivationContext& context, KeyMaterial& out) {
  UET_ASSERT(mode != KeyMode::Direct);
  std::array<std::byte, kMaxFixedBytes> fixed{};
  fixed[0] = std::byte{'U'};
  fixed[1] = mode == KeyMode::Cluster ? std::byte{'1'} : std::byte{'2'};
  std::byte* end = std::copy(context.bytes().begin(), context.bytes().end(), fixed.data() + 3);
  end += wire::store(end, wire::be16(kDerivedBits));

  Secret<kKeyBytes + kMaskBytes> derived;
  const bool good = prf_.set_key(*sdk_) && expand(prf_, {fixed.data(), end}, derived.writable());
  prf_.forget_key();
  std::copy_n(derived.bytes().begin(), kKeyBytes, out.key.writable().begin());
  std::copy_n(derived.bytes().begin() + kKeyBytes, kMaskBytes, out.mask.writable().begin());
  return good;
}

}  // namespace uet::tss
