// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/operation_table.h"

#include <gtest/gtest.h>

#include <set>

namespace uet::ses {
namespace {

TEST(OperationTable, Ses28_IdsAreUniqueAndNeverZero) {
  OperationTable table(2, 0, nullptr);
  TxMessage& kept = *table.take();
  TxMessage& changed = *table.take();
  std::set<std::uint16_t> seen;
  for (std::size_t i = 0; i < 2 * OperationTable::kIds; ++i) {
    const MsgId before = changed.header.message_id;
    table.renew_id(changed);
    const MsgId id = changed.header.message_id;
    ASSERT_NE(id, MsgId{0});
    ASSERT_NE(id, kept.header.message_id);
    ASSERT_EQ(table.find(id), &changed);
    ASSERT_EQ(table.find(before), nullptr);
    seen.insert(id.value);
  }
  EXPECT_EQ(seen.size(), OperationTable::kIds - 2) << "all are used but 0 and that of the other";
  EXPECT_EQ(table.find(kept.header.message_id), &kept);
  table.give_back(kept);
  table.give_back(changed);
}

TEST(OperationTable, PullsAndOperationsHaveLimitsOfTheirOwn) {
  OperationTable table(2, 1, nullptr);
  TxMessage* pull = table.take_pull();
  ASSERT_NE(pull, nullptr);
  EXPECT_TRUE(pull->pull);
  EXPECT_EQ(table.take_pull(), nullptr);
  TxMessage* first = table.take();
  EXPECT_FALSE(table.is_crowded() && first == nullptr);
  TxMessage* second = table.take();
  ASSERT_NE(second, nullptr);
  EXPECT_LT(first->sequence, second->sequence);
  EXPECT_EQ(table.take(), nullptr);
  table.give_back(*pull);
  EXPECT_EQ(table.take(), nullptr) << "the place of a pull is for pulls";
  pull = table.take_pull();
  EXPECT_NE(pull, nullptr);
  for (TxMessage* message : {pull, first, second}) table.give_back(*message);
  EXPECT_TRUE(table.empty());
}

TEST(OperationTable, IsCrowdedBeyondHalf) {
  OperationTable table(4, 0, nullptr);
  std::array<TxMessage*, 3> taken{};
  for (TxMessage*& message : taken) {
    EXPECT_FALSE(table.is_crowded());
    message = table.take();
  }
  EXPECT_TRUE(table.is_crowded());
  for (TxMessage* message : taken) table.give_back(*message);
}

TEST(OperationTable, VisitMayGiveBackAnyOperation) {
  OperationTable table(4, 0, nullptr);
  TxMessage& first = *table.take();
  TxMessage& second = *table.take();
  const MsgId id = second.header.message_id;
  int visits = 0;
  table.for_each([&](TxMessage& message) {
    ++visits;
    EXPECT_EQ(&message, &first);
    table.give_back(second);
    table.give_back(first);
  });
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_TRUE(table.empty());
}

}  // namespace
}  // namespace uet::ses
