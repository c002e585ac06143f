// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Data of every kind of operation arrives intact, once, and in the promised order, between two
// processes whose packets are lost, duplicated and reordered on purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "harness.h"

namespace uet::e2e {
namespace {

enum class Mode { Rud, Rod };
enum class Operation { Msg, Tagged, Write, WriteData, Read };

constexpr std::size_t kSizes[] = {0, 1, 63, 64, 4095, 4096, 4097, 65536, 1 << 20, 16 << 20};
constexpr std::size_t kMaxInFlight = 8;

NodeOptions options_of(Mode mode) {
  NodeOptions options;
  if (mode == Mode::Rod) options.order = FI_ORDER_SAS;
  return options;
}

Environment faults(int seed) {
  return {{"FI_UET_FAULTS", "loss=5%,dup=2%,reorder=5%,seed=" + std::to_string(seed)}};
}

std::size_t in_flight(std::size_t bytes) { return bytes > 1 << 20 ? 2 : kMaxInFlight; }

// Slots of memory, one per operation in flight.
struct Slots {
  Slots(std::size_t bytes, std::size_t count) : bytes_each(bytes), memory(bytes * count + 1) {}
  std::span<std::byte> at(std::size_t index) {
    return std::span(memory).subspan(index * bytes_each, bytes_each);
  }
  std::size_t bytes_each;
  std::vector<std::byte> memory;
};

std::uint64_t seed_of(std::size_t bytes, std::size_t index) { return bytes * 1000 + index; }

void* as_context(std::size_t index) { return reinterpret_cast<void*>(index + 1); }
std::size_t from_context(const void* context) {
  return reinterpret_cast<std::uintptr_t>(context) - 1;
}

// ---- messages: the sender's index travels as CQ data or tag ------------------------------------

void send_round(Node& node, fi_addr_t peer, Operation operation, Slots& slots, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<std::byte> data = slots.at(i);
    fill_pattern(data, seed_of(data.size(), i));
    node.post("sending", [&] {
      return operation == Operation::Tagged ? fi_tsend(node.ep.get(), data.data(), data.size(),
                                                       nullptr, peer, i, as_context(i))
                                            : fi_senddata(node.ep.get(), data.data(), data.size(),
                                                          nullptr, i, peer, as_context(i));
    });
  }
  std::vector<bool> done(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = from_context(node.next("a send").context);
    require(index < count && !done[index], "a send completed twice");
    done[index] = true;
  }
}

void receive_round(Node& node, Mode mode, Operation operation, Slots& slots, std::size_t count) {
  std::vector<bool> done(count);
  for (std::size_t arrived = 0; arrived < count; ++arrived) {
    const Event event = node.next("a receive");
    require((event.flags & FI_RECV) != 0, "a completion that is no receive");
    const std::size_t slot = from_context(event.context);
    const std::size_t message = operation == Operation::Tagged ? event.tag : event.data;
    require(slot < count && message < count && !done[message], "a message arrived twice");
    done[message] = true;
    if (operation == Operation::Tagged) require(slot == message, "a tag matched another receive");
    if (mode == Mode::Rod && operation == Operation::Msg) {
      require(slot == message && message == arrived, "messages out of order");
    }
    require(event.length == slots.bytes_each, "a message of another length");
    require_pattern(slots.at(slot), seed_of(slots.bytes_each, message), "message");
  }
}

void post_receives(Node& node, Operation operation, Slots& slots, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<std::byte> data = slots.at(i);
    node.post("posting a receive", [&] {
      return operation == Operation::Tagged ? fi_trecv(node.ep.get(), data.data(), data.size(),
                                                       nullptr, FI_ADDR_UNSPEC, i, 0, as_context(i))
                                            : fi_recv(node.ep.get(), data.data(), data.size(),
                                                      nullptr, FI_ADDR_UNSPEC, as_context(i));
    });
  }
}

// ---- RMA: slot i of our memory and slot i of the peer ------------------------------------------

void rma_round(Node& node, fi_addr_t peer, Operation operation, Slots& slots,
               const RemoteRegion& remote, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<std::byte> data = slots.at(i);
    const std::uint64_t address = remote.address + i * data.size();
    if (operation != Operation::Read) fill_pattern(data, seed_of(data.size(), i));
    node.post("posting an RMA operation", [&] {
      switch (operation) {
        case Operation::Read:
          return fi_read(node.ep.get(), data.data(), data.size(), nullptr, peer, address,
                         remote.key, as_context(i));
        case Operation::WriteData:
          return fi_writedata(node.ep.get(), data.data(), data.size(), nullptr, i, peer, address,
                              remote.key, as_context(i));
        default:
          return fi_write(node.ep.get(), data.data(), data.size(), nullptr, peer, address,
                          remote.key, as_context(i));
      }
    });
  }
  std::vector<bool> done(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = from_context(node.next("an RMA operation").context);
    require(index < count && !done[index], "an RMA operation completed twice");
    done[index] = true;
    if (operation == Operation::Read) {
      require_pattern(slots.at(index), seed_of(slots.bytes_each, index), "read");
    }
  }
}

// Target: with writedata each slot is whole when its event is there, else when the initiator says.
void watch_round(Node& node, Operation operation, Slots& slots, std::size_t count,
                 Channel& channel) {
  if (operation == Operation::WriteData) {
    std::vector<bool> done(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Event event = node.next("a peer's write");
      require((event.flags & FI_REMOTE_CQ_DATA) != 0, "a completion without the peer's data");
      require(event.data < count && !done[event.data], "an event came twice");
      done[event.data] = true;
      require_pattern(slots.at(event.data), seed_of(slots.bytes_each, event.data), "write");
    }
  }
  channel.meet(&node);
  if (operation == Operation::Write) {
    for (std::size_t i = 0; i < count; ++i) {
      require_pattern(slots.at(i), seed_of(slots.bytes_each, i), "write");
    }
  }
  require(!node.poll(), "a completion without an operation");
}

// ---- the two processes -------------------------------------------------------------------------

bool is_message(Operation operation) {
  return operation == Operation::Msg || operation == Operation::Tagged;
}

void initiate(Mode mode, Operation operation, Channel& channel) {
  Node node(options_of(mode));
  const fi_addr_t peer = node.connect(channel);
  for (const std::size_t bytes : kSizes) {
    const std::size_t count = in_flight(bytes);
    Slots slots(bytes, count);
    const auto remote = channel.receive<RemoteRegion>(&node);
    if (is_message(operation)) {
      send_round(node, peer, operation, slots, count);
    } else {
      rma_round(node, peer, operation, slots, remote, count);
    }
    channel.meet(&node);
  }
  channel.meet(&node);
}

void serve(Mode mode, Operation operation, Channel& channel) {
  Node node(options_of(mode));
  node.connect(channel);
  std::uint64_t key = 100;
  for (const std::size_t bytes : kSizes) {
    const std::size_t count = in_flight(bytes);
    Slots slots(bytes, count);
    if (operation == Operation::Read) {
      for (std::size_t i = 0; i < count; ++i) fill_pattern(slots.at(i), seed_of(bytes, i));
    }
    const Region region = node.expose(slots.memory.data(), slots.memory.size(), ++key);
    if (is_message(operation)) post_receives(node, operation, slots, count);
    channel.send(RemoteRegion{region.address, region.key});
    if (is_message(operation)) {
      receive_round(node, mode, operation, slots, count);
      channel.meet(&node);
    } else {
      watch_round(node, operation, slots, count, channel);
    }
  }
  channel.meet(&node);
}

class Transfer : public ::testing::TestWithParam<std::tuple<Mode, Operation>> {};

TEST_P(Transfer, DataIntactUnderLossDuplicationAndReordering) {
  const auto [mode, operation] = GetParam();
  ChannelPair channels;
  Process target("target", faults(1), [&, mode = mode, operation = operation] {
    serve(mode, operation, channels.left);
  });
  Process initiator("initiator", faults(2), [&, mode = mode, operation = operation] {
    initiate(mode, operation, channels.right);
  });
  EXPECT_EQ(wait_for_all({&target, &initiator}), "");
}

std::string name_of(const ::testing::TestParamInfo<Transfer::ParamType>& info) {
  constexpr const char* kModes[] = {"Rud", "Rod"};
  constexpr const char* kOperations[] = {"Msg", "Tagged", "Write", "WriteData", "Read"};
  return std::string(kModes[static_cast<int>(std::get<0>(info.param))]) +
         kOperations[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(
    All, Transfer,
    ::testing::Combine(::testing::Values(Mode::Rud, Mode::Rod),
                       ::testing::Values(Operation::Msg, Operation::Tagged, Operation::Write,
                                         Operation::WriteData, Operation::Read)),
    name_of);

// ---- many messages, posted in another order than they are sent ---------------------------------

constexpr std::size_t kMessages = 512;
constexpr std::size_t kMaxMessageBytes = 20000;

// The same sizes in both processes.
std::vector<std::size_t> message_sizes() {
  std::mt19937_64 random(7);
  std::vector<std::size_t> sizes(kMessages);
  for (std::size_t& size : sizes) size = random() % kMaxMessageBytes;
  return sizes;
}

void send_many(Mode mode, Channel& channel) {
  Node node(options_of(mode));
  const fi_addr_t peer = node.connect(channel);
  const std::vector<std::size_t> sizes = message_sizes();
  Slots slots(kMaxMessageBytes, kMessages);
  channel.meet(&node);
  for (std::size_t i = 0; i < kMessages; ++i) {
    const std::span<std::byte> data = slots.at(i).first(sizes[i]);
    fill_pattern(data, i);
    node.post("sending", [&] {
      return fi_tsend(node.ep.get(), data.data(), data.size(), nullptr, peer, i, nullptr);
    });
  }
  channel.meet(&node);  // all are posted; the receiver may begin (UnexpectedMessages)
  node.drain(kMessages, "a send");
  channel.meet(&node);
}

void receive_many(Mode mode, bool expected, Channel& channel) {
  Node node(options_of(mode));
  node.connect(channel);
  const std::vector<std::size_t> sizes = message_sizes();
  Slots slots(kMaxMessageBytes, kMessages);
  std::vector<std::size_t> order(kMessages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(11));

  channel.meet(&node);
  if (!expected) channel.meet(&node);
  for (const std::size_t i : order) {
    node.post("posting a receive", [&] {
      return fi_trecv(node.ep.get(), slots.at(i).data(), kMaxMessageBytes, nullptr, FI_ADDR_UNSPEC,
                      i, 0, as_context(i));
    });
  }
  std::vector<bool> done(kMessages);
  for (std::size_t count = 0; count < kMessages; ++count) {
    const Event event = node.next("a receive");
    const std::size_t i = from_context(event.context);
    require(i < kMessages && event.tag == i && !done[i], "a receive got another's message");
    done[i] = true;
    require(event.length == sizes[i], "a message of another length");
    require_pattern(slots.at(i).first(sizes[i]), i, "message " + std::to_string(i));
  }
  if (expected) channel.meet(&node);
  channel.meet(&node);
}

class ManyMessages : public ::testing::TestWithParam<Mode> {
 protected:
  static void run(Mode mode, bool expected) {
    ChannelPair channels;
    Process receiver("receiver", faults(3), [&] { receive_many(mode, expected, channels.left); });
    Process sender("sender", faults(4), [&] { send_many(mode, channels.right); });
    EXPECT_EQ(wait_for_all({&receiver, &sender}), "");
  }
};

TEST_P(ManyMessages, InFlightAtOnceFindTheirReceives) { run(GetParam(), true); }

// 512 messages of 10 KB on average: kept at the target until their receives are posted.
TEST_P(ManyMessages, ThatWereNotExpectedAreKept) { run(GetParam(), false); }

INSTANTIATE_TEST_SUITE_P(Modes, ManyMessages, ::testing::Values(Mode::Rud, Mode::Rod),
                         [](const auto& info) {
                           return std::string(info.param == Mode::Rud ? "Rud" : "Rod");
                         });

// ---- the faults themselves ---------------------------------------------------------------------

// The tests above have a meaning only if the faults take effect: with losses alone nothing arrives.
TEST(Faults, AllLostMeansThatNothingArrives) {
  if (provider() != "uet") GTEST_SKIP() << "faults are a parameter of uet";
  ChannelPair channels;
  Process target("target", {{"FI_UET_FAULTS", "loss=100%,seed=1"}}, [&] {
    Node node;
    node.connect(channels.left);
    std::byte byte{};
    node.post("posting a receive",
              [&] { return fi_recv(node.ep.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr); });
    channels.left.meet(&node);
    require(!node.poll(), "a message arrived through a network that loses all");
  });
  const Environment impatient{{"FI_UET_RTO_INIT_US", "1000"}, {"tune.rto_retries", "3"}};
  Process initiator("initiator", impatient, [&] {
    Node node;
    const fi_addr_t peer = node.connect(channels.right);
    std::byte byte{};
    node.post("sending", [&] { return fi_send(node.ep.get(), &byte, 1, nullptr, peer, nullptr); });
    std::optional<Event> event;
    while (!event) event = node.poll();
    require(event->error == FI_ETIMEDOUT, "the send did not time out");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&target, &initiator}), "");
}

}  // namespace
}  // namespace uet::e2e
