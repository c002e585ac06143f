// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libuet-nic-dpdk.so: FI_UET_NIC=dpdk:DEVICE.
#include "nic/module.h"

#include "nic/dpdk_device.h"
#include "nic/framed/framed_nic.h"

namespace uet::nic {
namespace {

Result<std::unique_ptr<Nic>> open(const NicConfig& config, std::string& message) {
  return FramedNic::open(config, DpdkDevice::open, message, DpdkDevice::kernel_sees(config));
}

}  // namespace
}  // namespace uet::nic

extern "C" __attribute__((visibility("default"))) const uet::nic::Module* uet_nic_module() {
  static constexpr uet::nic::Module kModule = {
      .name = "dpdk", .ip_mtu = uet::nic::DpdkDevice::ip_mtu, .open = uet::nic::open};
  return &kModule;
}
