// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libuet-nic-shared.so: FI_UET_NIC=shared, kernel UDP at a port that processes share.
#include "uet/nic/module.h"
#include "uet/nic/shared_port.h"
#include "uet/nic/udp.h"

namespace uet::nic {
namespace {

Result<std::uint32_t> ip_mtu(const NicConfig& config, const Interface& interface,
                             std::string& message) {
  if (config.options.empty()) return interface.mtu;
  message = "FI_UET_NIC=shared takes no options: leave out '" + config.options + "'";
  return Error::Invalid;
}

// A port of its own is what whoever names one has asked for, and what is left without the right.
Result<std::unique_ptr<Nic>> open(const NicConfig& config, std::string& message) {
  UdpOptions options;
  options.ip = config.ip;
  options.port = config.port;
  options.receive_buffer_bytes = config.receive_buffer_bytes;
  options.send_buffer_bytes = config.send_buffer_bytes;
  options.gso = config.gso;
  std::string why;
  const std::optional<std::uint8_t> wanted = place_of(config.port);
  if (config.port == 0 || wanted) {
    UdpOptions shared = options;
    shared.gro = false;  // what the kernel merges has one receiver, which the first packet decides
    shared.bind = [&](int receiver, int sender, std::string& reason) {
      return join_shared_port(config.ip, wanted, receiver, sender, reason);
    };
    auto nic = UdpNic::open(shared, message);
    if (nic) {
      const auto place = place_of(nic.value()->local_address().port);
      if (config.tell_way) config.tell_way("place " + std::to_string(*place) + " at port 4793");
      return std::unique_ptr<Nic>(std::move(nic).value());
    }
    if (wanted) return nic.error();
    why = "FI_UET_NIC=shared: " + message + "; this process has a port of its own instead";
  }
  options.gro = config.gro;
  auto nic = UdpNic::open(options, message);
  if (!nic) return nic.error();
  if (!why.empty()) message = why + (message.empty() ? "" : "; " + message);
  return std::unique_ptr<Nic>(std::move(nic).value());
}

}  // namespace
}  // namespace uet::nic

extern "C" __attribute__((visibility("default"))) const uet::nic::Module* uet_nic_module() {
  static constexpr uet::nic::Module kModule = {
      .name = "shared", .ip_mtu = uet::nic::ip_mtu, .open = uet::nic::open};
  return &kModule;
}
