// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libuet-nic-packet.so: FI_UET_NIC=packet.
#include "nic/module.h"
#include "nic/framed/framed_nic.h"
#include "nic/packet_device.h"

namespace uet::nic {
namespace {

Result<std::unique_ptr<Nic>> open(const NicConfig& config, std::string& message) {
  return FramedNic::open(config, PacketDevice::open, message);
}

}  // namespace
}  // namespace uet::nic

extern "C" __attribute__((visibility("default"))) const uet::nic::Module* uet_nic_module() {
  static constexpr uet::nic::Module kModule = {
      .name = "packet", .ip_mtu = uet::nic::FramedNic::interface_mtu, .open = uet::nic::open};
  return &kModule;
}
