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
  EXPECT_EQ(&outbox.data().front(), &first);
  outbox.withdraw(first);
  EXPECT_EQ(&outbox.data().front(), &second);
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
  for (const bool nic_was_full : {false, true}) {
    PacketPool many(8);
    Outbox outbox(many);
    std::vector<const Packet*> nacks;
    const auto packet_of = [&] {
      Packet* taken = many.take();
      taken->reset();
      taken->release_after_send = true;
      return taken;
    };
    for (std::size_t i = 0; i <= Outbox::kNacksFirst; ++i) {
      Packet* const nack = packet_of();
      outbox.push_nack(*nack);
      nacks.push_back(nack);
    }
    Packet* const data = packet_of();
    outbox.push(*data);
    std::array<const Packet*, 2> memory{};
    std::vector<const Packet*> order;
    outbox.begin_pass(nic_was_full);
    for (auto burst = outbox.next_burst(memory); !burst.empty();
         burst = outbox.next_burst(memory)) {
      order.insert(order.end(), burst.begin(), burst.end());
      outbox.left(burst.size());
    }
    const auto place = nic_was_full ? Outbox::kNacksFirst : 0;
    nacks.insert(nacks.begin() + static_cast<std::ptrdiff_t>(place), data);
    EXPECT_EQ(order, nacks);
    EXPECT_EQ(many.in_use(), 0U);
  }
}

// A NIC that takes two packets a pass, and a peer whose packets are all refused: its NACKs
// stopped the answers that would have ended the shortage.
TEST_F(OutboxTest, NacksDoNotKeepOthersFromLeaving) {
  PacketPool many(64);
  Outbox outbox(many);
  Packet* const data = many.take();
  data->reset();
  outbox.push(*data);
  std::array<const Packet*, 8> memory{};
  int passes = 0;
  for (; Outbox::holds(*data) && passes < 10; ++passes) {
    for (int i = 0; i < 2; ++i) outbox.push_nack(*many.take());
    outbox.begin_pass(true);
    outbox.left(std::min<std::size_t>(outbox.next_burst(memory).size(), 2));
  }
  EXPECT_EQ(passes, 2);
  many.give_back(data);
  outbox.begin_pass(true);
  EXPECT_EQ(outbox.next_burst(memory).size(), Outbox::kNacksFirst) << "they have their turn again";
}

// ---- control in front of data that the NIC has refused
// -------------------------------------------

class OutboxControl : public ::testing::Test {
 protected:
  Packet& add(bool control) {
    Packet* taken = pool.take();
    taken->reset();
    taken->release_after_send = true;
    taken->control = control;
    outbox.push(*taken);
    return *taken;
  }
  // A pass with a NIC that takes `room` packets; which of them were control.
  std::vector<bool> pass(std::size_t room) {
    std::vector<bool> left;
    outbox.begin_pass(false);
    while (left.size() < room) {
      const auto burst = outbox.next_burst(memory);
      if (burst.empty()) break;
      const std::size_t taken = std::min(burst.size(), room - left.size());
      for (const Packet* packet : burst.first(taken)) left.push_back(packet->control);
      outbox.left(taken);
    }
    return left;
  }
  PacketPool pool{4 * Outbox::kControlAhead};
  Outbox outbox{pool};
  std::array<const Packet*, 8> memory{};
};

// PDS-226.
TEST_F(OutboxControl, LeavesBeforeDataThatWaits) {
  add(false);
  add(false);
  add(true);
  EXPECT_EQ(pass(1), std::vector<bool>{true});
  add(true);
  EXPECT_EQ(pass(8), (std::vector<bool>{true, false, false}));
  EXPECT_TRUE(outbox.empty());
}

// PDS-226: a NIC that takes less than the ACKs which a peer causes.
TEST_F(OutboxControl, GivesDataATurn) {
  for (int i = 0; i < 4; ++i) add(false);
  std::size_t control = 0;
  std::size_t data = 0;
  for (std::size_t i = 0; i < 2 * Outbox::kControlAhead + 2; ++i) {
    add(true);
    for (const bool is_control : pass(1)) ++(is_control ? control : data);
  }
  EXPECT_EQ(data, 2U);
  EXPECT_EQ(control, 2 * Outbox::kControlAhead);
}

TEST_F(OutboxControl, KeepsItsOwnOrder) {
  Packet& first = add(true);
  Packet& second = add(true);
  EXPECT_EQ(outbox.next_burst(memory).front(), &first);
  outbox.left(1);
  EXPECT_EQ(outbox.next_burst(memory).front(), &second);
}

// PDS-166: the SACK leaves before the NACK that it belongs to.
TEST_F(OutboxControl, LeavesBeforeNacks) {
  add(false);
  Packet* const nack = pool.take();
  nack->reset();
  nack->control = true;
  outbox.push_nack(*nack);
  Packet& ack = add(true);
  outbox.begin_pass(true);
  const auto burst = outbox.next_burst(memory);
  ASSERT_EQ(burst.size(), 3U);
  EXPECT_EQ(burst[0], &ack);
  EXPECT_EQ(burst[1], nack);
  outbox.left(3);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(OutboxTest, RefusedPacketsStayFirstInLine) {
  Outbox outbox(pool);
  Packet& first = packet(true);
  Packet& second = packet(true);
  outbox.push(first);
  outbox.push(second);
  std::array<const Packet*, 4> memory{};
  EXPECT_EQ(outbox.next_burst(memory).size(), 2U);
  outbox.left(1);
  const auto again = outbox.next_burst(memory);
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
