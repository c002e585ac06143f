// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opening by name, and the stack of middleware.
#include "nic/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "nic/middleware.h"
#include "nic/module.h"
#include "nic_testing.h"

namespace uet::nic {
namespace {

using ::testing::ElementsAre;
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

TEST(SetBackEnd, FirstColon_SeparatesNameFromOptions) {
  NicConfig config;
  EXPECT_TRUE(set_back_end(config, "dpdk:net_memif:id=1"));
  EXPECT_EQ(config.back_end, "dpdk");
  EXPECT_EQ(config.options, "net_memif:id=1");
  EXPECT_TRUE(set_back_end(config, "udp"));
  EXPECT_EQ(config.back_end, "udp");
  EXPECT_EQ(config.options, "");
  for (const char* bad : {"", ":native", "../packet", "Packet", "xdp 1"}) {
    EXPECT_FALSE(set_back_end(config, bad)) << bad;
  }
}

TEST(IpMtuOn, Udp_TakesMtuOfInterfaceAndNoOptions) {
  Interface interface;
  interface.mtu = 1234;
  NicConfig config;
  std::string message;
  EXPECT_EQ(ip_mtu_on(config, interface, message).value(), 1234U);
  config.options = "fast";
  EXPECT_EQ(ip_mtu_on(config, interface, message).error(), Error::Invalid);
  EXPECT_THAT(message, HasSubstr("fast"));
}

// A directory with one file that is called like a module and is none.
class Modules : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_);
    std::ofstream(directory_ / "libuet-nic-broken.so") << "this is no library";
    std::ofstream(directory_ / "libuet-fi.so") << "neither is this";
    config_ = own_config();
    config_.modules = directory_.string();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("uet_modules_test_" + std::to_string(::getpid()));
  NicConfig config_;
};

TEST_F(Modules, AreListedByTheNamesThatChooseThem) {
  EXPECT_THAT(installed_modules(directory_.string()), ElementsAre("broken"));
}

TEST_F(Modules, MissingModuleIsNotFoundAndOthersAreNamed) {
  config_.back_end = "pigeon";
  std::string message;
  EXPECT_EQ(open_nic(config_, message).error(), Error::NotFound);
  EXPECT_THAT(message, HasSubstr("'pigeon'"));
  EXPECT_THAT(message, HasSubstr("there is udp, broken"));
  EXPECT_EQ(ip_mtu_on(config_, Interface{}, message).error(), Error::NotFound);
}

TEST_F(Modules, BrokenModuleSaysWhy) {
  config_.back_end = "broken";
  std::string message;
  EXPECT_EQ(open_nic(config_, message).error(), Error::NotFound);
  EXPECT_THAT(message, HasSubstr("libuet-nic-broken.so"));
  EXPECT_THAT(message, HasSubstr("cannot be loaded"));
}

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

// Seen from above: adds a byte to what passes, so that a test sees on which side of it others are.
class MarkingNic final : public Middleware {
 public:
  explicit MarkingNic(std::unique_ptr<Nic> inner) : Middleware(std::move(inner)) {}
  std::size_t tx_burst(std::span<const Packet* const> in) override {
    sent += in.size();
    return Middleware::tx_burst(in);
  }
  static inline std::size_t sent = 0;
};

// TSS-64, TSS-70: security is above the capture, and below self-delivery and rings.
TEST(OpenNic, Tss64And70_Security_BetweenCaptureAndSelf) {
  const std::string file = testing::TempDir() + "uet_registry_secure.pcapng";
  NicConfig config = own_config();
  config.pcap_file = file;
  config.secure = [](std::unique_ptr<Nic> inner, std::string&) {
    EXPECT_NE(dynamic_cast<PcapNic*>(inner.get()), nullptr);
    return Result<std::unique_ptr<Nic>>(std::make_unique<MarkingNic>(std::move(inner)));
  };
  MarkingNic::sent = 0;
  const auto nic = open(config);
  ASSERT_NE(nic, nullptr);
  EXPECT_NE(dynamic_cast<LoopbackNic*>(nic.get()), nullptr);
  Packet packet;
  packet.reset();
  std::fill_n(packet.append(20), 20, std::byte{1});
  packet.to = nic->local_address();
  const Packet* const one = &packet;
  EXPECT_EQ(nic->tx_burst({&one, 1}), 1U);
  EXPECT_EQ(MarkingNic::sent, 0U);  // to itself
  packet.to.port = static_cast<std::uint16_t>(packet.to.port + 1);
  EXPECT_EQ(nic->tx_burst({&one, 1}), 1U);
  EXPECT_EQ(MarkingNic::sent, 1U);
  std::filesystem::remove(file);
}

TEST(OpenNic, ARefusalBySecurityIsPassedUp) {
  NicConfig config = own_config();
  config.secure = [](std::unique_ptr<Nic>, std::string& why) {
    why = "no keys";
    return Result<std::unique_ptr<Nic>>(Error::KeyInUse);
  };
  std::string message;
  EXPECT_EQ(open_nic(config, message).error(), Error::KeyInUse);
  EXPECT_EQ(message, "no keys");
}

}  // namespace
}  // namespace uet::nic
