// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What needs no neighbour: those are test/nic's, in networks of their own.
#include "nic/framed/next_hops.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include <algorithm>

namespace uet::nic {
namespace {

constexpr FabricAddress kLoopback{.bytes = {127, 0, 0, 1}};

std::unique_ptr<NextHops> open_on(int index) {
  std::string message;
  auto hops = NextHops::open(index, kLoopback, message);
  EXPECT_TRUE(hops) << message;
  return hops ? std::move(hops).value() : nullptr;
}

TEST(NextHops, AddressesOfThisHostAreTheKernels) {
  const auto hops = open_on(static_cast<int>(::if_nametoindex("lo")));
  ASSERT_NE(hops, nullptr);
  EXPECT_EQ(hops->find(kLoopback).way, NextHops::Way::Kernel);
  EXPECT_EQ(hops->find({.bytes = {127, 1, 2, 3}}).way, NextHops::Way::Kernel);
}

TEST(NextHops, KernelSendsPacketsForOtherInterfaces) {
  const auto hops = open_on(30'000);  // no interface has this index
  ASSERT_NE(hops, nullptr);
  EXPECT_EQ(hops->find({.bytes = {192, 0, 2, 1}}).way, NextHops::Way::Kernel);
}

TEST(NextHops, AnAddressIsAskedForOnce) {
  const auto hops = open_on(static_cast<int>(::if_nametoindex("lo")));
  ASSERT_NE(hops, nullptr);
  for (int round = 0; round < 3; ++round) {
    for (std::uint8_t host = 1; host <= 4; ++host) hops->find({.bytes = {127, 0, 0, host}});
  }
  EXPECT_EQ(hops->size(), 4U);
}

// A peer may invent addresses: they cost what they must, and no more.
TEST(NextHops, AFloodOfAddressesIsForgottenAgain) {
  const auto hops = open_on(30'000);
  ASSERT_NE(hops, nullptr);
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < 70'000; ++i) {
    FabricAddress ip{.bytes = {127, static_cast<std::uint8_t>(i >> 16),
                               static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)}};
    hops->find(ip);
    most = std::max(most, hops->size());
  }
  EXPECT_LE(most, 65'536U);
  EXPECT_LT(hops->size(), 70'000U - 65'536U + 1);
}

}  // namespace
}  // namespace uet::nic
