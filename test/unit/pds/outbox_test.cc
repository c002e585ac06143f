// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/outbox.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace uet::pds {
namespace {

class OutboxTest : public ::testing::Test {
 protected:
  Packet& packet(bool release_after_send) {
    Packet* taken = pool.take();
    taken->reset();
    taken->release_after_send = release_after_send;
    return *taken;
  }
  PacketPool pool{4};
};

TEST_F(OutboxTest, KeepsTheOrder) {
  Outbox outbox(pool);
  Packet& first = packet(true);
  Packet& second = packet(true);
  outbox.push(first);
  outbox.push(second);
  EXPECT_EQ(&outbox.queue().front(), &first);
  outbox.withdraw(first);
  EXPECT_EQ(&outbox.queue().front(), &second);
}

TEST_F(OutboxTest, WithdrawGivesBackPacketsWithoutAnOwner) {
  Outbox outbox(pool);
  Packet& released = packet(true);
  outbox.push(released);
  EXPECT_EQ(pool.in_use(), 1U);
  outbox.withdraw(released);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_TRUE(outbox.empty());
}

TEST_F(OutboxTest, WithdrawLeavesKeptPacketsToTheirOwner) {
  Outbox outbox(pool);
  Packet& kept = packet(false);
  outbox.push(kept);
  EXPECT_TRUE(Outbox::holds(kept));
  outbox.withdraw(kept);
  EXPECT_FALSE(Outbox::holds(kept));
  EXPECT_EQ(pool.in_use(), 1U);
  outbox.withdraw(kept);  // not there: nothing happens
  pool.give_back(&kept);
}

// PDS-123.
TEST_F(OutboxTest, NacksStandInALineOfTheirOwn) {
  PacketPool many(Outbox::kMostNacks);
  Outbox outbox(many);
  for (std::size_t i = 0; i < Outbox::kMostNacks; ++i) {
    EXPECT_TRUE(outbox.has_room_for_nack());
    outbox.push_nack(*many.take());
  }
  EXPECT_FALSE(outbox.has_room_for_nack());
  EXPECT_TRUE(outbox.empty());
  EXPECT_TRUE(outbox.has_nacks());
  outbox.nack_left();
  EXPECT_TRUE(outbox.has_room_for_nack());
  EXPECT_EQ(many.in_use(), Outbox::kMostNacks - 1);
}

// PDS-166.
TEST_F(OutboxTest, NacksLeaveLastExceptForTheFirst) {
  Outbox outbox(pool);
  std::vector<const Packet*> nacks;
  for (int i = 0; i < 3; ++i) {
    Packet& nack = packet(true);
    outbox.push_nack(nack);
    nacks.push_back(&nack);
  }
  Packet& data = packet(true);
  outbox.push(data);
  std::array<const Packet*, 2> memory{};
  std::size_t nacks_first = 1;
  std::vector<const Packet*> order;
  for (auto burst = outbox.next_burst(memory, nacks_first); !burst.empty();
       burst = outbox.next_burst(memory, nacks_first)) {
    order.insert(order.end(), burst.begin(), burst.end());
    outbox.left(burst.size());
  }
  EXPECT_EQ(order, (std::vector<const Packet*>{nacks[0], &data, nacks[1], nacks[2]}));
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(OutboxTest, RefusedPacketsStayFirstInLine) {
  Outbox outbox(pool);
  Packet& first = packet(true);
  Packet& second = packet(true);
  outbox.push(first);
  outbox.push(second);
  std::array<const Packet*, 4> memory{};
  std::size_t nacks_first = 0;
  EXPECT_EQ(outbox.next_burst(memory, nacks_first).size(), 2U);
  outbox.left(1);
  const auto again = outbox.next_burst(memory, nacks_first);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.front(), &second);
}

TEST_F(OutboxTest, DestructionGivesBackPacketsWithoutAnOwner) {
  Packet& kept = packet(false);
  {
    Outbox outbox(pool);
    outbox.push(packet(true));
    outbox.push(kept);
  }
  EXPECT_EQ(pool.in_use(), 1U);
  EXPECT_FALSE(Outbox::holds(kept));
  pool.give_back(&kept);
}

}  // namespace
}  // namespace uet::pds
