// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/growing_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/rng.h"

namespace uet {
namespace {

struct Bits {
  std::size_t operator()(std::uint64_t key) const { return key; }
};
struct Same {
  std::size_t operator()(std::uint64_t) const { return 42; }
};

TEST(GrowingTable, ElementsAreFoundWhereTheyWereMade) {
  GrowingTable<std::uint64_t, std::string, Bits> table;
  std::map<std::uint64_t, std::string*> made;
  Rng rng(3);
  for (int i = 0; i < 50'000; ++i) {
    const std::uint64_t key = rng.below(20'000) << (rng.below(2) * 40);
    const auto known = made.find(key);
    auto* const found = table.find(key);
    ASSERT_EQ(found != nullptr, known != made.end()) << key;
    std::string& value = table.at(key).value;
    if (found != nullptr) {
      ASSERT_EQ(&value, known->second);
      ASSERT_EQ(value, std::to_string(key));
    } else {
      ASSERT_EQ(value, "");
      value = std::to_string(key);
      made[key] = &value;
    }
  }
  EXPECT_EQ(table.size(), made.size());
  for (const auto& [key, value] : table) EXPECT_EQ(value, std::to_string(key));
}

TEST(GrowingTable, KeysOfOneHashAreDistinguished) {
  GrowingTable<std::uint64_t, std::uint64_t, Same> table;
  for (std::uint64_t key = 0; key < 100; ++key) table.at(key).value = key + 1;
  for (std::uint64_t key = 0; key < 100; ++key) EXPECT_EQ(table.find(key)->value, key + 1);
  EXPECT_EQ(table.find(100), nullptr);
  EXPECT_EQ(table.size(), 100U);
}

TEST(GrowingTable, OrderIsThatOfMaking) {
  GrowingTable<std::uint64_t, int, Bits> table;
  for (std::uint64_t key = 1000; key > 0; --key) table.at(key * key);
  std::uint64_t expected = 1000;
  for (const auto& element : table) {
    EXPECT_EQ(element.key, expected * expected);
    --expected;
  }
}

}  // namespace
}  // namespace uet
