// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Orders come through as they were given, and broken ones are refused.
#include "uet_run/order.h"

#include <gtest/gtest.h>

namespace uet::run {
namespace {

TEST(JobOrder, ComesThrough) {
  const Order order{"/home", {"A=", "B=x y"}, {"program", "", "-n", "+", "last"}};
  const std::string text = encode(order);
  const std::string_view view = text;
  const auto bytes = body_bytes(view.substr(0, kOrderHeaderBytes));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, text.size() - kOrderHeaderBytes);
  EXPECT_EQ(decode(view.substr(kOrderHeaderBytes)), order);
}

TEST(JobOrder, IsRefusedAtAnyOtherLength) {
  const std::string body = encode({"", {"A=b"}, {"p", "q"}}).substr(kOrderHeaderBytes);
  for (std::size_t bytes = 0; bytes < body.size(); ++bytes) {
    EXPECT_FALSE(decode(std::string_view(body).substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(decode(body + "x"));
  EXPECT_FALSE(decode(encode({"", {}, {}}).substr(kOrderHeaderBytes)));
}

TEST(JobOrder, HeaderIsChecked) {
  EXPECT_FALSE(body_bytes("UETO"));
  EXPECT_FALSE(body_bytes(std::string_view("XETO\0\0\0\1", 8)));
  EXPECT_FALSE(body_bytes(std::string_view("UETO\x01\0\0\0", 8)));
  EXPECT_EQ(body_bytes(std::string_view("UETO\0\0\1\0", 8)), 256U);
}

}  // namespace
}  // namespace uet::run
