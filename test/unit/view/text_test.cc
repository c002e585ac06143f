// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lines of equal columns, bars and JSON.
#include "uet_top/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/view/top_harness.h"

namespace uet::top {
namespace {

const Table kTable{{{"name"}, {"count", Kind::Count}},
                   {{"a", {{"alpha", 0}, {"7", 7}}, 0}, {"b", {{"b", 0}, {"12.3k", 12'345}}, 0}}};

TEST(TopText, TextsStandLeftAndNumbersRight) {
  EXPECT_EQ(to_text(kTable),
            "name  count\n"
            "alpha     7\n"
            "b     12.3k\n");
}

TEST(TopText, BarsAreInProportionToTheLargest) {
  EXPECT_EQ(bars({}, 3, true), "   ");
  EXPECT_EQ(bars({0, 4, 8}, 4, true), "  \u2584\u2588");
  EXPECT_EQ(bars({0, 4, 8}, 4, false), "  :#");
  EXPECT_EQ(bars({9, 0.001, 1}, 2, true), "\u2581\u2588");  // the newest ones alone
}

TEST(TopJson, HasNumbersAsTheyAre) {
  const auto json = nlohmann::json::parse(to_json(kTable));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["name"], "alpha");
  EXPECT_EQ(json[1]["count"], 12'345);
}

TEST(TopJson, RealTableParses) {
  EXPECT_EQ(nlohmann::json::parse(to_json(peers(samples()))).size(), 6U);
}

}  // namespace
}  // namespace uet::top
