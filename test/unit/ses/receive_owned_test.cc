// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages whose receives are matched by a ReceiveOwner.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

struct Owner final : ReceiveOwner {
  Found find(const Arrival& arrival, ReceiveOp& op, void*& token) noexcept override {
    asked.push_back(arrival);
    if (answer == Found::Receive) op = receive;
    if (answer == Found::Nothing) token = &tokens[asked.size() - 1];
    return answer;
  }
  void kept(void* token, Envelope& message) noexcept override {
    keeps.emplace_back(token, &message);
  }
  void refused(void* token) noexcept override { refusals.push_back(token); }
  void lost(void* token) noexcept override { losses.push_back(token); }
  void vanished(void* operation) noexcept override { vanishings.push_back(operation); }

  Found answer = Found::Nothing;
  ReceiveOp receive;
  std::vector<Arrival> asked;
  std::array<char, 100> tokens{};
  std::vector<std::pair<void*, Envelope*>> keeps;
  std::vector<void*> refusals;
  std::vector<void*> losses;
  std::vector<void*> vanishings;
};

// Node b's context takes its receives from the owner.
class OwnedReceiveTest : public TwoNodes {
 protected:
  static constexpr std::size_t kReceives = 4;

  OwnedReceiveTest() : queue(*b.ses.open_receive_queue(kReceives, true, queue_sink, &owner)) {
    ContextConfig config = small_config();
    config.resource_index = ResourceIndex{20};
    config.shared = &queue;
    context = b.ses.open_context(config, sink).value();
    b.ses.enable(*context);
  }
  ~OwnedReceiveTest() override {
    if (context != nullptr) b.ses.close_context(*context, kNow);
    b.ses.close_receive_queue(queue);
  }
  SesRequest request(int id = 30) const {
    SesRequest request = b.request_for(SesOpcode::TaggedSend);
    request.resource_index = ResourceIndex{20};
    request.message_id = MsgId{static_cast<std::uint16_t>(id)};
    request.match_bits = 0x7A6;
    return request;
  }
  pds::Response take(const Bytes& message, int id = 30) {
    return take_part(request(id), message, 0, message.size());
  }
  // The next message goes to `memory`.
  void give(Bytes& memory) {
    slice = slice_of(memory);
    owner.receive.local = {&slice, 1};
    owner.receive.tagged = true;
    owner.receive.context = &operation;
    owner.answer = ReceiveOwner::Found::Receive;
  }
  void close() {
    b.ses.close_context(*context, kNow);
    context = nullptr;
  }

  Owner owner;
  Sink queue_sink;
  Sink sink;
  ReceiveQueue& queue;
  Context* context;
  IoSlice slice;
  int operation = 0;
};

TEST_F(OwnedReceiveTest, OwnerIsToldWhatTheMessageIsMatchedBy) {
  take(pattern(100));
  ASSERT_EQ(owner.asked.size(), 1u);
  EXPECT_TRUE(owner.asked[0].tagged);
  EXPECT_EQ(owner.asked[0].tag, 0x7A6u);
  EXPECT_EQ(owner.asked[0].length, 100u);
  EXPECT_EQ(owner.asked[0].source, address_of(1));
  EXPECT_EQ(owner.asked[0].initiator, InitiatorId{5});
}

TEST_F(OwnedReceiveTest, MessageGoesToTheReceiveThatTheOwnerHasForIt) {
  const Bytes message = pattern(2 * kMtu);
  Bytes memory(message.size());
  give(memory);
  take_part(request(), message, kMtu, kMtu);
  take_part(request(), message, 0, kMtu);
  EXPECT_EQ(owner.asked.size(), 1u);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].kind, Kind::TaggedReceive);
  EXPECT_EQ(sink.all[0].status, Status::Ok);
  EXPECT_EQ(sink.all[0].context, &operation);
  EXPECT_EQ(sink.all[0].length, message.size());
  EXPECT_EQ(sink.receive_room, 999u);
  EXPECT_EQ(memory, message);
  EXPECT_TRUE(owner.keeps.empty());
  expect_idle();
}

TEST_F(OwnedReceiveTest, ShortBufferTruncates) {
  Bytes memory(60);
  give(memory);
  take(pattern(100));
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].status, Status::Truncated);
  EXPECT_EQ(sink.all[0].excess, 40u);
}

TEST_F(OwnedReceiveTest, MessageWithoutReceiveIsKeptUntilThereIsOne) {
  const Bytes message = pattern(2 * kMtu);
  Bytes memory(message.size());
  take_part(request(), message, 0, kMtu);
  ASSERT_EQ(owner.keeps.size(), 1u);
  EXPECT_EQ(owner.keeps[0].first, &owner.tokens[0]);
  EXPECT_EQ(sink.receive_room, 1000u);
  give(memory);
  ASSERT_TRUE(b.ses.receive_kept(*owner.keeps[0].second, owner.receive, kNow));
  EXPECT_TRUE(sink.all.empty());
  take_part(request(), message, kMtu, kMtu);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].context, &operation);
  EXPECT_EQ(memory, message);
  EXPECT_EQ(owner.asked.size(), 1u);
  EXPECT_TRUE(owner.losses.empty());
  expect_idle();
}

TEST_F(OwnedReceiveTest, EachKeptMessageIsTakenByItself) {
  Bytes memory(100);
  for (int i = 0; i < 3; ++i) take(pattern(100, static_cast<unsigned>(i)), 30 + i);
  ASSERT_EQ(owner.keeps.size(), 3u);
  give(memory);
  for (const int i : {1, 2, 0}) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_TRUE(b.ses.receive_kept(*owner.keeps[at].second, owner.receive, kNow));
    EXPECT_EQ(memory, pattern(100, static_cast<unsigned>(i)));
  }
  expect_idle();
}

TEST_F(OwnedReceiveTest, DiscardedMessageIsDroppedToItsEnd) {
  const Bytes message = pattern(2 * kMtu);
  take_part(request(), message, 0, kMtu);
  ASSERT_EQ(owner.keeps.size(), 1u);
  b.ses.discard_kept(*owner.keeps[0].second, kNow);
  EXPECT_EQ(code_of(take_part(request(), message, kMtu, kMtu)), ReturnCode::Ok);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_TRUE(owner.losses.empty());
  expect_idle();
}

TEST_F(OwnedReceiveTest, MessageComesAgainIfTheOwnerAnswersNotNow) {
  owner.answer = ReceiveOwner::Found::NotNow;
  EXPECT_EQ(take(pattern(100)).nack, pds::NackCode::NoResource);
  EXPECT_EQ(sink.receive_room, 1000u);
  EXPECT_TRUE(owner.refusals.empty());
  Bytes memory(100);
  give(memory);
  EXPECT_FALSE(take(pattern(100)).nack.has_value());
  EXPECT_EQ(sink.all.size(), 1u);
  expect_idle();
}

TEST_F(OwnedReceiveTest, OwnerIsNotAskedForAReceiveThatCouldNotBeTaken) {
  Bytes memory(2 * kMtu);
  give(memory);
  for (std::size_t i = 0; i < kReceives; ++i) {
    take_part(request(static_cast<int>(30 + i)), pattern(2 * kMtu), 0, kMtu);
  }
  EXPECT_EQ(owner.asked.size(), kReceives);
  EXPECT_EQ(take(pattern(100), 40).nack, pds::NackCode::NoSesMsgAvail);
  sink.receive_room = 0;
  for (std::size_t i = 0; i < kReceives; ++i) {
    take_part(request(static_cast<int>(30 + i)), pattern(2 * kMtu), kMtu, kMtu);
  }
  EXPECT_EQ(take(pattern(100), 40).nack, pds::NackCode::NoResource);
  EXPECT_EQ(owner.asked.size(), kReceives);
}

TEST_F(OwnedReceiveTest, MessageThatCannotBeKeptIsReportedAsRefused) {
  int id = 0;
  while (owner.refusals.empty() && id < 70) take(pattern(kMtu), ++id);
  ASSERT_EQ(owner.refusals.size(), 1u);
  EXPECT_EQ(owner.keeps.size() + 1, owner.asked.size());
  EXPECT_EQ(owner.refusals[0], &owner.tokens[owner.asked.size() - 1]);
  for (const auto& [token, message] : owner.keeps) b.ses.discard_kept(*message, kNow);
  expect_idle();
}

TEST_F(OwnedReceiveTest, Ses122_OwnerLosesAKeptMessageWhoseSenderDies) {
  take_part(request(), pattern(2 * kMtu), 0, kMtu);
  b.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  ASSERT_EQ(owner.losses.size(), 1u);
  EXPECT_EQ(owner.losses[0], &owner.tokens[0]);
  EXPECT_TRUE(sink.all.empty());
}

TEST_F(OwnedReceiveTest, Ses113_ReceiveOfAnAbandonedMessageEnds) {
  Bytes memory(10);
  give(memory);
  take_part(request(), pattern(3 * kMtu), kMtu, kMtu);  // beyond the buffer: nothing placed
  SesRequest end = request();
  end.opcode = SesOpcode::MsgError;
  end.match_bits = 0;
  b.take(part(end, kMtu, 0, 3 * kMtu));
  EXPECT_EQ(sink.all.size(), 0u);
  EXPECT_EQ(owner.keeps.size(), 0u);
  ASSERT_EQ(queue_sink.all.size(), 1u);
  EXPECT_EQ(queue_sink.all[0].kind, Kind::TaggedReceive);
  EXPECT_EQ(queue_sink.all[0].status, Status::Abandoned);
  EXPECT_EQ(queue_sink.all[0].context, &operation);
  EXPECT_EQ(sink.receive_room, 1000u);
  expect_idle();
}

TEST_F(OwnedReceiveTest, ClosedContextDropsKeptMessagesAndReceives) {
  take_part(request(30), pattern(2 * kMtu), 0, kMtu);
  Bytes memory(2 * kMtu);
  give(memory);
  take_part(request(31), pattern(2 * kMtu), 0, kMtu);
  close();
  ASSERT_EQ(owner.losses.size(), 1u);
  EXPECT_EQ(owner.losses[0], &owner.tokens[0]);
  ASSERT_EQ(owner.vanishings.size(), 1u);
  EXPECT_EQ(owner.vanishings[0], &operation);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_TRUE(queue_sink.all.empty());
  EXPECT_EQ(sink.receive_room, 1000u);
}

}  // namespace
}  // namespace uet::ses::test
