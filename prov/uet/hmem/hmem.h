// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers of FI_HMEM that the CPU does not reach: who copies them, and the copies in the CPU's
// memory from which they are sent. Receives and reads place bytes in the device's memory packet by
// packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "uet/base/device_memory.h"
#include "uet/base/intrusive_list.h"
#include "uet/ses/api.h"

namespace uet::prov {

// Device memory with a place to copy it to.
class Hmem : public DeviceMemory {
 public:
  // Memory of the CPU that `fetch_staged` is quick into; nullptr if there is none.
  virtual std::byte* take_staging(std::size_t bytes) noexcept = 0;
  virtual void give_back_staging(std::byte* memory, std::size_t bytes) noexcept = 0;
  virtual void fetch_staged(std::byte* staging, const std::byte* there,
                            std::size_t bytes) noexcept = 0;
};

struct StagedTag;
// Host memory that is sent instead of device memory, until the operation completes.
struct Staged : ListNode<StagedTag> {
  void* context = nullptr;       // the application's
  std::uint64_t user_flags = 0;  // as they would have been
  Hmem* owner = nullptr;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;

  ~Staged() {
    if (memory != nullptr) owner->give_back_staging(memory, bytes);
  }
};
using StagedList = IntrusiveList<Staged, StagedTag>;

// In the user flags of an operation of SES, where no flag of libfabric is: its context is a Staged.
inline constexpr std::uint64_t kStaged = std::uint64_t{1} << 61;

// The kind of an operation's buffers according to their descriptors.
enum class Buffers : std::uint8_t { Host, Device, Wrong };

// Marks the slices that lie in device memory. `descriptors`: as many as slices, or nullptr; each
// nullptr or that of a region of fi_mr(3). Wrong: a buffer is not in the region of its descriptor.
Buffers mark_devices(void* const* descriptors, std::span<ses::IoSlice> slices) noexcept;

// Does any of these descriptors name device memory?
bool name_devices(void* const* descriptors, std::size_t count) noexcept;

// Copies what is marked; the slices are then of the CPU's memory. nullptr: there is none.
Staged* stage(std::span<ses::IoSlice> slices) noexcept;

}  // namespace uet::prov
