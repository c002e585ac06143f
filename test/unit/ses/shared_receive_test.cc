// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One queue of receives for several contexts.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

// Node b's own context, and two (10 + n) that share a queue.
class SharedReceiveTest : public TwoNodes {
 protected:
  SharedReceiveTest() : queue(*b.ses.open_receive_queue(4, true, queue_sink)) {
    for (int i = 0; i < 2; ++i) {
      ContextConfig config = small_config();
      config.resource_index = index(i);
      config.shared = &queue;
      contexts[i] = b.ses.open_context(config, sinks[i]).value();
      b.ses.enable(*contexts[i]);
    }
  }
  static ResourceIndex index(int i) { return ResourceIndex{static_cast<std::uint16_t>(20 + i)}; }
  pds::Response take(int to, const Bytes& message) {
    SesRequest request = b.request_for(SesOpcode::Send);
    request.resource_index = index(to);
    return take_part(request, message, 0, message.size());
  }
  pds::Response take_half(int to, const Bytes& message, int half) {
    SesRequest request = b.request_for(SesOpcode::Send);
    request.message_id = MsgId{static_cast<std::uint16_t>(30 + to)};
    request.resource_index = index(to);
    return take_part(request, message, half * kMtu, kMtu);
  }
  Result<void> post(Bytes& memory, bool multi = false, void* operation = nullptr) {
    const IoSlice slice = slice_of(memory);
    ReceiveOp op;
    op.local = {&slice, 1};
    op.multi = multi;
    op.context = operation;
    return b.ses.receive(queue, op, kNow);
  }

  Sink queue_sink;
  Sink sinks[2];
  ReceiveQueue& queue;
  Context* contexts[2];
  int operation = 0;
};

TEST_F(SharedReceiveTest, AnyContext_TakesOldestReceiveEndsAtItsOwn) {
  Bytes first(100);
  Bytes second(100);
  ASSERT_TRUE(post(first));
  ASSERT_TRUE(post(second));
  take(1, pattern(100, 1));
  take(0, pattern(100, 2));
  EXPECT_EQ(first, pattern(100, 1));
  EXPECT_EQ(second, pattern(100, 2));
  EXPECT_EQ(sinks[1].all.size(), 1u);
  EXPECT_EQ(sinks[0].all.size(), 1u);
  EXPECT_EQ(sinks[0].receive_room, 999u);
  EXPECT_TRUE(queue_sink.all.empty());
  expect_idle();
}

TEST_F(SharedReceiveTest, ContextWithAQueueOfItsOwnDoesNotUseIt) {
  Bytes memory(100);
  ASSERT_TRUE(post(memory));
  b.take(b.request_for(SesOpcode::Send));
  EXPECT_TRUE(b.sink.all.empty());
}

TEST_F(SharedReceiveTest, Ses51_AcrossContexts_UnexpectedInOrder) {
  take(0, pattern(100, 1));
  take(1, pattern(100, 2));
  Bytes memory(100);
  ASSERT_TRUE(post(memory));
  EXPECT_EQ(memory, pattern(100, 1));
  EXPECT_EQ(sinks[0].all.size(), 1u);
  ASSERT_TRUE(post(memory));
  EXPECT_EQ(memory, pattern(100, 2));
  EXPECT_EQ(sinks[1].all.size(), 1u);
}

TEST_F(SharedReceiveTest, FullQueueOfOneContextRefusesItsMessagesOnly) {
  Bytes memory(100);
  ASSERT_TRUE(post(memory));
  sinks[0].receive_room = 0;
  EXPECT_EQ(take(0, pattern(100)).nack, pds::NackCode::NoResource);
  EXPECT_FALSE(take(1, pattern(100)).nack.has_value());
  EXPECT_EQ(sinks[1].all.size(), 1u);
}

TEST_F(SharedReceiveTest, UnexpectedMessageWithoutAnEntryIsNotOvertaken) {
  take(0, pattern(100, 1));
  sinks[0].receive_room = 0;
  Bytes memory(100);
  ASSERT_TRUE(post(memory));
  EXPECT_EQ(take(1, pattern(100, 2)).nack, pds::NackCode::NoResource);
  sinks[0].receive_room = 1;
  b.ses.progress(kNow);
  EXPECT_EQ(sinks[0].all.size(), 1u);
  EXPECT_EQ(memory, pattern(100, 1));
}

TEST_F(SharedReceiveTest, QueueTakesAsManyReceivesAsItWasOpenedFor) {
  Bytes memory(100);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(post(memory));
  EXPECT_EQ(post(memory).error(), Error::Again);
}

TEST_F(SharedReceiveTest, CancelAndPeekAreToldToTheQueue) {
  Bytes memory(100);
  ASSERT_TRUE(post(memory, false, &operation));
  queue_sink.receive_room = 0;
  EXPECT_EQ(b.ses.cancel(queue, &operation, kNow).error(), Error::Again);
  EXPECT_EQ(b.ses.peek(queue, {}, kNow).error(), Error::Again);
  queue_sink.receive_room = 2;
  ASSERT_TRUE(b.ses.cancel(queue, &operation, kNow));
  ASSERT_TRUE(b.ses.peek(queue, {}, kNow));
  ASSERT_EQ(queue_sink.all.size(), 2u);
  EXPECT_EQ(queue_sink.all[0].status, Status::Cancelled);
  EXPECT_EQ(queue_sink.all[1].status, Status::NoMessage);
}

TEST_F(SharedReceiveTest, MultiReceiveIsGivenBackThroughTheQueue) {
  Bytes memory(200);
  ASSERT_TRUE(post(memory, true, &operation));
  EXPECT_EQ(queue_sink.receive_room, 999u);
  take(0, pattern(100, 1));
  take(1, pattern(100, 2));
  EXPECT_EQ(sinks[0].all.size(), 1u);
  ASSERT_EQ(sinks[1].all.size(), 1u);
  EXPECT_FALSE(sinks[1].all[0].released);
  ASSERT_EQ(queue_sink.all.size(), 1u);
  EXPECT_TRUE(queue_sink.all[0].released);
  EXPECT_EQ(queue_sink.all[0].context, &operation);
}

TEST_F(SharedReceiveTest, BytesOfAMessageOfAClosedContextAreReused) {
  Bytes memory(3 * kMtu);
  ASSERT_TRUE(post(memory, true));
  take(1, pattern(100, 1));
  take_half(0, pattern(2 * kMtu), 0);
  b.ses.close_context(*contexts[0], kNow);
  take(1, pattern(100, 2));
  ASSERT_EQ(sinks[1].all.size(), 2u);
  EXPECT_EQ(sinks[1].all[1].buffer, memory.data() + 100);
  EXPECT_EQ(sinks[0].receive_room, 1000u);
}

TEST_F(SharedReceiveTest, BoundReceiveOfClosedContext_WaitsAgain) {
  const Bytes message = pattern(2 * kMtu, 1);
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(post(memory, false, &operation));
  take(0, pattern(100));  // completes, and again:
  ASSERT_TRUE(post(memory, false, &operation));
  take_half(0, message, 0);
  take_half(1, message, 0);  // unexpected
  b.ses.close_context(*contexts[0], kNow);
  ASSERT_EQ(sinks[0].all.size(), 1u);
  EXPECT_EQ(sinks[0].receive_room, 999u);
  take_half(1, message, 1);
  ASSERT_EQ(sinks[1].all.size(), 1u);
  EXPECT_EQ(memory, message);
}

TEST_F(SharedReceiveTest, ClosedQueueDropsItsReceives) {
  Bytes memory(100);
  ASSERT_TRUE(post(memory));
  ASSERT_TRUE(post(memory, true));
  take(0, pattern(100));
  take_half(1, pattern(2 * kMtu), 0);
  for (Context* context : contexts) b.ses.close_context(*context, kNow);
  b.ses.close_receive_queue(queue);
  expect_idle();
}

}  // namespace
}  // namespace uet::ses::test
