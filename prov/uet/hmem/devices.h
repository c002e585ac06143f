// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The drivers of FI_HMEM together: which are there, and the memory of a region.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

#include "uet/base/device_memory.h"
#include "uet/nic/nic.h"

namespace uet::prov {

// Is the driver of this interface there, with a device? Not for FI_HMEM_SYSTEM. The first call
// loads it.
bool has_device_driver(fi_hmem_iface iface) noexcept;
bool has_any_device_driver() noexcept;

// The memory that attr.iface and attr.device name, if it holds all of these bytes. nullptr: it does
// not, or there is no such device; `why` is a text for the log.
DeviceMemory* memory_of_device(const fi_mr_attr& attr, const void* address, std::size_t bytes,
                               const char*& why) noexcept;

// May this NIC read device memory itself? Not if FI_HMEM_DISABLE_P2P forbids it (fi_mr(3)).
bool may_read_devices(const nic::Nic& nic) noexcept;

// A dmabuf of the memory at this address, and the address's offset in it; the caller closes it. -1:
// the driver of attr.iface has none.
int export_dmabuf(const fi_mr_attr& attr, const void* address, std::uint64_t& offset) noexcept;

}  // namespace uet::prov
