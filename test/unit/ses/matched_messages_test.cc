// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes of messages with a receive: in place, in any order, wherever they were before.
#include "ses/matched_messages.h"

#include "unit/ses/receiver_harness.h"

namespace uet::ses::test {
namespace {

class MatchedMessagesTest : public ReceiverTest {
 protected:
  static constexpr std::uint32_t kLength = 2 * kMtu;

  SesRequest half(int which) const {
    const std::uint32_t offset = which == 0 ? 0 : kMtu;
    return packet_of(7, kLength, offset, std::span(bytes).subspan(offset, kMtu));
  }

  const Bytes bytes = pattern(kLength);
  Bytes place = Bytes(kLength);
};

TEST_F(MatchedMessagesTest, Ses29_CompletesWithItsLastPacketInAnyOrder) {
  RxMessage& message = open(half(1));
  matched.bind(message, receive(place, this));
  EXPECT_EQ(message.state, RxState::Matched);
  matched.place(half(1), message);
  EXPECT_TRUE(sink.all.empty());
  matched.place(half(0), message);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].context, this);
  EXPECT_EQ(sink.all[0].length, kLength);
  EXPECT_EQ(place, bytes);
  EXPECT_EQ(counters.messages_received, 1u);
  EXPECT_EQ(messages.in_use(), 0u);
}

TEST_F(MatchedMessagesTest, KeptMessageOfOnePacketCompletesAtOnce) {
  unexpected.accept(view, packet_of(7, 100, 0, std::span(bytes).first(100)), context, kNow);
  EXPECT_FALSE(matched.take(context.receives.untagged.unexpected.front(), receive(place)));
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 100, place.begin()));
}

TEST_F(MatchedMessagesTest, KeptPartIsCopiedAndTheRestPlaced) {
  unexpected.accept(view, half(0), context, kNow);
  auto& message = static_cast<RxMessage&>(context.receives.untagged.unexpected.front());
  EXPECT_FALSE(matched.take(message, receive(place)));
  EXPECT_EQ(message.placed, kMtu);
  EXPECT_EQ(memory.bytes(), 0u) << "it is unexpected no more";
  matched.place(half(1), message);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(place, bytes);
}

TEST_F(MatchedMessagesTest, MultiReceiveTakesAnother) {
  PostedReceive& buffer = receive(place, this, 1, true);
  context.receives.untagged.put(buffer);
  const auto pass = [&](std::uint32_t length) {
    unexpected.accept(view, packet_of(7, length, 0, std::span(bytes).first(length)), context, kNow);
    return matched.take(context.receives.untagged.unexpected.front(), buffer);
  };
  EXPECT_TRUE(pass(kMtu));
  EXPECT_TRUE(pass(kMtu - 1));
  EXPECT_FALSE(pass(1)) << "the buffer is full";
  EXPECT_TRUE(sink.all.back().released);
}

TEST_F(MatchedMessagesTest, MessageThatMustBeReadCompletesLater) {
  RxMessage& message = open(half(0));
  message.expected = message.read_from = kMtu;
  rendezvous.begin(message);
  matched.bind(message, receive(place));
  matched.place(half(0), message);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_EQ(&queue.waiting().front(), &message);
  rendezvous.stop(message);
  message.placed = kLength;
  matched.complete(message);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].length, kLength);
}

TEST_F(MatchedMessagesTest, Ses35_FailureIsReportedAndRemembered) {
  RxMessage& message = open(half(0));
  matched.bind(message, receive(place));
  matched.place(half(0), message);
  matched.fail(message, ReturnCode::Dropped, Status::PeerLost);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].status, Status::PeerLost);
  EXPECT_EQ(counters.messages_received, 0u);
  ASSERT_EQ(messages.find(kPdc, MsgId{7}), &message);
  EXPECT_EQ(message.return_code, ReturnCode::Dropped);
  messages.release(message);
}

}  // namespace
}  // namespace uet::ses::test
