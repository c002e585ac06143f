// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receives alone: descriptors, the messages bound to them, and what their ends report.
#include "ses/posted_receives.h"

#include "ses/unexpected.h"
#include "unit/ses/receiver_harness.h"

namespace uet::ses::test {
namespace {

class PostedReceivesTest : public ReceiverTest {
 protected:
  // Binds a message of so many bytes to the receive, and ends it with `placed` bytes.
  ReceiveEnd pass(PostedReceive& receive, std::uint32_t length, Status status = Status::Ok) {
    SingleMessage message;
    message.context = &context;
    message.request_length = length;
    Placement placement;
    receives.bind(message, placement, receive);
    placement.placed = std::min<std::uint64_t>(length, receive.capacity - placement.base);
    return receives.end(message, placement, status);
  }

  Bytes place = Bytes(100);
  int operation = 0;
};

TEST_F(PostedReceivesTest, FullQueueAndBadSlicesAreRefused) {
  const IoSlice slice = slice_of(place);
  ReceiveOp op;
  op.local = {&slice, 1};
  ReceiveQueue queue(1, false, false, sink);
  ASSERT_TRUE(receives.may_open(queue));
  PostedReceive& only = *receives.open(queue, op).value();
  EXPECT_FALSE(receives.may_open(queue));
  EXPECT_EQ(receives.open(queue, op).error(), Error::Again);
  receives.release(only);
  const IoSlice nowhere(nullptr, 1);
  op.local = {&nowhere, 1};
  EXPECT_EQ(receives.open(queue, op).error(), Error::Invalid);
  EXPECT_EQ(queue.count, 0u);
}

TEST_F(PostedReceivesTest, EndReportsTheOperationAndFreesIt) {
  PostedReceive& posted = receive(place, &operation);
  const ReceiveEnd ended = pass(posted, 60);
  EXPECT_EQ(ended.completion.context, &operation);
  EXPECT_EQ(ended.completion.length, 60u);
  EXPECT_EQ(ended.completion.buffer, place.data());
  EXPECT_EQ(ended.completion.status, Status::Ok);
  EXPECT_EQ(ended.buffer, nullptr);
  EXPECT_EQ(context.receives.count, 0u);
}

TEST_F(PostedReceivesTest, Ses42_LongerMessageIsTruncated) {
  const ReceiveEnd ended = pass(receive(place), 130);
  EXPECT_EQ(ended.completion.status, Status::Truncated);
  EXPECT_EQ(ended.completion.length, 100u);
  EXPECT_EQ(ended.completion.excess, 30u);
  EXPECT_EQ(counters.truncated, 1u);
}

TEST_F(PostedReceivesTest, CancelledReceiveThatFailsIsCancelled) {
  PostedReceive& failed = receive(place);
  failed.cancelled = true;
  EXPECT_EQ(pass(failed, 10, Status::PeerLost).completion.status, Status::Cancelled);
  PostedReceive& succeeded = receive(place);
  succeeded.cancelled = true;
  EXPECT_EQ(pass(succeeded, 10).completion.status, Status::Ok);
}

TEST_F(PostedReceivesTest, MultiReceiveIsReleasedByItsLastMessage) {
  PostedReceive& buffer = receive(place, &operation, 50, true);
  context.receives.untagged.put(buffer);
  const ReceiveEnd first = pass(buffer, 40);
  EXPECT_TRUE(first.completion.multi);
  EXPECT_FALSE(first.completion.released);
  EXPECT_TRUE(buffer.linked()) << "60 bytes are left, at least 50 are needed";
  EXPECT_FALSE(buffer.fits(61));
  const ReceiveEnd second = pass(buffer, 20);
  EXPECT_EQ(second.completion.buffer, place.data() + 40);
  EXPECT_TRUE(second.completion.released);
  EXPECT_EQ(context.receives.count, 0u);
}

TEST_F(PostedReceivesTest, CloseReturnsTheUnusedBuffer) {
  PostedReceive& buffer = receive(place, &operation, 1, true);
  context.receives.untagged.put(buffer);
  receives.close(buffer);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_TRUE(sink.all[0].released);
  EXPECT_FALSE(sink.all[0].multi);
  EXPECT_EQ(sink.all[0].context, &operation);
}

// A failed message does not return the buffer by itself: another completion does.
TEST_F(PostedReceivesTest, FailedLastMessageReportsTheBufferToo) {
  PostedReceive& buffer = receive(place, &operation, 50, true);
  context.receives.untagged.put(buffer);
  const ReceiveEnd ended = pass(buffer, 90, Status::PeerLost);
  ASSERT_EQ(ended.buffer, &buffer);
  receives.report(sink, ended);
  ASSERT_EQ(sink.all.size(), 2u);
  EXPECT_EQ(sink.all[0].status, Status::PeerLost);
  EXPECT_TRUE(sink.all[1].released);
  EXPECT_EQ(sink.all[1].status, Status::Ok);
}

TEST_F(PostedReceivesTest, Ses113_WithdrawnMessageLeavesNoTrace) {
  PostedReceive& buffer = receive(place, &operation, 1, true);
  context.receives.untagged.put(buffer);
  const std::size_t entries = sink.receive_room;
  ASSERT_TRUE(sink.reserve_receive());
  SingleMessage message;
  message.context = &context;
  message.request_length = 30;
  Placement placement;
  receives.bind(message, placement, buffer);
  EXPECT_EQ(buffer.used, 30u);
  EXPECT_EQ(receives.bound(), 1u);
  EXPECT_EQ(&receives.withdraw(message, placement), &buffer);
  EXPECT_EQ(buffer.used, 0u);
  EXPECT_EQ(buffer.under_way, 0u);
  EXPECT_EQ(placement.receive, nullptr);
  EXPECT_EQ(sink.receive_room, entries);
  receives.close(buffer);
}

}  // namespace
}  // namespace uet::ses::test
