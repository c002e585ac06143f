// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What SES and PDS hand each other.
#include "uet/pds/api.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

TEST(Response, IsCopiedAtEveryLength) {
  Response from;
  from.next_hdr = NextHdr::Response;
  from.guaranteed = true;
  for (std::size_t i = 0; i < Response::kMaxBytes; ++i) from.bytes[i] = static_cast<std::byte>(i);
  for (std::size_t length = 0; length <= Response::kMaxBytes; ++length) {
    from.length = static_cast<std::uint8_t>(length);
    Response to;
    to.bytes.fill(std::byte{0xFF});
    to.assign(from);
    EXPECT_EQ(to.next_hdr, NextHdr::Response);
    EXPECT_TRUE(to.guaranteed);
    EXPECT_FALSE(to.provisional);
    ASSERT_EQ(to.length, length);
    for (std::size_t i = 0; i < Response::kMaxBytes; ++i) {
      EXPECT_EQ(to.bytes[i], i < length ? from.bytes[i] : std::byte{0xFF}) << length << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace uet::pds
