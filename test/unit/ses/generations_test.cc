// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ses/generations.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

constexpr RiGeneration kOwn{1};
constexpr RiGeneration kLearnt{7};

class GenerationsTest : public OperationTest {
 protected:
  TxMessage& to(std::uint8_t node) {
    TxMessage& message = open(0, Kind::Send, node);
    message.header.ri_generation = kOwn;
    return message;
  }
  Generations generations;
};

TEST_F(GenerationsTest, Ses55_LearntOneReplacesThatOfTheOperation) {
  TxMessage& message = to(2);
  EXPECT_EQ(generations.of(message), kOwn);
  generations.learn(message, kLearnt);
  EXPECT_EQ(generations.of(message), kLearnt);
  EXPECT_EQ(generations.of(to(3)), kOwn) << "of another peer nothing is known";
  TxMessage& other_index = to(2);
  other_index.header.resource_index = ResourceIndex{11};
  EXPECT_EQ(generations.of(other_index), kOwn);
  TxMessage& absolute = to(2);
  absolute.header.rel = !absolute.header.rel;
  EXPECT_EQ(generations.of(absolute), kOwn);
}

TEST_F(GenerationsTest, EachContextLearnsByItself) {
  generations.learn(to(2), kLearnt);
  Context other(small_config(), sink);
  TxMessage& message = to(2);
  message.context = &other;
  EXPECT_EQ(generations.of(message), kOwn);
  message.context = &context;
  EXPECT_EQ(generations.of(message), kLearnt);
}

TEST_F(GenerationsTest, ClosedContextIsForgotten) {
  TxMessage& message = to(2);
  generations.learn(message, kLearnt);
  generations.forget(context);
  EXPECT_EQ(generations.of(message), kOwn);
}

}  // namespace
}  // namespace uet::ses::test
