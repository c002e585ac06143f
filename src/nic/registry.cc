// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Back ends by name, and the order in which middleware is stacked on them.
#include "nic/registry.h"

#include <algorithm>

#include "nic/interface.h"
#include "nic/local.h"
#include "nic/middleware.h"
#include "nic/module.h"
#include "nic/udp.h"

namespace uet::nic {
namespace {

Result<std::unique_ptr<Nic>> open_udp(const NicConfig& config, std::string& message) {
  auto nic = UdpNic::open(udp_options(config), message);
  if (!nic) return nic.error();
  return std::unique_ptr<Nic>(std::move(nic).value());
}

constexpr std::string_view kBuiltIn = "udp";

Result<std::unique_ptr<Nic>> open_back_end(const NicConfig& config, std::string& message) {
  if (config.back_end == kBuiltIn) return open_udp(config, message);
  const auto module = load_module(config.back_end, config.modules, message);
  if (!module) return module.error();
  return module.value()->open(config, message);
}

std::string interface_name_of(const FabricAddress& ip) {
  std::string ignored;
  const auto found = find_interface(ip, ignored);
  return found ? found.value().name : "uet";
}

// Faults, and a capture above them, as configured. `checked`: damage is found above.
Result<std::unique_ptr<Nic>> add_diagnosis(std::unique_ptr<Nic> nic, const NicConfig& config,
                                           const FaultSpec& faults, bool checked,
                                           std::string& message) {
  FaultNic* fault_nic = nullptr;
  if (faults.any()) {
    const FaultSurroundings surroundings{
        .crc = checked, .dscp_trimmable = config.dscp_data, .marks = config.trim_marks};
    auto wrapped = std::make_unique<FaultNic>(std::move(nic), faults, surroundings);
    fault_nic = wrapped.get();
    nic = std::move(wrapped);
  }
  if (config.pcap_file.empty()) return nic;
  auto capture = PcapNic::open(std::move(nic), config.pcap_file, interface_name_of(config.ip),
                               config.pcap_snap_bytes, message);
  if (!capture) return capture.error();
  if (fault_nic != nullptr) {
    // The capture owns the faults below it and outlives every call that reaches them.
    fault_nic->set_witness(
        [pcap = capture.value().get()](const RxPacket& packet, std::string_view why) {
          pcap->note_arrival(packet, why);
        });
  }
  return std::unique_ptr<Nic>(std::move(capture).value());
}

}  // namespace

bool set_back_end(NicConfig& config, std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  config.back_end = name;
  config.options = text.substr(std::min(colon + 1, text.size()));
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

Result<std::uint32_t> ip_mtu_on(const NicConfig& config, const Interface& interface,
                                std::string& message) {
  if (config.back_end == kBuiltIn) {
    if (config.options.empty()) return interface.mtu;
    message = "FI_UET_NIC=udp takes no options: leave out '" + config.options + "'";
    return Error::Invalid;
  }
  const auto module = load_module(config.back_end, config.modules, message);
  if (!module) return module.error();
  return module.value()->ip_mtu(config, interface, message);
}

Result<std::unique_ptr<Nic>> open_nic(const NicConfig& config, std::string& message) {
  message.clear();
  FaultSpec faults;
  if (!config.faults.empty()) {
    const auto parsed = parse_fault_spec(config.faults, message);
    if (!parsed) return parsed.error();
    faults = parsed.value();
  }

  auto opened = open_back_end(config, message);
  if (!opened) return opened.error();
  std::unique_ptr<Nic> nic = std::move(opened).value();
  const bool secured = static_cast<bool>(config.secure);
  const bool crc_above = config.crc && !nic->caps().crc && !secured;
  if (secured) {
    auto watched = add_diagnosis(std::move(nic), config, faults, true, message);
    if (!watched) return watched;
    auto secure = config.secure(std::move(watched).value(), message);
    if (!secure) return secure;
    nic = std::move(secure).value();
    if (!config.clear_pcap_file.empty()) {
      auto clear = PcapNic::open(std::move(nic), config.clear_pcap_file,
                                 interface_name_of(config.ip), config.pcap_snap_bytes, message);
      if (!clear) return clear.error();
      nic = std::move(clear).value();
    }
  }
  if (config.local_rings) {
    std::string why;
    auto rings = LocalNic::wrap(nic, config.receive_buffer_bytes, why, config.sdi);
    if (rings) nic = std::move(rings).value();
    if (!why.empty()) message += (message.empty() ? "" : "; ") + why;
  }
  if (config.self_delivery) nic = std::make_unique<LoopbackNic>(std::move(nic));
  if (secured) return nic;
  auto watched = add_diagnosis(std::move(nic), config, faults, crc_above, message);
  if (!watched || !crc_above) return watched;
  const wire::TrimMarks recognized = config.trimming ? config.trim_marks : wire::TrimMarks{};
  return std::unique_ptr<Nic>(std::make_unique<CrcNic>(std::move(watched).value(), recognized));
}

}  // namespace uet::nic
