// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/key_cache.h"

#include <gtest/gtest.h>

#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

constexpr std::size_t kEntries = 16;  // 2 on trial, 14 proved
constexpr std::size_t kProved = 14;

DerivationContext context_of(std::uint32_t source) {
  return {
      0,
      0,
      {ipv4(10, 0, static_cast<std::uint8_t>(source >> 8), static_cast<std::uint8_t>(source)), {}}};
}

class KeyCacheTest : public testing::Test {
 protected:
  DerivedKey* add(std::uint32_t source, std::uint64_t slot = 1) {
    KeyMaterial material{known_key(), {}};
    material.mask.writable()[0] = std::byte{0x5A};
    return cache_.add(slot, context_of(source), material);
  }
  void add_proved(std::uint32_t source, std::uint64_t slot = 1) {
    DerivedKey* const key = add(source, slot);
    ASSERT_NE(key, nullptr);
    cache_.prove(*key);
  }
  bool has(std::uint32_t source, std::uint64_t slot = 1) {
    return cache_.find(slot, context_of(source)) != nullptr;
  }

  KeyCache cache_{kEntries};
};

TEST_F(KeyCacheTest, Tss31_KeyIsFoundBySlotAndContext) {
  DerivedKey* const key = add(1);
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(cache_.find(1, context_of(1)), key);
  EXPECT_FALSE(has(2));
  EXPECT_FALSE(has(1, 2));
  EXPECT_TRUE(key->cipher.has_key());
  EXPECT_EQ(key->mask.bytes()[0], std::byte{0x5A});
}

// TSS-31: invented sources replace one another, never a live peer.
TEST_F(KeyCacheTest, Tss31_InventedSourcesReplaceNoProvedKey) {
  for (std::uint32_t peer = 0; peer < kProved; ++peer) add_proved(peer);
  for (std::uint32_t invented = 100; invented < 300; ++invented) add(invented);
  for (std::uint32_t peer = 0; peer < kProved; ++peer) EXPECT_TRUE(has(peer)) << peer;
  EXPECT_TRUE(has(299));
  EXPECT_TRUE(has(298));
  EXPECT_FALSE(has(297));
  EXPECT_EQ(cache_.counters().evictions, 0U);
}

TEST_F(KeyCacheTest, Tss69_LeastRecentlyUsedLeaves) {
  for (std::uint32_t peer = 0; peer < kProved; ++peer) add_proved(peer);
  EXPECT_TRUE(has(0));  // used: number 1 is the oldest now
  add_proved(50);
  EXPECT_TRUE(has(0));
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(has(50));
  EXPECT_EQ(cache_.counters().evictions, 1U);
}

TEST_F(KeyCacheTest, Tss69_CountsMisses) {
  add(1);
  add(2);
  has(1);
  EXPECT_EQ(cache_.counters().misses, 2U);
}

TEST_F(KeyCacheTest, Tss60_ForgetZeroesTheKeysOfASlot) {
  DerivedKey* const old = add(1, 1);
  ASSERT_NE(old, nullptr);
  cache_.prove(*old);
  add_proved(1, 2);
  cache_.forget(1);
  EXPECT_FALSE(has(1, 1));
  EXPECT_TRUE(has(1, 2));
  EXPECT_FALSE(old->cipher.has_key());
  EXPECT_EQ(old->mask.bytes()[0], std::byte{0});
}

// A key that had to leave is zeroed with its slot, too.
TEST_F(KeyCacheTest, Tss60_ForgetZeroesReplacedKeys) {
  DerivedKey* const first = add(1, 1);
  ASSERT_NE(first, nullptr);
  add(2, 2);
  add(3, 2);  // replaces the first in the table
  EXPECT_FALSE(has(1, 1));
  cache_.forget(1);
  for (std::uint32_t peer = 2; peer < 4; ++peer) EXPECT_TRUE(has(peer, 2));
}

TEST_F(KeyCacheTest, SmallestCacheServesOnePeer) {
  KeyCache cache(2);
  DerivedKey* first = cache.add(1, context_of(1), {});
  ASSERT_NE(first, nullptr);
  cache.prove(*first);
  DerivedKey* second = cache.add(1, context_of(2), {});
  ASSERT_NE(second, nullptr);
  EXPECT_NE(cache.find(1, context_of(1)), nullptr);
  cache.prove(*second);
  EXPECT_EQ(cache.find(1, context_of(1)), nullptr);
}

}  // namespace
}  // namespace uet::tss
