// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Indices of the address vector: order, duplicates, reuse, and the way back from a source.
#include "av/av.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"

namespace uet::av {
namespace {

UetAddress address(std::uint8_t last, std::uint16_t port = 4793) {
  FepAddress fep;
  fep.ip.bytes = {10, 0, 0, last};
  fep.port = port;
  return default_address(fep);
}

TEST(AvInsert, CountsFromZeroInOrder) {
  Av av;
  EXPECT_EQ(av.insert(address(1)).value(), 0U);
  EXPECT_EQ(av.insert(address(2)).value(), 1U);
  EXPECT_EQ(av.insert(address(3)).value(), 2U);
  EXPECT_EQ(*av.find(1), address(2));
  EXPECT_EQ(av.size(), 3U);
}

TEST(AvInsert, Ses150_RefusesAnAddressWithoutResourceIndex) {
  Av av;
  UetAddress bad = address(1);
  bad.flags = kFabricAddressValid;
  EXPECT_EQ(av.insert(bad).error(), Error::Invalid);
  EXPECT_EQ(av.size(), 0U);
}

TEST(AvRemove, FreedSlotIsUsedAgain) {
  Av av;
  for (std::uint8_t i = 1; i <= 3; ++i) ASSERT_TRUE(av.insert(address(i)).ok());
  ASSERT_TRUE(av.remove(1).ok());
  EXPECT_EQ(av.find(1), nullptr);
  EXPECT_EQ(av.insert(address(9)).value(), 1U);
  EXPECT_EQ(av.insert(address(8)).value(), 3U);
}

// fi_av(3): "inserted at the lowest index that corresponds to an unused table location".
TEST(AvRemove, TheLowestFreeSlotIsUsedFirst) {
  Av av;
  av.reserve(3);
  for (std::uint8_t i = 1; i <= 5; ++i) ASSERT_TRUE(av.insert(address(i)).ok());
  for (const std::uint64_t index : {1U, 0U, 3U}) ASSERT_TRUE(av.remove(index).ok());
  for (const std::uint64_t expected : {0U, 1U, 3U, 5U}) {
    EXPECT_EQ(av.insert(address(9)).value(), expected);
  }
}

TEST(AvRemove, UnknownIndexIsNotFound) {
  Av av;
  ASSERT_TRUE(av.insert(address(1)).ok());
  EXPECT_EQ(av.remove(1).error(), Error::NotFound);
  ASSERT_TRUE(av.remove(0).ok());
  EXPECT_EQ(av.remove(0).error(), Error::NotFound);
}

TEST(AvFindSource, FindsTheEntryOfASender) {
  Av av;
  ASSERT_TRUE(av.insert(address(1)).ok());
  ASSERT_TRUE(av.insert(address(2, 0)).ok());  // port 0 stands for 4793
  EXPECT_EQ(av.find_source(address(1).fep(), address(1).initiator_id), 0U);
  EXPECT_EQ(av.find_source(address(2).fep(), address(2, 0).initiator_id), 1U);
  EXPECT_EQ(av.find_source(address(3).fep(), address(3).initiator_id), std::nullopt);
  EXPECT_EQ(av.find_source(address(1).fep(), InitiatorId{1}), std::nullopt);
}

TEST(AvFindSource, DuplicatesGiveTheLowestIndexThatIsLeft) {
  Av av;
  ASSERT_TRUE(av.insert(address(1)).ok());
  ASSERT_TRUE(av.insert(address(1)).ok());
  const auto find = [&] { return av.find_source(address(1).fep(), address(1).initiator_id); };
  EXPECT_EQ(find(), 0U);
  ASSERT_TRUE(av.remove(0).ok());
  EXPECT_EQ(find(), 1U);
  ASSERT_TRUE(av.remove(1).ok());
  EXPECT_EQ(find(), std::nullopt);
}

// Against a list that is searched from end to end; the few addresses collide and repeat.
TEST(AvFindSource, FindsWhatIsThereAfterAnyInsertsAndRemovals) {
  Av av;
  Rng rng(7);
  std::map<std::uint64_t, UetAddress> all;
  for (int step = 0; step < 20000; ++step) {
    const UetAddress some = address(static_cast<std::uint8_t>(rng.next() % 200),
                                    static_cast<std::uint16_t>(4793 + rng.next() % 4));
    if (rng.next() % 5 < 3 && all.size() < 600) {
      all.emplace(av.insert(some).value(), some);
    } else if (!all.empty()) {
      const auto victim =
          std::next(all.begin(), static_cast<std::ptrdiff_t>(rng.next() % all.size()));
      ASSERT_TRUE(av.remove(victim->first).ok());
      all.erase(victim);
    }
    std::optional<std::uint64_t> expected;
    for (const auto& [index, there] : all) {
      if (there.fep() != some.fep() || there.initiator_id != some.initiator_id) continue;
      expected = index;
      break;
    }
    ASSERT_EQ(av.find_source(some.fep(), some.initiator_id), expected) << step;
  }
}

TEST(Av, APeerTakesAtMost64Bytes) {
  for (const std::size_t peers : {1000U, 10000U, 50000U}) {
    Av av;
    av.reserve(peers);
    for (std::size_t i = 0; i < peers; ++i) {
      FepAddress fep;
      fep.ip.bytes = {10, static_cast<std::uint8_t>(i >> 16), static_cast<std::uint8_t>(i >> 8),
                      static_cast<std::uint8_t>(i)};
      fep.port = 4793;
      ASSERT_TRUE(av.insert(default_address(fep)).ok());
    }
    EXPECT_LE(av.bytes() / peers, 64U) << peers;
  }
}

}  // namespace
}  // namespace uet::av
