// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libuet-nic-shared.so: FI_UET_NIC=shared, port 4793 for several processes: kernel UDP, or with the
// option "packet" packet sockets beside it.
#include "nic/module.h"

#include "nic/framed/framed_nic.h"
#include "nic/packet_device.h"
#include "nic/shared_port.h"
#include "nic/slot_filter.h"
#include "nic/udp.h"

namespace uet::nic {
namespace {

bool has_packet_sockets(const NicConfig& config) { return config.options == "packet"; }

Result<std::uint32_t> ip_mtu(const NicConfig& config, const Interface& interface,
                             std::string& message) {
  if (has_packet_sockets(config)) return FramedNic::interface_mtu(config, interface, message);
  if (config.options.empty()) return interface.mtu;
  message = "FI_UET_NIC=shared: '" + config.options + "' is no option of it; allowed: packet";
  return Error::Invalid;
}

// Joins the shared port. Opens a port of its own if the configuration names one, or if the process
// has no right to share.
Result<std::unique_ptr<UdpNic>> open_kernel(const NicConfig& config, const UdpOptions& options,
                                            std::string& message) {
  std::string why;
  if (config.first_port != kUetUdpPort) {
    message = "FI_UET_NIC=shared is at port 4793: leave out FI_UET_UDP_PORT";
    return Error::Invalid;
  }
  const std::optional<std::uint8_t> wanted = slot_of_port(config.port);
  if (config.port == 0 || wanted) {
    UdpOptions shared = options;
    shared.gro = false;  // what the kernel merges has one receiver, which the first packet decides
    shared.bind = [&](int receiver, int sender, std::string& reason) {
      return join_shared_port(config.ip, wanted, receiver, sender, reason);
    };
    auto nic = UdpNic::open(shared, message);
    if (nic) {
      const auto slot = slot_of_port(nic.value()->local_address().port);
      if (config.report_mode) config.report_mode("slot " + std::to_string(*slot) + " at port 4793");
    }
    if (nic || wanted) return nic;
    why = "FI_UET_NIC=shared: " + message + "; this process has a port of its own instead";
  }
  auto nic = UdpNic::open(options, message);
  if (nic && !why.empty()) message = why + (message.empty() ? "" : "; " + message);
  return nic;
}

Result<std::unique_ptr<FrameDevice>> open_device(const FrameDeviceRequest& request,
                                                 std::string& message) {
  if (!slot_of_port(request.self.port)) return PacketDevice::open(request, message);
  const auto set_filter = [](int socket, const FrameDeviceRequest& what) {
    return take_only_frames_to_slot(socket, what.self);
  };
  return PacketDevice::open_filtered(request, set_filter, message);
}

Result<std::unique_ptr<Nic>> open(const NicConfig& config, std::string& message) {
  if (has_packet_sockets(config)) {
    NicConfig framed = config;
    framed.options.clear();
    return FramedNic::open(framed, open_device, message, FramedNic::KernelSees::Copies,
                           [&config](const UdpOptions& options, std::string& why) {
                             return open_kernel(config, options, why);
                           });
  }
  UdpOptions options = udp_options(config);
  options.source_ports = 1;  // it leaves from its slot
  auto nic = open_kernel(config, options, message);
  if (!nic) return nic.error();
  return std::unique_ptr<Nic>(std::move(nic).value());
}

}  // namespace
}  // namespace uet::nic

extern "C" __attribute__((visibility("default"))) const uet::nic::Module* uet_nic_module() {
  static constexpr uet::nic::Module kModule = {
      .name = "shared", .ip_mtu = uet::nic::ip_mtu, .open = uet::nic::open};
  return &kModule;
}
