// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/host_addresses.h"

#include <gtest/gtest.h>

#include "nic_testing.h"

namespace uet::nic {
namespace {

constexpr Time kNow{std::chrono::seconds(100)};
const FabricAddress kOurs = ipv4(10, 0, 0, 1);
const FabricAddress kTheirs = ipv4(10, 0, 0, 2);

struct HostAddressesTest : ::testing::Test {
  int reads = 0;
  std::vector<FabricAddress> of_kernel{kOurs};
  HostAddresses hosts{[this] {
    ++reads;
    return of_kernel;
  }};
};

TEST_F(HostAddressesTest, LoopbackNeedsNoKernel) {
  EXPECT_TRUE(hosts.has(ipv4(127, 1, 2, 3), kNow));
  EXPECT_EQ(reads, 0);
}

TEST_F(HostAddressesTest, KernelIsAskedOncePerInterval) {
  EXPECT_FALSE(hosts.is_fresh(kNow));
  EXPECT_TRUE(hosts.has(kOurs, kNow));
  EXPECT_FALSE(hosts.has(kTheirs, kNow));
  of_kernel.push_back(kTheirs);
  const Time last = kNow + HostAddresses::kInterval - Duration(1);
  EXPECT_TRUE(hosts.is_fresh(last));
  EXPECT_FALSE(hosts.has(kTheirs, last));
  EXPECT_EQ(reads, 1);
  EXPECT_FALSE(hosts.is_fresh(last + Duration(1)));
  EXPECT_TRUE(hosts.has(kTheirs, last + Duration(1)));
  EXPECT_EQ(reads, 2);
}

TEST_F(HostAddressesTest, WithoutMemoryTheAnswerIsNo) {
  HostAddresses poor([]() -> std::vector<FabricAddress> { throw std::bad_alloc(); });
  EXPECT_FALSE(poor.has(kOurs, kNow));
}

}  // namespace
}  // namespace uet::nic
