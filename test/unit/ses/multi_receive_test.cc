// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multi-receive buffers: the place of each message, the release of the buffer, and the CQ entries
// of the completions.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

class MultiReceiveTest : public TwoNodes {
 protected:
  Result<void> post(Bytes& memory, std::uint64_t min_free, void* operation = nullptr,
                    std::optional<std::uint64_t> tag = {}) {
    const IoSlice slice = slice_of(memory);
    ReceiveOp op;
    op.local = {&slice, 1};
    op.multi = true;
    op.min_free = min_free;
    op.tagged = tag.has_value();
    op.tag = tag.value_or(0);
    op.context = operation;
    return b.ses.receive(*b.context, op, kNow);
  }
  // One packet with a whole message.
  pds::Response take(const Bytes& message, SesOpcode opcode = SesOpcode::Send) {
    return take_part(b.request_for(opcode), message, 0, message.size());
  }
  // The first or second half of a message of two packets.
  pds::Response take_half(const Bytes& message, int half, std::uint16_t id) {
    SesRequest request = b.request_for(SesOpcode::Send);
    request.message_id = MsgId{id};
    return take_part(request, message, half * kMtu, kMtu);
  }
  void expect_message(std::size_t index, const Bytes& memory, std::size_t offset,
                      const Bytes& message) {
    ASSERT_GT(b.sink.all.size(), index);
    const Completion& completion = b.sink.all[index];
    EXPECT_EQ(completion.status, Status::Ok);
    EXPECT_TRUE(completion.multi);
    EXPECT_EQ(completion.length, message.size());
    ASSERT_EQ(completion.buffer, memory.data() + offset);
    EXPECT_TRUE(std::equal(message.begin(), message.end(), memory.begin() + offset));
  }
  std::vector<bool> released() const {
    std::vector<bool> all;
    for (const Completion& completion : b.sink.all) all.push_back(completion.released);
    return all;
  }

  Bytes memory = Bytes(4 * kMtu);
  int first = 0;
  int second = 0;
};

TEST_F(MultiReceiveTest, MessagesFollow_LastReleasesTheBuffer) {
  ASSERT_TRUE(post(memory, kMtu, &first));
  const Bytes one = pattern(100, 1);
  const Bytes two = pattern(kMtu, 2);
  const Bytes three = pattern(kMtu, 3);
  const Bytes four = pattern(kMtu, 4);
  for (const Bytes* message : {&one, &two, &three, &four}) take(*message);
  expect_message(0, memory, 0, one);
  expect_message(1, memory, 100, two);
  expect_message(2, memory, 100 + kMtu, three);
  expect_message(3, memory, 100 + 2 * kMtu, four);
  EXPECT_EQ(released(), (std::vector{false, false, false, true}));
  EXPECT_EQ(b.sink.all[3].context, &first);
  take(one);  // unexpected: the buffer takes nothing more
  EXPECT_EQ(b.sink.all.size(), 4u);
}

TEST_F(MultiReceiveTest, BufferWithExactlyMinFreeBytesIsKept) {
  ASSERT_TRUE(post(memory, kMtu));
  for (unsigned i = 0; i < 4; ++i) take(pattern(kMtu, i));
  EXPECT_EQ(released(), (std::vector{false, false, false, true}));
}

TEST_F(MultiReceiveTest, TooLongForRest_ClosesBufferUsesNext) {
  Bytes next(2 * kMtu);
  ASSERT_TRUE(post(memory, 1, &first));
  ASSERT_TRUE(post(next, 1, &second));
  take(pattern(kMtu, 1));
  take(pattern(kMtu, 2));
  take(pattern(kMtu, 3));
  const Bytes two_packets = pattern(2 * kMtu, 4);
  take_half(two_packets, 0, 7);
  // No message is under way in the first buffer: an entry of its own gives it back.
  ASSERT_EQ(b.sink.all.size(), 4u);
  EXPECT_FALSE(b.sink.all[3].multi);
  EXPECT_TRUE(b.sink.all[3].released);
  EXPECT_EQ(b.sink.all[3].context, &first);
  EXPECT_EQ(b.sink.all[3].length, 0u);
  take(pattern(100, 5));  // must not go where the longer message did not fit
  EXPECT_EQ(b.sink.all.size(), 4u);
  take_half(two_packets, 1, 7);
  expect_message(4, next, 0, two_packets);
  EXPECT_TRUE(b.sink.all[4].released);
}

TEST_F(MultiReceiveTest, LongerThanWholeBuffer_OnlyItIsTruncated) {
  Bytes small(kMtu);
  ASSERT_TRUE(post(small, 100, &first));
  const Bytes message = pattern(2 * kMtu);
  take_half(message, 0, 7);
  take_half(message, 1, 7);
  ASSERT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(b.sink.all[0].status, Status::Truncated);
  EXPECT_EQ(b.sink.all[0].length, kMtu);
  EXPECT_EQ(b.sink.all[0].excess, kMtu);
  EXPECT_FALSE(b.sink.all[0].released);  // an error does not say that the buffer is free
  EXPECT_EQ(b.sink.all[1].status, Status::Ok);
  EXPECT_TRUE(b.sink.all[1].released);
}

TEST_F(MultiReceiveTest, AnyArrivalOrder_LastCompletedReleasesBuffer) {
  ASSERT_TRUE(post(memory, kMtu, &first));
  const Bytes one = pattern(2 * kMtu, 1);
  const Bytes two = pattern(2 * kMtu, 2);
  take_half(one, 1, 7);
  take_half(two, 0, 8);  // takes the rest of the buffer
  take_half(two, 1, 8);
  expect_message(0, memory, 2 * kMtu, two);
  take_half(one, 0, 7);
  expect_message(1, memory, 0, one);
  EXPECT_EQ(released(), (std::vector{false, true}));
  expect_idle();
}

TEST_F(MultiReceiveTest, UnexpectedMessagesFillTheBufferInOrder) {
  const Bytes one = pattern(100, 1);
  const Bytes two = pattern(2 * kMtu, 2);
  const Bytes three = pattern(200, 3);
  take(one);
  take_half(two, 0, 7);
  take(three);
  ASSERT_TRUE(post(memory, kMtu));
  expect_message(0, memory, 0, one);
  expect_message(1, memory, 100 + 2 * kMtu, three);
  take_half(two, 1, 7);
  expect_message(2, memory, 100, two);
  EXPECT_EQ(released(), (std::vector{false, false, false}));
}

TEST_F(MultiReceiveTest, UnexpectedTooLong_WaitsForNextBuffer) {
  Bytes small(kMtu);
  take(pattern(600, 1));
  take(pattern(600, 2));
  take(pattern(100, 3));
  ASSERT_TRUE(post(small, 1, &first));
  EXPECT_EQ(released(), (std::vector{false, true}));
  ASSERT_TRUE(post(memory, 1, &second));
  expect_message(2, memory, 0, pattern(600, 2));
  expect_message(3, memory, 600, pattern(100, 3));
}

TEST_F(MultiReceiveTest, TaggedBuffersTakeTheirTagOnly) {
  ASSERT_TRUE(post(memory, 1, &first, 7));
  SesRequest request = b.request_for(SesOpcode::TaggedSend);
  request.match_bits = 8;
  const Bytes message = pattern(100);
  take_part(request, message, 0, 100);
  EXPECT_TRUE(b.sink.all.empty());
  request.match_bits = 7;
  take_part(request, message, 0, 100);
  expect_message(0, memory, 0, message);
  EXPECT_EQ(b.sink.all[0].kind, Kind::TaggedReceive);
  EXPECT_EQ(b.sink.all[0].tag, 7u);
}

TEST_F(MultiReceiveTest, EmptyMessagesTakeNoBytesOfTheBuffer) {
  Bytes small(100);
  ASSERT_TRUE(post(small, 100));
  take({});
  take({});
  take(pattern(100));
  expect_message(2, small, 0, pattern(100));
  EXPECT_EQ(released(), (std::vector{false, false, true}));
}

TEST_F(MultiReceiveTest, MessageWithoutACompletionEntryIsRefused) {
  b.sink.receive_room = 1;
  ASSERT_TRUE(post(memory, 1));
  take(pattern(100, 1));
  EXPECT_EQ(take(pattern(100, 2)).nack, pds::NackCode::NoResource);
  EXPECT_EQ(b.sink.all.size(), 1u);
  b.sink.receive_room = 1;
  EXPECT_FALSE(take(pattern(100, 2)).nack.has_value());
  expect_message(1, memory, 100, pattern(100, 2));
  expect_idle();
}

TEST_F(MultiReceiveTest, UnexpectedMessagesWithoutEntriesKeepOrder) {
  for (unsigned i = 0; i < 3; ++i) take(pattern(100, i));
  b.sink.receive_room = 1;
  ASSERT_TRUE(post(memory, 1));
  EXPECT_EQ(b.sink.all.size(), 1u);
  // A newer message must not overtake those that wait, nor a newer receive take them.
  EXPECT_EQ(take(pattern(100, 3)).nack, pds::NackCode::NoResource);
  EXPECT_EQ(post(memory, 1).error(), Error::Again);
  b.sink.receive_room = 100;
  b.ses.progress(kNow);
  ASSERT_EQ(b.sink.all.size(), 3u);
  EXPECT_EQ(b.ses.next_deadline(), kNever);
  EXPECT_FALSE(take(pattern(100, 3)).nack.has_value());
  for (unsigned i = 0; i < 4; ++i) expect_message(i, memory, 100 * i, pattern(100, i));
  EXPECT_EQ(b.sink.receive_room, 97u);
}

// No event announces that a completion queue has free entries again.
TEST_F(MultiReceiveTest, WithoutEntriesTheNextTryHasADeadline) {
  for (unsigned i = 0; i < 3; ++i) take(pattern(100, i));
  b.sink.receive_room = 1;
  ASSERT_TRUE(post(memory, 1));
  ASSERT_EQ(b.sink.all.size(), 1u);
  b.ses.progress(kNow);
  const Time next = b.ses.next_deadline();
  EXPECT_GT(next, kNow);
  ASSERT_NE(next, kNever);
  b.sink.receive_room = 100;
  b.ses.progress(next);
  EXPECT_EQ(b.sink.all.size(), 3u);
  EXPECT_EQ(b.ses.next_deadline(), kNever);
}

TEST_F(MultiReceiveTest, CancelledBuffer_CompletesAfterItsMessages) {
  ASSERT_TRUE(post(memory, 1, &first));
  const Bytes message = pattern(2 * kMtu);
  take_half(message, 0, 7);
  ASSERT_TRUE(b.ses.cancel(*b.context, &first, kNow));
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_EQ(b.ses.cancel(*b.context, &first, kNow).error(), Error::NotFound);
  take_half(message, 1, 7);
  expect_message(0, memory, 0, message);
  ASSERT_EQ(b.sink.all.size(), 2u);
  EXPECT_FALSE(b.sink.all[0].released);
  EXPECT_EQ(b.sink.all[1].status, Status::Cancelled);
  EXPECT_TRUE(b.sink.all[1].released);
  EXPECT_EQ(b.sink.all[1].context, &first);
  expect_idle();
}

TEST_F(MultiReceiveTest, CancelledIdleBufferCompletesAtOnce) {
  ASSERT_TRUE(post(memory, 1, &first));
  take(pattern(100));
  ASSERT_TRUE(b.ses.cancel(*b.context, &first, kNow));
  ASSERT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(b.sink.all[1].status, Status::Cancelled);
  EXPECT_TRUE(b.sink.all[1].released);
}

TEST_F(MultiReceiveTest, Ses113_BytesOfAnAbandonedMessageAreNotReused) {
  ASSERT_TRUE(post(memory, 1, &first));
  take_half(pattern(2 * kMtu), 0, 7);
  SesRequest error = b.request_for(SesOpcode::MsgError);
  error.message_id = MsgId{7};
  error.message_offset = kMtu;
  error.som = false;
  b.take(error);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  EXPECT_TRUE(b.sink.all[0].multi);
  take(pattern(100));
  expect_message(1, memory, 2 * kMtu, pattern(100));
}

TEST_F(MultiReceiveTest, Ses122_LostSenders_EndMessagesAndBuffer) {
  ASSERT_TRUE(post(memory, kMtu, &first));
  take_half(pattern(2 * kMtu, 1), 0, 7);
  take_half(pattern(2 * kMtu, 2), 0, 8);
  b.ses.client().pdc_closed(kPdc, {}, kNow);
  ASSERT_EQ(b.sink.all.size(), 3u);
  EXPECT_EQ(b.sink.all[0].status, Status::PeerLost);
  EXPECT_EQ(b.sink.all[1].status, Status::PeerLost);
  EXPECT_EQ(b.sink.all[2].status, Status::Ok);
  EXPECT_EQ(released(), (std::vector{false, false, true}));
  expect_idle();
}

TEST_F(MultiReceiveTest, ContextCloses_EndsBuffersAndMessages) {
  Bytes full(2 * kMtu);
  ASSERT_TRUE(post(full, 1));
  ASSERT_TRUE(post(memory, 1));
  take_half(pattern(2 * kMtu, 1), 0, 7);  // fills the first buffer
  take_half(pattern(2 * kMtu, 2), 0, 8);
  b.ses.close_context(*b.context, kNow);
  EXPECT_TRUE(b.sink.all.empty());
  expect_idle();
}

TEST_F(MultiReceiveTest, MessageMayBeginInTheMiddleOfAPieceOfTheBuffer) {
  Bytes left(150);
  Bytes right(1000);
  const std::array slices{slice_of(left), slice_of(right)};
  ReceiveOp op;
  op.local = slices;
  op.multi = true;
  ASSERT_TRUE(b.ses.receive(*b.context, op, kNow));
  for (unsigned i = 0; i < 3; ++i) take(pattern(100, i));
  ASSERT_EQ(b.sink.all.size(), 3u);
  EXPECT_EQ(b.sink.all[1].buffer, left.data() + 100);
  EXPECT_EQ(b.sink.all[2].buffer, right.data() + 50);
  const Bytes second_message = pattern(100, 1);
  EXPECT_TRUE(std::equal(left.begin() + 100, left.end(), second_message.begin()));
  EXPECT_TRUE(std::equal(right.begin(), right.begin() + 50, second_message.begin() + 50));
}

}  // namespace
}  // namespace uet::ses::test
