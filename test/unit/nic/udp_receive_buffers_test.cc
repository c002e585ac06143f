// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Datagrams of a loopback socket, handed out packet by packet.
#include "nic/udp_receive_buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/udp.h>

#include "nic_testing.h"

namespace uet::nic {
namespace {

using Filled = UdpReceiveBuffers::Filled;

// Two sockets at addresses of their own; `sender` is connected to `receiver`.
struct ReceiveBuffers : ::testing::Test {
  ReceiveBuffers() : receiver(open()), sender(open()) {
    SocketAddress to;
    socklen_t length = sizeof to;
    ::getsockname(receiver.get(), &to.any, &length);
    EXPECT_EQ(::connect(sender.get(), &to.any, length), 0);
    length = sizeof to;
    ::getsockname(sender.get(), &to.any, &length);
    source = read_socket_address(to);
  }
  static FileDescriptor open() {
    FileDescriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    SocketAddress address;
    write_socket_address(FepAddress{own_loopback_address(), 0}, address);
    EXPECT_EQ(::bind(fd.get(), &address.any, socket_address_length(false)), 0);
    return fd;
  }
  void send(std::uint32_t number) const {
    const auto bytes = numbered_bytes(number);
    EXPECT_EQ(::send(sender.get(), bytes.data(), bytes.size(), 0), 4);
  }
  // The numbers of the packets of one hand_out.
  std::vector<std::uint32_t> take(std::size_t most) {
    std::vector<RxPacket> out(most);
    const std::size_t count = buffers.hand_out(out, counters);
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(out[i].source, source);
      EXPECT_EQ(out[i].entropy, source.port);
      numbers.push_back(number_of(out[i]));
    }
    return numbers;
  }

  FileDescriptor receiver;
  FileDescriptor sender;
  FepAddress source;
  UdpReceiveBuffers buffers;
  NicCounters counters;
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ReceiveBuffers, EmptySocketFillsNothing) {
  EXPECT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Nothing);
  EXPECT_TRUE(buffers.empty());
  EXPECT_THAT(take(4), IsEmpty());
}

TEST_F(ReceiveBuffers, PacketsAreHandedOutInSeveralBursts) {
  send(1);
  ASSERT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Some);
  EXPECT_THAT(take(4), ElementsAre(1U)) << "after a silence one datagram is taken";
  for (std::uint32_t i = 2; i < 5; ++i) send(i);
  ASSERT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Some);
  EXPECT_THAT(take(2), ElementsAre(2U, 3U));
  EXPECT_FALSE(buffers.empty());
  EXPECT_THAT(take(2), ElementsAre(4U));
  EXPECT_TRUE(buffers.empty());
  EXPECT_EQ(counters.bytes_received, 16U);
}

TEST_F(ReceiveBuffers, PacketKeepsNoMarkOfAnotherNic) {
  send(1);
  ASSERT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Some);
  std::vector<RxPacket> out(1);
  out[0].trimmed = out[0].trimmed_last_hop = out[0].through_memory = true;
  out[0].connection = 7;
  ASSERT_EQ(buffers.hand_out(out, counters), 1U);
  EXPECT_FALSE(out[0].trimmed || out[0].trimmed_last_hop || out[0].through_memory);
  EXPECT_EQ(out[0].connection, 0);
}

TEST_F(ReceiveBuffers, FullBuffersSayThatMoreMayWait) {
  for (std::uint32_t i = 0; i < 18; ++i) send(i);
  EXPECT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Some);
  EXPECT_EQ(take(20).size(), 1U);
  EXPECT_EQ(buffers.fill(receiver.get(), Time{}), Filled::All);
  EXPECT_EQ(take(20).size(), 16U);
  EXPECT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Some);
  EXPECT_THAT(take(20), ElementsAre(17U));
}

TEST_F(ReceiveBuffers, EmptyDatagramIsPassedOver) {
  EXPECT_EQ(::send(sender.get(), "", 0, 0), 0);
  ASSERT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Some);
  EXPECT_THAT(take(4), IsEmpty());
  EXPECT_TRUE(buffers.empty());
}

TEST_F(ReceiveBuffers, RunOfEqualPacketsIsTakenApart) {
  const int on = 1;
  if (::setsockopt(receiver.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) {
    GTEST_SKIP() << "the kernel has no UDP_GRO";
  }
  const int size = 4;
  ASSERT_EQ(::setsockopt(sender.get(), IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size), 0);
  const std::array<std::uint32_t, 3> numbers = {7, 8, 9};
  ASSERT_EQ(::send(sender.get(), numbers.data(), 10, 0), 10) << "the last packet has 2 bytes";
  ASSERT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Some);
  std::array<RxPacket, 4> out;
  ASSERT_EQ(buffers.hand_out(std::span(out).first(1), counters), 1U);
  EXPECT_EQ(number_of(out[0]), 7U);
  ASSERT_EQ(buffers.hand_out(out, counters), 2U);
  EXPECT_EQ(number_of(out[0]), 8U);
  EXPECT_EQ(out[1].bytes.size(), 2U);
}

// CMS-31: the ECN field arrives with the packet.
TEST_F(ReceiveBuffers, TosComesFromTheControlMessage) {
  const int on = 1;
  ASSERT_EQ(::setsockopt(receiver.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof on), 0);
  const int tos = 46 << 2 | static_cast<int>(Ecn::Ect0);
  ASSERT_EQ(::setsockopt(sender.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos), 0);
  send(1);
  ASSERT_EQ(buffers.fill(receiver.get(), Time{}), Filled::Some);
  std::array<RxPacket, 1> out;
  ASSERT_EQ(buffers.hand_out(out, counters), 1U);
  EXPECT_EQ(out[0].ecn, Ecn::Ect0);
  EXPECT_EQ(out[0].dscp, 46);
}

TEST_F(ReceiveBuffers, FailedCallIsReported) {
  EXPECT_EQ(buffers.fill(-1, Time{}), Filled::Failed);
  EXPECT_TRUE(buffers.empty());
}

}  // namespace
}  // namespace uet::nic
