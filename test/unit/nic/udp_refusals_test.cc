// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reports of the kernel about loopback addresses without a socket.
#include "nic/udp_refusals.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>

#include "nic/socket.h"

namespace uet::nic {
namespace {

class UdpRefusalsTest : public testing::TestWithParam<bool> {
 protected:
  FepAddress loopback() const {
    FepAddress address;
    address.ip.is_ipv6 = GetParam();
    if (GetParam()) {
      address.ip.bytes[15] = 1;
    } else {
      address.ip.bytes = {127, 0, 0, 1};
    }
    return address;
  }
  // A port without a socket: one that was free a moment ago.
  FepAddress unused() const {
    const FileDescriptor fd(::socket(GetParam() ? AF_INET6 : AF_INET, SOCK_DGRAM, 0));
    SocketAddress address;
    write_socket_address(loopback(), address);
    EXPECT_EQ(::bind(fd.get(), &address.any, socket_address_length(GetParam())), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(::getsockname(fd.get(), &address.any, &length), 0);
    return read_socket_address(address);
  }
  void send_to(const FepAddress& to) {
    SocketAddress address;
    write_socket_address(to, address);
    const char byte = 0;
    ::sendto(fd_.get(), &byte, 1, 0, &address.any, socket_address_length(GetParam()));
  }
  void await_report() {
    pollfd poll{fd_.get(), 0, 0};
    EXPECT_EQ(::poll(&poll, 1, 10'000), 1);
  }

  FileDescriptor fd_{::socket(GetParam() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)};
  UdpRefusals refusals_;
};

INSTANTIATE_TEST_SUITE_P(Families, UdpRefusalsTest, testing::Bool());

TEST_P(UdpRefusalsTest, Cm29_PortWithoutSocketIsReportedOnce) {
  ASSERT_TRUE(refusals_.watch(fd_.get(), GetParam()));
  const FepAddress to = unused();
  send_to(to);
  await_report();
  EXPECT_TRUE(refusals_.read(fd_.get()));
  const auto refused = refusals_.take();
  ASSERT_TRUE(refused);
  EXPECT_EQ(*refused, to);
  EXPECT_FALSE(refusals_.take());
  EXPECT_FALSE(refusals_.read(fd_.get()));
}

TEST_P(UdpRefusalsTest, MoreReportsThanPlacesAreForgotten) {
  ASSERT_TRUE(refusals_.watch(fd_.get(), GetParam()));
  const FepAddress to = unused();
  for (std::size_t i = 0; i < UdpRefusals::kMost + 10; ++i) {
    send_to(to);  // may fail with the report of an earlier one
    await_report();
    refusals_.read(fd_.get());
  }
  std::size_t taken = 0;
  while (refusals_.take()) ++taken;
  EXPECT_GT(taken, 0u);
  EXPECT_LE(taken, UdpRefusals::kMost);
}

TEST_P(UdpRefusalsTest, UnwatchedSocketReportsNothing) {
  send_to(unused());
  EXPECT_FALSE(refusals_.watching());
  EXPECT_FALSE(refusals_.read(fd_.get()));
  EXPECT_FALSE(refusals_.take());
}

}  // namespace
}  // namespace uet::nic
