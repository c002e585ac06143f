// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ack_after_reply: ACKs that wait for the application's reply, and what becomes of them
// without one.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kRounds = 200;  // more than pass before the first ACK is kept
constexpr std::uint64_t kPenalty = 64;  // occasions that pass after an ACK was late

const Environment kSocket{{"FI_UET_LOCAL", "off"}};

// One end of a ping-pong, a receive always posted: only for those is the application told at once.
class Player {
 public:
  explicit Player(Channel& channel, const NodeOptions& options = {})
      : channel(channel), node(options), peer(node.connect(channel)) {
    post_receive();
  }

  void send() {
    node.post("sending",
              [&] { return fi_tsend(node.ep.get(), &byte_, 1, nullptr, peer, 0, nullptr); });
  }
  // Until this completion has come; others are counted for later.
  void await(std::uint64_t flag, const char* what) {
    std::uint64_t& seen = flag == FI_SEND ? sent_ : received_;
    while (seen == 0) ++((node.next(what).flags & FI_SEND) != 0 ? sent_ : received_);
    --seen;
  }
  void await_message() {
    await(FI_RECV, "message");
    post_receive();
  }
  void serve(std::uint64_t rounds) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      send();
      await_message();
      await(FI_SEND, "ACK");
    }
  }
  void answer(std::uint64_t rounds) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      await_message();
      send();
      await(FI_SEND, "ACK");
    }
  }
  // As MPI does: reads until there is nothing more, then replies.
  void read_on_and_answer(std::uint64_t rounds) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      await_message();
      node.keep_events();
      send();
      await(FI_SEND, "ACK");
    }
  }
  // The sender says through the channel that it has its completion; until then the receiver, who
  // has been told of the message, does not call the provider.
  void send_to_who_computes() {
    send();
    await(FI_SEND, "ACK");
    channel.send('a');
  }
  void receive_and_compute() {
    await_message();
    channel.receive<char>();
  }
  std::uint64_t kept() const { return node.counter("pds_acks_kept"); }
  std::uint64_t late() const { return node.counter("pds_acks_late"); }

  Channel& channel;
  Node node;
  const fi_addr_t peer;

 private:
  void post_receive() {
    node.post("receiving",
              [&] { return fi_trecv(node.ep.get(), &byte_, 1, nullptr, peer, 0, 0, nullptr); });
  }

  std::byte byte_{};
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

// Counts what the answering end has kept after kRounds.
void expect_kept(bool some, const Environment& environment, const NodeOptions& options = {}) {
  ChannelPair pair;
  Process server("server", environment, [&] {
    Player player(pair.left, options);
    player.serve(kRounds);
    pair.left.meet(&player.node);
  });
  Process client("client", environment, [&] {
    Player player(pair.right, options);
    player.answer(kRounds);
    pair.right.meet(&player.node);
    require((player.kept() > 0) == some,
            "ACKs were kept " + std::to_string(player.kept()) + " times");
  });
  EXPECT_EQ(wait_for_all({&server, &client}), "");
}

TEST(KeptAcks, AreKeptForTheReply) { expect_kept(true, kSocket); }

TEST(KeptAcks, AreKeptForTheReplyWithManyThreads) {
  NodeOptions options;
  options.threading = FI_THREAD_SAFE;
  expect_kept(true, kSocket, options);
}

// Without a reply in time 8 would be kept, and then one of 32. Who is late on a busy machine plays
// another game.
TEST(KeptAcks, AreKeptThroughAReadThatFindsNothingMore) {
  ChannelPair pair;
  Process server("server", kSocket, [&] {
    Player player(pair.left);
    while (pair.left.receive<bool>(&player.node)) player.serve(kRounds);
    pair.left.meet(&player.node);
  });
  Process client("client", kSocket, [&] {
    Player player(pair.right);
    std::uint64_t before = 0;
    do {
      pair.right.send(true);
      before = player.kept();
      player.read_on_and_answer(kRounds);
    } while (player.kept() - before < kRounds / 8);
    pair.right.send(false);
    pair.right.meet(&player.node);
  });
  EXPECT_EQ(wait_for_all({&server, &client}), "");
}

TEST(KeptAcks, AreNoneWhereTheSwitchIsOff) {
  expect_kept(false, {{"FI_UET_LOCAL", "off"}, {"tune.ack_after_reply", "no"}});
}

TEST(KeptAcks, AreNoneThroughRings) { expect_kept(false, {{"FI_UET_LOCAL", "auto"}}); }

TEST(KeptAcks, AreNoneWhereAThreadMakesProgress) {
  NodeOptions options;
  options.progress = FI_PROGRESS_AUTO;
  expect_kept(false, kSocket, options);
}

// The receiver computes, with the ACK in hand, until its sender has it; afterwards the ACKs leave
// at once for a while.
TEST(KeptAcks, LeaveWhenTheApplicationDoesNotComeBack) {
  ChannelPair pair;
  Process sender("sender", kSocket, [&] {
    Player player(pair.left);
    while (pair.left.receive<bool>(&player.node)) {
      player.serve(kRounds);
      player.send_to_who_computes();
    }
    for (std::uint64_t i = 0; i < kPenalty; ++i) player.send_to_who_computes();
    pair.left.meet(&player.node);
  });
  Process receiver("receiver", kSocket, [&] {
    Player player(pair.right);
    for (std::uint64_t late = 0; late == 0;) {
      pair.right.send(true);
      player.answer(kRounds);
      const std::uint64_t before = player.late();
      player.receive_and_compute();
      late = player.late() - before;
    }
    pair.right.send(false);
    const std::uint64_t kept = player.kept();
    for (std::uint64_t i = 0; i < kPenalty; ++i) player.receive_and_compute();
    require(player.kept() == kept, "ACKs were kept again at once");
    pair.right.meet(&player.node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

// Of a process that ends without closing anything.
TEST(KeptAcks, LeaveWhenTheProcessEnds) {
  ChannelPair pair;
  Process sender("sender", kSocket, [&] {
    Player player(pair.left);
    player.serve(kRounds);
    player.send();
    player.await(FI_SEND, "ACK of the last message");
  });
  Process receiver("receiver", kSocket, [&] {
    auto* player = new Player(pair.right);
    player->answer(kRounds);
    player->await_message();
    std::exit(0);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

}  // namespace
}  // namespace uet::e2e
