// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "submission/command.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace uet::prov {
namespace {

// docs/submission.md states the places of these fields.
static_assert(sizeof(Command) == 256 && alignof(Command) == 64);
static_assert(offsetof(Command, sequence) == 0 && offsetof(Command, opcode) == 8);
static_assert(offsetof(Command, flags) == 24 && offsetof(Command, context) == 32);
static_assert(offsetof(Command, tag) == 40 && offsetof(Command, key) == 48);
static_assert(offsetof(Command, data) == 56 && offsetof(Command, first) == 64);
static_assert(offsetof(Command, peer) == 80 && offsetof(Command, more) == 128);
static_assert(offsetof(Command, descriptors) == 176 && offsetof(Command, inlined) == 128);

bool put(CommandRing& ring, std::uint64_t data) {
  const CommandRing::Claim claim = ring.claim();
  if (claim.command == nullptr) return false;
  claim.command->data = data;
  CommandRing::publish(claim);
  return true;
}

TEST(CommandRing, HoldsItsCommandsInOrder) {
  CommandRing ring(false, 0);
  EXPECT_EQ(ring.published(), nullptr);
  for (std::uint64_t i = 0; i < kRingCommands; ++i) ASSERT_TRUE(put(ring, i));
  EXPECT_FALSE(put(ring, 0)) << "the ring is full";
  ASSERT_NE(ring.published(3), nullptr);
  EXPECT_EQ(ring.published(3)->data, 3U);
  EXPECT_EQ(ring.published(kRingCommands), nullptr) << "the first one again";
  for (std::uint64_t i = 0; i < kRingCommands; ++i) {
    ASSERT_NE(ring.published(), nullptr);
    EXPECT_EQ(ring.published()->data, i);
    ring.release();
  }
  EXPECT_EQ(ring.published(), nullptr);
  EXPECT_TRUE(put(ring, 0));
}

// Commands behind one that is claimed and not published wait for it.
TEST(CommandRing, AnUnpublishedCommandIsNotSeen) {
  CommandRing ring(false, 0);
  const CommandRing::Claim slow = ring.claim();
  ASSERT_NE(slow.command, nullptr);
  ASSERT_TRUE(put(ring, 2));
  EXPECT_EQ(ring.published(), nullptr);
  slow.command->data = 1;
  CommandRing::publish(slow);
  ASSERT_NE(ring.published(), nullptr);
  EXPECT_EQ(ring.published()->data, 1U);
  EXPECT_EQ(ring.published(1)->data, 2U);
}

TEST(CommandRing, EachCommandHasItsInlineBytes) {
  CommandRing ring(false, 200);
  Command* const first = ring.claim().command;
  Command* const second = ring.claim().command;
  EXPECT_EQ(ring.inline_data(*first, kInlineBytes), first->inlined.data());
  EXPECT_GE(ring.inline_data(*second, 200) - ring.inline_data(*first, 200), 200);
}

TEST(CommandRing, ManySubmittersLoseNothing) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 20'000;
  CommandRing ring(true, 0);
  std::vector<std::thread> submitters;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    submitters.emplace_back([&ring, thread] {
      for (std::uint64_t i = 0; i < kEach;) {
        if (put(ring, thread * kEach + i)) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::array<std::uint64_t, kThreads> next{};
  for (std::uint64_t taken = 0; taken < kThreads * kEach;) {
    const Command* const command = ring.published();
    if (command == nullptr) {
      std::this_thread::yield();
      continue;
    }
    const std::uint64_t thread = command->data / kEach;
    ASSERT_EQ(command->data % kEach, next[thread]++) << "of thread " << thread;
    ring.release();
    ++taken;
  }
  for (std::thread& submitter : submitters) submitter.join();
}

}  // namespace
}  // namespace uet::prov
