// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keys and bounds of registered memory (SES section 11). Decides whether a remote access may happen
// and where; it never touches the memory.
#include "ri/mr_table.h"

#include <cstdint>

namespace uet::ri {
namespace {

// Bits of a memory key (SES-132).
constexpr std::uint64_t kIdempotentSafe = std::uint64_t{1} << 63;
constexpr std::uint64_t kOptimized = std::uint64_t{1} << 62;
constexpr std::uint64_t kProviderKey = std::uint64_t{1} << 48;  // vendor bit: provider-chosen
static_assert(kProviderKey == std::uint64_t{1} << KeySequence::kBits);
constexpr std::uint64_t kReservedBits = 0x3FFF'0000'0000'0000;           // bits 61..48
constexpr std::uint64_t kOptimizedReservedBits = 0x0000'FFFF'FFFF'F000;  // bits 47..12

bool is_application_key(std::uint64_t key) {
  if ((key & kReservedBits) != 0) return false;
  return (key & kOptimized) == 0 || (key & kOptimizedReservedBits) == 0;
}

// The memory must not wrap around the address space; address 0 is only for "all memory" and for
// regions without bytes.
bool is_valid(const MemoryRegion& region) {
  if (region.base == nullptr) return region.length == 0 || region.length == UINT64_MAX;
  return region.length <= UINT64_MAX - reinterpret_cast<std::uintptr_t>(region.base);
}

}  // namespace

MrTable::MrTable(std::size_t capacity, const KeySecret& secret)
    : capacity_(capacity), keys_(secret) {}

Result<Rkey> MrTable::add(const MemoryRegion& region) {
  if (!is_valid(region)) return Error::Invalid;
  if (regions_.size() >= capacity_) return Error::NoMemory;
  std::uint64_t key = 0;
  do {
    key = kProviderKey | keys_.next();
  } while (!regions_.try_emplace(key, region).second);
  return Rkey{key};
}

Result<void> MrTable::add_with_key(const MemoryRegion& region, Rkey key) {
  return is_application_key(key.value) ? enter(region, key) : Error::Invalid;
}

Result<void> MrTable::adopt(const MemoryRegion& region, Rkey key) {
  constexpr std::uint64_t kOwn = kProviderKey | (kProviderKey - 1);
  const bool of_table = (key.value & kProviderKey) != 0 && (key.value & ~kOwn) == 0;
  return of_table || is_application_key(key.value) ? enter(region, key) : Error::Invalid;
}

Result<void> MrTable::enter(const MemoryRegion& region, Rkey key) {
  if (!is_valid(region)) return Error::Invalid;
  // Small headers do not carry bit 63: they could not tell such a pair apart.
  const bool twin = (key.value & kOptimized) != 0 && regions_.contains(key.value ^ kIdempotentSafe);
  if (twin || regions_.contains(key.value)) return Error::KeyInUse;
  if (regions_.size() >= capacity_) return Error::NoMemory;
  regions_.emplace(key.value, region);
  return {};
}

Result<void> MrTable::remove(Rkey key) {
  if (!regions_.contains(key.value)) return Error::NotFound;
  if (removals_ != nullptr) removals_->removing(key);
  regions_.erase(key.value);
  last_ = nullptr;
  return {};
}

void MrTable::move_context(const ContextName& from, const std::optional<ContextName>& to) {
  for (auto& [key, region] : regions_) {
    if (region.ri != from.index || region.pid.value_or(from.pid) != from.pid) continue;
    if (to) {
      region.ri = to->index;
      if (region.pid) region.pid = to->pid;
    } else {
      region.access = 0;
    }
  }
}

MemoryRegion* MrTable::find(Rkey key) {
  const auto found = regions_.find(key.value);
  return found != regions_.end() ? &found->second : nullptr;
}

Rkey MrTable::optimized_key(std::uint16_t index) const {
  const std::uint64_t safe = kIdempotentSafe | kOptimized | index;
  return Rkey{regions_.contains(safe) ? safe : kOptimized | index};
}

const MemoryRegion* MrTable::look_up(Rkey key) const {
  if (last_ == nullptr || last_key_ != key.value) {
    const auto found = regions_.find(key.value);
    last_ = found != regions_.end() ? &found->second : nullptr;
    last_key_ = key.value;
  }
  return last_;
}

MrAccess MrTable::check(Rkey key, JobId job, const ContextName& through, std::uint8_t access,
                        std::uint64_t offset, std::uint64_t length) const {
  const MemoryRegion* found = look_up(key);
  if (found == nullptr) return {MrVerdict::BadKey};
  const MemoryRegion& region = *found;
  if (!region.enabled) return {MrVerdict::BadKey};  // SES-134
  const bool bound = region.ri.has_value();
  const bool fits = !bound || (through.index >= *region.ri &&
                               through.index.value - region.ri->value < region.ri_count &&
                               region.pid.value_or(through.pid) == through.pid);
  if (!fits) return {MrVerdict::BadKey};                             // 12a
  if (region.job && *region.job != job) return {MrVerdict::BadJob};  // 12b
  if (region.access == 0) return {MrVerdict::BadKey};  // no peer has a right: like SES-119
  if ((region.access & access) != access) return {MrVerdict::NoRight};  // 12c
  // 12e. Only subtractions that cannot wrap: the offset is the peer's to choose (SES-118).
  if (offset < region.virtual_base) return {MrVerdict::OutOfBounds};
  const std::uint64_t start = offset - region.virtual_base;
  if (start > region.length || length > region.length - start) {
    return {MrVerdict::OutOfBounds};
  }
  // As numbers, since all memory begins at the null pointer.
  const auto address = reinterpret_cast<std::uintptr_t>(region.base) + start;
  auto* const place = reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
  return {MrVerdict::Ok, place, region.observer, region.device};
}

}  // namespace uet::ri
