// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace uet::netsim {
namespace {

void fill(std::span<std::byte> head) {
  std::uint8_t value = 0;
  for (std::byte& byte : head) byte = std::byte{value++};
}

bool is_filled(std::span<const std::byte> head) {
  std::uint8_t value = 0;
  return std::ranges::all_of(head, [&](std::byte byte) { return byte == std::byte{value++}; });
}

class HeadTest : public testing::TestWithParam<std::size_t> {};

// Short ones, which lie in the packet, and long ones, which do not.
INSTANTIATE_TEST_SUITE_P(Lengths, HeadTest, testing::Values(1, 56, 80, 81, NetPacket::kHeadBytes));

TEST_P(HeadTest, HoldsAllItsBytes) {
  NetPacket packet;
  fill(packet.new_head(GetParam()));
  EXPECT_EQ(packet.head().size(), GetParam());
  EXPECT_TRUE(is_filled(std::as_const(packet).head()));
}

TEST_P(HeadTest, KeepsItsFirstBytesWhenItIsCut) {
  NetPacket packet;
  fill(packet.new_head(GetParam()));
  packet.cut_head(16);
  EXPECT_EQ(packet.head().size(), std::min<std::size_t>(GetParam(), 16));
  EXPECT_TRUE(is_filled(packet.head()));
}

TEST(NetPacketPool, PacketIsUsedAgainWithAnotherHead) {
  NetPacketPool pool;
  NetPacket* const packet = pool.take();
  fill(packet->new_head(NetPacket::kHeadBytes));
  pool.give_back(packet);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(pool.take(), packet);
  fill(packet->new_head(20));
  EXPECT_TRUE(is_filled(packet->head()));
  fill(packet->new_head(NetPacket::kHeadBytes));
  EXPECT_TRUE(is_filled(packet->head()));
  pool.give_back(packet);
}

}  // namespace
}  // namespace uet::netsim
