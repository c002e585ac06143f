// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which network interfaces of this host can carry UET, and which local address leads to a peer.
// Every call asks the kernel again; a caller that needs a cache keeps its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "uet/base/address.h"
#include "uet/base/result.h"

namespace uet::nic {

struct InterfaceAddress {
  FabricAddress ip;
  std::uint8_t prefix_length = 0;  // bits of `ip` that name the subnet

  // The subnet as text, e.g. "10.0.0.0/24" or "fd00::/64".
  std::string subnet() const;
};

// Where a device sits on a PCI bus, as "0000:3b:00.1" says.
struct PciAddress {
  std::uint16_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::uint8_t function = 0;

  bool operator==(const PciAddress&) const = default;
};

// The PCI device that a path of sysfs leads to last, perhaps through a bus of its own (virtio).
std::optional<PciAddress> pci_address_of(std::string_view device_path);

// The interface below an 802.1Q interface, and its VLAN id.
struct VlanOf {
  int interface_index = 0;  // of the interface below, which carries its tagged frames
  std::uint16_t id = 0;     // 1 to 4094
};

struct Interface {
  std::string name;
  int index = 0;
  std::vector<InterfaceAddress> addresses;  // in the kernel's order, never empty
  std::uint32_t mtu = 0;                    // largest IP packet, headers included
  std::array<std::uint8_t, 6> mac{};        // all zero where there is none
  // 0 = not known; of a veth 100 Gb/s, since what its driver states is true of none (CMS-723).
  std::uint64_t link_rate_bps = 0;
  bool link_up = false;  // carrier present
  bool loopback = false;
  std::optional<VlanOf> vlan;     // none: frames are not tagged
  std::optional<PciAddress> pci;  // none: a virtual interface, or on another bus
};

// Interfaces that are switched on and hold at least one usable address, loopback last, otherwise by
// index. Left out are link-local addresses, because a fabric address has no field for the interface
// they belong to, and addresses that duplicate address detection has not released. Error::Io when
// netlink fails; `message` then says how.
Result<std::vector<Interface>> list_interfaces(std::string& message);

// As interface_of(list_interfaces(), ip), but of the other interfaces, which may be hundreds, the
// kernel tells the addresses alone. Error::NotFound: there is none; Error::Io: as there.
Result<Interface> find_interface(const FabricAddress& ip, std::string& message);

// The interface that holds `ip`, or the loopback interface if `ip` lies in its subnet (every
// address in 127.0.0.0/8 is ours); nullptr if there is none.
const Interface* interface_of(const std::vector<Interface>& interfaces, const FabricAddress& ip);

// Every address that an interface of this host has. Empty if the kernel does not say.
std::vector<FabricAddress> addresses_of_host();
// 127.0.0.0/8 or ::1: always this host.
bool is_loopback(const FabricAddress& ip);

// The local address that packets to `destination` leave from. Error::NotFound: no route.
Result<FabricAddress> source_address_for(const FabricAddress& destination);

// "192.0.2.1" or "2001:db8::1".
std::string to_text(const FabricAddress& ip);
// "192.0.2.1:4793" or "[2001:db8::1]:4793".
std::string to_text(const FepAddress& address);

}  // namespace uet::nic
