// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether libfabric finds and loads the provider, and if not, why: libfabric itself keeps quiet
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

// What the provider offers, one entry per interface and address; null, with the reason in the
// report, if it is not there.
Infos examine_plug_in(Report& report);

// The file of the provider that is mapped into this process, or "(unknown)".
std::string provider_file();

}  // namespace uet::doctor
