// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Virtual devices of DPDK's that lead to one other process (net_memif): either end may come first,
// be killed in mid-stream, and come again. Runs inside in_network, with two hosts.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "e2e/harness.h"
#include "exchange.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kBytes = 20'000;
constexpr std::size_t kWindow = 16;
constexpr std::uint64_t kTag = 77;  // of the streams, whose receives may stay when the peer dies

// One end of a stream of messages of both at the same time.
class End {
 public:
  End(Node& node, fi_addr_t peer) : node_(node), peer_(peer) {
    for (Slot& slot : in_) post_receive(slot);
  }

  // Fills the window of sends, and takes what there is.
  void pass(bool sending) {
    for (Slot& slot : out_) {
      if (slot.busy || !sending) continue;
      const ssize_t result =
          fi_tsend(node_.ep.get(), slot.data.data(), kBytes, nullptr, peer_, kTag, &slot);
      if (result == -FI_EAGAIN) break;
      check(result, "sending");
      slot.busy = true;
    }
    if (const auto event = node_.poll()) take(*event);
  }

  // One of its operations has ended.
  void take(const Event& event) {
    Slot& slot = *static_cast<Slot*>(event.context);
    slot.busy = false;
    const bool receive = &slot >= in_.data() && &slot < in_.data() + in_.size();
    if (event.error != 0) {
      // Of a message that had begun to arrive nothing more comes.
      const int expected = receive ? FI_ECONNABORTED : FI_ETIMEDOUT;
      require(event.error == expected, fi_strerror(event.error));
      if (!receive) ++bad;
    } else if (receive) {
      ++received;
      post_receive(slot);
    } else {
      ++sent;
    }
  }
  bool sends_pending() const {
    for (const Slot& slot : out_) {
      if (slot.busy) return true;
    }
    return false;
  }

  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t bad = 0;  // sends that failed

 private:
  struct Slot {
    bool busy = false;
    std::vector<std::byte> data = std::vector<std::byte>(kBytes);
  };

  void post_receive(Slot& slot) {
    node_.post("receiving", [&] {
      return fi_trecv(node_.ep.get(), slot.data.data(), kBytes, nullptr, FI_ADDR_UNSPEC, kTag, 0,
                      &slot);
    });
  }

  Node& node_;
  fi_addr_t peer_;
  std::array<Slot, kWindow> in_;
  std::array<Slot, kWindow> out_;
};

void survive(Channel& to_victim, Channel& to_successor) {
  Node node;
  End end(node, node.connect(to_victim));
  while (end.bad == 0 || end.sends_pending()) end.pass(end.bad == 0);
  require(end.received >= 300, "it died too early");
  to_successor.send('n');
  // A message that was half received when its sender died ends later than those to it: only when
  // the sender has not answered for as long.
  exchange(node, node.connect(to_successor), kBytes, 50,
           [&](const Event& event) { end.take(event); });
  to_successor.meet(&node);
}

void die(Channel& channel) {
  Node node;
  End end(node, node.connect(channel));
  while (end.received < 300 || end.sent < 300) end.pass(true);
  ::raise(SIGKILL);
}

void succeed(Channel& channel) {
  channel.receive<char>();
  Node node;
  exchange(node, node.connect(channel), kBytes, 50);
  channel.meet(&node);
}

bool is_server() {
  return std::string(std::getenv("FI_UET_NIC")).find("role=server") != std::string::npos;
}

// Hosts come in turn, so that of two processes one is the server and one the client.
void kill_and_replace(bool server) {
  ChannelPair first;
  ChannelPair second;
  const auto begin = [&] {
    if (is_server() == server) {
      die(first.right);
    } else {
      survive(first.left, second.left);
    }
  };
  const auto go_on = [&] {
    if (is_server() == server) succeed(second.right);
  };
  Process a("process", {}, begin);
  Process b("process", {}, begin);
  Process c("successor", {}, go_on);
  Process d("successor", {}, go_on);
  EXPECT_EQ(a.wait() + b.wait(), "process died by signal Killed");
  EXPECT_EQ(wait_for_all({&c, &d}), "");
}

TEST(OnePeer, ThatIsTheServerIsKilledAndAnotherComes) { kill_and_replace(true); }

TEST(OnePeer, ThatIsTheClientIsKilledAndAnotherComes) { kill_and_replace(false); }

// Packets that are sent before the peer has started wait for it; no packet is lost.
TEST(OnePeer, ComesLater) {
  ChannelPair channels;
  const auto run = [](Channel& channel, bool later) {
    if (later) channel.receive<char>();
    Node node;
    if (!later) channel.send('o');
    exchange(node, node.connect(channel), kBytes, 20);
    require(node.counter("nic_packets_dropped") == 0, "packets were dropped");
    channel.meet(&node);
  };
  for (const bool left_is_later : {false, true}) {
    Process left("left", {}, [&] { run(channels.left, left_is_later); });
    Process right("right", {}, [&] { run(channels.right, !left_is_later); });
    EXPECT_EQ(wait_for_all({&left, &right}), "");
  }
}

// In the protocol of net_memif, the server sends the first message. This server accepts late and
// sends nothing.
void accept_late(Channel& channel) {
  const std::string options = std::getenv("FI_UET_NIC");
  const std::string path = options.substr(options.find("socket=") + 7);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  require(path.size() < sizeof address.sun_path, "the socket's path is too long");
  std::copy(path.begin(), path.end(), address.sun_path);
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  require(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(listener, 4) == 0,
          "no socket at " + path);
  channel.send('l');
  pollfd came{.fd = listener, .events = POLLIN, .revents = 0};
  require(::poll(&came, 1, 20'000) == 1, "nobody came");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  pollfd gone{.fd = ::accept(listener, nullptr, nullptr), .events = POLLIN, .revents = 0};
  require(::poll(&gone, 1, 300) == 0, "the connection was closed");
  require(::poll(&came, 1, 0) == 0, "a second connection was made");
  channel.send('d');
  ::unlink(path.c_str());
}

// Where a connection is closed before it has been accepted, the driver's server goes wrong.
TEST(OnePeer, IsLeftItsTimeToAccept) {
  ChannelPair channels;
  const auto run = [&] {
    if (is_server()) return accept_late(channels.left);
    channels.right.receive<char>();
    Node node;
    channels.right.receive<char>(&node);
  };
  Process a("process", {}, run);
  Process b("process", {}, run);
  EXPECT_EQ(wait_for_all({&a, &b}), "");
}

}  // namespace
}  // namespace uet::e2e
