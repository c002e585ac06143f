// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Interface discovery, as far as every host is alike: all have lo.
#include "nic/interface.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nic_testing.h"

namespace uet::nic {
namespace {

std::vector<Interface> list() {
  std::string message;
  auto interfaces = list_interfaces(message);
  EXPECT_TRUE(interfaces.ok()) << message;
  return interfaces ? std::move(interfaces).value() : std::vector<Interface>{};
}

TEST(ListInterfaces, LoopbackIsThereAndLast) {
  const auto interfaces = list();
  ASSERT_FALSE(interfaces.empty());
  const Interface& lo = interfaces.back();
  EXPECT_EQ(lo.name, "lo");
  EXPECT_TRUE(lo.loopback);
  EXPECT_TRUE(lo.link_up);
  EXPECT_GT(lo.index, 0);
  EXPECT_GE(lo.mtu, 1500U);
  const auto address =
      std::find_if(lo.addresses.begin(), lo.addresses.end(),
                   [](const InterfaceAddress& a) { return a.ip == ipv4(127, 0, 0, 1); });
  ASSERT_NE(address, lo.addresses.end());
  EXPECT_EQ(address->prefix_length, 8);
  EXPECT_EQ(address->subnet(), "127.0.0.0/8");
  EXPECT_EQ(std::count_if(interfaces.begin(), interfaces.end(),
                          [](const Interface& i) { return i.loopback; }),
            1);
}

TEST(ListInterfaces, EveryInterfaceHasAnAddressAndNoneIsLinkLocal) {
  for (const Interface& interface : list()) {
    EXPECT_FALSE(interface.addresses.empty()) << interface.name;
    for (const InterfaceAddress& address : interface.addresses) {
      EXPECT_FALSE(address.ip.is_ipv6 && address.ip.bytes[0] == 0xFE &&
                   (address.ip.bytes[1] & 0xC0) == 0x80)
          << to_text(address.ip);
    }
  }
}

TEST(PciAddressOf, TheLastDeviceOfThePath) {
  using Pci = std::optional<PciAddress>;
  EXPECT_EQ(pci_address_of("/sys/devices/pci0000:00/0000:00:1c.4/0001:3b:1f.7"),
            (Pci{{1, 0x3B, 0x1F, 7}}));
  EXPECT_EQ(pci_address_of("/sys/devices/pci0000:00/0000:00:03.0/virtio2"), (Pci{{0, 0, 3, 0}}));
  EXPECT_EQ(pci_address_of("00ff:00:03.0"), (Pci{{0xFF, 0, 3, 0}}));
  for (const char* path : {"", "/", "/sys/devices/virtual/net/lo", "/sys/devices/pci0000:00",
                           "/sys/devices/0000:00:03", "/sys/devices/0000:00:03.0x"}) {
    EXPECT_EQ(pci_address_of(path), Pci{}) << path;
  }
}

TEST(ListInterfaces, LoopbackIsOnNoBus) { EXPECT_FALSE(list().back().pci.has_value()); }

TEST(InterfaceOf, ExactAddressAndLoopbackSubnet) {
  const auto interfaces = list();
  for (const FabricAddress& ip : {ipv4(127, 0, 0, 1), ipv4(127, 9, 8, 7)}) {
    const Interface* found = interface_of(interfaces, ip);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->name, "lo");
  }
  EXPECT_EQ(interface_of(interfaces, ipv4(203, 0, 113, 7)), nullptr);
}

TEST(FindInterface, AsInTheListOfAll) {
  std::string message;
  for (const Interface& listed : list()) {
    for (const InterfaceAddress& address : listed.addresses) {
      const auto found = find_interface(address.ip, message);
      ASSERT_TRUE(found.ok()) << to_text(address.ip) << message;
      EXPECT_EQ(found.value().name, listed.name);
      EXPECT_EQ(found.value().index, listed.index);
      EXPECT_EQ(found.value().mtu, listed.mtu);
      EXPECT_EQ(found.value().mac, listed.mac);
      EXPECT_EQ(found.value().link_rate_bps, listed.link_rate_bps);
      EXPECT_EQ(found.value().loopback, listed.loopback);
      EXPECT_EQ(found.value().link_up, listed.link_up);
      EXPECT_EQ(found.value().pci, listed.pci);
      ASSERT_EQ(found.value().addresses.size(), listed.addresses.size());
      for (std::size_t i = 0; i < listed.addresses.size(); ++i) {
        EXPECT_EQ(found.value().addresses[i].ip, listed.addresses[i].ip);
        EXPECT_EQ(found.value().addresses[i].prefix_length, listed.addresses[i].prefix_length);
      }
    }
  }
}

TEST(FindInterface, LoopbackSubnetAndForeignAddress) {
  std::string message;
  const auto loopback = find_interface(ipv4(127, 9, 8, 7), message);
  ASSERT_TRUE(loopback.ok()) << message;
  EXPECT_EQ(loopback.value().name, "lo");
  const auto foreign = find_interface(ipv4(203, 0, 113, 7), message);
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error(), Error::NotFound);
}

TEST(InterfaceAddress, SubnetText) {
  InterfaceAddress address;
  address.ip = ipv4(10, 1, 255, 7);
  address.prefix_length = 20;
  EXPECT_EQ(address.subnet(), "10.1.240.0/20");
  address.prefix_length = 32;
  EXPECT_EQ(address.subnet(), "10.1.255.7/32");
  address.prefix_length = 0;
  EXPECT_EQ(address.subnet(), "0.0.0.0/0");
  address.ip = ipv6_loopback();
  address.ip.bytes[0] = 0xFD;
  address.prefix_length = 64;
  EXPECT_EQ(address.subnet(), "fd00::/64");
}

TEST(SourceAddressFor, Loopback) {
  const auto source = source_address_for(ipv4(127, 0, 0, 1));
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source.value(), ipv4(127, 0, 0, 1));
}

TEST(ToText, AddressWithPort) {
  EXPECT_EQ(to_text(FepAddress{ipv4(10, 0, 0, 1), 4793}), "10.0.0.1:4793");
  EXPECT_EQ(to_text(FepAddress{ipv6_loopback(), 4794}), "[::1]:4794");
}

}  // namespace
}  // namespace uet::nic
