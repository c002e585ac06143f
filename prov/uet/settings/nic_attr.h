// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The description of a network interface that hangs on an fi_info.
#pragma once

#include <rdma/fabric.h>

#include <string>

#include "nic/interface.h"

namespace uet::prov {

// For fi_info.nic, which libfabric closes and duplicates through its own ops. Throws bad_alloc.
// `back_end`: as in FI_UET_NIC, it becomes the driver. `security`: as in FI_UET_TSS, and what it
// excludes; shown by fi_tostr.
fid_nic* make_nic(const nic::Interface& interface, const std::string& back_end,
                  const std::string& security = "off");

// strdup that throws bad_alloc; the caller (libfabric) frees it.
char* duplicate(const char* text);

}  // namespace uet::prov
