// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/local_routes.h"

#include <gtest/gtest.h>

#include "local_ends_testing.h"

namespace uet::nic {
namespace {

constexpr Time kNow{std::chrono::seconds(100)};

FepAddress at(std::uint16_t port, FabricAddress ip = ipv4(127, 0, 0, 9)) { return {ip, port}; }

struct Routes : ::testing::Test {
  std::vector<FabricAddress> of_kernel;
  int reads = 0;
  LocalRoutes routes{HostAddresses([this] {
    ++reads;
    return of_kernel;
  })};

  static std::unique_ptr<LocalOutgoing> ring(const FepAddress& to, std::uint16_t id = 1) {
    auto made = std::make_unique<LocalOutgoing>(to, connected_sockets().first, ring_memory());
    made->id = id;
    return made;
  }
};

TEST_F(Routes, AddressOfThisHostIsAddedOnce) {
  LocalRoute* const route = routes.for_packet(at(1), true, kNow);
  ASSERT_NE(route, nullptr);
  LocalRoute* const other = routes.for_packet(at(2), true, kNow);
  EXPECT_NE(other, route);
  EXPECT_EQ(routes.find(at(2)), other);
  EXPECT_EQ(routes.for_packet(at(1), true, kNow), route);
  EXPECT_EQ(routes.size(), 2U);
}

TEST_F(Routes, NothingIsAddedOnBehalfOfAStranger) {
  EXPECT_EQ(routes.for_packet(at(1), false, kNow), nullptr);
  EXPECT_EQ(routes.size(), 0U);
  LocalRoute* const route = routes.for_packet(at(1), true, kNow);
  EXPECT_EQ(routes.for_packet(at(1), false, kNow), route);
}

TEST_F(Routes, AddressOfAnotherHostHasNoRoute) {
  const FepAddress remote = at(1, ipv4(10, 0, 0, 2));
  EXPECT_EQ(routes.for_packet(remote, true, kNow), nullptr);
  EXPECT_EQ(routes.for_packet(remote, true, kNow), nullptr);
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(routes.size(), 0U);
  of_kernel.push_back(remote.ip);
  EXPECT_NE(routes.for_packet(remote, true, kNow + HostAddresses::kInterval), nullptr);
}

TEST_F(Routes, AddressesWithoutARingAreForgottenAtTheLimit) {
  routes.find_or_add(at(1), true, kNow)->ring = ring(at(1));
  for (std::size_t i = 1; i < LocalRoutes::kMost; ++i) {
    routes.find_or_add(at(static_cast<std::uint16_t>(i + 1)), true, kNow);
  }
  EXPECT_EQ(routes.size(), LocalRoutes::kMost);
  routes.find_or_add(at(60'000), true, kNow);
  EXPECT_EQ(routes.size(), 2U) << "the ring and the new address";
  EXPECT_NE(routes.find(at(1)), nullptr);
}

TEST_F(Routes, RingIsFoundByItsConnection) {
  routes.find_or_add(at(1), true, kNow)->ring = ring(at(1), 5);
  EXPECT_EQ(routes.of_connection(5), routes.find(at(1)));
  EXPECT_EQ(routes.of_connection(6), nullptr);
}

TEST_F(Routes, WaitBetweenTriesDoublesUpToABound) {
  LocalRoute route;
  Time now = kNow;
  int tries = 0;
  const auto connect = [&](const FepAddress&) -> std::unique_ptr<LocalOutgoing> {
    ++tries;
    return nullptr;
  };
  for (const Duration wait : {LocalRoute::kFirstRetry, 2 * LocalRoute::kFirstRetry}) {
    const int before = tries;
    EXPECT_EQ(route.ring_or_connect(at(1), now, connect), nullptr);
    EXPECT_EQ(tries, before + 1);
    now += wait;
    EXPECT_EQ(route.ring_or_connect(at(1), now - Duration(1), connect), nullptr);
    EXPECT_EQ(tries, before + 1) << "too early";
  }
  for (int i = 0; i < 10; ++i) route.ring_or_connect(at(1), route.next_try, connect);
  EXPECT_EQ(route.wait, LocalRoute::kLastRetry);
}

TEST_F(Routes, RingIsMadeOnce) {
  LocalRoute route;
  const auto connect = [](const FepAddress& to) { return ring(to); };
  LocalOutgoing* const made = route.ring_or_connect(at(1), kNow, connect);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->peer, at(1));
  EXPECT_EQ(route.ring_or_connect(at(1), kNow + std::chrono::hours(1), connect), made);
}

TEST_F(Routes, LackOfMemoryIsLikeNoPeer) {
  LocalRoute route;
  EXPECT_EQ(route.ring_or_connect(at(1), kNow,
                                  [](const FepAddress&) -> std::unique_ptr<LocalOutgoing> {
                                    throw std::bad_alloc();
                                  }),
            nullptr);
  EXPECT_EQ(route.next_try, kNow + LocalRoute::kFirstRetry);
}

}  // namespace
}  // namespace uet::nic
