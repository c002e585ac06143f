// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What unexpected messages are charged, who may keep how much, and that full memory stops nothing
// that does not need it.
#include "ses/unexpected.h"

#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

constexpr std::size_t kMemory = 1 << 20;

class UnexpectedTest : public TwoNodes {
 protected:
  static Parameters parameters() {
    Parameters with = small_parameters();
    with.unexpected_bytes_per_context = kMemory;
    return with;
  }
  UnexpectedTest() : TwoNodes(parameters()) {}

  // A message of one packet with this tag.
  pds::Response take_tagged(std::uint64_t tag, const Bytes& payload, std::uint8_t from = 1) {
    SesRequest request = b.request_for(SesOpcode::TaggedSend);
    request.match_bits = tag;
    const auto length = static_cast<std::uint32_t>(payload.size());
    return b.take(part(request, 0, length, length), payload, from);
  }
  // As many short messages as go in, tags from 0 on; their number.
  std::uint64_t fill() {
    std::uint64_t tag = 0;
    while (tag < kMemory && !take_tagged(tag, pattern(8, static_cast<unsigned>(tag))).nack) ++tag;
    return tag;
  }
  void receive_all(std::uint64_t count) {
    Bytes memory(kMtu);
    for (std::uint64_t tag = 0; tag < count; ++tag) {
      ASSERT_TRUE(b.receive({slice_of(memory)}, tag));
    }
  }
};

// A million messages of 8 bytes from one host for 256 MiB, of which one host has 3/4.
TEST_F(UnexpectedTest, MillionShortMessagesFit256Mebibytes) {
  const std::uint64_t count = fill();
  EXPECT_GE(count, kMemory * 1'000'000 / (256 << 20));
  EXPECT_LE(b.ses.unexpected_bytes(), kMemory / 4 * 3);
  EXPECT_LE(b.ses.unexpected_bytes(), count * 200);
  for (std::uint64_t tag = count; tag-- > 0;) {
    Bytes memory(8);
    ASSERT_TRUE(b.receive({slice_of(memory)}, tag));
    ASSERT_EQ(memory, pattern(8, static_cast<unsigned>(tag)));
  }
  EXPECT_EQ(b.sink.all.size(), count);
  EXPECT_EQ(b.ses.unexpected_bytes(), 0u);
  expect_idle();
}

TEST_F(UnexpectedTest, MessageIsChargedAllThatItTakes) {
  std::size_t last = 0;
  std::uint64_t tag = 0;
  for (const std::uint32_t length : {0u, 1u, 8u, 9u, 64u, 65u, 256u, 257u, kMtu}) {
    const std::size_t before = b.ses.unexpected_bytes();
    ASSERT_FALSE(take_tagged(tag++, pattern(length)).nack.has_value());
    const std::size_t charged = b.ses.unexpected_bytes() - before;
    EXPECT_GE(charged, sizeof(SingleMessage) + length + MatchQueue::kIndexBytes);
    EXPECT_GE(charged, last) << length;
    last = charged;
  }
  EXPECT_GE(last, sizeof(SingleMessage) + MatchQueue::kIndexBytes + sizeof(Piece) + kMtu);
  EXPECT_EQ(b.buffers.in_use(), 2u);
  tag = 0;
  for (const std::uint32_t length : {0u, 1u, 8u, 9u, 64u, 65u, 256u, 257u, kMtu}) {
    Bytes memory(length);
    ASSERT_TRUE(b.receive({slice_of(memory)}, tag++));
    EXPECT_EQ(memory, pattern(length));
  }
  EXPECT_EQ(b.ses.unexpected_bytes(), 0u);
  expect_idle();
}

// Neither the state nor the description of a piece is free.
TEST_F(UnexpectedTest, MessageOfSeveralPacketsIsChargedForAll) {
  const Bytes message = pattern(2 * kMtu + 1);
  const SesRequest request = b.request_for(SesOpcode::Send);
  take_part(request, message, kMtu, kMtu);
  const std::size_t charged = b.ses.unexpected_bytes();
  EXPECT_EQ(charged, sizeof(RxMessage) + MatchQueue::kIndexBytes + 3 * sizeof(Piece) + 2 * kMtu +
                         PieceStore::kSmallBytes);
  take_part(request, message, 0, kMtu);
  take_part(request, message, 2 * kMtu, 1);
  EXPECT_EQ(b.ses.unexpected_bytes(), charged);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  EXPECT_EQ(memory, message);
  EXPECT_EQ(b.ses.unexpected_bytes(), 0u);
  expect_idle();
}

TEST_F(UnexpectedTest, DeferredMessageIsChargedItsStateAlone) {
  Parameters with = parameters();
  with.deferrable = true;
  Node target(3, with);
  const SesRequest request = target.request_for(SesOpcode::DeferrableSend);
  target.take(part(request, 0, kMtu, 8 * kMtu), pattern(kMtu));
  EXPECT_EQ(target.ses.unexpected_bytes(), sizeof(RxMessage) + MatchQueue::kIndexBytes);
}

// Of messages of one packet and of several.
TEST_F(UnexpectedTest, BuffersOfAHostAreItsAgainAfterUse) {
  for (const std::uint32_t packets : {1u, 2u}) {
    Node tight(3, parameters(), small_config(), 8);
    SesRequest request = tight.request_for(SesOpcode::Send);
    const auto take_all = [&] {
      std::size_t taken = 0;
      for (bool refused = false; !refused; taken += refused ? 0 : 1) {
        request.message_id = MsgId{static_cast<std::uint16_t>(taken + 1)};
        refused =
            tight.take(part(request, 0, kMtu, packets * kMtu), pattern(kMtu)).nack.has_value();
      }
      return taken;
    };
    const std::size_t taken = take_all();
    EXPECT_EQ(taken, 6u);
    Bytes memory(packets * kMtu);
    for (std::size_t i = 0; i < taken; ++i) ASSERT_TRUE(tight.receive({slice_of(memory)}));
    tight.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
    EXPECT_EQ(take_all(), taken);
  }
}

// A message whose first packet is kept is kept to its end, even if the memory fills up meanwhile.
TEST_F(UnexpectedTest, BegunMessageIsKeptWholeInFullMemory) {
  const Bytes message = pattern(4 * kMtu);
  SesRequest request = b.request_for(SesOpcode::Send);
  EXPECT_EQ(code_of(take_part(request, message, 0, kMtu)), ReturnCode::Ok);
  const std::uint64_t count = fill();
  for (std::uint32_t i = 1; i < 4; ++i) {
    EXPECT_FALSE(take_part(request, message, i * kMtu, kMtu).nack.has_value()) << i;
  }
  request.message_id = MsgId{10};
  EXPECT_TRUE(take_part(request, message, 0, kMtu).nack.has_value()) << "no memory to begin";
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  EXPECT_EQ(memory, message);
  ASSERT_EQ(b.sink.all.size(), 1u);
  receive_all(count);
  expect_idle();
}

TEST_F(UnexpectedTest, PostedReceivesAreFilledInFullMemory) {
  const std::uint64_t count = fill();
  const Bytes message = pattern(3 * kMtu);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}, kMemory));
  SesRequest request = b.request_for(SesOpcode::TaggedSend);
  request.match_bits = kMemory;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(code_of(take_part(request, message, i * kMtu, kMtu)), ReturnCode::Ok);
  }
  EXPECT_EQ(memory, message);
  EXPECT_EQ(b.sink.all.size(), 1u);
  EXPECT_TRUE(take_tagged(kMemory, pattern(8)).nack.has_value()) << "the memory is full still";
  receive_all(count);
  expect_idle();
}

// A receive takes over a message of which nothing more could be kept.
TEST_F(UnexpectedTest, MessageLongerThanAllMemoryBegins) {
  const Bytes message = pattern(2 * kMemory);
  SesRequest request = b.request_for(SesOpcode::TaggedSend);
  request.match_bits = kMemory;
  std::uint32_t next = 0;
  while (next < message.size() && !take_part(request, message, next, kMtu).nack) next += kMtu;
  EXPECT_GT(next, 0u);
  EXPECT_LT(next, message.size());
  PeekOp peek;
  peek.tagged = true;
  peek.tag = kMemory;
  ASSERT_TRUE(b.ses.peek(*b.context, peek, kNow));
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].length, message.size());
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}, kMemory));
  for (; next < message.size(); next += kMtu) take_part(request, message, next, kMtu);
  EXPECT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(memory, message);
  expect_idle();
}

// One host has three quarters of one endpoint's memory in all endpoints together, unless told.
TEST_F(UnexpectedTest, ShareOfAHostFollowsTheMemoryOfAnEndpoint) {
  const std::uint64_t count = fill();
  ContextConfig config = small_config();
  config.resource_index = ResourceIndex{20};
  Context* other = b.ses.open_context(config, b.sink).value();
  b.ses.enable(*other);
  SesRequest request = part(b.request_for(SesOpcode::TaggedSend), 0, 8, 8);
  request.resource_index = ResourceIndex{20};
  EXPECT_TRUE(b.take(request, pattern(8), 1).nack.has_value());
  EXPECT_FALSE(b.take(request, pattern(8), 7).nack.has_value()) << "another host";
  b.ses.close_context(*other, kNow);
  receive_all(count);
  expect_idle();
}

}  // namespace
}  // namespace uet::ses::test
