// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Node and service without asking any name server: numbers, texts, localhost, ranges.
#include "settings/names.h"

#include <gtest/gtest.h>

namespace uet::prov {
namespace {

FabricAddress ipv4(std::uint8_t c, std::uint8_t d) {
  FabricAddress ip;
  ip.bytes = {10, 0, c, d};
  return ip;
}

TEST(Resolve, ServiceOfADestinationNamesAnEndpoint) {
  const auto found = resolve("10.0.0.1", "5817", false, true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front(), av::default_address({ipv4(0, 1), 4793}, {2}));
  EXPECT_EQ(resolve("10.0.0.1", nullptr, false, true).front(),
            av::default_address({ipv4(0, 1), 4793}));
}

TEST(Resolve, ListenerWithoutServiceIsOpen) {
  const auto found = resolve("10.0.0.1", nullptr, true, true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().flags, av::kFabricAddressValid);
  EXPECT_EQ(found.front().udp_port, 0);
  EXPECT_EQ(resolve("10.0.0.1", "4800", true, true).front(),
            av::default_address({ipv4(0, 1), 4800}));
}

TEST(Resolve, TextIsTakenAsItIs) {
  const auto found = resolve("fi_addr_uet://10.0.0.1:4800?ri=7&init=9", nullptr, false, false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().start_resource_index.value, 7);
  EXPECT_EQ(found.front().initiator_id.value, 9U);
  EXPECT_EQ(resolve("fi_sockaddr://10.0.0.1:4800", nullptr, false, false).front(),
            av::default_address({ipv4(0, 1), 4800}));
  EXPECT_EQ(resolve("fi_addr_uet://10.0.0.1", "4800", false, false).front(),
            av::default_address({ipv4(0, 1), 4800}));
  EXPECT_TRUE(resolve("fi_addr_uet://10.0.0.1:4800", "4801", false, false).empty());
  EXPECT_TRUE(resolve("fi_shm://1234", nullptr, false, false).empty());
}

TEST(Resolve, NamesAreRefusedWhereNumbersAreAskedFor) {
  EXPECT_TRUE(resolve("localhost", nullptr, false, true).empty());
  EXPECT_TRUE(resolve("10.0.0.1", "no-such-service", false, true).empty());
}

// The example of fi_av(3).
TEST(ResolveRange, CountsServicesThenNodes) {
  const auto range = resolve_range("10.0.0.255", 2, "5000", 2, false);
  ASSERT_EQ(range.size(), 4U);
  EXPECT_EQ(range[0], av::address_at(ipv4(0, 255), 5000));
  EXPECT_EQ(range[1], av::address_at(ipv4(0, 255), 5001));
  EXPECT_EQ(range[2], av::address_at(ipv4(1, 0), 5000));
  EXPECT_EQ(range[3], av::address_at(ipv4(1, 0), 5001));
}

TEST(ResolveRange, CountsInIpv6AndLeavesOutTheOtherFamily) {
  const auto range = resolve_range("fd00::ffff", 2, "5000", 1, true);
  ASSERT_EQ(range.size(), 2U);
  ASSERT_TRUE(range[1].has_value());
  EXPECT_EQ(range[1]->fabric_address.bytes[13], 1);
  EXPECT_EQ(range[1]->fabric_address.bytes[15], 0);
  EXPECT_FALSE(resolve_range("fd00::1", 1, "5000", 1, false).front().has_value());
}

TEST(ResolveRange, UncountableNodeOrServiceIsEmpty) {
  auto range = resolve_range("255.255.255.255", 2, "65535", 2, false);
  ASSERT_EQ(range.size(), 4U);
  EXPECT_TRUE(range[0].has_value());
  EXPECT_FALSE(range[1].has_value()) << "port 65536";
  EXPECT_FALSE(range[2].has_value()) << "behind the last address";
  range = resolve_range("localhost", 2, "5000", 1, false);
  EXPECT_TRUE(range[0].has_value());
  EXPECT_FALSE(range[1].has_value()) << "no number at its end";
  EXPECT_TRUE(resolve_range("10.0.0.1", 0, "5000", 3, false).empty());
}

}  // namespace
}  // namespace uet::prov
