// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events of the fabric in an EQ: a peer that dies, the interface that goes down and comes back.
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <rdma/fi_eq.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "objects.h"
#include "uet/fi_ext_uet.h"

namespace uet::e2e {
namespace {

bool through_rings() {
  const char* local = std::getenv("FI_UET_LOCAL");
  return local != nullptr && std::string_view(local) == "auto";
}

// A peer that is silent is given up within a second.
const Environment kImpatient{
    {"FI_UET_RTO_INIT_US", "2000"}, {"tune.rto_max_us", "20000"}, {"tune.rto_retries", "6"}};

Owned<fid_eq> open_eq(fid_fabric* fabric, fi_wait_obj wait) {
  fi_eq_attr attr{};
  attr.wait_obj = wait;
  Owned<fid_eq> eq;
  Side::open(eq, "fi_eq_open", [&](auto** out) { return fi_eq_open(fabric, &attr, out, nullptr); });
  return eq;
}

// Sleeps on the descriptor of the EQ until it has an event.
void await_event(fid_eq* eq, Node& node) {
  int fd = -1;
  check(fi_control(&eq->fid, FI_GETWAIT, &fd), "FI_GETWAIT");
  const Clock::time_point start = Clock::now();
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  for (;;) {
    const ssize_t result = fi_eq_read(eq, &event, &entry, sizeof entry, FI_PEEK);
    if (result != -FI_EAGAIN) return;
    require(Clock::now() - start < kDeadline, "no event came");
    struct fid* fids[] = {&eq->fid};
    if (fi_trywait(node.fabric.get(), fids, 1) == 0) {
      pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, 1000);
    }
    node.keep_events();
  }
}

fi_eq_err_entry read_error(fid_eq* eq) {
  fi_eq_err_entry error{};
  require(fi_eq_readerr(eq, &error, 0) == sizeof error, "fi_eq_readerr");
  return error;
}

void require_silence(fid_eq* eq) {
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(300);
  while (Clock::now() < end) {
    require(fi_eq_read(eq, &event, &entry, sizeof entry, 0) == -FI_EAGAIN, "one event too many");
  }
}

void victim(Channel& channel) {
  Node node;
  node.connect(channel);
  std::byte byte{};
  node.post("fi_recv",
            [&] { return fi_recv(node.ep.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr); });
  node.next("receive");
  channel.send('r');
  for (;;) ::pause();
}

void send_one(Node& node, fi_addr_t peer) {
  static std::byte byte{};
  node.post("fi_send", [&] { return fi_send(node.ep.get(), &byte, 1, nullptr, peer, nullptr); });
}

TEST(FabricEvents, DeadPeerIsReportedOnceWithItsAddress) {
  ChannelPair wire;
  Process dying("victim", kImpatient, [&] { victim(wire.left); });
  Process survivor("survivor", kImpatient, [&, pid = dying.pid()] {
    Node node;
    const Owned<fid_eq> eq = open_eq(node.fabric.get(), FI_WAIT_FD);
    const Owned<fid_eq> silent = open_eq(node.fabric.get(), FI_WAIT_NONE);
    check(fi_ep_bind(node.ep.get(), &eq->fid, FI_UET_FABRIC_EVENTS), "bind EQ");
    check(fi_domain_bind(node.domain.get(), &silent->fid, 0), "bind EQ without events");
    const std::vector<std::byte> name = [&] {
      wire.right.send_bytes(node.name());
      return wire.right.receive_bytes(&node);
    }();
    const fi_addr_t peer = node.insert(name);
    send_one(node, peer);
    node.next("send");
    wire.right.receive<char>(&node);
    require_silence(eq.get());
    require(::kill(pid, SIGKILL) == 0, "kill");
    if (!through_rings()) send_one(node, peer);
    await_event(eq.get(), node);
    const fi_eq_err_entry error = read_error(eq.get());
    require(error.fid == &node.ep->fid, "fid");
    require(error.err == (through_rings() ? FI_ECONNRESET : FI_ETIMEDOUT), "err");
    require(error.data == peer, "the peer's fi_addr_t");
    require(error.err_data_size == name.size() &&
                std::memcmp(error.err_data, name.data(), name.size()) == 0,
            "the peer's address");
    require_silence(eq.get());
    require_silence(silent.get());
    node.ep.reset();
  });
  EXPECT_EQ(survivor.wait(), "");
}

TEST(FabricEvents, DomainsHearOfItToo) {
  ChannelPair wire;
  Process dying("victim", kImpatient, [&] { victim(wire.left); });
  Process survivor("survivor", kImpatient, [&, pid = dying.pid()] {
    Node node;
    const Owned<fid_eq> eq = open_eq(node.fabric.get(), FI_WAIT_NONE);
    check(fi_domain_bind(node.domain.get(), &eq->fid, FI_UET_FABRIC_EVENTS), "bind EQ");
    const fi_addr_t peer = node.connect(wire.right);
    send_one(node, peer);
    node.next("send");
    wire.right.receive<char>(&node);
    require(::kill(pid, SIGKILL) == 0, "kill");
    send_one(node, peer);
    std::uint32_t event = 0;
    fi_eq_entry entry{};
    const Clock::time_point start = Clock::now();
    while (fi_eq_read(eq.get(), &event, &entry, sizeof entry, 0) != -FI_EAVAIL) {
      require(Clock::now() - start < kDeadline, "no event came");
    }
    std::array<std::byte, 4> few{};  // a buffer of the application's own takes what fits
    fi_eq_err_entry error{};
    error.err_data = few.data();
    error.err_data_size = few.size();
    require(fi_eq_readerr(eq.get(), &error, 0) == sizeof error, "fi_eq_readerr");
    require(error.fid == &node.domain->fid, "fid");
    require(error.data == FI_ADDR_NOTAVAIL, "data");
    require(error.err_data == few.data() && error.err_data_size == few.size(), "err_data");
    node.ep.reset();
    node.cq.reset();
    node.av.reset();
    node.domain.reset();
  });
  EXPECT_EQ(survivor.wait(), "");
}

// Nothing is sent, and the transport would be patient: the closed port tells, or the rings do.
TEST(FabricEvents, Pds234_IdleDeadPeerIsReported) {
  const Environment watchful{{"tune.keep_alive_ms", "1000"}, {"tune.rto_retries", "1000"}};
  ChannelPair wire;
  Process dying("victim", {}, [&] { victim(wire.left); });
  Process survivor("survivor", watchful, [&, pid = dying.pid()] {
    Node node;
    const Owned<fid_eq> eq = open_eq(node.fabric.get(), FI_WAIT_FD);
    check(fi_ep_bind(node.ep.get(), &eq->fid, FI_UET_FABRIC_EVENTS), "bind EQ");
    const fi_addr_t peer = node.connect(wire.right);
    send_one(node, peer);
    node.next("send");
    wire.right.receive<char>(&node);
    require(::kill(pid, SIGKILL) == 0, "kill");
    await_event(eq.get(), node);
    const fi_eq_err_entry error = read_error(eq.get());
    require(error.fid == &node.ep->fid && error.data == peer, "fid or peer");
    require(error.err == FI_ECONNRESET, "err");
    require_silence(eq.get());
    node.ep.reset();
  });
  EXPECT_EQ(survivor.wait(), "");
}

void switch_loopback(bool up) {
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  require(fd >= 0 && ::ioctl(fd, SIOCGIFFLAGS, &request) == 0, "SIOCGIFFLAGS");
  request.ifr_flags =
      static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  const int result = ::ioctl(fd, SIOCSIFFLAGS, &request);
  ::close(fd);
  require(result == 0, "SIOCSIFFLAGS: run the test in a name space of its own");
}

TEST(FabricEvents, InterfaceGoesDownAndComesBack) {
  Process process("owner", {}, [] {
    Node node;
    const Owned<fid_eq> eq = open_eq(node.fabric.get(), FI_WAIT_FD);
    check(fi_ep_bind(node.ep.get(), &eq->fid, FI_UET_FABRIC_EVENTS), "bind EQ");
    switch_loopback(false);
    await_event(eq.get(), node);
    const fi_eq_err_entry error = read_error(eq.get());
    require(error.err == FI_ENETDOWN && error.fid == &node.ep->fid, "down");
    switch_loopback(true);
    await_event(eq.get(), node);
    std::uint32_t event = 0;
    fi_eq_entry entry{};
    require(fi_eq_read(eq.get(), &event, &entry, sizeof entry, 0) == sizeof entry, "fi_eq_read");
    require(event == FI_UET_LINK_UP && entry.fid == &node.ep->fid, "up");
    require_silence(eq.get());
    node.ep.reset();
  });
  EXPECT_EQ(process.wait(), "");
}

}  // namespace
}  // namespace uet::e2e
