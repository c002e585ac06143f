// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Self-delivery.
#include <gtest/gtest.h>

#include "nic/middleware.h"
#include "nic_testing.h"

namespace uet::nic {
namespace {

const FepAddress kSelf{ipv4(10, 0, 0, 1), 4793};
const FepAddress kPeer{ipv4(10, 0, 0, 2), 4793};

struct Loopback : ::testing::Test {
  FakeNic* fake = new FakeNic(kSelf);
  LoopbackNic nic{std::unique_ptr<Nic>(fake)};
  PacketSet packets;
  std::array<RxPacket, kRxBurst> out;
};

TEST_F(Loopback, OwnPacketComesBackWithItsMarks) {
  packets.add(kSelf, 20, 100, 33);
  packets.last().ecn = Ecn::Ect0;
  packets.last().dscp = 46;
  packets.last().entropy = 777;
  EXPECT_EQ(nic.next_deadline(), kNever);
  ASSERT_EQ(nic.tx_burst(packets.all()), 1U);
  EXPECT_TRUE(fake->sent.empty());
  EXPECT_EQ(nic.next_deadline(), Time{}) << "wait_fd does not tell, so this must";
  ASSERT_EQ(nic.rx_burst(out, Time{}), 1U);
  EXPECT_EQ(Arrival(out[0]).bytes, packets.bytes(0));
  EXPECT_EQ(out[0].source, kSelf);
  EXPECT_EQ(out[0].entropy, 777);
  EXPECT_EQ(out[0].ecn, Ecn::Ect0);
  EXPECT_EQ(out[0].dscp, 46);
  EXPECT_EQ(nic.next_deadline(), kNever);
  EXPECT_EQ(nic.counters().packets_sent, 1U);
  EXPECT_EQ(nic.counters().bytes_received, 153U);
}

// The CRC covers the source port (WIRE 1.4): to oneself, the entropy value is not that port.
TEST_F(Loopback, OwnPacketLeavesFromTheKnownPort) {
  fake->allow_entropy();
  packets.add(kSelf, 4, 0);
  packets.last().entropy = 50'000;
  EXPECT_EQ(nic.source_port_for(packets.last()), kSelf.port);
  packets.add(kPeer, 4, 0);
  packets.last().entropy = 50'000;
  EXPECT_EQ(nic.source_port_for(packets.last()), 50'000);
}

TEST_F(Loopback, OtherPacketsGoToTheNetworkInOrder) {
  packets.add(kPeer, 4, 10);
  packets.add(kSelf, 4, 11);
  packets.add(kPeer, 4, 12);
  packets.add(kPeer, 4, 13);
  ASSERT_EQ(nic.tx_burst(packets.all()), 4U);
  ASSERT_EQ(fake->sent.size(), 3U);
  EXPECT_EQ(fake->sent[0], packets.bytes(0));
  EXPECT_EQ(fake->sent[1], packets.bytes(2));
  EXPECT_EQ(fake->sent[2], packets.bytes(3));
  EXPECT_EQ(nic.rx_burst(out, Time{}), 1U);
}

TEST_F(Loopback, FullNetworkEndsThePrefix) {
  fake->tx_room = 1;
  packets.add(kSelf, 4, 10);
  packets.add(kPeer, 4, 11);
  packets.add(kPeer, 4, 12);
  packets.add(kSelf, 4, 13);
  EXPECT_EQ(nic.tx_burst(packets.all()), 2U);
}

TEST_F(Loopback, FullRing_EndsPrefixUntilNextBurst) {
  for (std::size_t i = 0; i < LoopbackNic::kRingPackets + 5; ++i) packets.add(kSelf, 8, 100 + i);
  ASSERT_EQ(nic.tx_burst(packets.all()), LoopbackNic::kRingPackets);
  ASSERT_EQ(nic.rx_burst(out, Time{}), LoopbackNic::kRingPackets);
  // The packets handed out are still being read.
  EXPECT_EQ(nic.tx_burst(packets.all().last(5)), 0U);
  for (std::size_t i = 0; i < LoopbackNic::kRingPackets; ++i) {
    EXPECT_EQ(Arrival(out[i]).bytes, packets.bytes(i));
  }
  EXPECT_EQ(nic.rx_burst(out, Time{}), 0U);
  EXPECT_EQ(nic.tx_burst(packets.all().last(5)), 5U);
  ASSERT_EQ(nic.rx_burst(out, Time{}), 5U);
  EXPECT_EQ(Arrival(out[4]).bytes, packets.bytes(LoopbackNic::kRingPackets + 4));
}

TEST_F(Loopback, NeitherSideStarvesTheOther) {
  for (std::uint32_t i = 0; i < 10; ++i) fake->arrive(numbered_bytes(i), kPeer);
  for (int i = 0; i < 10; ++i) packets.add(kSelf, 8, 0);
  ASSERT_EQ(nic.tx_burst(packets.all()), 10U);
  std::array<RxPacket, 4> small;
  ASSERT_EQ(nic.rx_burst(small, Time{}), 4U);
  EXPECT_EQ(small[0].source, kSelf);
  EXPECT_EQ(small[2].source, kPeer);
}

TEST_F(Loopback, TooLongIsDroppedAndCounted) {
  packets.add(kSelf, 100, kMaxDatagramBytes);
  EXPECT_EQ(nic.tx_burst(packets.all()), 1U);
  EXPECT_EQ(nic.rx_burst(out, Time{}), 0U);
  EXPECT_EQ(nic.counters().packets_dropped, 1U);
}

// The device below all middleware must learn of the memory, and of its end.
TEST(Middleware, PassesRegisteredMemoryOn) {
  struct Registering final : FakeNic {
    using FakeNic::FakeNic;
    std::uint64_t register_memory(std::span<const std::byte> memory) override {
      bytes = memory.size();
      return 7;
    }
    void forget_memory(std::uint64_t id) override { forgotten = id; }
    std::size_t bytes = 0;
    std::uint64_t forgotten = 0;
  };
  auto inner = std::make_unique<Registering>(kSelf);
  Registering& device = *inner;
  LoopbackNic nic(std::make_unique<LoopbackNic>(std::move(inner)));
  const std::array<std::byte, 33> memory{};
  EXPECT_EQ(nic.register_memory(memory), 7U);
  EXPECT_EQ(device.bytes, 33U);
  nic.forget_memory(7);
  EXPECT_EQ(device.forgotten, 7U);
}

// Packets to this FEP never meet a NIC that reads device memory.
TEST_F(Loopback, DeviceMemory_IsCopiedByTheDriver) {
  InvertedMemory device;
  packets.add(kSelf, 10, 20, 5);
  packets.last().device = &device;
  ASSERT_EQ(nic.tx_burst(packets.all()), 1U);
  ASSERT_EQ(nic.rx_burst(out, Time{}), 1U);
  ASSERT_EQ(out[0].bytes.size(), 35U);
  EXPECT_EQ(out[0].bytes[10], ~packets.last().payload[0].data[0]);
  EXPECT_EQ(out[0].bytes[34], ~packets.last().payload[1].data[4]);
}

TEST(Middleware, DeviceMemory_IsOfferedUnlessPacketsAreRead) {
  struct Reading final : FakeNic {
    using FakeNic::FakeNic;
    bool reads_device_memory() const override { return true; }
    std::uint64_t register_device_memory(const DmabufRange& range) override {
      return static_cast<std::uint64_t>(range.fd);
    }
  };
  auto fault = std::make_unique<FaultNic>(std::make_unique<Reading>(kSelf), FaultSpec{});
  LoopbackNic nic(std::move(fault));
  EXPECT_TRUE(nic.reads_device_memory());
  EXPECT_EQ(nic.register_device_memory({.memory = {}, .fd = 9}), 9U);
  CrcNic with_crc(std::make_unique<Reading>(kSelf), {});
  EXPECT_FALSE(with_crc.reads_device_memory());
  EXPECT_EQ(with_crc.register_device_memory({.memory = {}, .fd = 9}), 0U);
}

}  // namespace
}  // namespace uet::nic
