// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Watching an interface; test/e2e/fabric_events_test.cc switches one off and on.
#include "nic/link_watch.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace uet::nic {
namespace {

TEST(LinkWatch, SaysNothingWhileNothingChanges) {
  LinkWatch watch;
  EXPECT_EQ(watch.fd(), -1);
  ASSERT_EQ(watch.open("lo"), 0);
  EXPECT_GE(watch.fd(), 0);
  EXPECT_FALSE(watch.changed().has_value());
}

TEST(LinkWatch, NamesThatNoInterfaceCanHaveAreRefused) {
  LinkWatch watch;
  EXPECT_EQ(watch.open(""), EINVAL);
  EXPECT_EQ(watch.open("a-name-longer-than-the-kernel-takes"), EINVAL);
  EXPECT_EQ(watch.open("lo+a-name-longer-than-the-kernel-takes"), EINVAL);
  EXPECT_EQ(watch.fd(), -1);
}

TEST(LinkWatch, SeveralInterfacesMayHaveLongNamesTogether) {
  LinkWatch watch;
  EXPECT_EQ(watch.open("no-such-device+lo"), 0);
  EXPECT_FALSE(watch.changed().has_value());
}

}  // namespace
}  // namespace uet::nic
