// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the XDP program takes, by the kernel's own trial run of programs: no interface is touched.
#include "nic/xdp_program.h"

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "nic/guard_map.h"
#include "wire/frame.h"

namespace uet::nic {
namespace {

constexpr std::uint8_t kUdp = 17;
constexpr std::size_t kIpAt = 14;  // behind the Ethernet header

FepAddress endpoint(bool ipv6) {
  FepAddress self{.ip = {.bytes = {10, 85, 0, 1}, .is_ipv6 = ipv6}, .port = 4801};
  if (ipv6) self.ip.bytes = {0xFD, 0x85, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  return self;
}

// Tests load programs into the kernel, which takes rights.
class XdpProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const int error = XdpProgram::load(program_);
    if (error == EPERM || (error == EACCES && ::geteuid() != 0))
      GTEST_SKIP() << "needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: run as root";
    ASSERT_EQ(error, 0);
    socket_ = FileDescriptor(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(socket_.valid());
    guard_ = GuardMap::make();
    ASSERT_NE(guard_, nullptr);
  }

  // Trial runs are in queue 0.
  void take(const FepAddress& self, std::uint8_t protocol = kUdp) {
    ASSERT_TRUE(program_.give_queue(0, {socket_.get(), guard_->fd(), self, protocol}));
  }

  unsigned verdict(std::vector<std::byte> frame) {
    bpf_test_run_opts options{};
    options.sz = sizeof options;
    options.data_in = frame.data();
    options.data_size_in = static_cast<std::uint32_t>(frame.size());
    options.repeat = 1;
    const int error = bpf_prog_test_run_opts(program_.program_fd(), &options);
    EXPECT_EQ(error, 0);
    return options.retval;
  }

  static std::vector<std::byte> frame_to(const FepAddress& to, wire::FrameFormat format = {},
                                         std::uint16_t vlan = 0) {
    wire::FrameFields fields;
    fields.source = to.ip;
    fields.source.bytes[3] ^= 3;
    fields.destination = to.ip;
    fields.port = to.port;
    fields.entropy = 50'000;
    if (vlan != 0) fields.vlan = vlan;
    std::vector<std::byte> packet(64, std::byte{7});
    const std::array pieces{Slice{packet.data(), 64}};
    std::vector<std::byte> frame(wire::kMaxFrameHeaderBytes);
    frame.resize(wire::write_frame_headers(frame.data(), format, fields, pieces));
    frame.insert(frame.end(), packet.begin(), packet.end());
    return frame;
  }

  XdpProgram program_;
  FileDescriptor socket_;
  std::unique_ptr<GuardMap> guard_;
};

TEST_F(XdpProgramTest, TakesPacketsToTheEndpointOfTheQueue) {
  for (const bool ipv6 : {false, true}) {
    const FepAddress self = endpoint(ipv6);
    take(self);
    EXPECT_EQ(verdict(frame_to(self)), XDP_REDIRECT) << ipv6;
  }
}

TEST_F(XdpProgramTest, LeavesAllOthersToTheKernel) {
  for (const bool ipv6 : {false, true}) {
    const FepAddress self = endpoint(ipv6);
    take(self);
    FepAddress other = self;
    other.port = 4793;
    EXPECT_EQ(verdict(frame_to(other)), XDP_PASS) << "another port, " << ipv6;
    for (std::size_t i = 0; i < (ipv6 ? 16U : 4U); ++i) {
      other = self;
      other.ip.bytes[i] ^= 1;
      EXPECT_EQ(verdict(frame_to(other)), XDP_PASS) << "another address, " << ipv6 << i;
    }
    EXPECT_EQ(verdict(frame_to(endpoint(!ipv6))), XDP_PASS) << "another family, " << ipv6;
    EXPECT_EQ(verdict(frame_to(self, {}, 5)), XDP_PASS) << "another VLAN, " << ipv6;
    std::vector<std::byte> frame = frame_to(self);
    frame[kIpAt + (ipv6 ? 6 : 9)] = std::byte{6};
    EXPECT_EQ(verdict(frame), XDP_PASS) << "TCP, " << ipv6;
  }
}

TEST_F(XdpProgramTest, WithoutAnOwnerOrItsSocketTheQueueIsTheKernels) {
  const FepAddress self = endpoint(false);
  EXPECT_EQ(verdict(frame_to(self)), XDP_PASS) << "no socket has the queue";
  take(self);
  EXPECT_EQ(verdict(frame_to(self)), XDP_REDIRECT);
  socket_ = FileDescriptor();
  EXPECT_EQ(verdict(frame_to(self)), XDP_PASS) << "the socket was closed, as the end does";
}

// The map entry distinguishes a queue that is being freed from a queue that a process has.
TEST_F(XdpProgramTest, OnlyALivingOwnerKeepsOthersAway) {
  const FepAddress self = endpoint(false);
  FileDescriptor claim(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  const FileDescriptor other(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(program_.claim_queue(0, claim.get()));
  EXPECT_FALSE(program_.claim_queue(0, other.get()));
  EXPECT_EQ(errno, EEXIST);
  EXPECT_TRUE(program_.claim_queue(1, other.get())) << "another queue";
  take(self);
  claim = FileDescriptor();
  EXPECT_EQ(verdict(frame_to(self)), XDP_REDIRECT) << "the claim left with its socket";
  EXPECT_FALSE(program_.claim_queue(0, other.get()));
  EXPECT_EQ(errno, EEXIST);
  socket_ = FileDescriptor();
  EXPECT_TRUE(program_.claim_queue(0, other.get())) << "the owner has gone";
}

// A socket that is not bound yet must not get the packets of the last owner.
TEST_F(XdpProgramTest, AClaimedQueueIsTheKernels) {
  const FepAddress self = endpoint(false);
  take(self);
  socket_ = FileDescriptor();
  const FileDescriptor claim(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(program_.claim_queue(0, claim.get()));
  EXPECT_EQ(verdict(frame_to(self)), XDP_PASS);
}

TEST_F(XdpProgramTest, TheNextOwnerReplacesTheLast) {
  FepAddress self = endpoint(false);
  take(self);
  const std::vector<std::byte> before = frame_to(self);
  self.port = 4802;
  take(self);
  EXPECT_EQ(verdict(before), XDP_PASS);
  EXPECT_EQ(verdict(frame_to(self)), XDP_REDIRECT);
}

TEST_F(XdpProgramTest, TakesTheNativeFormByItsProtocol) {
  const wire::FrameFormat native{.encapsulation = wire::Encapsulation::NativeIp};
  for (const bool ipv6 : {false, true}) {
    const FepAddress self = endpoint(ipv6);
    take(self, native.native_protocol);
    EXPECT_EQ(verdict(frame_to(self, native)), XDP_REDIRECT);
    EXPECT_EQ(verdict(frame_to(self)), XDP_PASS) << "UDP";
  }
}

TEST_F(XdpProgramTest, LeavesFragmentsToTheKernel) {
  const FepAddress self = endpoint(false);
  take(self);
  std::vector<std::byte> frame = frame_to(self);
  frame[kIpAt + 6] = std::byte{0x20};  // more fragments
  EXPECT_EQ(verdict(frame), XDP_PASS);
  frame[kIpAt + 6] = std::byte{0};
  frame[kIpAt + 7] = std::byte{9};  // not the first
  EXPECT_EQ(verdict(frame), XDP_PASS);
}

TEST_F(XdpProgramTest, LooksBehindIpv4Options) {
  const FepAddress self = endpoint(false);
  take(self);
  std::vector<std::byte> frame = frame_to(self);
  frame[kIpAt] = std::byte{0x46};
  EXPECT_EQ(verdict(frame), XDP_PASS) << "the port is elsewhere now";
  frame.insert(frame.begin() + kIpAt + 20, 4, std::byte{1});
  EXPECT_EQ(verdict(frame), XDP_REDIRECT);
  frame[kIpAt] = std::byte{0x44};
  EXPECT_EQ(verdict(frame), XDP_PASS) << "a header shorter than any";
}

// WIRE 1.1
TEST_F(XdpProgramTest, LooksBehindIpv6Headers) {
  const FepAddress self = endpoint(true);
  take(self);
  for (const std::uint8_t header : {0, 43, 60}) {
    std::vector<std::byte> frame = frame_to(self);
    std::vector<std::byte> between(16);
    between[0] = frame[kIpAt + 6];
    between[1] = std::byte{1};  // 8 bytes beyond the first 8
    frame[kIpAt + 6] = std::byte{header};
    frame.insert(frame.begin() + kIpAt + 40, between.begin(), between.end());
    EXPECT_EQ(verdict(frame), XDP_REDIRECT) << int{header};
    frame[kIpAt + 6] = std::byte{44};
    EXPECT_EQ(verdict(frame), XDP_PASS) << "a fragment";
  }
}

TEST_F(XdpProgramTest, FramesThatEndTooEarlyAreTheKernels) {
  for (const bool ipv6 : {false, true}) {
    const FepAddress self = endpoint(ipv6);
    take(self);
    const std::vector<std::byte> whole = frame_to(self);
    const std::size_t headers = kIpAt + (ipv6 ? 40 : 20) + 8;
    for (std::size_t length = kIpAt; length <= whole.size(); ++length) {
      const std::vector<std::byte> frame(whole.begin(), whole.begin() + std::ptrdiff_t(length));
      EXPECT_EQ(verdict(frame), length < headers ? XDP_PASS : XDP_REDIRECT) << length;
    }
  }
}

// Damaged anywhere, a frame is taken or left, never dropped.
TEST_F(XdpProgramTest, DamagedFramesAreTakenOrLeft) {
  std::mt19937 random(1);
  for (const bool ipv6 : {false, true}) {
    const FepAddress self = endpoint(ipv6);
    take(self);
    for (int i = 0; i < 2000; ++i) {
      std::vector<std::byte> frame = frame_to(self);
      for (int k = 0; k < 3; ++k) frame[random() % frame.size()] = std::byte(random());
      const unsigned result = verdict(frame);
      EXPECT_TRUE(result == XDP_PASS || result == XDP_REDIRECT) << result;
    }
  }
}

}  // namespace
}  // namespace uet::nic
