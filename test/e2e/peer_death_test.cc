// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer that dies in mid-stream: each operation to it completes exactly once, with an error, in
// bounded time, and traffic with another peer goes on meanwhile. Through the network the error is a
// time-out; through rings on this host the end of the process is known at once.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kBytes = 20000;        // of a message: several packets
constexpr std::size_t kWindow = 16;          // operations in flight to each peer
constexpr std::uint64_t kBeforeDeath = 300;  // completions from each before one is killed

bool through_rings() {
  const char* local = std::getenv("FI_UET_LOCAL");
  return local != nullptr && std::string_view(local) == "auto";
}
std::chrono::seconds error_limit() { return std::chrono::seconds(through_rings() ? 2 : 15); }

// Receives messages tagged 0, 1, 2... and checks them, until it is told to stop (the survivor) or
// killed (the victim). Its memory can also be read and written.
void receive_for_ever(Channel& channel) {
  Node node;
  node.connect(channel);
  std::vector<std::byte> window(kBytes);
  fill_pattern(window, 99);
  const Region region = node.expose(window.data(), window.size(), 5);
  channel.send(RemoteRegion{region.address, region.key});
  std::array<std::vector<std::byte>, kWindow> buffers;
  buffers.fill(std::vector<std::byte>(kBytes));
  std::uint64_t posted = 0;
  const auto post = [&](std::vector<std::byte>& buffer) {
    node.post("posting a receive", [&] {
      return fi_trecv(node.ep.get(), buffer.data(), kBytes, nullptr, FI_ADDR_UNSPEC, posted, 0,
                      &buffer);
    });
    ++posted;
  };
  for (auto& buffer : buffers) post(buffer);

  std::uint64_t received = 0;
  const auto take_one = [&] {
    const auto event = node.poll();
    if (!event) return;
    require(event->error == 0, "a receive failed");
    auto& buffer = *static_cast<std::vector<std::byte>*>(event->context);
    require(event->length == kBytes, "a message of another length");
    require_pattern(buffer, event->tag, "message");
    ++received;
    post(buffer);
  };
  for (std::uint64_t round = 0; round % 64 != 0 || !channel.readable(); ++round) take_one();
  const auto sent = channel.receive<std::uint64_t>();
  // A message that has reached this side is complete for its sender, and may not have been read
  // yet.
  const auto limit = Clock::now() + std::chrono::seconds(5);
  while (received < sent && Clock::now() < limit) take_one();
  require(received == sent, "received " + std::to_string(received) + " messages, the sender had " +
                                std::to_string(sent) + " completions");
  channel.send('k');
}

// One peer as the sender sees it. An operation's context is its slot. Slots outlive the node, which
// sends from them until it is closed.
struct Stream {
  struct Slot {
    Stream* stream = nullptr;
    bool busy = false;
    std::vector<std::byte> data = std::vector<std::byte>(kBytes);
  };
  using Slots = std::array<Slot, kWindow>;

  Stream(Node& node, Channel& channel, Slots& slots) : node(node), slots(slots) {
    peer = node.connect(channel);
    remote = channel.receive<RemoteRegion>(&node);
    for (Slot& slot : slots) slot.stream = this;
  }

  // Fills the window; false if the provider returns FI_EAGAIN.
  bool post_more(bool with_reads) {
    for (Slot& slot : slots) {
      if (slot.busy) continue;
      const bool read = with_reads && next_tag % 4 == 3;
      ssize_t result;
      if (read) {
        result = fi_read(node.ep.get(), slot.data.data(), kBytes, nullptr, peer, remote.address,
                         remote.key, &slot);
        if (result == 0) with_reads = false;  // one per call keeps tags running
      } else {
        fill_pattern(slot.data, next_tag);
        result = fi_tsend(node.ep.get(), slot.data.data(), kBytes, nullptr, peer, next_tag, &slot);
        if (result == 0) ++next_tag;
      }
      if (result == -FI_EAGAIN) return false;
      check(result, "posting an operation");
      slot.busy = true;
      ++posted;
    }
    return true;
  }

  Node& node;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  RemoteRegion remote;
  Slots& slots;
  std::uint64_t next_tag = 0;
  std::uint64_t posted = 0;
  std::uint64_t good = 0;
  std::uint64_t bad = 0;
};

void take(const Event& event) {
  auto& slot = *static_cast<Stream::Slot*>(event.context);
  require(slot.busy, "an operation completed twice");
  slot.busy = false;
  if (event.error == 0) {
    ++slot.stream->good;
    return;
  }
  ++slot.stream->bad;
  const int expected = through_rings() ? FI_ECONNRESET : FI_ETIMEDOUT;
  require(event.error == expected, std::string("another error than ") + fi_strerror(expected) +
                                       ": " + fi_strerror(event.error));
}

void send_to_both(pid_t victim_pid, Channel& to_victim, Channel& to_survivor) {
  Stream::Slots to_die;
  Stream::Slots to_live;
  Node node;
  Stream victim(node, to_victim, to_die);
  Stream survivor(node, to_survivor, to_live);
  const auto pass = [&](bool feed_victim) {
    if (feed_victim) victim.post_more(true);
    survivor.post_more(false);
    if (const auto event = node.poll()) take(*event);
  };
  while (victim.good < kBeforeDeath || survivor.good < kBeforeDeath) pass(true);
  require(::kill(victim_pid, SIGKILL) == 0, "kill");

  // Everything to the victim fails in time, and the survivor never starves: never longer than two
  // seconds without a completion.
  const Clock::time_point death = Clock::now();
  Clock::time_point last_good = death;
  std::uint64_t good = survivor.good;
  while (victim.good + victim.bad < victim.posted) {
    pass(victim.bad == 0);  // keeps the window full until the first error
    const Clock::time_point now = Clock::now();
    require(now - death < error_limit(), "operations to the dead peer are still not complete");
    if (survivor.good != good) last_good = now;
    good = survivor.good;
    require(now - last_good < std::chrono::seconds(2), "the dead peer stops the living one");
  }
  require(victim.bad > 0, "no operation to the dead peer failed");
  require(survivor.bad == 0, "an operation to the living peer failed");

  // Drain, and make the survivor compare the number of messages.
  while (survivor.good < survivor.posted) {
    if (const auto event = node.poll()) take(*event);
  }
  to_survivor.send(survivor.good);
  to_survivor.receive<char>(&node);
}

TEST(PeerDeath, OperationsFailInTimeAndTheOtherPeerIsServed) {
  ChannelPair victims;
  ChannelPair survivors;
  Process victim("victim", {}, [&] { receive_for_ever(victims.left); });
  Process survivor("survivor", {}, [&] { receive_for_ever(survivors.left); });
  Process sender("sender", {}, [&] { send_to_both(victim.pid(), victims.right, survivors.right); });
  ASSERT_EQ(wait_for_all({&survivor, &sender}), "");
  EXPECT_EQ(victim.wait(), "victim died by signal Killed");
}

// Opens its node when told to, receives one message, and then waits: for its end, or to be killed.
void receive_one(Channel& channel) {
  channel.receive<char>();
  NodeOptions options;
  options.service = "5799";  // our UDP port, the same for both
  Node node(options);
  node.connect(channel);
  int value = 0;
  node.post("fi_recv", [&] {
    return fi_recv(node.ep.get(), &value, sizeof value, nullptr, FI_ADDR_UNSPEC, &value);
  });
  node.next("a message");
  require(value == 42, "a wrong message");
  channel.send('r');
  channel.receive<char>(&node);
}

void send_one(Node& node, Channel& channel, fi_addr_t peer) {
  const int value = 42;
  node.post("fi_send",
            [&] { return fi_send(node.ep.get(), &value, sizeof value, nullptr, peer, nullptr); });
  node.next("sending a message");
  channel.receive<char>(&node);
}

// A process that ends without a word leaves its port to a successor. A peer that removes the old
// address, or inserts the new one, reaches the successor, though its PDC was to the old process.
class Successor : public ::testing::TestWithParam<bool> {};

TEST_P(Successor, NewProcessAtOldAddress_ReachedOnceInserted) {
  const bool remove_first = GetParam();
  ChannelPair firsts;
  ChannelPair seconds;
  Process first("first", {}, [&] { receive_one(firsts.left); });
  Process second("second", {}, [&] { receive_one(seconds.left); });
  Process sender("sender", {}, [&] {
    firsts.right.send('g');
    Node node;
    fi_addr_t peer = node.connect(firsts.right);
    send_one(node, firsts.right, peer);
    require(::kill(first.pid(), SIGKILL) == 0, "kill");
    const auto gone = Clock::now() + std::chrono::milliseconds(300);
    while (Clock::now() < gone) node.keep_events();
    wait_for_exit(first.pid());
    if (remove_first) check(fi_av_remove(node.av.get(), &peer, 1, 0), "fi_av_remove");
    seconds.right.send('g');
    send_one(node, seconds.right, node.connect(seconds.right));
    seconds.right.send('e');
  });
  ASSERT_EQ(wait_for_all({&second, &sender}), "");
  EXPECT_EQ(first.wait(), "first died by signal Killed");
}

// Receives two messages, one of a few packets, and ends: in order, or with its objects open.
void receive_and_end(Channel& channel, bool close) {
  channel.receive<char>();
  NodeOptions options;
  options.service = "5799";
  auto node = std::make_unique<Node>(options);
  std::array<std::vector<std::byte>, 2> buffers;
  buffers.fill(std::vector<std::byte>(kBytes));
  for (auto& buffer : buffers) {
    node->post("fi_recv", [&] {
      return fi_recv(node->ep.get(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC,
                     buffer.data());
    });
  }
  node->connect(channel);
  for (std::size_t i = 0; i < buffers.size(); ++i) node->next("a message");
  if (close) node.reset();
  ::_exit(0);
}

// The sender makes no progress while one process goes and the next comes.
TEST(PeerDeath, SuccessorsAtOneAddress_EveryMessageIsSent) {
  constexpr std::size_t kRounds = 6;
  std::array<ChannelPair, kRounds> channels;
  std::vector<std::unique_ptr<Process>> peers;
  for (std::size_t i = 0; i < kRounds; ++i) {
    peers.push_back(std::make_unique<Process>(
        "peer", Environment{}, [&channels, i] { receive_and_end(channels[i].left, i % 2 == 0); }));
  }
  Process sender("sender", {}, [&] {
    Node node;
    std::vector<std::byte> large(kBytes);
    for (std::size_t i = 0; i < kRounds; ++i) {
      channels[i].right.send('g');
      const fi_addr_t peer = node.connect(channels[i].right);
      for (const std::size_t bytes : {std::size_t{8}, kBytes}) {
        node.post("fi_send", [&] {
          return fi_send(node.ep.get(), large.data(), bytes, nullptr, peer, &large);
        });
      }
      for (int k = 0; k < 2; ++k) node.next("a completion");
      wait_for_exit(peers[i]->pid());
    }
  });
  ASSERT_EQ(wait_for_all({&sender}), "");
  for (const auto& peer : peers) EXPECT_EQ(peer->wait(), "");
}

INSTANTIATE_TEST_SUITE_P(PeerDeath, Successor, ::testing::Bool(), [](const auto& run) {
  return run.param ? "RemovedFirst" : "InsertedTwice";
});

}  // namespace
}  // namespace uet::e2e
