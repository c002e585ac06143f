// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each addr_format, there and back; what is not an address; the array that fi_av_insert takes.
#include "settings/address_format.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

#include "compat.h"

namespace uet::prov {
namespace {

constexpr std::uint32_t kUet = FI_ADDR_UET;

FabricAddress ipv4(std::uint8_t last) {
  FabricAddress ip;
  ip.bytes = {10, 0, 0, last};
  return ip;
}

FabricAddress ipv6() {
  FabricAddress ip;
  ip.is_ipv6 = true;
  ip.bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return ip;
}

sockaddr_in socket_address(const char* ip, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, ip, &address.sin_addr);
  return address;
}

TEST(AddressFormatOf, ServesEachFormatForItsFamilies) {
  const struct {
    std::uint32_t asked;
    std::uint32_t for_ipv4;  // 0: refused
    std::uint32_t for_ipv6;
  } rows[] = {
      {FI_FORMAT_UNSPEC, kUet, kUet},
      {kUet, kUet, kUet},
      {FI_ADDR_STR, FI_ADDR_STR, FI_ADDR_STR},
      {FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6},
      {kSockaddrIp, FI_SOCKADDR_IN, FI_SOCKADDR_IN6},
      {FI_SOCKADDR_IN, FI_SOCKADDR_IN, 0},
      {FI_SOCKADDR_IN6, 0, FI_SOCKADDR_IN6},
      {FI_SOCKADDR_IB, 0, 0},
      {FI_ADDR_EFA, 0, 0},
  };
  for (const auto& row : rows) {
    const auto of_ipv4 = AddressFormat::of(row.asked, false);
    const auto of_ipv6 = AddressFormat::of(row.asked, true);
    EXPECT_EQ(of_ipv4 ? of_ipv4->addr_format() : 0, row.for_ipv4) << row.asked;
    EXPECT_EQ(of_ipv6 ? of_ipv6->addr_format() : 0, row.for_ipv6) << row.asked;
  }
}

// fi_getinfo(3), FI_ADDR_FORMAT.
TEST(AddressFormatNamed, KnowsTheFormatsThatAreServed) {
  EXPECT_EQ(AddressFormat::named("FI_SOCKADDR_IN"), FI_SOCKADDR_IN);
  EXPECT_EQ(AddressFormat::named("fi_addr_str"), FI_ADDR_STR);
  EXPECT_EQ(AddressFormat::named("FI_SOCKADDR_IP"), kSockaddrIp);
  for (const char* name : {"", "FI_ADDR_EFA", "FI_SOCKADDR_INN"}) {
    EXPECT_EQ(AddressFormat::named(name), FI_FORMAT_UNSPEC) << name;
  }
  EXPECT_EQ(AddressFormat::named(nullptr), FI_FORMAT_UNSPEC);
}

TEST(AddressFormatEncode, IsReadBackInEachFormat) {
  for (const FabricAddress& ip : {ipv4(1), ipv6()}) {
    for (const std::uint32_t number :
         {kUet, std::uint32_t{FI_ADDR_STR}, std::uint32_t{FI_SOCKADDR}}) {
      const AddressFormat format = *AddressFormat::of(number, ip.is_ipv6);
      const av::UetAddress address = av::default_address({ip, 4800}, {3});
      const auto bytes = format.encode(address);
      EXPECT_EQ(AddressFormat::decode(format.addr_format(), bytes.data(), bytes.size()), address);
      EXPECT_EQ(AddressFormat::decode(FI_FORMAT_UNSPEC, bytes.data(), bytes.size()), address);
      const std::byte* cursor = bytes.data();
      EXPECT_EQ(format.next(cursor), address);
      EXPECT_EQ(cursor, bytes.data() + bytes.size());
      const auto from_text = address_of_text(format.to_text(bytes.data()));
      ASSERT_TRUE(from_text.has_value());
      EXPECT_EQ(av::complete(*from_text), address);
    }
  }
}

TEST(AddressFormatEncode, SocketAddressHasThePortThatNamesTheEndpoint) {
  const AddressFormat format = *AddressFormat::of(FI_SOCKADDR, false);
  const auto bytes = format.encode(av::default_address({ipv4(1), 4793}, {2}));
  const sockaddr_in expected = socket_address("10.0.0.1", 5817);
  ASSERT_EQ(bytes.size(), sizeof expected);
  EXPECT_EQ(std::memcmp(bytes.data(), &expected, sizeof expected), 0);
  EXPECT_TRUE(format.can_name(av::default_address({ipv4(1), 4793}, {64})));
  EXPECT_FALSE(format.can_name(av::default_address({ipv4(1), 4793}, {65})));
  EXPECT_TRUE(AddressFormat().can_name(av::default_address({ipv4(1), 4793}, {65})));
}

TEST(AddressFormatDecode, SocketAddressWithoutPortLeavesItOpen) {
  const sockaddr_in address = socket_address("10.0.0.1", 0);
  const auto decoded = AddressFormat::decode(FI_SOCKADDR_IN, &address, sizeof address);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->flags, av::kFabricAddressValid);
  EXPECT_EQ(decoded->udp_port, 0);
}

TEST(AddressFormatDecode, RefusesWhatIsNotOfTheFormat) {
  const sockaddr_in address = socket_address("10.0.0.1", 4793);
  const sockaddr_in nothing{};
  EXPECT_FALSE(AddressFormat::decode(FI_SOCKADDR_IN6, &address, sizeof address));
  EXPECT_FALSE(AddressFormat::decode(FI_SOCKADDR_IN, &address, sizeof address - 1));
  EXPECT_FALSE(AddressFormat::decode(FI_SOCKADDR, &nothing, sizeof nothing));
  EXPECT_FALSE(AddressFormat::decode(kUet, &address, sizeof address));
  EXPECT_FALSE(AddressFormat::decode(FI_ADDR_STR, "10.0.0.1", 9));
  EXPECT_EQ(AddressFormat::recognise("fi_shm://1", 11), std::uint32_t{FI_FORMAT_UNSPEC});
}

TEST(AddressFormatNext, WalksOverGoodAndBadSocketAddresses) {
  const sockaddr_in list[] = {socket_address("10.0.0.1", 9), {}, socket_address("10.0.0.3", 0)};
  const AddressFormat format = *AddressFormat::of(FI_SOCKADDR, false);
  const auto* cursor = reinterpret_cast<const std::byte*>(list);
  EXPECT_EQ(format.next(cursor), av::address_at(ipv4(1), 9));
  EXPECT_EQ(format.next(cursor), std::nullopt);
  EXPECT_EQ(format.next(cursor), av::default_address({ipv4(3), 4793}));
}

// fi_av(3) wants pointers; what providers with this format take, and fabtests give, is the text.
TEST(AddressFormatNext, TakesTextsAndPointersToTexts) {
  const AddressFormat format = *AddressFormat::of(FI_ADDR_STR, false);
  const char texts[] = "fi_addr_uet://10.0.0.1:4800\0nonsense\0fi_sockaddr://10.0.0.2:5817";
  const auto* cursor = reinterpret_cast<const std::byte*>(texts);
  const auto first = av::default_address({ipv4(1), 4800});
  const auto last = av::default_address({ipv4(2), 4793}, {2});
  EXPECT_EQ(format.next(cursor), first);
  EXPECT_EQ(format.next(cursor), std::nullopt);
  EXPECT_EQ(format.next(cursor), last);
  const char* pointers[] = {texts, texts + 28, nullptr, texts + 37};
  cursor = reinterpret_cast<const std::byte*>(pointers);
  EXPECT_EQ(format.next(cursor), first);
  EXPECT_EQ(format.next(cursor), std::nullopt);
  EXPECT_EQ(format.next(cursor), std::nullopt);
  EXPECT_EQ(format.next(cursor), last);
}

TEST(AddressFormatNext, Ses150_NativeAddressNeedsItsResourceIndex) {
  av::UetAddress address = av::default_address({ipv4(1), 4800});
  address.flags &= static_cast<std::uint8_t>(~(av::kInitiatorIdValid | av::kPidOnFepValid));
  auto bytes = AddressFormat().encode(address);
  const std::byte* cursor = bytes.data();
  EXPECT_EQ(AddressFormat().next(cursor), av::default_address({ipv4(1), 4800}));
  address.flags = av::kFabricAddressValid;
  bytes = AddressFormat().encode(address);
  cursor = bytes.data();
  EXPECT_EQ(AddressFormat().next(cursor), std::nullopt);
}

}  // namespace
}  // namespace uet::prov
