// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Same-host rings between NICs of one process, and between processes where one has to die.
#include "nic/local.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>

#include "local_testing.h"
#include "nic/local_socket.h"

namespace uet::nic {
namespace {

struct Local : ::testing::Test {
  Host a{4793};
  Host b{4794};
  PacketSet to_b;
  PacketSet to_a;

  // Both have heard of each other.
  void connect() {
    to_b.add(b.address, 4, 0);
    to_a.add(a.address, 4, 0);
    ASSERT_EQ(a.send(to_b), 1U);
    ASSERT_EQ(b.send(to_a), 1U);
    ASSERT_EQ(a.receive().size(), 1U);
    ASSERT_EQ(b.receive().size(), 1U);
    a.receive();  // the answer of b, which comes with its first burst
  }
};

TEST_F(Local, PacketsToAPeerOfThisHostStayOutOfTheNetwork) {
  for (std::size_t i = 0; i < 10; ++i) to_b.add(b.address, 20, 100 * i, i);
  to_b.last().dscp = 46;
  to_b.last().entropy = 50'000;
  ASSERT_EQ(a.send(to_b), 10U);
  EXPECT_TRUE(a.below->sent.empty());
  const std::vector<Arrival> arrived = b.receive();
  ASSERT_EQ(arrived.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(arrived[i].bytes, to_b.bytes(i));
  EXPECT_EQ(arrived[0].source, a.address);
  EXPECT_EQ(arrived[0].entropy, a.address.port) << "as a socket has it";
  EXPECT_EQ(arrived[9].entropy, 50'000);
  EXPECT_EQ(arrived[9].dscp, 46);
  EXPECT_EQ(a.nic->counters().local_packets_sent, 10U);
  EXPECT_EQ(a.nic->counters().packets_sent, 10U);
  EXPECT_EQ(b.nic->counters().local_packets_received, 10U);
  EXPECT_EQ(b.nic->counters().bytes_received, a.nic->counters().bytes_sent);
}

TEST_F(Local, SharedMemoryIsWherePacketsOfRingsLie) {
  to_b.add(b.address, 20, 100);
  ASSERT_EQ(a.send(to_b), 1U);
  LoopbackNic above(std::move(b.nic));
  RxPacket packet;
  ASSERT_EQ(above.rx_burst({&packet, 1}, Time{}), 1U);
  ASSERT_NE(above.shared_memory(), nullptr) << "wrappers ask the NIC below";
  EXPECT_TRUE(above.shared_memory()->contains(packet.bytes.data()));
}

// A ring carries plain packets: members of different secure domains, or of none, have none.
TEST_F(Local, Tss64_NoRingLeadsToAnotherSecureDomain) {
  Host seven{4795, kMinRingBytes, 7};
  Host other_seven{4796, kMinRingBytes, 7};
  Host eight{4797, kMinRingBytes, 8};
  Host zero{4798, kMinRingBytes, 0};
  PacketSet packets;
  for (const Host* to : {&other_seven, &eight, &zero, &b}) packets.add(to->address, 4, 0);
  ASSERT_EQ(seven.send(packets), 4U);
  EXPECT_EQ(seven.nic->counters().local_packets_sent, 1U);
  EXPECT_EQ(seven.below->sent.size(), 3U);
  EXPECT_EQ(other_seven.receive().size(), 1U);
  to_b.add(zero.address, 4, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(a.below->sent.size(), 1U) << "SDI 0 is a secure domain as others are";
}

TEST_F(Local, OtherPacketsGoToTheNetworkInTheirOrder) {
  const FepAddress elsewhere{ipv4(192, 0, 2, 1), 4793};
  to_b.add(elsewhere, 4, 10);
  to_b.add(b.address, 4, 11);
  to_b.add(elsewhere, 4, 12);
  ASSERT_EQ(a.send(to_b), 3U);
  ASSERT_EQ(a.below->sent.size(), 2U);
  EXPECT_EQ(a.below->sent[0], to_b.bytes(0));
  EXPECT_EQ(a.below->sent[1], to_b.bytes(2));
  EXPECT_EQ(b.receive().size(), 1U);
}

// The CRC covers the source port (WIRE 1.4): through a ring, the entropy value is not that port.
TEST_F(Local, PacketsThroughARingLeaveFromTheKnownPort) {
  a.below->allow_entropy();  // nothing has been sent to b yet
  for (const FepAddress& to : {b.address, FepAddress{ipv4(192, 0, 2, 1), 4793}}) {
    to_b.add(to, 4, 0);
    to_b.last().entropy = 50'000;
    const std::uint16_t expected = to == b.address ? a.address.port : 50'000;
    EXPECT_EQ(a.nic->source_port_for(to_b.last()), expected);
  }
}

TEST_F(Local, FullNetwork_EndsPrefixButEarlierLeft) {
  a.below->tx_room = 0;
  to_b.add(b.address, 4, 11);
  to_b.add({ipv4(192, 0, 2, 1), 4793}, 4, 10);
  to_b.add(b.address, 4, 12);
  EXPECT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(b.receive().size(), 1U);
}

constexpr std::size_t kFullRing = kMinRingBytes / 8064;  // packets of 24 + 8000 bytes

TEST_F(Local, FullRingOfAPeerThatReadsIsAFullQueue) {
  for (int i = 0; i < 40; ++i) to_b.add(b.address, 24, 8000);
  ASSERT_EQ(a.send(to_b), kFullRing) << "packets on another path would overtake the rest";
  EXPECT_EQ(a.send(to_b), 0U);
  EXPECT_EQ(b.receive().size(), kFullRing);
  b.receive();  // gives the space back
  EXPECT_EQ(a.send(to_b), kFullRing);
  EXPECT_TRUE(a.below->sent.empty());
}

TEST_F(Local, FullRing_IsSkippedUntilItIsEmpty) {
  for (int i = 0; i < 40; ++i) to_b.add(b.address, 24, 8000);
  ASSERT_EQ(a.send(to_b), kFullRing);
  EXPECT_EQ(a.send(to_b), 0U);
  a.now += std::chrono::milliseconds(10);
  a.receive();
  EXPECT_EQ(a.send(to_b), 40U) << "a peer that does not read does not stop its sender";
  EXPECT_EQ(a.below->sent.size(), 40U);
  std::array<RxPacket, 3> few;
  EXPECT_EQ(b.nic->rx_burst(few, b.now += kStep), 3U);
  EXPECT_EQ(b.nic->rx_burst(few, b.now += kStep), 3U);  // gives the space of the first three back
  EXPECT_EQ(a.send(to_b), 40U);
  EXPECT_EQ(a.below->sent.size(), 80U) << "what is in the ring must not be overtaken again";
  b.receive();
  b.receive();
  EXPECT_EQ(a.send(to_b), kFullRing);
  EXPECT_EQ(a.below->sent.size(), 80U);
}

// One ring at each visit would be so little that the peer gives up what waits behind it.
TEST_F(Local, LeftFullByRareCaller_RingIsSkipped) {
  for (int i = 0; i < 40; ++i) to_b.add(b.address, 24, 8000);
  ASSERT_EQ(a.send(to_b), kFullRing);
  EXPECT_EQ(a.send(to_b), 0U);
  const auto peer_reads = [&] {
    b.receive();
    b.receive();
  };
  peer_reads();
  a.now += std::chrono::milliseconds(10);
  a.receive();
  EXPECT_EQ(a.send(to_b), 40U);
  EXPECT_EQ(a.below->sent.size(), 40U - kFullRing);
  peer_reads();
  a.now += std::chrono::milliseconds(1);
  a.receive();
  EXPECT_EQ(a.send(to_b), kFullRing) << "it is here all the time now";
  peer_reads();
  a.now += std::chrono::milliseconds(10);
  a.receive();
  EXPECT_EQ(a.send(to_b), 40U) << "it was away again";
  peer_reads();
  PacketSet one;
  one.add(b.address, 24, 8000);
  a.now += std::chrono::milliseconds(1);
  a.receive();
  EXPECT_EQ(a.send(one), 1U);
  peer_reads();
  a.now += std::chrono::milliseconds(10);
  a.receive();
  EXPECT_EQ(a.send(to_b), kFullRing) << "it had left no full ring";
}

TEST_F(Local, PacketsFromBelowAndFromRingsAreBothTaken) {
  connect();
  PacketSet more;
  for (int i = 0; i < 10; ++i) more.add(b.address, 4, 0);
  ASSERT_EQ(a.send(more), 10U);
  for (std::uint32_t i = 0; i < 10; ++i) b.below->arrive(numbered_bytes(i), a.address);
  EXPECT_EQ(b.receive().size(), 20U);
}

// It costs a system call, which packets in a ring would wait for.
TEST_F(Local, BusyRings_SilentNetworkIsSeldomPolled) {
  connect();
  std::array<RxPacket, 4> out;
  // How often in a millisecond of bursts, one each microsecond.
  const auto looks = [&](bool busy) {
    const std::size_t before = b.below->looks;
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(busy ? a.send(to_b) : 1U, 1U);
      b.nic->rx_burst(out, b.now += std::chrono::microseconds(1));
    }
    return b.below->looks - before;
  };
  EXPECT_GT(looks(false), 900U);
  EXPECT_LE(looks(true), 40U) << "not before 50 us after the last look";
  b.below->arrive(numbered_bytes(1), a.address);
  EXPECT_GT(looks(true), 40U) << "as long as it was silent just now";
  EXPECT_LE(looks(true), 40U);
  EXPECT_GT(looks(false), 900U);
}

TEST_F(Local, SleeperIsWokenByTheFirstPacketOfAPeer) {
  EXPECT_FALSE(b.nic->prepare_wait());
  EXPECT_FALSE(b.readable());
  to_b.add(b.address, 4, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_TRUE(b.readable());
  EXPECT_EQ(b.receive().size(), 1U);
}

TEST_F(Local, SleeperIsWokenByLaterPacketsOncePerSleep) {
  connect();
  EXPECT_FALSE(b.nic->prepare_wait());
  EXPECT_FALSE(b.readable());
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_TRUE(b.readable());
  ASSERT_EQ(b.receive().size(), 1U);
  EXPECT_FALSE(b.nic->prepare_wait());
  EXPECT_FALSE(b.readable()) << "the bell is silent again";
  ASSERT_EQ(a.send(to_b), 1U);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_TRUE(b.nic->prepare_wait()) << "packets wait already";
  EXPECT_EQ(b.receive().size(), 2U);
  EXPECT_FALSE(b.nic->prepare_wait());
  EXPECT_FALSE(b.readable()) << "the second rang no more, the first has been heard";
}

TEST_F(Local, WakeUpOfOneWhoIsAwake_EndsWithTheNextSleep) {
  connect();
  EXPECT_FALSE(b.nic->prepare_wait());
  std::array<RxPacket, 2> out;
  EXPECT_EQ(b.nic->rx_burst(out, b.now += kStep), 0U) << "awake again";
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(b.nic->rx_burst(out, b.now += std::chrono::microseconds(1)), 1U);
  EXPECT_FALSE(b.nic->prepare_wait());
  EXPECT_FALSE(b.readable());
}

TEST_F(Local, OtherThreadPolled_SleeperIsStillWoken) {
  connect();
  EXPECT_FALSE(b.nic->prepare_wait());
  EXPECT_EQ(b.receive().size(), 0U) << "the other thread's look";
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_TRUE(b.readable());
}

TEST_F(Local, OtherThreadMetPeer_SleeperIsStillWoken) {
  EXPECT_FALSE(b.nic->prepare_wait());
  to_b.add(b.address, 4, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(b.receive().size(), 1U) << "the other thread's look";
  EXPECT_FALSE(b.readable());
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_TRUE(b.readable());
}

TEST_F(Local, ClosedPeerIsReportedOnceAfterItsLastPacket) {
  connect();
  ASSERT_EQ(b.send(to_a), 1U);
  b.nic.reset();
  EXPECT_EQ(a.lost_address(), std::nullopt) << "nothing has been looked at yet";
  std::array<RxPacket, 1> out;
  ASSERT_EQ(a.nic->rx_burst(out, a.now += kStep), 1U);
  EXPECT_EQ(a.lost_address(), std::nullopt) << "its last packet is still being read";
  EXPECT_EQ(a.receive().size(), 0U);
  EXPECT_EQ(a.lost_address(), b.address);
  EXPECT_EQ(a.lost_address(), std::nullopt);
  EXPECT_EQ(a.receive().size(), 0U);
  EXPECT_EQ(a.lost_address(), std::nullopt);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(a.below->sent.size(), 1U);
}

TEST_F(Local, ClosedPeerWakesSleepers) {
  connect();
  EXPECT_FALSE(a.nic->prepare_wait());
  b.nic.reset();
  EXPECT_TRUE(a.readable());
  a.receive();
  EXPECT_EQ(a.lost_address(), b.address);
  EXPECT_FALSE(a.nic->prepare_wait());
  EXPECT_FALSE(a.readable());
}

TEST_F(Local, ThePacketsOfASuccessorComeAfterTheLoss) {
  connect();
  ASSERT_EQ(b.send(to_a), 1U);
  b.nic.reset();
  Host next(4794);
  ASSERT_EQ(next.send(to_a), 1U);
  std::array<RxPacket, 8> out;
  ASSERT_EQ(a.nic->rx_burst(out, a.now += kStep), 1U) << "that of the predecessor";
  EXPECT_EQ(a.lost_address(), std::nullopt);
  std::size_t count = a.nic->rx_burst(out, a.now += kStep);
  EXPECT_EQ(a.lost_address(), next.address);
  for (int pass = 0; pass < 3; ++pass) count += a.nic->rx_burst(out, a.now += kStep);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(a.lost_address(), std::nullopt);
  a.now += std::chrono::seconds(1);
  a.receive();
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(next.receive().size(), 1U) << "and it is found at the old address";
}

// The ACKs of the first contact, of a process that then ends at once.
TEST_F(Local, EndedBeforeItsWelcome_IsHeardToItsEnd) {
  to_a.add(a.address, 4, 0);
  to_a.add(a.address, 4, 0);
  ASSERT_EQ(b.send(to_a), 2U);
  b.nic.reset();
  const std::vector<Arrival> arrived = a.receive();
  ASSERT_EQ(arrived.size(), 2U);
  const auto lost = a.nic->poll_dead_peer();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->address, b.address);
  EXPECT_EQ(lost->from, arrived[0].connection);
}

TEST_F(Local, EndedAfterItsOffer_IsHeardBeforeItsLossIsTold) {
  to_b.add(b.address, 4, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  ASSERT_EQ(b.receive().size(), 1U);
  to_a.add(a.address, 4, 0);
  ASSERT_EQ(b.send(to_a), 1U);
  b.nic.reset();
  std::array<RxPacket, 8> out;
  std::size_t count = 0;
  for (int pass = 0; pass < 4; ++pass) {
    if (a.nic->poll_dead_peer()) break;
    count += a.nic->rx_burst(out, a.now += kStep);
  }
  EXPECT_EQ(count, 1U);
}

TEST_F(Local, DeadPeer_ReportSaysWhatItHasNotRead) {
  connect();
  ASSERT_EQ(a.send(to_b), 1U);
  ASSERT_EQ(b.receive().size(), 1U);
  PacketSet unread;
  for (int i = 0; i < 3; ++i) unread.add(b.address, 4, 0);
  ASSERT_EQ(a.send(unread), 3U);
  ASSERT_EQ(b.send(to_a), 1U);
  b.nic.reset();
  const std::vector<Arrival> last = a.receive();
  ASSERT_EQ(last.size(), 1U);
  const auto lost = a.nic->poll_dead_peer();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->from, last[0].connection);
  EXPECT_FALSE(lost->left_unread(to_b.last().way));
  for (const Packet* packet : unread.all()) EXPECT_TRUE(lost->left_unread(packet->way));
  EXPECT_FALSE(lost->succeeded);
  ASSERT_EQ(a.send(unread), 3U);
  EXPECT_FALSE(lost->left_unread(unread.last().way)) << "the network may have carried it, too";
}

TEST_F(Local, SuccessorIsKnownWhenTheLossIsTold) {
  connect();
  b.nic.reset();
  Host next(4794);
  PacketSet late;
  late.add(b.address, 4, 0);
  ASSERT_EQ(a.send(late), 1U) << "into the ring of the predecessor";
  ASSERT_EQ(next.send(to_a), 1U);
  const std::vector<Arrival> arrived = a.receive();
  ASSERT_EQ(arrived.size(), 1U);
  const auto lost = a.nic->poll_dead_peer();
  ASSERT_TRUE(lost.has_value());
  EXPECT_TRUE(lost->succeeded);
  EXPECT_TRUE(lost->left_unread(late.last().way));
  EXPECT_NE(lost->from, arrived[0].connection) << "what the successor has sent";
  PacketSet again;
  again.add(b.address, 4, 0);
  ASSERT_EQ(a.send(again), 1U);
  EXPECT_EQ(next.receive().size(), 1U) << "at once";
  EXPECT_EQ(a.lost_address(), std::nullopt);
}

TEST_F(Local, APeerThatComesLaterIsFound) {
  const FepAddress late{own_loopback_address(), 4795};
  to_b.add(late, 4, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(a.below->sent.size(), 1U);
  Host c(4795);
  a.now += std::chrono::milliseconds(5);
  a.receive();
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(a.below->sent.size(), 2U) << "not asked for with every packet";
  a.now += std::chrono::milliseconds(10);
  a.receive();
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(a.below->sent.size(), 2U);
  EXPECT_EQ(c.receive().size(), 1U);
}

TEST_F(Local, AnAddressHasOneOwner) {
  Host second(4793);
  EXPECT_EQ(second.nic, nullptr);
  EXPECT_NE(second.error.find("same-host rings"), std::string::npos) << second.error;
  EXPECT_NE(second.below, nullptr) << "the NIC below is still there";
}

// A broken process may send any bytes instead of an Offer.
TEST_F(Local, NonsenseInsteadOfAnOfferIsTurnedAway) {
  for (const std::size_t length : {1U, 40U, 4000U}) {
    const FileDescriptor socket = connect_local(a.address);
    ASSERT_TRUE(socket.valid());
    const std::vector<std::byte> nonsense(length, std::byte{0x5A});
    ASSERT_TRUE(send_with_descriptor(socket.get(), nonsense, a.nic->wait_fd()));
    a.receive();
    pollfd end{.fd = socket.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&end, 1, 0), 1) << length;
    EXPECT_NE(end.revents & POLLHUP, 0) << length;
  }
  EXPECT_EQ(a.lost_address(), std::nullopt);
  connect();
}

TEST(LocalProcesses, KilledPeerIsNoticedByAProcessThatSleeps) {
  Host a(4793);
  Pipe ready;
  const FepAddress address_of_b{own_loopback_address(), 4794};
  const FepAddress address_of_a = a.address;
  const pid_t child = start([&] {
    Host b(4794);
    b.address = address_of_b;
    PacketSet to_a;
    to_a.add(address_of_a, 4, 0);
    if (b.nic == nullptr || b.send(to_a) != 1 || ::write(ready.out.get(), "r", 1) != 1) ::_exit(1);
    while (true) ::pause();
  });
  char byte = 0;
  ASSERT_EQ(::read(ready.in.get(), &byte, 1), 1);
  const std::vector<Arrival> first = a.receive();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_FALSE(a.nic->prepare_wait());
  EXPECT_FALSE(a.readable());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_TRUE(a.readable(10'000));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  a.receive();
  EXPECT_EQ(a.lost_address(), first[0].source);
}

// Its sockets stay open then.
TEST(LocalProcesses, KilledPeerWithAForkedChild_IsNoticed) {
  Host a(4793);
  Pipe ready;
  Pipe hold;
  const pid_t child = start([&] {
    Host b(4794);
    PacketSet to_a;
    to_a.add(a.address, 4, 0);
    if (b.nic == nullptr || b.send(to_a) != 1) ::_exit(1);
    const pid_t grandchild = ::fork();
    hold.out = FileDescriptor();
    char byte = 0;
    if (grandchild == 0) ::_exit(static_cast<int>(::read(hold.in.get(), &byte, 1)));
    if (::write(ready.out.get(), "r", 1) != 1) ::_exit(1);
    while (true) ::pause();
  });
  char byte = 0;
  ASSERT_EQ(::read(ready.in.get(), &byte, 1), 1);
  const std::vector<Arrival> first = a.receive();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_FALSE(a.nic->prepare_wait());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_TRUE(a.readable(10'000));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  a.receive();
  EXPECT_EQ(a.lost_address(), first[0].source);
  hold.out = FileDescriptor();
  ready.out = FileDescriptor();
  EXPECT_EQ(::read(ready.in.get(), &byte, 1), 0)
      << "the grandchild has ended, with its copy of our name";
}

// The kernel may show the end of a process before its connection request, if many others end.
TEST(LocalProcesses, PeerAnswersAndExits_AnswerBeforeItsLoss) {
  Host a(4793);
  Pipe up;
  Pipe down;
  const pid_t child = start([&] {
    Host b(4794);
    char go = 0;
    if (b.nic == nullptr || ::write(up.out.get(), &b.address, sizeof b.address) < 0) ::_exit(1);
    if (::read(down.in.get(), &go, 1) != 1 || b.receive().size() != 1) ::_exit(2);
    if (::write(up.out.get(), "w", 1) != 1 || ::read(down.in.get(), &go, 1) != 1) ::_exit(3);
    PacketSet to_a;
    to_a.add(a.address, 4, 0);
    ::_exit(b.send(to_a) == 1 ? 0 : 4);
  });
  FepAddress address_of_b;
  ASSERT_EQ(::read(up.in.get(), &address_of_b, sizeof address_of_b), ssize_t{sizeof address_of_b});
  PacketSet to_b;
  to_b.add(address_of_b, 4, 0);
  std::vector<FileDescriptor> others;
  for (int i = 0; i < 40; ++i) {
    others.push_back(connect_local(a.address));
    a.receive();
  }
  ASSERT_EQ(a.send(to_b), 1U);
  char welcomed = 0;
  ASSERT_EQ(::write(down.out.get(), "g", 1), 1);
  ASSERT_EQ(::read(up.in.get(), &welcomed, 1), 1);
  others.clear();
  ASSERT_EQ(::write(down.out.get(), "g", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  std::array<RxPacket, 8> out;
  std::size_t count = 0;
  std::optional<DeadPeer> lost;
  for (int pass = 0; pass < 10 && !lost; ++pass) {
    count += a.nic->rx_burst(out, a.now += kStep);
    lost = a.nic->poll_dead_peer();
  }
  EXPECT_EQ(count, 1U);
  EXPECT_TRUE(lost.has_value());
}

TEST(LocalProcesses, ForkedChildThatClosesItsCopyEndsNoConnection) {
  Host a(4793);
  Host b(4794);
  PacketSet to_b;
  to_b.add(b.address, 4, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  ASSERT_EQ(b.receive().size(), 1U);
  const pid_t child = start([&] {
    a.nic.reset();
    b.nic.reset();
  });
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  b.receive();
  EXPECT_EQ(b.lost_address(), std::nullopt);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(b.receive().size(), 1U);
}

}  // namespace
}  // namespace uet::nic
