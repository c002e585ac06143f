// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages without a receive: which are kept, read later or refused.
#include "ses/unexpected_messages.h"

#include "unit/ses/receiver_harness.h"

namespace uet::ses::test {
namespace {

Parameters no_match_parameters() {
  Parameters parameters = small_parameters();
  parameters.no_match = true;
  parameters.unexpected_bytes_per_context = 8 * kMtu;
  parameters.eager_bytes = kMtu;
  return parameters;
}

class UnexpectedMessagesTest : public ReceiverTest {
 protected:
  UnexpectedMessagesTest() : ReceiverTest(no_match_parameters()) {}

  pds::Response accept(std::uint16_t id, std::uint32_t length) {
    const std::uint32_t first = std::min(length, kMtu);
    return unexpected.accept(view, packet_of(id, length, 0, std::span(bytes).first(first)), context,
                             kNow);
  }
  Envelope& youngest() { return context.receives.untagged.unexpected.back(); }
  bool none_waits() { return context.receives.untagged.unexpected.empty(); }

  const Bytes bytes = pattern(16 * kMtu);
};

TEST_F(UnexpectedMessagesTest, Ses45_WholeMessageIsKeptAndReported) {
  const wire::SesResponseHeader header = header_of(accept(7, 100));
  EXPECT_EQ(header.list, wire::List::Overflow);
  EXPECT_EQ(header.modified_length, 100u);
  ASSERT_FALSE(none_waits());
  EXPECT_TRUE(youngest().single);
  EXPECT_EQ(counters.unexpected_messages, 1u);
  unexpected.discard(youngest());
  EXPECT_TRUE(none_waits());
}

TEST_F(UnexpectedMessagesTest, Ses46_DeliveryIsAnsweredWhenTheMessageIsGone) {
  SesRequest request = packet_of(7, 100, 0, std::span(bytes).first(100));
  request.dc = true;
  unexpected.accept(view, request, context, kNow);
  EXPECT_TRUE(youngest().answer_owed);
  unexpected.discard(youngest());
  ASSERT_EQ(delivery.answers.size(), 1u);
  EXPECT_EQ(header_of(delivery.answers[0].response).return_code, ReturnCode::Ok);
}

TEST_F(UnexpectedMessagesTest, PacketsOfALongerMessageAreKept) {
  accept(7, 2 * kMtu);
  auto& message = static_cast<RxMessage&>(youngest());
  EXPECT_FALSE(message.complete());
  unexpected.place(view, packet_of(7, 2 * kMtu, kMtu, std::span(bytes).subspan(kMtu, kMtu)),
                   message);
  EXPECT_TRUE(message.complete());
  EXPECT_EQ(pieces.in_use(), 2u);
  EXPECT_EQ(messages.find(kPdc, MsgId{7}), nullptr) << "it only waits for a receive";
  unexpected.discard(message);
}

TEST_F(UnexpectedMessagesTest, Ses57_ReadableMessageIsReadLater) {
  const std::uint32_t length = 2 * kMtu;
  SesRequest request = packet_of(7, length, 0, std::span(bytes).first(kMtu));
  RxMessage& message = open(request, RxState::Unexpected);
  message.readable = true;
  ASSERT_TRUE(memory.admit(message, false));
  context.receives.untagged.add(message);
  EXPECT_EQ(code_of(unexpected.place(view, request, message)), ReturnCode::Ok);
  EXPECT_TRUE(rendezvous.eager().empty()) << "eager_bytes are kept";
  const SesRequest last = packet_of(7, length, kMtu, std::span(bytes).subspan(kMtu, kMtu));
  const wire::SesResponseHeader header = header_of(unexpected.place(view, last, message));
  EXPECT_EQ(header.list, wire::List::Overflow);
  EXPECT_EQ(header.modified_length, 0u) << "the target will read it";
  EXPECT_EQ(message.read_from, kMtu);
  EXPECT_EQ(&rendezvous.eager().front(), &message);
  rendezvous.stop(message);
  unexpected.discard(message);
}

TEST_F(UnexpectedMessagesTest, Ses52_FullMemoryDisablesTheGenerationOnRod) {
  view.mode = DeliveryMode::Rod;
  std::uint16_t id = 0;
  pds::Response response;
  while (code_of(response = accept(++id, kMtu)) == ReturnCode::Ok) ASSERT_LT(id, 100);
  EXPECT_EQ(code_of(response), ReturnCode::NoMatch);
  EXPECT_FALSE(context.generation.enabled);
  EXPECT_EQ(counters.no_match_answered, 1u);
  const std::uint8_t old = context.generation.value.value;
  UnexpectedMessages::enable_generations(context.receives);
  EXPECT_TRUE(context.generation.enabled);
  EXPECT_EQ(context.generation.value.value, old + 1);
  while (!none_waits()) unexpected.discard(youngest());
}

TEST_F(UnexpectedMessagesTest, RefusedMessageLeavesNothingBehind) {
  view.mode = DeliveryMode::Uud;  // is never told NO_MATCH
  std::uint16_t id = 0;
  while (!accept(++id, kMtu).nack) ASSERT_LT(id, 100);
  EXPECT_EQ(counters.unexpected_refused, 1u);
  const std::size_t bytes_before = memory.bytes();
  EXPECT_TRUE(accept(99, 4 * kMtu).nack.has_value());
  EXPECT_EQ(memory.bytes(), bytes_before);
  EXPECT_EQ(messages.in_use(), 0u);
  while (!none_waits()) unexpected.discard(youngest());
}

TEST_F(UnexpectedMessagesTest, ClosedContextForgetsItsMessages) {
  accept(7, 100);
  accept(8, 2 * kMtu);
  Context other(small_config(), sink);
  unexpected.close_context(other);
  EXPECT_FALSE(none_waits());
  unexpected.close_context(context);
  EXPECT_TRUE(none_waits());
  EXPECT_EQ(messages.in_use(), 0u) << "its later packets are refused";
}

// Its sender fails with the next packet, so that no read need inform it.
TEST_F(UnexpectedMessagesTest, ContextCloses_IncompleteMessageIsNotRead) {
  RxMessage& message = open(request_of(7, 2 * kMtu), RxState::Unexpected);
  message.readable = true;
  ASSERT_TRUE(memory.admit(message, false));
  context.receives.untagged.add(message);
  rendezvous.begin(message);
  unexpected.close_context(context);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(messages.in_use(), 0u);
}

}  // namespace
}  // namespace uet::ses::test
