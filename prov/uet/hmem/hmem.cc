// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hmem/hmem.h"

#include "objects/mr_fid.h"
#include "provider.h"

namespace uet::prov {

Buffers mark_devices(void* const* descriptors, std::span<ses::IoSlice> slices,
                     Reader reader) noexcept {
  if (descriptors == nullptr) return Buffers::Host;
  Buffers found = Buffers::Host;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (descriptors[i] == nullptr) continue;
    const Mr& region = Mr::of_descriptor(descriptors[i]);
    if (region.hmem() == nullptr || slices[i].length == 0) continue;
    if (!region.holds(slices[i].data, slices[i].length)) {
      FI_WARN(
          &provider, FI_LOG_EP_DATA,
          "fi_send, fi_write: descriptor: the buffer is outside its region; pass its descriptor\n");
      return Buffers::Wrong;
    }
    slices[i].device = reader == Reader::Nic ? region.sends_from() : region.hmem();
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

}  // namespace uet::prov
