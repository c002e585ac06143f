// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From descriptors to device memory, and its copies for sending: one for all pieces of a message.
#include "hmem/hmem.h"

#include <memory>
#include <new>

#include "objects/mr_fid.h"
#include "provider.h"

namespace uet::prov {

Buffers mark_devices(void* const* descriptors, std::span<ses::IoSlice> slices) noexcept {
  if (descriptors == nullptr) return Buffers::Host;
  Buffers found = Buffers::Host;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (descriptors[i] == nullptr) continue;
    const Mr& region = Mr::of_descriptor(descriptors[i]);
    if (region.hmem() == nullptr || slices[i].length == 0) continue;
    if (!region.holds(slices[i].data, slices[i].length)) {
      FI_WARN(&provider, FI_LOG_EP_DATA, "a buffer lies outside the region of its descriptor\n");
      return Buffers::Wrong;
    }
    slices[i].device = region.hmem();
    found = Buffers::Device;
  }
  return found;
}

bool name_devices(void* const* descriptors, std::size_t count) noexcept {
  for (std::size_t i = 0; descriptors != nullptr && i < count; ++i) {
    if (descriptors[i] != nullptr && Mr::of_descriptor(descriptors[i]).hmem() != nullptr) {
      return true;
    }
  }
  return false;
}

Staged* stage(std::span<ses::IoSlice> slices) noexcept {
  std::unique_ptr<Staged> staged(new (std::nothrow) Staged);
  if (staged == nullptr) return nullptr;
  for (const ses::IoSlice& slice : slices) {
    if (slice.device == nullptr) continue;
    staged->owner = static_cast<Hmem*>(slice.device);
    staged->bytes += slice.length;
  }
  staged->memory = staged->owner->take_staging(staged->bytes);
  if (staged->memory == nullptr) return nullptr;
  std::byte* to = staged->memory;
  for (ses::IoSlice& slice : slices) {
    if (slice.device == nullptr) continue;
    static_cast<Hmem*>(slice.device)->fetch_staged(to, slice.data, slice.length);
    slice = {to, slice.length};
    to += slice.length;
  }
  return staged.release();
}

}  // namespace uet::prov
