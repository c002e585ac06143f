// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory of Intel's GPUs through Level Zero's loader, libze_loader.so.1.
#pragma once

#include "hmem/copied.h"

namespace uet::prov {

// Are the loader and a device there? The first call loads and initialises it.
bool has_level_zero() noexcept;

// `device`: as fi_hmem_ze_device() makes it, the driver's number above the device's 16 bits.
// nullptr: there is no such device, or it cannot be used.
CopiedMemory* level_zero_memory(int device) noexcept;

}  // namespace uet::prov
