// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace uet {
namespace {

TEST(Result, HoldsAValue) {
  Result<int> result = 5;
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(result.value(), 5);
  result.value() = 6;
  EXPECT_EQ(result.value(), 6);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = Error::Again;
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error(), Error::Again);
}

TEST(Result, MovesItsValueOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 7);
}

TEST(Result, OfVoidIsSuccessOrError) {
  const Result<void> success;
  const Result<void> failure = Error::Busy;
  EXPECT_TRUE(success.ok());
  EXPECT_FALSE(static_cast<bool>(failure));
  EXPECT_EQ(failure.error(), Error::Busy);
}

}  // namespace
}  // namespace uet
