// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/protected_notice.h"

#include <gtest/gtest.h>

namespace uet::prov {
namespace {

TEST(ProtectedNotice, IsGivenOnceAMinute) {
  ProtectedNotice notice;
  const Time start{std::chrono::seconds(5)};
  EXPECT_FALSE(notice.look(0, start));
  EXPECT_TRUE(notice.look(3, start));
  EXPECT_FALSE(notice.look(9, start + std::chrono::seconds(59)));
  EXPECT_TRUE(notice.look(9, start + ProtectedNotice::kInterval));
  EXPECT_FALSE(notice.look(9, start + 3 * ProtectedNotice::kInterval)) << "no more have come";
}

}  // namespace
}  // namespace uet::prov
