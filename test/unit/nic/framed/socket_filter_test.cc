// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Frames through a pair of Unix sockets, one of which has the filter: the kernel runs it on them as
// on those of a packet socket, and it takes no right.
#include "nic/framed/socket_filter.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "nic/socket.h"

namespace uet::nic {
namespace {

constexpr std::size_t kIpAt = 14;  // behind the Ethernet header
constexpr wire::FrameFormat kNative{.encapsulation = wire::Encapsulation::NativeIp};

FepAddress endpoint(bool ipv6) {
  FepAddress self{.ip = {.bytes = {10, 85, 0, 1}, .is_ipv6 = ipv6}, .port = 4801};
  if (ipv6) self.ip.bytes = {0xFD, 0x85, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  return self;
}

std::vector<std::byte> frame_to(const FepAddress& to, const wire::FrameFormat& format = {}) {
  wire::FrameFields fields;
  fields.source = to.ip;
  fields.source.bytes[3] ^= 3;
  fields.destination = to.ip;
  fields.port = to.port;
  fields.entropy = 50'000;
  const std::vector<std::byte> packet(64, std::byte{7});
  const std::array pieces{Slice{packet.data(), 64}};
  std::vector<std::byte> frame(wire::kMaxFrameHeaderBytes);
  frame.resize(wire::write_frame_headers(frame.data(), format, fields, pieces));
  frame.insert(frame.end(), packet.begin(), packet.end());
  return frame;
}

class SocketFilter : public ::testing::Test {
 protected:
  SocketFilter() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    sender_ = FileDescriptor(ends[0]);
    filtered_ = FileDescriptor(ends[1]);
  }

  bool passes(const std::vector<std::byte>& frame) {
    ::send(sender_.get(), frame.data(), frame.size(), 0);
    std::vector<std::byte> got(frame.size());
    const ssize_t length = ::recv(filtered_.get(), got.data(), got.size(), 0);
    if (length < 0) return false;
    EXPECT_EQ(got, frame) << "cut short";
    return true;
  }

  FileDescriptor sender_;
  FileDescriptor filtered_;
};

TEST_F(SocketFilter, DropEverythingDoes) {
  EXPECT_TRUE(passes(frame_to(endpoint(false))));
  ASSERT_TRUE(drop_everything(filtered_.get()));
  EXPECT_FALSE(passes(frame_to(endpoint(false))));
}

TEST_F(SocketFilter, FramesToTheEndpointPass) {
  for (const bool ipv6 : {false, true}) {
    const FepAddress self = endpoint(ipv6);
    ASSERT_TRUE(take_only_frames_to(filtered_.get(), self, {}));
    EXPECT_TRUE(passes(frame_to(self))) << ipv6;
    ASSERT_TRUE(take_only_frames_to(filtered_.get(), self, kNative));
    EXPECT_TRUE(passes(frame_to(self, kNative))) << ipv6;
  }
}

TEST_F(SocketFilter, OtherFramesDoNot) {
  for (const bool ipv6 : {false, true}) {
    const FepAddress self = endpoint(ipv6);
    ASSERT_TRUE(take_only_frames_to(filtered_.get(), self, {}));
    FepAddress other = self;
    other.port = 4793;
    EXPECT_FALSE(passes(frame_to(other))) << "another port, " << ipv6;
    for (std::size_t i = 0; i < (ipv6 ? 16U : 4U); ++i) {
      other = self;
      other.ip.bytes[i] ^= 1;
      EXPECT_FALSE(passes(frame_to(other))) << "another address, " << ipv6 << i;
    }
    EXPECT_FALSE(passes(frame_to(self, kNative))) << "the other form, " << ipv6;
    ASSERT_TRUE(take_only_frames_to(filtered_.get(), self, kNative));
    EXPECT_FALSE(passes(frame_to(self))) << "UDP, " << ipv6;
  }
}

TEST_F(SocketFilter, FragmentsDoNotPass) {
  const FepAddress self = endpoint(false);
  ASSERT_TRUE(take_only_frames_to(filtered_.get(), self, {}));
  std::vector<std::byte> frame = frame_to(self);
  frame[kIpAt + 6] = std::byte{0x20};  // more fragments
  EXPECT_FALSE(passes(frame));
  frame[kIpAt + 6] = std::byte{0};
  frame[kIpAt + 7] = std::byte{9};  // not the first
  EXPECT_FALSE(passes(frame));
}

TEST_F(SocketFilter, LooksBehindIpv4Options) {
  const FepAddress self = endpoint(false);
  ASSERT_TRUE(take_only_frames_to(filtered_.get(), self, {}));
  std::vector<std::byte> frame = frame_to(self);
  frame[kIpAt] = std::byte{0x46};
  EXPECT_FALSE(passes(frame)) << "the port is elsewhere now";
  frame.insert(frame.begin() + kIpAt + 20, 4, std::byte{1});
  EXPECT_TRUE(passes(frame));
}

// WIRE 1.1: the reader looks at the port.
TEST_F(SocketFilter, Ipv6HeadersInFrontPass) {
  const FepAddress self = endpoint(true);
  ASSERT_TRUE(take_only_frames_to(filtered_.get(), self, {}));
  std::vector<std::byte> frame = frame_to(self);
  for (const std::uint8_t header : {0, 43, 60, 135}) {
    frame[kIpAt + 6] = std::byte{header};
    EXPECT_TRUE(passes(frame)) << int{header};
  }
  for (const std::uint8_t header : {6, 44, 58}) {  // TCP, a fragment, ICMP
    frame[kIpAt + 6] = std::byte{header};
    EXPECT_FALSE(passes(frame)) << int{header};
  }
}

TEST_F(SocketFilter, FramesThatEndBeforeThePortDoNotPass) {
  for (const bool ipv6 : {false, true}) {
    const FepAddress self = endpoint(ipv6);
    ASSERT_TRUE(take_only_frames_to(filtered_.get(), self, {}));
    const std::vector<std::byte> whole = frame_to(self);
    const std::size_t needed = kIpAt + (ipv6 ? 40 : 20) + 4;
    for (std::size_t length = 1; length <= whole.size(); ++length) {
      const std::vector<std::byte> frame(whole.begin(), whole.begin() + std::ptrdiff_t(length));
      EXPECT_EQ(passes(frame), length >= needed) << length;
    }
  }
}

}  // namespace
}  // namespace uet::nic
