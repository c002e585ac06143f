// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/packet.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace uet {
namespace {

void put(std::byte* at, const char* text) { std::memcpy(at, text, std::strlen(text)); }

std::string head_text(const Packet& packet) {
  return {reinterpret_cast<const char*>(packet.head().data()), packet.head().size()};
}

TEST(Packet, HeadGrowsBothWays) {
  Packet packet;
  EXPECT_TRUE(packet.head().empty());
  put(packet.append(3), "ses");
  put(packet.prepend(3), "pds");
  put(packet.append(2), "ex");
  put(packet.prepend(3), "udp");
  EXPECT_EQ(head_text(packet), "udppdssesex");
}

TEST(Packet, PrependedHeadersCanBeRewritten) {
  Packet packet;
  put(packet.append(3), "ses");
  put(packet.prepend(5), "first");
  packet.drop_prepended();
  EXPECT_EQ(head_text(packet), "ses");
  put(packet.prepend(6), "second");
  EXPECT_EQ(head_text(packet), "secondses");
}

TEST(Packet, HeadHoldsWhatItPromises) {
  Packet packet;
  packet.prepend(Packet::kHeadroom);
  packet.append(Packet::kHeadSize - Packet::kHeadroom);
  EXPECT_EQ(packet.head().size(), Packet::kHeadSize);
}

TEST(Packet, LengthCountsHeadAndBothSlices) {
  const std::byte bytes[8] = {};
  Packet packet;
  packet.append(4);
  packet.payload = {Slice{bytes, 5}, Slice{bytes + 5, 3}};
  EXPECT_EQ(packet.payload_length(), 8U);
  EXPECT_EQ(packet.length(), 12U);
  packet.reset();
  EXPECT_EQ(packet.length(), 0U);
}

TEST(PacketPool, EndsAtItsCapacity) {
  PacketPool pool(2);
  Packet* one = pool.take();
  Packet* two = pool.take();
  EXPECT_NE(one, two);
  EXPECT_EQ(pool.take(), nullptr);
  one->append(10);
  pool.give_back(one);
  Packet* again = pool.take();
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(again->head().empty());
  pool.give_back(again);
  pool.give_back(two);
}

TEST(BufferPool, BuffersAreDistinctAndCounted) {
  BufferPool pool(100, 3);
  std::set<std::byte*> taken;
  for (int i = 0; i < 3; ++i) {
    std::byte* buffer = pool.take();
    ASSERT_NE(buffer, nullptr);
    std::memset(buffer, i, pool.buffer_bytes());
    for (std::byte* other : taken) EXPECT_GE(std::abs(buffer - other), 100);
    taken.insert(buffer);
    EXPECT_EQ(pool.in_use(), taken.size());
  }
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.available(), 0U);
  std::byte* back = *taken.begin();
  pool.give_back(back);
  EXPECT_EQ(pool.available(), 1U);
  EXPECT_EQ(pool.take(), back);
}

}  // namespace
}  // namespace uet
