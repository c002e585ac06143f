// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages without completion share their ACKs (PDS-128, tail_loss_time_us): how many are sent,
// and that no call waits for an ACK that the sender has not requested.
#include <gtest/gtest.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kRounds = 400;
constexpr std::size_t kBytes = 16;

// No packet is sent again because its ACK is late, however busy the machine is.
const std::array<std::pair<std::string, std::string>, 2> kNoTimeOut{
    {{"FI_UET_RTO_INIT_US", "60000000"}, {"tune.rto_max_us", "60000000"}}};

// One end of a ping-pong of injected messages.
class Player {
 public:
  explicit Player(Channel& channel, const NodeOptions& options = {})
      : channel(channel), node(options), peer(node.connect(channel)) {
    post_receive();
  }
  void inject(std::uint64_t number) {
    std::array<std::byte, kBytes> bytes{};
    fill_pattern(bytes, number);
    node.post("injecting",
              [&] { return fi_tinject(node.ep.get(), bytes.data(), kBytes, peer, 0); });
  }
  void await(std::uint64_t number) {
    Event event = node.next("message");
    while ((event.flags & FI_RECV) == 0) event = node.next("message");
    require_pattern(memory_, number, "message");
    post_receive();
  }
  void play(bool begins, std::uint64_t rounds = kRounds) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (begins) inject(i);
      await(i);
      if (!begins) inject(i);
    }
  }
  // Until the peer has acknowledged everything; the longest that may take is the harness's.
  void await_answers() {
    while (node.counter("ses_messages_sent") < node.counter("pds_requests_sent")) {
      node.keep_events();
    }
  }

  // Is there a message without an ACK and without an ACK request? One message in sixteen is
  // acknowledged without a request, soon.
  bool tail_waits() {
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(200);
    while (Clock::now() < end) node.keep_events();
    return node.counter("ses_messages_sent") < node.counter("pds_requests_sent");
  }
  // After a call that had to request an ACK for the tail if it waited.
  void require_asked(bool waited) {
    require(!waited || node.counter("pds_ack_requests_sent") > 0, "no ACK was requested");
  }

  Channel& channel;
  Node node;
  fi_addr_t peer;

 private:
  void post_receive() {
    node.post("receiving", [&] {
      return fi_trecv(node.ep.get(), memory_.data(), kBytes, nullptr, peer, 0, 0, nullptr);
    });
  }
  std::array<std::byte, kBytes> memory_{};
};

class SharedAcks : public testing::Test {
 protected:
  // A process at each end: `first` begins.
  void run(const Environment& environment, const NodeOptions& options,
           const std::function<void(Player&)>& first, const std::function<void(Player&)>& second) {
    Process left("first", environment, [&] {
      Player player(pair.left, options);
      first(player);
      player.channel.meet(&player.node);
    });
    Process right("second", environment, [&] {
      Player player(pair.right, options);
      second(player);
      player.channel.meet(&player.node);
    });
    EXPECT_EQ(wait_for_all({&left, &right}), "");
  }
  // ... and `judge` looks when both have played and all is answered.
  void ping_pong(const Environment& environment, const NodeOptions& options,
                 const std::function<void(Node&)>& judge) {
    const auto play = [&](bool begins) {
      return [begins, judge](Player& player) {
        player.play(begins);
        player.await_answers();
        judge(player.node);
      };
    };
    run(environment, options, play(true), play(false));
  }
  ChannelPair pair;
};

void expect_few_acks(Node& node) {
  const std::uint64_t acks = node.counter("pds_acks_sent");
  require(acks < kRounds / 4, std::to_string(acks) + " ACKs");
}
// One may answer a copy, too, and the last may be on its way to leave.
void expect_an_ack_for_each(Node& node) {
  const std::uint64_t acks = node.counter("pds_acks_sent");
  require(acks > kRounds * 3 / 4, std::to_string(acks) + " ACKs");
}

// Sharing is a matter of messages here, not of time: on a busy machine a reply can be later than
// the tail may be.
TEST_F(SharedAcks, Pds128_InjectedMessagesShareThem) {
  ping_pong({{"tune.tail_loss_time_us", "200000"}, kNoTimeOut[0], kNoTimeOut[1]}, {},
            expect_few_acks);
}

// The last message of one play in sixteen is acknowledged without a request, that of the next one
// is not.
TEST_F(SharedAcks, Pds128_TheTailIsAskedFor) {
  const auto play_twice = [](bool begins) {
    return [begins](Player& player) {
      for (const std::uint64_t rounds : {kRounds, std::uint64_t{1}}) {
        player.play(begins, rounds);
        player.await_answers();
      }
      require(player.node.counter("pds_ack_requests_sent") > 0, "no ACK was requested");
      require(player.node.counter("pds_rto_retransmissions") == 0, "a time-out has expired");
    };
  };
  run({kNoTimeOut[0], kNoTimeOut[1]}, {}, play_twice(true), play_twice(false));
}

TEST_F(SharedAcks, Pds101_EachAsksWhereItIsDisabled) {
  ping_pong({{"tune.tail_loss_time_us", "0"}}, {}, expect_an_ack_for_each);
}

TEST_F(SharedAcks, Pds101_EachAsksWhereACounterCounts) {
  NodeOptions options;
  options.counters = true;
  ping_pong({}, options, expect_an_ack_for_each);
}

TEST_F(SharedAcks, NoneIsLostWithALossyNetwork) {
  ping_pong({{"FI_UET_FAULTS", "loss=5%,seed=5"}}, {}, [](Node&) {});
}

// A full queue needs free entries soon: the post requests an ACK. Otherwise each full queue would
// wait for tail_loss_time_us, a second.
TEST_F(SharedAcks, FullQueuesDoNotWaitForTheTail) {
  NodeOptions options;
  options.queue_size = 8;
  const Environment patient{{"tune.tail_loss_time_us", "1000000"}, kNoTimeOut[0], kNoTimeOut[1]};
  const std::function<void(Player&)> first = [](Player& player) {
    for (std::uint64_t i = 0; i < kRounds; ++i) player.inject(i);
  };
  run(patient, options, first, [](Player& player) {
    for (std::uint64_t i = 0; i < kRounds; ++i) player.await(i);
  });
}

// Its own linger ends after a while; nothing must be left to it.
TEST_F(SharedAcks, ClosingAsks) {
  const Environment patient{{"tune.tail_loss_time_us", "1000000"}, kNoTimeOut[0], kNoTimeOut[1]};
  run(
      patient, {},
      [](Player& player) {
        player.play(true, 3);
        player.inject(3);
        const bool waited = player.tail_waits();
        const Clock::time_point start = Clock::now();
        player.node.ep.reset();
        require(Clock::now() - start < std::chrono::milliseconds(500), "it waited for the tail");
        player.require_asked(waited);
      },
      [](Player& player) {
        player.play(false, 3);
        player.await(3);
      });
}

TEST_F(SharedAcks, AFenceAsks) {
  const Environment patient{{"tune.tail_loss_time_us", "1000000"}, kNoTimeOut[0], kNoTimeOut[1]};
  run(
      patient, {},
      [](Player& player) {
        player.play(true, 3);
        player.inject(3);
        const bool waited = player.tail_waits();
        std::array<std::byte, kBytes> bytes{};
        fill_pattern(bytes, 4);
        iovec iov{bytes.data(), kBytes};
        fi_msg_tagged message{};
        message.msg_iov = &iov;
        message.iov_count = 1;
        message.addr = player.peer;
        player.node.post("fencing", [&] {
          return fi_tsendmsg(player.node.ep.get(), &message, FI_FENCE | FI_COMPLETION);
        });
        Event event = player.node.next("fenced message");
        while ((event.flags & FI_SEND) == 0) event = player.node.next("fenced message");
        player.require_asked(waited);
      },
      [](Player& player) {
        player.play(false, 3);
        player.await(3);
        player.await(4);
      });
}

}  // namespace
}  // namespace uet::e2e
