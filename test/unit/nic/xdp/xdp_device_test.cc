// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/xdp_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace uet::nic {
namespace {

using ::testing::HasSubstr;

TEST(XdpOptions, NothingMeansAllQueuesAndTheDriversBest) {
  std::string message;
  const auto options = parse_xdp_options("", message);
  ASSERT_TRUE(options);
  EXPECT_FALSE(options.value().generic);
  EXPECT_FALSE(options.value().copy);
  EXPECT_FALSE(options.value().zero_copy);
  EXPECT_FALSE(options.value().queue);
  EXPECT_EQ(options.value().queues, 0U);
}

TEST(XdpOptions, EachIsTaken) {
  std::string message;
  const auto options = parse_xdp_options("generic,copy,queue=3,queues=2", message);
  ASSERT_TRUE(options) << message;
  EXPECT_TRUE(options.value().generic);
  EXPECT_TRUE(options.value().copy);
  EXPECT_EQ(options.value().queue, 3U);
  EXPECT_EQ(options.value().queues, 2U);
  const auto zero_copy = parse_xdp_options("zerocopy", message);
  ASSERT_TRUE(zero_copy);
  EXPECT_TRUE(zero_copy.value().zero_copy);
}

TEST(XdpOptions, AnythingElseIsRefusedAndTold) {
  for (const char* text : {"fast", "queue=", "queue=-1", "queue=1x", "queue=1024", "queues=0",
                           "queues=1025", "queues=99999999999", "generic,,copy", "Generic"}) {
    std::string message;
    const auto options = parse_xdp_options(text, message);
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error(), Error::Invalid);
    EXPECT_THAT(message, HasSubstr("allowed: native, generic, copy")) << text;
  }
}

TEST(XdpOptions, ContradictionsAreRefused) {
  for (const char* text : {"zerocopy,copy", "generic,zerocopy"}) {
    std::string message;
    EXPECT_FALSE(parse_xdp_options(text, message)) << text;
    EXPECT_THAT(message, HasSubstr("zerocopy goes neither with copy nor with generic"));
  }
}

}  // namespace
}  // namespace uet::nic
