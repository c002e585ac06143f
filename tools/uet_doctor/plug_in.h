// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether libfabric finds and loads the provider, and if not, why: libfabric itself reports nothing
// about a plug-in that it cannot load.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <string>

#include "report.h"

namespace uet::doctor {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Infos = std::unique_ptr<fi_info, FreeInfo>;

// The provider's answer to fi_getinfo, one entry per interface and address; null if libfabric does
// not find the provider: the report then says why.
Infos examine_plug_in(Report& report);

// The file of the provider that is mapped into this process, or "(unknown)".
std::string provider_file();

}  // namespace uet::doctor
