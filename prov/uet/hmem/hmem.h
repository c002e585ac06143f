// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers of FI_HMEM that the CPU does not reach: from descriptors to the device memory that they
// lie in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "uet/base/device_memory.h"
#include "uet/ses/api.h"

namespace uet::prov {

// The kind of an operation's buffers according to their descriptors.
enum class Buffers : std::uint8_t { Host, Device, Wrong };

// How the bytes of a buffer get into packets.
enum class Reader : std::uint8_t {
  Driver,  // copies them
  Nic,     // reads them itself, where it has accepted the region
};

// Marks the slices that lie in device memory. `descriptors`: as many as slices, or nullptr; each
// nullptr or that of a region of fi_mr(3). Wrong: a buffer is not in the region of its descriptor.
Buffers mark_devices(void* const* descriptors, std::span<ses::IoSlice> slices,
                     Reader reader = Reader::Driver) noexcept;

// Does any of these descriptors name device memory?
bool name_devices(void* const* descriptors, std::size_t count) noexcept;

}  // namespace uet::prov
