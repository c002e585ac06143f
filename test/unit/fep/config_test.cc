// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fep/config.h"

#include <gtest/gtest.h>

namespace uet::fep {
namespace {

TEST(PayloadMtuFor, Wire15_LargestPowerOfTwoThatFits) {
  struct Row {
    std::uint32_t ip_mtu;
    std::uint32_t payload;
  };
  for (const Row& row : {Row{0, 0}, Row{576, 0}, Row{1155, 0}, Row{1156, 1024}, Row{1500, 1024},
                         Row{2179, 1024}, Row{2180, 2048}, Row{4227, 2048}, Row{4228, 4096},
                         Row{8323, 4096}, Row{8324, 8192}, Row{9000, 8192}, Row{65536, 8192}}) {
    EXPECT_EQ(payload_mtu_for(row.ip_mtu), row.payload) << row.ip_mtu;
  }
}

}  // namespace
}  // namespace uet::fep
