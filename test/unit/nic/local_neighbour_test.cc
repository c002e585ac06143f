// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Processes of this host that break the rules: whatever they connect, offer and answer, the NIC
// goes on, keeps its descriptors, and waits for none of them.
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <filesystem>

#include "local_testing.h"
#include "nic/local_socket.h"

namespace uet::nic {
namespace {

constexpr std::size_t kMemory = ring_memory_bytes(kMinRingBytes);

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// An Offer (local.cc), in the form of older libraries unless `speaks` is 1.
struct RawOffer {
  std::uint64_t ring_bytes = kMinRingBytes;
  std::uint64_t instance = 77;
  std::array<std::uint8_t, 16> ip{127, 0, 0, 9};
  std::uint16_t port = 4999;
  std::uint8_t is_ipv6 = 0;
  std::uint8_t speaks = 0;
  std::array<std::uint8_t, 4> reserved{};
};

FileDescriptor sealed_memory(int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) {
  FileDescriptor fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), kMemory), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

FileDescriptor ordinary_file(const char* directory) {
  FileDescriptor fd(::open(directory, O_TMPFILE | O_RDWR, 0600));
  if (fd.valid() && ::ftruncate(fd.get(), kMemory) != 0) ADD_FAILURE() << "ftruncate";
  return fd;
}

// A connection to a NIC, by hand.
struct RawPeer {
  explicit RawPeer(const FepAddress& to) : socket(connect_local(to)) {}
  bool offer(int memory, const RawOffer& offer = {}) {
    return send_with_descriptor(socket.get(), std::as_bytes(std::span(&offer, 1)), memory);
  }
  bool ended() const {
    pollfd end{.fd = socket.get(), .events = 0, .revents = 0};
    return ::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0;
  }
  FileDescriptor socket;
};

// The socket that a NIC at `self` would listen on.
FileDescriptor raw_listener(const FepAddress& self) {
  std::string ignored;
  auto listener = listen_local(self, ignored);
  EXPECT_TRUE(listener);
  return std::move(listener).value();
}

struct Neighbour : ::testing::Test {
  Host a{4793};
  Host b{4794};

  void expect_at_work() {
    PacketSet to_a;
    to_a.add(a.address, 4, 0);
    ASSERT_EQ(b.send(to_a), 1U);
    EXPECT_EQ(a.receive().size(), 1U);
    EXPECT_TRUE(b.below->sent.empty());
  }
};

// ---- connections -------------------------------------------------------------------------------

TEST_F(Neighbour, FloodOfConnections_IsTakenInShares) {
  std::vector<FileDescriptor> flood;
  for (int i = 0; i < 60; ++i) flood.push_back(connect_local(a.address));
  std::array<RxPacket, 1> out;
  const std::size_t before = open_descriptors();
  a.nic->rx_burst(out, a.now);
  const std::size_t first = open_descriptors() - before;
  EXPECT_GT(first, 0U);
  EXPECT_LE(first, 2 * 16U) << "a socket and a process for each";
  for (int i = 0; i < 9; ++i) a.nic->rx_burst(out, a.now += std::chrono::microseconds(200));
  EXPECT_EQ(open_descriptors() - before, first) << "not before the pause is over";
  EXPECT_FALSE(a.readable()) << "who sleeps is not woken for them";
  EXPECT_LE(a.nic->next_deadline(), a.now + std::chrono::milliseconds(1));
  a.nic->rx_burst(out, a.now += std::chrono::milliseconds(1));
  EXPECT_GT(open_descriptors() - before, first);
  for (int i = 0; i < 5; ++i) a.receive();
  expect_at_work();
}

TEST_F(Neighbour, StrangersFlood_IsTakenInShares) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const pid_t child = start([&] {
    if (::setresuid(65533, 65533, 65533) != 0) ::_exit(1);
    for (int i = 0; i < 60; ++i) {
      if (connect_local(a.address).valid()) ::_exit(2);  // closed again: not our user's
    }
  });
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  std::array<RxPacket, 1> out;
  int pauses = 0;
  for (int i = 0; i < 6; ++i, a.now += std::chrono::milliseconds(2)) {
    a.nic->rx_burst(out, a.now);
    pauses += a.nic->next_deadline() != kNever ? 1 : 0;
  }
  EXPECT_EQ(pauses, 3) << "16 of 60 each time";
  expect_at_work();
}

TEST_F(Neighbour, SilentConnections_AreFewAndEnd) {
  std::vector<RawPeer> silent;
  for (int i = 0; i < 100; ++i) silent.emplace_back(a.address);
  const auto open = [&] {
    return std::count_if(silent.begin(), silent.end(), [](const auto& s) { return !s.ended(); });
  };
  for (int i = 0; i < 10; ++i) a.receive();
  EXPECT_LE(open(), 64);
  expect_at_work();
  a.now += std::chrono::seconds(1);
  a.receive();
  EXPECT_EQ(open(), 0);
  expect_at_work();
}

TEST_F(Neighbour, OneProcess_LeavesDescriptorsToOthers) {
  const pid_t child = start([&] {
    const rlimit few{.rlim_cur = 256, .rlim_max = 256};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(1);
    Host c(4795);
    std::vector<RawPeer> peers;
    for (int i = 0; i < 40; ++i) {
      peers.emplace_back(c.address);
      const FileDescriptor memory = sealed_memory();
      if (!peers.back().offer(memory.get())) ::_exit(2);
      c.receive();
    }
    const auto open =
        std::count_if(peers.begin(), peers.end(), [](const auto& peer) { return !peer.ended(); });
    ::_exit(open == 16 ? 0 : 3);
  });
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// In a user namespace without a map strangers look like this user.
TEST_F(Neighbour, IndistinguishableUser_HasNoRings) {
  const pid_t child = start([&] {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    Host c(4795);
    const bool says = c.error.find("user namespace") != std::string::npos;
    ::_exit(c.nic == nullptr && says && !connect_local(a.address).valid() ? 0 : 1);
  });
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(status, 0);
}

TEST(LocalUsers, OnlyAWholeMapTellsUsersApart) {
  EXPECT_TRUE(maps_every_user("         0          0 4294967295\n"));
  EXPECT_FALSE(maps_every_user(""));
  EXPECT_FALSE(maps_every_user("0 1000 1\n"));
  EXPECT_FALSE(maps_every_user("0 100000 65536\n"));
  EXPECT_FALSE(maps_every_user("nonsense"));
}

// ---- what is offered ---------------------------------------------------------------------------

TEST_F(Neighbour, OfferedDescriptorsThatAreNoRing_AreRefused) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  std::vector<FileDescriptor> all;
  all.push_back(ordinary_file("/var/tmp"));
  all.push_back(ordinary_file("/dev/shm"));
  all.push_back(sealed_memory(F_SEAL_GROW | F_SEAL_SEAL));
  all.push_back(sealed_memory(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL));
  all.emplace_back(pipe_ends[0]);
  all.emplace_back(pipe_ends[1]);
  all.emplace_back(::open("/dev/zero", O_RDWR));
  all.emplace_back(::open("/tmp", O_RDONLY));
  all.emplace_back(::eventfd(0, 0));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].valid()) continue;
    RawPeer peer(a.address);
    ASSERT_TRUE(peer.offer(all[i].get()));
    a.receive();
    EXPECT_TRUE(peer.ended()) << i;
  }
  RawPeer good(a.address);
  const FileDescriptor memory = sealed_memory();
  ASSERT_TRUE(good.offer(memory.get()));
  a.receive();
  EXPECT_FALSE(good.ended());
  expect_at_work();
}

TEST_F(Neighbour, OfferedNumbersThatMakeNoSense_AreRefused) {
  std::array<RawOffer, 6> offers;
  offers[0].ring_bytes = 0;
  offers[1].ring_bytes = std::uint64_t{1} << 63;
  offers[2].is_ipv6 = 2;
  offers[2].ip = {};
  offers[2].ip[15] = 1;
  offers[3].ip = {192, 0, 2, 1};      // another host's
  offers[4].ip[15] = 1;               // behind an IPv4 address
  offers[5].ip = a.address.ip.bytes;  // ours
  offers[5].port = a.address.port;
  const FileDescriptor memory = sealed_memory();
  for (std::size_t i = 0; i < offers.size(); ++i) {
    RawPeer peer(a.address);
    ASSERT_TRUE(peer.offer(memory.get(), offers[i]));
    a.receive();
    EXPECT_TRUE(peer.ended()) << i;
  }
  expect_at_work();
}

TEST_F(Neighbour, TwoDescriptorsInOneMessage_AreNotKept) {
  const FileDescriptor memory = sealed_memory();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    RawPeer peer(a.address);
    const RawOffer offer;
    const std::array fds{memory.get(), memory.get()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof fds)> control{};
    iovec part{.iov_base = const_cast<RawOffer*>(&offer), .iov_len = sizeof offer};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(item), fds.data(), sizeof fds);
    ASSERT_EQ(::sendmsg(peer.socket.get(), &header, 0), ssize_t{sizeof offer});
    a.receive();
    EXPECT_TRUE(peer.ended());
  }
  EXPECT_EQ(open_descriptors(), before);
}

// A process that claims another process's address and ends does not end the other's connections.
TEST_F(Neighbour, ClaimedAddress_EndsWithItsOwnConnectionOnly) {
  expect_at_work();
  PacketSet to_b;
  to_b.add(b.address, 4, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  PacketSet to_a;
  to_a.add(a.address, 4, 0);
  ASSERT_EQ(b.send(to_a), 1U);
  const std::vector<Arrival> from_b = a.receive();
  ASSERT_EQ(from_b.size(), 1U);
  {
    RawPeer claimer(a.address);
    RawOffer offer;
    offer.ip = b.address.ip.bytes;
    offer.port = b.address.port;
    const FileDescriptor memory = sealed_memory();
    ASSERT_TRUE(claimer.offer(memory.get(), offer));
    a.receive();
  }
  a.receive();
  const auto lost = a.nic->poll_dead_peer();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->address, b.address);
  EXPECT_NE(lost->from, from_b[0].connection);
  EXPECT_EQ(lost->to, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(b.receive().size(), 2U) << "still through the ring";
}

// The ring of a process that has closed its socket but goes on writing.
TEST_F(Neighbour, EndedPeerThatWritesOn_DoesNotBlockReceiver) {
  const FileDescriptor fd = sealed_memory();
  void* start = ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(start, MAP_FAILED);
  {
    RingProducer ring({static_cast<std::byte*>(start), kMemory});
    PacketSet packets;
    for (int i = 0; i < 200; ++i) packets.add(a.address, 24, 300);
    RawPeer peer(a.address);
    ASSERT_TRUE(peer.offer(fd.get()));
    ASSERT_TRUE(ring.put(*packets.all()[0]));
    ring.publish();
    EXPECT_EQ(a.receive().size(), 1U);
    peer.socket = FileDescriptor();
    for (int i = 1; i < 200; ++i) {
      ring.put(*packets.all()[static_cast<std::size_t>(i)]);
      ring.publish();
      std::array<RxPacket, 2> out;
      a.nic->rx_burst(out, a.now += kStep);
    }
  }
  EXPECT_TRUE(a.nic->poll_dead_peer().has_value());
  expect_at_work();
  ::munmap(start, kMemory);
}

// ---- what is answered --------------------------------------------------------------------------

// A receiver that hands out, as its bell, what a write waits for or dies of.
TEST_F(Neighbour, AnswerOfAnOlderLibrary_IsNoReasonToWait) {
  int full[2];
  ASSERT_EQ(::pipe2(full, O_NONBLOCK), 0);
  std::array<std::byte, 4096> block{};
  while (::write(full[1], block.data(), block.size()) > 0) {
  }
  ASSERT_EQ(::fcntl(full[1], F_SETFL, 0), 0);
  int broken[2];
  ASSERT_EQ(::pipe(broken), 0);
  ::close(broken[0]);
  const FileDescriptor event(::eventfd(0, 0));
  ASSERT_EQ(::eventfd_write(event.get(), UINT64_MAX - 1), 0);
  std::uint16_t port = 4795;
  for (const int bell : {full[1], broken[1], event.get(), -1}) {
    const FepAddress to{own_loopback_address(), port++};
    const FileDescriptor listener = raw_listener(to);
    PacketSet packets;
    packets.add(to, 4, 0);
    ASSERT_EQ(a.send(packets), 1U);
    FileDescriptor connection;
    ASSERT_EQ(accept_local(listener.get(), connection), Accepted::Peer);
    RawOffer offer;
    FileDescriptor memory;
    const auto bytes = std::as_writable_bytes(std::span(&offer, 1));
    ASSERT_EQ(receive_with_descriptor(connection.get(), bytes, memory), Received::Message);
    auto mapped = SharedMemory::attach(std::move(memory), ring_memory_bytes(offer.ring_bytes));
    ASSERT_TRUE(mapped);
    RingConsumer ring(mapped.value().bytes());
    const std::uint64_t instance = 77;
    ASSERT_TRUE(
        send_with_descriptor(connection.get(), std::as_bytes(std::span(&instance, 1)), bell));
    ring.announce_sleep();
    ASSERT_EQ(a.send(packets), 1U) << "neither waits nor dies";
    const std::size_t below = a.below->sent.size();
    ASSERT_EQ(a.send(packets), 1U);
    EXPECT_EQ(a.below->sent.size(), below + 1) << "it cannot be woken: through the network";
    a.receive();
  }
  for (const int fd : {full[0], full[1], broken[1]}) ::close(fd);
  expect_at_work();
}

// An older library writes to the eventfd that it was given.
TEST_F(Neighbour, OlderLibrary_WakesASleeper) {
  RawPeer peer(a.address);
  const FileDescriptor memory = sealed_memory();
  ASSERT_TRUE(peer.offer(memory.get()));
  a.receive();
  std::uint64_t instance = 0;
  FileDescriptor bell;
  const auto bytes = std::as_writable_bytes(std::span(&instance, 1));
  ASSERT_EQ(receive_with_descriptor(peer.socket.get(), bytes, bell), Received::Message);
  ASSERT_TRUE(bell.valid());
  ASSERT_EQ(::fcntl(bell.get(), F_SETFL, 0), 0) << "now a read of it would wait";
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(a.nic->prepare_wait());
    EXPECT_FALSE(a.readable());
    ASSERT_EQ(::eventfd_write(bell.get(), 1), 0);
    EXPECT_TRUE(a.readable());
    a.receive();
  }
}

TEST_F(Neighbour, WakeUps_LeaveNoDescriptorsAndEndWithTheSleep) {
  RawPeer peer(a.address);
  const FileDescriptor memory = sealed_memory();
  ASSERT_TRUE(peer.offer(memory.get()));
  a.receive();
  const std::size_t before = open_descriptors();
  const std::array<std::byte, 3> nonsense{};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(send_with_descriptor(peer.socket.get(), nonsense, memory.get()));
  }
  EXPECT_TRUE(a.readable());
  a.receive();
  a.nic->prepare_wait();
  EXPECT_FALSE(a.readable());
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_FALSE(peer.ended());
  expect_at_work();
}

// A socket that says nothing more without being closed.
TEST_F(Neighbour, HalfClosedPeer_IsNoReasonToStayAwake) {
  RawPeer peer(a.address);
  const FileDescriptor memory = sealed_memory();
  ASSERT_TRUE(peer.offer(memory.get()));
  a.receive();
  ASSERT_EQ(::shutdown(peer.socket.get(), SHUT_WR), 0);
  for (int i = 0; i < 2; ++i) {
    a.receive();
    a.nic->prepare_wait();
  }
  a.receive();
  EXPECT_FALSE(a.nic->prepare_wait());
  EXPECT_FALSE(a.readable());
  expect_at_work();
}

// ---- limits ------------------------------------------------------------------------------------

TEST_F(Neighbour, FileSizeLimitBelowARing_MeansNoRings) {
  const pid_t child = start([&] {
    const rlimit small{.rlim_cur = 65536, .rlim_max = 65536};
    PacketSet to_a;
    to_a.add(a.address, 4, 0);
    Host before(4795);
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(1);
    if (before.send(to_a) != 1 || before.below->sent.size() != 1) ::_exit(2);
    Host after(4796);
    ::_exit(after.nic == nullptr && after.error.find("ulimit -f") != std::string::npos ? 0 : 3);
  });
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// ---- addresses ---------------------------------------------------------------------------------

// The listener of an address that is not this host's is not what the address means.
TEST_F(Neighbour, AddressOfAnotherHost_IsNeverLookedFor) {
  const FepAddress elsewhere{ipv4(192, 0, 2, 1), 4793};
  const FileDescriptor squatter = raw_listener(elsewhere);
  PacketSet packets;
  packets.add(elsewhere, 4, 0);
  ASSERT_EQ(a.send(packets), 1U);
  EXPECT_EQ(a.below->sent.size(), 1U);
  FileDescriptor connection;
  EXPECT_EQ(accept_local(squatter.get(), connection), Accepted::Nobody);
}

TEST_F(Neighbour, AnswersToStrangers_LookForNoRing) {
  PacketSet to_b;
  to_b.add(b.address, 4, 0);
  to_b.last().answers_unknown_peer = true;
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(a.below->sent.size(), 1U);
  PacketSet known;
  known.add(b.address, 4, 0);
  ASSERT_EQ(a.send(known), 1U);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(a.below->sent.size(), 1U) << "a ring that is there is used";
}

TEST_F(Neighbour, ManyAddressesWithoutAPeer_LeaveTheRings) {
  PacketSet to_b;
  to_b.add(b.address, 4, 0);
  ASSERT_EQ(a.send(to_b), 1U);
  PacketSet many;
  for (std::uint16_t i = 0; i < 3000; ++i) {
    many.add({own_loopback_address(), static_cast<std::uint16_t>(20'000 + i)}, 4, 0);
  }
  ASSERT_EQ(a.send(many), 3000U);
  EXPECT_LE(a.nic->routes(), 1100U);
  ASSERT_EQ(a.send(to_b), 1U);
  EXPECT_EQ(b.receive().size(), 2U);
}

}  // namespace
}  // namespace uet::nic
