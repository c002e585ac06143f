// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "process/operation_table.h"

#include <gtest/gtest.h>

namespace uet::prov {
namespace {

TEST(OperationTable, ANumberIsGivenAgainWhenItIsFree) {
  OperationTable table;
  const OperationNumber first = table.add({.kind = ses::Kind::Send});
  const OperationNumber second = table.add({.kind = ses::Kind::Read});
  EXPECT_NE(first, second);
  ASSERT_NE(table.find(second), nullptr);
  EXPECT_EQ(table.find(second)->kind, ses::Kind::Read);
  table.remove(first);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(table.find(kNoOperation), nullptr);
  EXPECT_EQ(table.add({}), first);
}

// fi_cancel(3) ends the oldest operation with a context, of one endpoint.
TEST(OperationTable, FindsTheOldestWithAContext) {
  OperationTable table;
  int context = 0;
  const OperationNumber freed = table.add({});
  const OperationNumber old = table.add({.context = &context, .owner = 1});
  table.remove(freed);
  EXPECT_EQ(table.add({.context = &context, .owner = 1}), freed) << "a later one, lower number";
  table.add({.context = &context, .owner = 2});
  const OperationNumber claim = table.add({.context = &context, .owner = 1, .claims = true});
  EXPECT_EQ(table.oldest(1, &context, false), old);
  EXPECT_EQ(table.oldest(1, &context, true), claim);
  EXPECT_EQ(table.oldest(3, &context, false), std::nullopt);
}

}  // namespace
}  // namespace uet::prov
