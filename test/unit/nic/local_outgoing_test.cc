// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/local_outgoing.h"

#include <gtest/gtest.h>

#include "local_ends_testing.h"
#include "nic/local_socket.h"

namespace uet::nic {
namespace {

constexpr Time kNow{std::chrono::seconds(1)};

struct Outgoing : ::testing::Test {
  std::pair<FileDescriptor, FileDescriptor> sockets = connected_sockets();
  LocalOutgoing ring{FepAddress{ipv4(127, 0, 0, 9), 4793}, std::move(sockets.first), ring_memory()};

  template <class T>
  void answer(const T& message) {
    ASSERT_TRUE(send_with_descriptor(sockets.second.get(), bytes_of(message), -1));
  }
  void fill() {
    PacketSet packets;
    packets.add(ring.peer, 20, 10'000);
    while (ring.ring.put(packets.last())) {
    }
    ring.ring.publish();
  }
};

TEST_F(Outgoing, WelcomeNamesThePeer) {
  EXPECT_TRUE(ring.read_welcome()) << "no answer yet";
  EXPECT_FALSE(ring.welcomed);
  answer(LocalWelcome{.instance = 7});
  EXPECT_TRUE(ring.read_welcome());
  EXPECT_TRUE(ring.welcomed);
  EXPECT_EQ(ring.instance, (LocalInstance{.process = ::getpid(), .number = 7}));
}

TEST_F(Outgoing, SecondWelcomeIsRefused) {
  answer(LocalWelcome{.instance = 7});
  answer(LocalWelcome{.instance = 8});
  EXPECT_TRUE(ring.read_welcome());
  EXPECT_FALSE(ring.read_welcome());
  EXPECT_TRUE(ring.is_passed_over());
}

TEST_F(Outgoing, UnknownVersionIsRefused) {
  answer(LocalWelcome{.instance = 7, .speaks = 2});
  EXPECT_FALSE(ring.read_welcome());
  EXPECT_FALSE(ring.waits_for_space(kNow)) << "packets go to the NIC below";
}

TEST_F(Outgoing, ClosedSocketAbandonsTheRing) {
  EXPECT_FALSE(ring.is_abandoned());
  { const FileDescriptor closed = std::move(sockets.second); }
  EXPECT_FALSE(ring.read_welcome());
  EXPECT_TRUE(ring.is_abandoned());
  EXPECT_FALSE(ring.is_process_gone());
}

TEST_F(Outgoing, PassedOverUntilThePeerHasReadAll) {
  fill();
  EXPECT_TRUE(ring.waits_for_space(kNow));
  EXPECT_FALSE(ring.waits_for_space(kNow + RingPatience::kReads));
  EXPECT_TRUE(ring.is_passed_over());
  RingConsumer peer(ring.memory.bytes());
  peer.look();
  RxPacket packet;
  EXPECT_EQ(peer.next(packet), RingConsumer::Next::Packet);
  peer.release();
  EXPECT_TRUE(ring.is_passed_over()) << "packets are left";
  while (peer.next(packet) == RingConsumer::Next::Packet) {
  }
  peer.release();
  EXPECT_FALSE(ring.is_passed_over());
}

}  // namespace
}  // namespace uet::nic
