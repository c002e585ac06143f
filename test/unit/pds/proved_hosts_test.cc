// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/proved_hosts.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

using std::chrono::milliseconds;

constexpr Time kStart = time_from_ns(16'000'000);

FabricAddress host(std::uint8_t last) { return {.bytes = {10, 0, 0, last}}; }

// Bytes that go to the host in packets of 1,000, for requests of 100.
std::uint64_t answered(ProvedHosts& hosts, std::uint8_t to, Time now) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < 1000 && hosts.may_answer(host(to), 100, 1000, now); ++i) bytes += 1000;
  return bytes;
}

TEST(ProvedHosts, Pds222_ThreeBytesForEachNeedNoProof) {
  ProvedHosts hosts;
  answered(hosts, 1, kStart);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(hosts.may_answer(host(1), 100, 300, kStart));
  EXPECT_FALSE(hosts.may_answer(host(1), 100, 1000, kStart));
}

TEST(ProvedHosts, Pds222_TheBudgetIsThatOfAllAndComesBack) {
  ProvedHosts hosts;
  const std::uint64_t first = answered(hosts, 1, kStart);
  EXPECT_LE(first, ProvedHosts::kBurstBytes);
  EXPECT_GT(first, ProvedHosts::kBurstBytes - 1000);
  EXPECT_EQ(answered(hosts, 2, kStart), 0U);
  EXPECT_NEAR(static_cast<double>(answered(hosts, 2, kStart + milliseconds(10))),
              ProvedHosts::kBytesPerSecond / 100.0, 1000);
  EXPECT_EQ(answered(hosts, 3, kStart + std::chrono::hours(1)), first) << "it does not add up";
}

TEST(ProvedHosts, Pds222_ProofOutlivesAClosedPdcForATime) {
  ProvedHosts hosts;
  hosts.add(host(1));
  hosts.add(host(1));
  hosts.remove(host(1));
  const Time later = kStart + 2 * ProvedHosts::kLasts;
  EXPECT_EQ(answered(hosts, 1, later), 1'000'000U);
  EXPECT_GT(answered(hosts, 2, later), 0U) << "its answers cost the budget nothing";
  hosts.keep(host(1), later);
  hosts.remove(host(1));
  const Time end = later + ProvedHosts::kLasts;
  EXPECT_EQ(answered(hosts, 1, end - milliseconds(1)), 1'000'000U);
  EXPECT_LT(answered(hosts, 1, end), 1'000'000U);
}

TEST(ProvedHosts, Pds222_ProofsThatLastAreBounded) {
  ProvedHosts hosts;
  for (int i = 0; i < 100'000; ++i) {
    FabricAddress ip = host(1);
    ip.bytes[1] = static_cast<std::uint8_t>(i);
    ip.bytes[2] = static_cast<std::uint8_t>(i >> 8);
    ip.bytes[3] = static_cast<std::uint8_t>(i >> 16);
    hosts.keep(ip, kStart);
  }
  int proved = 0;
  answered(hosts, 2, kStart);  // the budget is used up
  for (int i = 0; i < 100'000; ++i) {
    FabricAddress ip = host(1);
    ip.bytes[1] = static_cast<std::uint8_t>(i);
    ip.bytes[2] = static_cast<std::uint8_t>(i >> 8);
    ip.bytes[3] = static_cast<std::uint8_t>(i >> 16);
    proved += hosts.may_answer(ip, 100, 1000, kStart) ? 1 : 0;
  }
  EXPECT_GT(proved, 0);
  EXPECT_LT(proved, 1000);
}

}  // namespace
}  // namespace uet::pds
