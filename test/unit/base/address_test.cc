// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/address.h"

#include <gtest/gtest.h>

namespace uet {
namespace {

FepAddress at(std::uint16_t port) { return {.ip = {.bytes = {10, 0, 0, 1}}, .port = port}; }

TEST(Address, PacketsToASlotGoToTheSharedPort) {
  for (const std::uint16_t port : {5817, 5848}) EXPECT_EQ(wire_address(at(port)), at(4793));
  for (const std::uint16_t port : {0, 4793, 5816, 5849, 65535}) {
    EXPECT_EQ(wire_address(at(port)), at(port));
  }
}

TEST(Address, APortNamesASlotOrNone) {
  EXPECT_EQ(slot_of_port(5817), 0U);
  EXPECT_EQ(slot_of_port(5848), 31U);
  for (const std::uint16_t port : {0, 4793, 5816, 5849, 65535}) EXPECT_FALSE(slot_of_port(port));
}

}  // namespace
}  // namespace uet
