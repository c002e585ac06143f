// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Properties of the DPDK drivers: the longest frame, the packet memory that they need, and the
// arguments that they take. Text and numbers only; this module does not call DPDK.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nic/interface.h"

namespace uet::nic {

struct DpdkDriver {
  std::string_view name{};  // of a virtual device; empty = a PCI device
  std::uint32_t most_frame_bytes = 16'000;
  std::uint32_t mbufs = 1536;  // to receive into
  // Packets lie in pages of their own, and those to send in the memory of those that arrive.
  bool own_pages = false;
  bool xdp_program = false;      // it puts one on the interface
  bool sends_by_kernel = false;  // as in NicCaps
  // The kernel does not see its packets: a rule of the administrator diverts them to the device.
  bool fed_by_rule = false;
  bool to_one_peer = false;  // leads to one other process, which may come later and go
  std::uint64_t rights = 0;  // bits of CAP_NET_RAW and the like that it needs
};

// FI_UET_NIC=dpdk:DEVICE[,ARGUMENT=VALUE...].
struct DpdkOptions {
  DpdkDriver driver;
  std::string_view device;
  std::string_view arguments;

  // Of the argument of this name; empty if it is not among them.
  std::string_view value_of(std::string_view name) const;
};

// Nothing if they name no device.
std::optional<DpdkOptions> parse_dpdk_options(std::string_view options);

// Everything behind DEVICE, with what has to be added for frames of this length; the file of the
// XDP program for a driver that has one.
std::string device_arguments(const DpdkOptions& options, const Interface& interface,
                             std::uint32_t frame_bytes, std::string_view xdp_program);

// Data bytes of an mbuf.
std::uint32_t mbuf_data_bytes(const DpdkDriver& driver, std::uint32_t frame_bytes);

}  // namespace uet::nic
