// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The 32-byte form (WIRE 4.2), the text form and the validity rules SES-147 to SES-150.
#include "av/address.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace uet::av {
namespace {

FabricAddress ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  FabricAddress ip;
  ip.bytes = {a, b, c, d};
  return ip;
}

UetAddress full_address() {
  UetAddress address = default_address({ipv4(10, 1, 2, 3), 4800});
  address.pid_on_fep = {0x123};
  address.start_resource_index = {0x456};
  address.num_resource_indices = 2;
  address.initiator_id = {0xA1B2C3D4};
  address.capabilities = kHpc;
  address.flags |= kCapabilitiesValid;
  return address;
}

// WIRE 4.2, every offset; there is no JobID among them (SES-148).
TEST(AddressEncode, Ses147_PutsEachMemberAtItsOffset) {
  const AddressBytes bytes = encode(full_address());
  const auto at = [&](std::size_t i) { return std::to_integer<int>(bytes[i]); };
  EXPECT_EQ(at(0), 0x00);
  EXPECT_EQ(at(1), 0x1F);
  EXPECT_EQ(at(2), 0x04);
  EXPECT_EQ(at(3), 0);
  EXPECT_EQ(at(4), 10);
  EXPECT_EQ(at(7), 3);
  for (std::size_t i = 8; i < 20; ++i) EXPECT_EQ(at(i), 0) << i;
  EXPECT_EQ(at(20) << 8 | at(21), 0x123);
  EXPECT_EQ(at(22) << 8 | at(23), 0x456);
  EXPECT_EQ(at(24) << 8 | at(25), 2);
  EXPECT_EQ(at(26) << 8 | at(27), 4800);
  EXPECT_EQ(at(28), 0xA1);
  EXPECT_EQ(at(31), 0xD4);
}

// WIRE 4.2: mode, address type, largest message and what a FEP can do.
TEST(AddressEncode, Ses147_Ses159_EachFlagAndCapabilityHasItsBit) {
  const auto flag = [](std::uint8_t added) {
    UetAddress address = full_address();
    address.flags |= added;
    return std::to_integer<int>(encode(address)[1]) & ~0x1F;
  };
  EXPECT_EQ(flag(0), 0);
  EXPECT_EQ(flag(kAbsolute), 0x20);
  EXPECT_EQ(flag(kOneMtu), 0x80);
  UetAddress ipv6 = full_address();
  ipv6.fabric_address.is_ipv6 = true;
  ipv6.fabric_address.bytes[15] = 9;
  ipv6.flags |= kIpv6;
  EXPECT_EQ(std::to_integer<int>(encode(ipv6)[1]), 0x5F);
  EXPECT_EQ(std::to_integer<int>(encode(ipv6)[4 + 15]), 9);
  const struct {
    std::uint8_t capability;
    int bit;
  } rows[] = {{kAiBase, 0x01},
              {kAiFull, 0x02},
              {kHpc, 0x04},
              {kReordering, 0x40},
              {kOptimizedNonMatching, 0x80}};
  for (const auto& row : rows) {
    UetAddress address = full_address();
    address.capabilities = row.capability;
    EXPECT_EQ(std::to_integer<int>(encode(address)[2]), row.bit);
  }
}

TEST(AddressDecode, InvertsEncode) {
  UetAddress address = full_address();
  EXPECT_EQ(decode(encode(address)).value(), address);
  address.fabric_address.is_ipv6 = true;
  address.fabric_address.bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  address.flags |= kIpv6 | kAbsolute;
  EXPECT_EQ(decode(encode(address)).value(), address);
}

TEST(AddressDecode, RefusesShortBytesAndLaterVersion) {
  AddressBytes bytes = encode(full_address());
  EXPECT_FALSE(decode(std::span(bytes).first(31)).ok());
  bytes[0] = std::byte{0x10};
  EXPECT_FALSE(decode(bytes).ok());
  bytes[0] = std::byte{0x0F};  // reserved half of the byte
  EXPECT_TRUE(decode(bytes).ok());
}

// WIRE 4.1
TEST(AddressDecode, RefusesIdsOfMoreThan12Bits) {
  UetAddress address = full_address();
  address.pid_on_fep = {0x1000};
  EXPECT_FALSE(decode(encode(address)).ok());
  address = full_address();
  address.start_resource_index = {0x1000};
  EXPECT_FALSE(decode(encode(address)).ok());
}

TEST(AddressDecode, IgnoresMembersNotMarkedValid) {
  UetAddress address = full_address();
  address.pid_on_fep = {0xFFFF};
  address.flags &= static_cast<std::uint8_t>(~kPidOnFepValid);
  EXPECT_EQ(decode(encode(address)).value().pid_on_fep.value, 0);
}

// ---- rails --------------------------------------------------------------------------------------

TEST(Rails, TravelBehindAnIpv4Address) {
  const std::vector<FabricAddress> further{ipv4(10, 1, 3, 3), ipv4(10, 1, 4, 3)};
  const AddressBytes bytes = encode(full_address(), further);
  EXPECT_EQ(std::to_integer<int>(bytes[2]), kHpc | kRails);
  EXPECT_EQ(further_addresses(bytes), further);
  EXPECT_EQ(decode(bytes).value(), full_address()) << "the same endpoint";
}

TEST(Rails, AreNotThereWithoutTheBit) {
  AddressBytes bytes = encode(full_address(), std::vector{ipv4(10, 1, 3, 3)});
  bytes[2] &= std::byte{0xFF ^ kRails};
  EXPECT_TRUE(further_addresses(bytes).empty());
  EXPECT_TRUE(further_addresses(encode(full_address())).empty());
  EXPECT_TRUE(further_addresses(std::span(bytes).first(20)).empty());
}

TEST(Rails, AnIpv6AddressHasNone) {
  UetAddress address = full_address();
  address.fabric_address.is_ipv6 = true;
  address.flags |= kIpv6;
  EXPECT_EQ(encode(address, std::vector{ipv4(10, 1, 3, 3)}), encode(address));
}

TEST(Rails, MayBeWrittenAsText) {
  const std::vector<FabricAddress> further{ipv4(10, 1, 3, 3), ipv4(10, 1, 4, 3)};
  const std::string text = to_text(full_address(), further);
  EXPECT_EQ(further_addresses(text), further);
  EXPECT_EQ(from_text(text).value(), full_address());
  EXPECT_TRUE(further_addresses(std::string_view(to_text(full_address()))).empty());
  EXPECT_FALSE(from_text("fi_addr_uet://10.1.2.3?rail=x")) << "no address";
}

TEST(CheckDestination, Ses150_NeedsFabricAddressAndResourceIndexOnly) {
  UetAddress address = full_address();
  address.flags = kFabricAddressValid | kResourceIndexValid;
  EXPECT_TRUE(check_destination(address).ok());
  address.flags = kFabricAddressValid;
  EXPECT_EQ(check_destination(address).error(), Error::Invalid);
  address.flags = kResourceIndexValid;
  EXPECT_EQ(check_destination(address).error(), Error::Invalid);
  address = full_address();
  address.fabric_address = {};
  EXPECT_EQ(check_destination(address).error(), Error::Invalid);
}

// WIRE 1.1
TEST(UetAddressFep, PortZeroMeansThePortOfTheStandard) {
  UetAddress address = full_address();
  EXPECT_EQ(address.fep().port, 4800);
  address.udp_port = 0;
  EXPECT_EQ(address.fep().port, 4793);
}

TEST(AddressText, ShowsEveryValidMember) {
  EXPECT_EQ(to_text(full_address()),
            "fi_addr_uet://10.1.2.3:4800?pid=291&ri=1110&n=2&init=2712847316&caps=4");
  UetAddress bare;
  bare.flags = kFabricAddressValid;
  bare.fabric_address = ipv4(1, 2, 3, 4);
  EXPECT_EQ(to_text(bare), "fi_addr_uet://1.2.3.4:0");
}

TEST(AddressText, IsReadBack) {
  UetAddress address = full_address();
  EXPECT_EQ(from_text(to_text(address)).value(), address);
  address.fabric_address.is_ipv6 = true;
  address.fabric_address.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  address.flags |= kIpv6 | kAbsolute | kOneMtu;
  EXPECT_EQ(to_text(address).substr(0, 29), "fi_addr_uet://[fe80::1]:4800?");
  EXPECT_EQ(from_text(to_text(address)).value(), address);
}

TEST(AddressText, PortAndParametersMayBeMissing) {
  const UetAddress address = from_text("fi_addr_uet://10.0.0.1").value();
  EXPECT_EQ(address.flags, kFabricAddressValid);
  EXPECT_EQ(address.udp_port, 0);
  EXPECT_EQ(from_text("fi_addr_uet://10.0.0.1?ri=0x10").value().start_resource_index.value, 16);
}

TEST(AddressText, RefusesWhatIsNotAnAddress) {
  for (const char* text :
       {"", "10.0.0.1", "fi_addr_uet://", "fi_addr_uet://host", "fi_addr_uet://10.0.0.1:65536",
        "fi_addr_uet://10.0.0.1:1x", "fi_addr_uet://10.0.0.1:", "fi_addr_uet://[::1",
        "fi_addr_uet://[::1]4793", "fi_addr_uet://::1", "fi_addr_uet://10.0.0.1?",
        "fi_addr_uet://10.0.0.1?pid", "fi_addr_uet://10.0.0.1?pid=4096",
        "fi_addr_uet://10.0.0.1?ri=4096", "fi_addr_uet://10.0.0.1?foo=1",
        "fi_addr_uet://10.0.0.1?abs=2", "fi_addr_uet://10.0.0.1?pid=1&",
        "fi_addr_uet://10.0.0.1?init=4294967296", "fi_addr_uet://10.0.0.1?caps=-1"}) {
    EXPECT_FALSE(from_text(text).ok()) << text;
  }
}

TEST(DefaultIds, FollowFromAddressAndPort) {
  EXPECT_EQ(default_pid_on_fep(4793).value, 0);
  EXPECT_EQ(default_pid_on_fep(4795).value, 2);
  EXPECT_EQ(default_pid_on_fep(9228).value, 0);
  EXPECT_EQ(default_pid_on_fep(kFirstSlotPort).value, 0);
  EXPECT_EQ(default_pid_on_fep(kLastSlotPort).value, kSharedSlots - 1);
  EXPECT_EQ(default_pid_on_fep(kLastSlotPort + 1).value, 0);
  const FepAddress fep{ipv4(127, 0, 0, 1), 4795};
  EXPECT_EQ(default_initiator(fep, {1}), default_initiator(fep, {1}));
  EXPECT_NE(default_initiator(fep, {1}), default_initiator(fep, {2}));
  FepAddress other = fep;
  other.port = 4794;
  EXPECT_NE(default_initiator(fep, {1}), default_initiator(other, {1}));
  EXPECT_TRUE(check_destination(default_address(fep)).ok());
}

// The meaning of a service number or the port of a socket address, both ways, for every number.
TEST(PortName, NamesUdpPortAndResourceIndexForEveryNumber) {
  const FabricAddress ip = ipv4(10, 0, 0, 1);
  EXPECT_EQ(address_at(ip, 4793), default_address({ip, 4793}));
  EXPECT_EQ(address_at(ip, 5816), default_address({ip, 5816}));
  EXPECT_EQ(address_at(ip, 4793 + 1024), default_address({ip, 4793}, {2}));
  EXPECT_EQ(address_at(ip, 0), default_address({ip, 4793}));
  EXPECT_EQ(address_at(ip, 4792), default_address({ip, 5816}, {64}));
  for (unsigned name = 1; name <= 0xFFFF; ++name) {
    const UetAddress address = address_at(ip, static_cast<std::uint16_t>(name));
    EXPECT_GE(address.udp_port, kUetUdpPort);
    EXPECT_LE(address.udp_port, kUetLastUdpPort);
    ASSERT_EQ(port_name_of(address), name);
  }
}

TEST(PortName, IsMissingWhereSixteenBitsDoNotSayIt) {
  const FepAddress fep{ipv4(10, 0, 0, 1), 4800};
  EXPECT_TRUE(port_name_of(default_address(fep, {64})).has_value());
  EXPECT_EQ(port_name_of(default_address(fep, {65})), std::nullopt);
  EXPECT_EQ(port_name_of(default_address(fep, {0})), std::nullopt);
  EXPECT_EQ(port_name_of(default_address({fep.ip, 6000})), std::nullopt);
  UetAddress other = default_address(fep);
  other.pid_on_fep = {9};
  EXPECT_EQ(port_name_of(other), std::nullopt);
  other = default_address(fep);
  other.initiator_id = {9};
  EXPECT_EQ(port_name_of(other), std::nullopt);
}

TEST(Complete, FillsInOnlyWhatIsMissing) {
  UetAddress address;
  address.flags = kFabricAddressValid;
  address.fabric_address = ipv4(10, 0, 0, 1);
  EXPECT_EQ(complete(address), default_address({address.fabric_address, 4793}));
  address.udp_port = 9228;
  EXPECT_EQ(complete(address), address_at(address.fabric_address, 9228));
  EXPECT_EQ(complete(full_address()), full_address());
  const UetAddress named = complete(from_text("fi_addr_uet://10.0.0.1:4800?ri=7&pid=3").value());
  EXPECT_EQ(named.start_resource_index.value, 7);
  EXPECT_EQ(named.pid_on_fep.value, 3);
  EXPECT_EQ(named.initiator_id, default_initiator({address.fabric_address, 4800}, {7}));
}

TEST(AddressOfSource, FindsTheIndexOfADefaultInitiator) {
  const FepAddress fep{ipv4(10, 0, 0, 1), 4800};
  EXPECT_EQ(address_of_source(fep, default_initiator(fep, {17})), default_address(fep, {17}));
  EXPECT_EQ(address_of_source(fep, default_initiator(fep, {39}, {17})),
            default_address(fep, {39}, {17}));
  EXPECT_EQ(default_initiator(fep, {7}, {17}), default_initiator(fep, {17})) << "of the port";
  const UetAddress unknown = address_of_source(fep, {1});
  EXPECT_EQ(unknown.fep(), fep);
  EXPECT_EQ(unknown.initiator_id.value, 1U);
  EXPECT_FALSE(unknown.has(kResourceIndexValid));
}

}  // namespace
}  // namespace uet::av
