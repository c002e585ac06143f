// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ring of REPS: the worked example of CMS 5.4, and its edges.
#include "cms/recycled_paths.h"

#include <gtest/gtest.h>

namespace uet::cms {
namespace {

TEST(RecycledPaths, Cms413_Cms414_WorkedExample) {
  RecycledPaths ring(4);
  for (const std::uint16_t good : {11, 12, 14}) ring.push(good);
  for (const std::uint16_t expected : {11, 12, 14}) EXPECT_EQ(ring.take(), expected);
  EXPECT_EQ(ring.take(), std::nullopt);
  ring.push(15);
  EXPECT_EQ(ring.take(), 15);
  ring.restart_cycle();
  for (const std::uint16_t expected : {11, 12, 14, 15, 11}) EXPECT_EQ(ring.cycle(), expected);
  ring.push(17);  // over 11
  EXPECT_EQ(ring.take(), 17);
  ring.restart_cycle();
  for (const std::uint16_t expected : {12, 14, 15, 17, 12}) EXPECT_EQ(ring.cycle(), expected);
}

TEST(RecycledPaths, Cms413_TheOldestValidOneFirst) {
  RecycledPaths ring;
  for (std::uint16_t i = 1; i <= 10; ++i) ring.push(i);  // 1 and 2 are overwritten
  for (std::uint16_t i = 3; i <= 10; ++i) EXPECT_EQ(ring.take(), i);
  EXPECT_EQ(ring.take(), std::nullopt);
}

TEST(RecycledPaths, Cms413_AValueMayBeThereTwice) {
  RecycledPaths ring;
  ring.push(5);
  ring.push(5);
  EXPECT_EQ(ring.take(), 5);
  EXPECT_EQ(ring.take(), 5);
  EXPECT_EQ(ring.take(), std::nullopt);
}

TEST(RecycledPaths, Cms414_NothingToCycleThrough) {
  RecycledPaths ring;
  EXPECT_EQ(ring.cycle(), std::nullopt);
  ring.push(9);
  EXPECT_EQ(ring.cycle(), 9);
  EXPECT_EQ(ring.cycle(), 9);
}

}  // namespace
}  // namespace uet::cms
