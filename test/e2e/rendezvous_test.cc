// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a sender may rely on beyond the plain message: long unexpected messages that never exhaust
// their target, delivery that is true, fences, and the end of what is cancelled or whose peer dies.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include "harness.h"

namespace uet::e2e {
namespace {

constexpr std::size_t kLong = 300'000;
const Environment kLossy{{"FI_UET_FAULTS", "loss=2%,dup=1%,reorder=2%,seed=11"}};

struct Mode {
  const char* name;
  std::uint64_t order;
  Environment environment;
};
std::string name_of(const ::testing::TestParamInfo<Mode>& info) { return info.param.name; }
const Mode kModes[] = {{"Rud", 0, {}},
                       {"Rod", FI_ORDER_SAS, {}},
                       {"RudLossy", 0, kLossy},
                       {"RodLossy", FI_ORDER_SAS, kLossy}};

class Rendezvous : public ::testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, Rendezvous, ::testing::ValuesIn(kModes), name_of);

NodeOptions options_of(const Mode& mode) {
  NodeOptions options;
  options.order = mode.order;
  return options;
}

// The receiver goes on until the sender has ended, and says so through `channel`.
void expect_both_end(Process& sender, Process& receiver, Channel& channel) {
  EXPECT_EQ(sender.wait(), "");
  channel.send('e');
  EXPECT_EQ(receiver.wait(), "");
}

// ---- memory of the target ----------------------------------------------------------------------

constexpr std::size_t kFlood = 160;

std::size_t flood_bytes(std::size_t i) { return i % 4 == 0 ? kLong + i : i % 4 == 1 ? 40'000 : i; }

// Both sides send all they have, several times what the other may keep, before either posts a
// receive; and the receives come in the other order.
void flood(Channel& channel, const Mode& mode, std::uint64_t side) {
  Node node(options_of(mode));
  const fi_addr_t peer = node.connect(channel);
  std::vector<std::vector<std::byte>> out(kFlood);
  std::vector<std::vector<std::byte>> in(kFlood);
  for (std::size_t i = 0; i < kFlood; ++i) {
    out[i].resize(flood_bytes(i));
    fill_pattern(out[i], 1000 * side + i);
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), out[i].data(), out[i].size(), nullptr, peer, i, nullptr);
    });
  }
  channel.meet(&node);
  for (std::size_t at = 0; at < kFlood; ++at) {
    // On an ordered endpoint what does not fit yet holds back what was sent after it.
    const std::size_t i = mode.order != 0 ? at : kFlood - 1 - at;
    in[i].resize(flood_bytes(i));
    node.post("posting a receive", [&] {
      return fi_trecv(node.ep.get(), in[i].data(), in[i].size(), nullptr, FI_ADDR_UNSPEC, i, 0,
                      nullptr);
    });
  }
  node.drain(2 * kFlood, "sends and receives");
  for (std::size_t i = 0; i < kFlood; ++i) require_pattern(in[i], 1000 * (1 - side) + i, "message");
  channel.meet(&node);
}

TEST_P(Rendezvous, TwoThatOnlySendAtFirstDoNotBlockEachOther) {
  const Mode& mode = GetParam();
  Environment environment = mode.environment;
  environment["FI_UET_UNEXPECTED_BYTES"] = "1048576";
  environment["FI_UET_UNEXPECTED_BYTES_PER_PEER"] = "524288";
  ChannelPair channels;
  Process left("left", environment, [&] { flood(channels.left, mode, 0); });
  Process right("right", environment, [&] { flood(channels.right, mode, 1); });
  EXPECT_EQ(wait_for_all({&left, &right}), "");
}

// ---- delivery ----------------------------------------------------------------------------------

// Where the receiver reads the end of the message, and where it answers later (SES-46).
const Mode kWaysToTell[] = {
    {"Rud", 0, {}},
    {"Rod", FI_ORDER_SAS, {}},
    {"RudLossy", 0, kLossy},
    {"RodLossy", FI_ORDER_SAS, kLossy},
    {"RudAiFull", 0, {{"FI_UET_PROFILE", "ai_full"}}},
    {"RodAiFull", FI_ORDER_SAS, {{"FI_UET_PROFILE", "ai_full"}}},
    {"RudAiFullLossy",
     0,
     {{"FI_UET_PROFILE", "ai_full"}, {"FI_UET_FAULTS", "loss=2%,dup=1%,reorder=2%,seed=11"}}}};

class Delivery : public ::testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Ways, Delivery, ::testing::ValuesIn(kWaysToTell), name_of);

// The sender's completion comes after the receive has been posted, however short the message.
TEST_P(Delivery, CompleteWaitsForTheReceive) {
  const Mode& mode = GetParam();
  ChannelPair channels;
  constexpr std::array<std::size_t, 5> kSizes = {0, 1, 5000, 60'000, kLong};
  Process sender("sender", mode.environment, [&] {
    Node node(options_of(mode));
    const fi_addr_t peer = node.connect(channels.left);
    for (const std::uint64_t level : {FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE}) {
      for (const std::size_t size : kSizes) {
        std::vector<std::byte> out(size);
        fill_pattern(out, size);
        const iovec piece{out.data(), size};
        fi_msg_tagged msg{};
        msg.msg_iov = &piece;
        msg.iov_count = 1;
        msg.addr = peer;
        msg.tag = size;
        node.post("sending",
                  [&] { return fi_tsendmsg(node.ep.get(), &msg, FI_COMPLETION | level); });
        const auto quiet = Clock::now() + std::chrono::milliseconds(30);
        while (Clock::now() < quiet) require(!node.poll(), "complete before it was received");
        channels.left.meet(&node);
        node.next("the send");
        require(channels.left.receive<char>(&node) == 'r', "not received");
      }
    }
  });
  Process receiver("receiver", mode.environment, [&] {
    Node node(options_of(mode));
    node.connect(channels.right);
    for (int level = 0; level < 2; ++level) {
      for (const std::size_t size : kSizes) {
        channels.right.meet(&node);
        std::vector<std::byte> in(size);
        node.post("posting a receive", [&] {
          return fi_trecv(node.ep.get(), in.data(), size, nullptr, FI_ADDR_UNSPEC, size, 0,
                          nullptr);
        });
        node.next("the receive");
        require_pattern(in, size, "message");
        channels.right.send('r');
      }
    }
    channels.right.receive<char>(&node);
  });
  expect_both_end(sender, receiver, channels.left);
}

TEST(RendezvousEnds, LongUnexpectedMessageIsTruncatedLikeAnyOther) {
  ChannelPair channels;
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.left);
    std::vector<std::byte> out(kLong);
    fill_pattern(out, 7);
    node.post("sending",
              [&] { return fi_send(node.ep.get(), out.data(), kLong, nullptr, peer, nullptr); });
    channels.left.meet(&node);
    node.next("the send");
    channels.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    node.connect(channels.right);
    channels.right.meet(&node);
    std::vector<std::byte> in(kLong - 1);
    node.post("posting a receive", [&] {
      return fi_recv(node.ep.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
    });
    std::optional<Event> event;
    while (!(event = node.poll())) {
    }
    require(event->error == FI_ETRUNC, "not FI_ETRUNC");
    require_pattern(in, 7, "the part that fits");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

// ---- fences ------------------------------------------------------------------------------------

constexpr std::uint64_t kRounds = 50;

// Without order a message may overtake the write before it; a fenced one may not.
TEST_P(Rendezvous, FencedMessageFindsWhatWasWrittenBefore) {
  const Mode& mode = GetParam();
  ChannelPair channels;
  Process sender("sender", mode.environment, [&] {
    NodeOptions options = options_of(mode);
    options.capabilities |= FI_FENCE;
    Node node(options);
    require((node.info->caps & FI_FENCE) != 0, "FI_FENCE is not offered");
    const fi_addr_t peer = node.connect(channels.left);
    const auto remote = channels.left.receive<RemoteRegion>(&node);
    std::vector<std::byte> out(50'000);
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      fill_pattern(out, round);
      node.post("writing", [&] {
        return fi_write(node.ep.get(), out.data(), out.size(), nullptr, peer, remote.address,
                        remote.key, nullptr);
      });
      fi_msg msg{};
      msg.addr = peer;
      node.post("sending",
                [&] { return fi_sendmsg(node.ep.get(), &msg, FI_COMPLETION | FI_FENCE); });
      node.drain(2, "write and send");
      require(channels.left.receive<std::uint64_t>(&node) == round, "another round");
    }
  });
  Process receiver("receiver", mode.environment, [&] {
    Node node(options_of(mode));
    node.connect(channels.right);
    std::vector<std::byte> memory(50'000);
    const Region region = node.expose(memory.data(), memory.size(), 5);
    channels.right.send(RemoteRegion{region.address, region.key});
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      node.post("posting a receive", [&] {
        return fi_recv(node.ep.get(), nullptr, 0, nullptr, FI_ADDR_UNSPEC, nullptr);
      });
      node.next("the fenced message");
      require_pattern(memory, round, "what was written before the fence");
      channels.right.send(round);
    }
    channels.right.receive<char>(&node);
  });
  expect_both_end(sender, receiver, channels.left);
}

// ---- cancelling, and the end of a peer ---------------------------------------------------------

TEST(RendezvousEnds, CancelledSendIsNotReceived) {
  ChannelPair channels;
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.left);
    std::vector<std::byte> out(kLong);
    fill_pattern(out, 1);
    int operation = 0;
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), out.data(), kLong, nullptr, peer, 1, &operation);
    });
    channels.left.meet(&node);  // it has arrived unexpectedly
    int cancelled = 0;
    while ((cancelled = fi_cancel(&node.ep->fid, &operation)) == -FI_ENOENT) {
      // All of it has left, and the target has not yet answered that it wants to read the rest.
      require(!node.poll(), "complete before it was received");
    }
    check(cancelled, "cancelling the send");
    require(fi_cancel(&node.ep->fid, &operation) == -FI_ENOENT, "cancelled twice");
    std::optional<Event> event;
    while (!(event = node.poll())) {
    }
    require(event->error == FI_ECANCELED && event->context == &operation, "not FI_ECANCELED");
    fill_pattern(out, 2);
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), out.data(), kLong, nullptr, peer, 1, &operation);
    });
    channels.left.meet(&node);
    node.next("the second send");
    require(fi_cancel(&node.ep->fid, &operation) == -FI_ENOENT, "cancelled after its end");
    channels.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    node.connect(channels.right);
    const auto busy = Clock::now() + std::chrono::milliseconds(100);
    while (Clock::now() < busy) node.keep_events();
    channels.right.meet(&node);
    channels.right.meet(&node);
    std::vector<std::byte> in(kLong);
    node.post("posting a receive", [&] {
      return fi_trecv(node.ep.get(), in.data(), kLong, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr);
    });
    node.next("the receive");
    require_pattern(in, 2, "the message that was not cancelled");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

const Environment kImpatient{{"tune.rto_retries", "5"}};

TEST(RendezvousEnds, SendThatWaitsForItsReadEndsWhenThePeerDies) {
  ChannelPair channels;
  Process receiver("receiver", kImpatient, [&] {
    Node node;
    node.connect(channels.right);
    channels.right.receive<char>(&node);  // until it is killed
  });
  Process sender("sender", kImpatient, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.left);
    std::vector<std::byte> out(kLong);
    node.post("sending",
              [&] { return fi_send(node.ep.get(), out.data(), kLong, nullptr, peer, nullptr); });
    const auto quiet = Clock::now() + std::chrono::milliseconds(200);
    while (Clock::now() < quiet) require(!node.poll(), "complete before it was received");
    kill(receiver.pid(), SIGKILL);
    std::optional<Event> event;
    while (!(event = node.poll())) {
    }
    // Not FI_ETIMEDOUT if another process has taken its port in the meantime.
    require(event->error != 0, "complete without having been received");
  });
  EXPECT_EQ(sender.wait(), "");
}

TEST(RendezvousEnds, SendToAClosedTargetCompletes) {
  ChannelPair channels;
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.left);
    std::vector<std::byte> out(kLong);
    node.post("sending",
              [&] { return fi_send(node.ep.get(), out.data(), kLong, nullptr, peer, nullptr); });
    channels.left.meet(&node);
    node.next("the send to an endpoint that closes");
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    node.connect(channels.right);
    const auto busy = Clock::now() + std::chrono::milliseconds(100);
    while (Clock::now() < busy) node.keep_events();
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

// The closing sender stands still for longer than its patience, before the receiver takes anything.
TEST(RendezvousEnds, StoppedSenderStillDelivers) {
  constexpr std::size_t kBytes = 8 << 20;  // more than a window
  ChannelPair channels;
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.left);
    std::vector<std::byte> out(kBytes);
    fill_pattern(out, 1);
    channels.left.meet(&node);
    node.post("sending",
              [&] { return fi_send(node.ep.get(), out.data(), kBytes, nullptr, peer, nullptr); });
    channels.left.send('c');
    node.ep.reset();
  });
  Process receiver("receiver", {}, [&, pid = sender.pid()] {
    Node node;
    node.connect(channels.right);
    std::vector<std::byte> in(kBytes);
    node.post("posting a receive", [&] {
      return fi_recv(node.ep.get(), in.data(), kBytes, nullptr, FI_ADDR_UNSPEC, nullptr);
    });
    channels.right.meet(&node);
    channels.right.receive<char>();
    ::usleep(50'000);  // it closes now
    require(::kill(pid, SIGSTOP) == 0, "SIGSTOP");
    ::usleep(500'000);
    require(::kill(pid, SIGCONT) == 0, "SIGCONT");
    node.next("the message");
    require_pattern(in, 1, "the message");
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(RendezvousEnds, TimeOutIsAParameter) {
  ChannelPair channels;
  Process sender("sender", {{"tune.rendezvous_timeout", "1"}}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.left);
    std::vector<std::byte> out(kLong);
    node.post("sending",
              [&] { return fi_send(node.ep.get(), out.data(), kLong, nullptr, peer, nullptr); });
    std::optional<Event> event;
    while (!(event = node.poll())) {
    }
    require(event->error == FI_ETIMEDOUT, "not FI_ETIMEDOUT");
    channels.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    node.connect(channels.right);
    channels.right.meet(&node);
    std::vector<std::byte> in(kLong);
    node.post("posting a receive", [&] {
      return fi_recv(node.ep.get(), in.data(), kLong, nullptr, FI_ADDR_UNSPEC, nullptr);
    });
    const auto quiet = Clock::now() + std::chrono::milliseconds(100);
    while (Clock::now() < quiet) require(!node.poll(), "it has vanished at the target");
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

}  // namespace
}  // namespace uet::e2e
