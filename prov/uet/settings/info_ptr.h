// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An fi_info that is owned.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <memory>

namespace uet::prov {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

// Null without memory, and `info` stays as it is: fi_dupinfo of libfabric 1.17 then closes the nic
// of `info` itself, so that it is not shown the nic.
inline InfoPtr copy_info(const fi_info& info) {
  fi_info without_nic = info;
  without_nic.nic = nullptr;
  InfoPtr copy(fi_dupinfo(&without_nic));
  if (copy == nullptr || info.nic == nullptr) return copy;
  fid* nic = nullptr;
  const int result = fi_control(&info.nic->fid, FI_DUP, &nic);
  if (result != 0 && result != -FI_ENOSYS) return nullptr;
  copy->nic = reinterpret_cast<fid_nic*>(nic);
  return copy;
}

}  // namespace uet::prov
