// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An fi_info that is owned.
#pragma once

#include <rdma/fabric.h>

#include <memory>

namespace uet::prov {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

}  // namespace uet::prov
