// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The CRC trailer over a back end that writes no headers (WIRE 1.4).
#include "wire/crc.h"

#include <gtest/gtest.h>

#include "nic/middleware.h"
#include "nic_testing.h"

namespace uet::nic {
namespace {

const FepAddress kSelf{ipv4(10, 0, 0, 1), 4793};
const FepAddress kPeer{ipv4(10, 0, 0, 2), 4794};

struct Crc : ::testing::Test {
  Crc() {
    auto inner = std::make_unique<FakeNic>(kSelf);
    near = inner.get();
    sender = std::make_unique<CrcNic>(std::move(inner), wire::TrimMarks{});
    inner = std::make_unique<FakeNic>(kPeer);
    far = inner.get();
    receiver = std::make_unique<CrcNic>(std::move(inner),
                                        wire::TrimMarks{.trimmed = 12, .trimmed_last_hop = 16});
  }

  FakeNic* near = nullptr;
  FakeNic* far = nullptr;
  std::unique_ptr<CrcNic> sender;
  std::unique_ptr<CrcNic> receiver;
  PacketSet packets;
  std::array<RxPacket, 8> out;
};

TEST_F(Crc, SentPacketsArriveWithoutTheTrailer) {
  packets.add(kPeer, 20, 0);
  packets.add(kPeer, 20, 100);
  packets.add(kPeer, 20, 100, 33);
  packets.add(kPeer, 100, 1, 4000);
  packets.add(kPeer, 4, 0);
  ASSERT_EQ(sender->tx_burst(packets.all()), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(near->sent[i].size(), packets.bytes(i).size() + wire::kCrcTrailerBytes);
    far->arrive(near->sent[i], kSelf);
  }
  ASSERT_EQ(receiver->rx_burst(out, Time{}), 5U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(Arrival(out[i]).bytes, packets.bytes(i)) << i;
  EXPECT_EQ(receiver->counters().crc_errors, 0U);
}

TEST_F(Crc, HeadersInFrontOfTheHeadroomAreKeptInOrder) {
  Packet packet;
  for (int i = 0; i < 44; ++i) *packet.append(1) = static_cast<std::byte>(100 + i);
  const int most = Packet::kHeadroom;
  for (int i = 0; i < most; ++i) *packet.prepend(1) = static_cast<std::byte>(i);
  packet.to = kPeer;
  packet.dscp = 46;
  packet.ecn = Ecn::Ect0;
  const Packet* pointer = &packet;
  ASSERT_EQ(sender->tx_burst({&pointer, 1}), 1U);
  far->arrive(near->sent[0], kSelf);
  ASSERT_EQ(receiver->rx_burst(out, Time{}), 1U);
  EXPECT_TRUE(std::equal(packet.head().begin(), packet.head().end(), out[0].bytes.begin(),
                         out[0].bytes.end()));
}

TEST_F(Crc, AFullQueueAcceptsAPrefix) {
  for (int i = 0; i < 5; ++i) packets.add(kPeer, 20, 30);
  near->tx_room = 3;
  EXPECT_EQ(sender->tx_burst(packets.all()), 3U);
}

// PDS-210 step 1: dropped and counted, and those around it arrive.
TEST_F(Crc, EveryFlippedBitIsDroppedAndCounted) {
  packets.add(kPeer, 12, 9, 4);
  ASSERT_EQ(sender->tx_burst(packets.all()), 1U);
  const std::vector<std::byte> good = near->sent[0];
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    far->arrive(good, kSelf);
    far->arrive(bad, kSelf);
    far->arrive(good, kSelf);
    ASSERT_EQ(receiver->rx_burst(out, Time{}), 2U) << bit;
    EXPECT_EQ(Arrival(out[1]).bytes, packets.bytes(0));
    EXPECT_EQ(receiver->counters().crc_errors, bit + 1);
  }
}

// The CRC covers the addresses, so that it detects a packet for another host.
TEST_F(Crc, AnotherSourceOrLengthIsDropped) {
  packets.add(kPeer, 12, 30);
  ASSERT_EQ(sender->tx_burst(packets.all()), 1U);
  far->arrive(near->sent[0], FepAddress{ipv4(10, 0, 0, 3), kSelf.port});
  far->arrive(near->sent[0], FepAddress{kSelf.ip, 4795});
  std::vector<std::byte> cut = near->sent[0];
  cut.pop_back();
  far->arrive(cut, kSelf);
  far->arrive(packets.bytes(0), kSelf);  // without a trailer
  far->arrive(std::vector<std::byte>(3), kSelf);
  EXPECT_EQ(receiver->rx_burst(out, Time{}), 0U);
  EXPECT_EQ(receiver->counters().crc_errors, 5U);
}

// WIRE 1.3: the end of a trimmed packet is gone, and with it the CRC.
TEST_F(Crc, TrimmedPacketsAreNotChecked) {
  const std::vector<std::byte> rest(16, std::byte{7});
  far->arrive(rest, kSelf, 12);
  far->arrive(rest, kSelf, 16);
  far->arrive(rest, kSelf, 13);
  ASSERT_EQ(receiver->rx_burst(out, Time{}), 2U);
  EXPECT_EQ(Arrival(out[0]).bytes, rest);
  EXPECT_EQ(receiver->counters().crc_errors, 1U);
}

}  // namespace
}  // namespace uet::nic
