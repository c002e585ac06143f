// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory of AMD's GPUs through libhsa-runtime64.so.1, which knows by the address whose memory it
// is: there is one object for all devices.
#pragma once

#include "hmem/copied.h"

namespace uet::prov {

// nullptr: no library, or no GPU. The first call loads and initialises it.
CopiedMemory* rocr_memory() noexcept;

}  // namespace uet::prov
