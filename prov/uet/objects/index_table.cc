// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/index_table.h"

#include <algorithm>

namespace uet::prov {

// If the application chooses another PIDonFEP, it takes indices of the first block, as the PIDonFEP
// of the port does.
std::size_t IndexTable::slot_of(const ri::ContextName& name) const {
  std::size_t block = 0;
  while (block < kBlocks && av::pid_of_step(own_, block) != name.pid) ++block;
  return block % kBlocks * kSlots + name.index.value;
}

ri::ContextName IndexTable::name_of(std::size_t slot) const {
  return {av::pid_of_step(own_, slot / kSlots), {static_cast<std::uint16_t>(slot % kSlots)}};
}

bool IndexTable::are_free(std::size_t first, std::size_t count) const {
  if (first % kSlots + count > kSlots) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (used_[first + i]) return false;
  }
  return true;
}

void IndexTable::mark(std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) used_.set(first + i);
  while (lowest_ < used_.size() && (used_[lowest_] || lowest_ % kSlots == 0)) ++lowest_;
}

Result<ri::ContextName> IndexTable::take(
    std::optional<ri::ContextName> wanted, std::size_t count,
    const std::function<bool(const ri::ContextName&)>& can_begin) {
  if (wanted) {
    const std::size_t slot = slot_of(*wanted);
    if (wanted->index.value + count > kSlots) return Error::NoMemory;
    if (!are_free(slot, count)) return Error::AddressInUse;
    mark(slot, count);
    return *wanted;
  }
  for (std::size_t slot = lowest_; slot < used_.size(); ++slot) {
    if (slot % kSlots == 0 || !are_free(slot, count)) continue;
    const ri::ContextName name = name_of(slot);
    if (!can_begin(name)) continue;
    mark(slot, count);
    return name;
  }
  return Error::NoMemory;
}

void IndexTable::give_back(const ri::ContextName& first, std::size_t count) {
  const std::size_t slot = slot_of(first);
  for (std::size_t i = 0; i < count; ++i) used_.reset(slot + i);
  lowest_ = std::min(lowest_, slot);
}

}  // namespace uet::prov
