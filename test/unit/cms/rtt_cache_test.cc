// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is remembered of peers, and for how long (CMS-141).
#include "cms/rtt_cache.h"

#include <gtest/gtest.h>

namespace uet::cms {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;

FepAddress peer(std::uint32_t number) {
  FepAddress address;
  address.ip.bytes[2] = static_cast<std::uint8_t>(number >> 8);
  address.ip.bytes[3] = static_cast<std::uint8_t>(number);
  return address;
}

TEST(RttCache, Cms141_EachPeerHasItsOwn) {
  RttCache cache;
  cache.keep(peer(1), microseconds(10), Time{});
  cache.keep(peer(2), microseconds(20), Time{});
  EXPECT_EQ(cache.find(peer(1), Time{}), microseconds(10));
  EXPECT_EQ(cache.find(peer(2), Time{}), microseconds(20));
  EXPECT_EQ(cache.find(peer(3), Time{}), std::nullopt);
}

TEST(RttCache, Cms141_KeptForAnHour) {
  RttCache cache;
  cache.keep(peer(1), microseconds(10), Time{});
  EXPECT_EQ(cache.find(peer(1), Time{} + hours(1)), microseconds(10));
  EXPECT_EQ(cache.find(peer(1), Time{} + hours(1) + Duration(1)), std::nullopt);
  cache.keep(peer(1), microseconds(11), Time{} + hours(1));
  EXPECT_EQ(cache.find(peer(1), Time{} + hours(2)), microseconds(11)) << "the latest counts";
}

TEST(RttCache, Cms141_IsBounded) {
  RttCache cache;
  for (std::uint32_t i = 0; i < RttCache::kPeers + 10; ++i) {
    cache.keep(peer(i), microseconds(10), Time{});
  }
  EXPECT_EQ(cache.size(), RttCache::kPeers);
  cache.keep(peer(60'000), microseconds(10), Time{} + hours(2));
  EXPECT_EQ(cache.size(), 1U) << "what has expired goes first";
}

}  // namespace
}  // namespace uet::cms
