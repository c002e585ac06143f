// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libuet-nic-verbs.so: FI_UET_NIC=verbs.
#include "nic/module.h"
#include "nic/framed/framed_nic.h"
#include "nic/verbs_device.h"

namespace uet::nic {
namespace {

Result<std::unique_ptr<Nic>> open(const NicConfig& config, std::string& message) {
  return FramedNic::open(config, VerbsDevice::open, message);
}

}  // namespace
}  // namespace uet::nic

extern "C" __attribute__((visibility("default"))) const uet::nic::Module* uet_nic_module() {
  static constexpr uet::nic::Module kModule = {
      .name = "verbs", .ip_mtu = uet::nic::VerbsDevice::ip_mtu, .open = uet::nic::open};
  return &kModule;
}
