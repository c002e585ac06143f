// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What fi_info says of the network interface.
#include "settings/nic_attr.h"

#include <gtest/gtest.h>
#include <rdma/fabric.h>

#include <array>
#include <cstring>
#include <string>

namespace uet::prov {
namespace {

void expect_pci(const fid_nic& nic) {
  ASSERT_EQ(nic.bus_attr->bus_type, FI_BUS_PCI);
  const fi_pci_attr& pci = nic.bus_attr->attr.pci;
  EXPECT_EQ(pci.domain_id, 1);
  EXPECT_EQ(pci.bus_id, 0x3B);
  EXPECT_EQ(pci.device_id, 2);
  EXPECT_EQ(pci.function_id, 3);
}

TEST(MakeNic, SaysWhereOnThePciBus) {
  nic::Interface interface;
  interface.name = "eth7";
  interface.pci = nic::PciAddress{1, 0x3B, 2, 3};
  fid_nic* nic = make_nic(interface, "packet");
  expect_pci(*nic);
  fid_nic* copy = nullptr;
  ASSERT_EQ(fi_control(&nic->fid, FI_DUP, &copy), 0);
  expect_pci(*copy);
  EXPECT_STREQ(copy->device_attr->name, "eth7");
  EXPECT_STREQ(copy->device_attr->driver, "packet");
  fi_close(&nic->fid);
  fi_close(&copy->fid);
}

// The attributes are shown completely; tostr appends them to the present text and keeps its limit.
TEST(MakeNic, IsShownByFiInfo) {
  nic::Interface interface;
  interface.name = "eth7";
  interface.mtu = 4200;
  interface.pci = nic::PciAddress{1, 0x3B, 2, 3};
  fid_nic* nic = make_nic(interface, "packet", "require, and more");
  fi_info* info = fi_allocinfo();
  info->nic = nic;
  const std::string text = fi_tostr(info, FI_TYPE_INFO);
  for (const char* line :
       {"fi_fabric_attr:\n", "    nic:\n", "name: eth7\n", "driver: packet\n", "pci 0001:3b:02.3\n",
        "mtu: 4200\n", "FI_LINK_DOWN\n", "transport security: require, and more\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in\n" << text;
  }
  std::array<char, 64> buffer;
  buffer.fill('#');
  std::strcpy(buffer.data(), "so far ");
  EXPECT_EQ(nic->fid.ops->tostr(&nic->fid, buffer.data(), 12), 0);
  EXPECT_STREQ(buffer.data(), "so far     nic:\n  ");
  EXPECT_EQ(buffer[7 + 12], '#');
  fi_freeinfo(info);
}

TEST(MakeNic, OrThatTheBusIsNotKnown) {
  fid_nic* nic = make_nic({}, "udp");
  EXPECT_EQ(nic->bus_attr->bus_type, FI_BUS_UNKNOWN);
  fi_close(&nic->fid);
}

}  // namespace
}  // namespace uet::prov
