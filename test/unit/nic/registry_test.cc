// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opening by name, and the stack of middleware.
#include "uet/nic/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "nic_testing.h"

namespace uet::nic {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

NicConfig own_config() {
  NicConfig config;
  config.ip = own_loopback_address();
  return config;
}

std::unique_ptr<Nic> open(const NicConfig& config) {
  std::string message;
  auto nic = open_nic(config, message);
  EXPECT_TRUE(nic.ok()) << message;
  return nic ? std::move(nic).value() : nullptr;
}

TEST(Registry, KnowsUdp) { EXPECT_THAT(back_end_names(), Contains("udp")); }

TEST(OpenNic, UnknownBackEndListsWhatExists) {
  NicConfig config = own_config();
  config.back_end = "carrier-pigeon";
  std::string message;
  const auto nic = open_nic(config, message);
  ASSERT_FALSE(nic.ok());
  EXPECT_EQ(nic.error(), Error::NotFound);
  EXPECT_THAT(message, HasSubstr("carrier-pigeon"));
  EXPECT_THAT(message, HasSubstr("udp"));
}

TEST(OpenNic, BadFaultsAreRefused) {
  NicConfig config = own_config();
  config.faults = "loss=1%,wind=3";
  std::string message;
  const auto nic = open_nic(config, message);
  ASSERT_FALSE(nic.ok());
  EXPECT_EQ(nic.error(), Error::Invalid);
  EXPECT_THAT(message, HasSubstr("wind=3"));
}

TEST(OpenNic, ErrorOfTheBackEndPassesUp) {
  const auto holder = open(own_config());
  NicConfig config = own_config();
  config.port = holder->local_address().port;
  std::string message;
  const auto nic = open_nic(config, message);
  ASSERT_FALSE(nic.ok());
  EXPECT_EQ(nic.error(), Error::AddressInUse);
}

TEST(OpenNic, SelfDeliveryNeedsNoNetwork) {
  const auto nic = open(own_config());
  PacketSet packets;
  packets.add(nic->local_address(), 12, 34);
  ASSERT_EQ(nic->tx_burst(packets.all()), 1U);
  EXPECT_EQ(nic->next_deadline(), Time{});
  std::array<RxPacket, 4> out;
  ASSERT_EQ(nic->rx_burst(out, Time{}), 1U);
  EXPECT_EQ(Arrival(out[0]).bytes, packets.bytes(0));
}

TEST(OpenNic, FaultsAndCaptureActTogether) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("uet_registry_test_" + std::to_string(::getpid()) + ".pcapng");
  NicConfig config = own_config();
  config.faults = "loss=100%";
  config.pcap_file = file.string();
  auto nic = open(config);
  PacketSet packets;
  packets.add(nic->local_address(), 12, 34);
  ASSERT_EQ(nic->tx_burst(packets.all()), 1U);
  std::array<RxPacket, 4> out;
  EXPECT_EQ(nic->rx_burst(out, Time{}), 0U);
  nic.reset();

  std::FILE* opened = std::fopen(file.c_str(), "rb");
  ASSERT_NE(opened, nullptr);
  std::string contents(4096, '\0');
  contents.resize(std::fread(contents.data(), 1, contents.size(), opened));
  std::fclose(opened);
  std::filesystem::remove(file);
  EXPECT_THAT(contents, HasSubstr("lost by fault injection"));
}

TEST(OpenNic, CaptureFileThatCannotBeWrittenIsRefused) {
  NicConfig config = own_config();
  config.pcap_file = "/nowhere/at/all.pcapng";
  std::string message;
  const auto nic = open_nic(config, message);
  ASSERT_FALSE(nic.ok());
  EXPECT_EQ(nic.error(), Error::Io);
  EXPECT_THAT(message, HasSubstr("/nowhere/at/all.pcapng"));
  // Nothing stays open: the port is free again.
  EXPECT_EQ(open(own_config())->local_address().port, 4793);
}

}  // namespace
}  // namespace uet::nic
