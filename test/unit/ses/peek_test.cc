// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looking at unexpected messages, claiming and discarding them.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

class PeekTest : public TwoNodes, public ::testing::WithParamInterface<bool> {
 protected:
  PeekOp op() {
    PeekOp op;
    op.tagged = tagged();
    op.tag = kTag;
    op.context = &operation;
    return op;
  }
  static bool tagged() { return GetParam(); }
  SesRequest request(std::uint16_t id = 7) const {
    SesRequest request = b.request_for(tagged() ? SesOpcode::TaggedSend : SesOpcode::Send);
    request.message_id = MsgId{id};
    if (tagged()) request.match_bits = kTag;
    request.hd = true;
    request.header_data = 0xDA7A;
    return request;
  }
  pds::Response take_half(const Bytes& message, int half) {
    SesRequest packet = request();
    packet.hd = half == 0;
    return take_part(packet, message, half * kMtu, kMtu);
  }
  void take_single(const Bytes& message) { take_part(request(), message, 0, message.size()); }
  Completion peek(const PeekOp& peek) {
    const std::size_t before = b.sink.all.size();
    EXPECT_TRUE(b.ses.peek(*b.context, peek, kNow));
    EXPECT_EQ(b.sink.all.size(), before + 1);
    return b.sink.all.back();
  }
  Result<void> claim(Bytes& memory) {
    const IoSlice slice = slice_of(memory);
    ReceiveOp receive;
    receive.local = {&slice, 1};
    receive.tagged = tagged();
    receive.claim = true;
    receive.context = &operation;
    return b.ses.receive(*b.context, receive, kNow);
  }
  Result<void> receive(Bytes& memory) {
    return b.receive({slice_of(memory)}, tagged() ? std::optional(kTag) : std::nullopt);
  }

  static constexpr std::uint64_t kTag = 0x7A6;
  int operation = 0;
};

TEST_P(PeekTest, NothingThere) {
  const Completion nothing = peek(op());
  EXPECT_EQ(nothing.status, Status::NoMessage);
  EXPECT_EQ(nothing.context, &operation);
  EXPECT_EQ(nothing.kind, tagged() ? Kind::TaggedReceive : Kind::Receive);
}

TEST_P(PeekTest, DescribesTheMessageAndLeavesIt) {
  const Bytes message = pattern(300);
  take_single(message);
  for (int i = 0; i < 2; ++i) {
    const Completion found = peek(op());
    EXPECT_EQ(found.status, Status::Ok);
    EXPECT_EQ(found.length, message.size());
    EXPECT_EQ(found.tag, tagged() ? kTag : 0);
    EXPECT_TRUE(found.has_data);
    EXPECT_EQ(found.data, 0xDA7Au);
    EXPECT_EQ(found.source, address_of(1));
    EXPECT_EQ(found.buffer, nullptr);
  }
  Bytes memory(message.size());
  ASSERT_TRUE(receive(memory));
  EXPECT_EQ(memory, message);
  EXPECT_EQ(peek(op()).status, Status::NoMessage);
}

TEST_P(PeekTest, HalfArrived_FoundAfterItsFirstPacket) {
  const Bytes message = pattern(2 * kMtu);
  take_half(message, 1);
  EXPECT_EQ(peek(op()).status, Status::NoMessage);  // its data are not known yet
  Bytes other(kMtu);
  take_half(message, 0);
  EXPECT_EQ(peek(op()).length, message.size());
}

TEST_P(PeekTest, ClaimedMessageIsForItsClaimOnly) {
  const Bytes message = pattern(300, 1);
  const Bytes next = pattern(300, 2);
  take_single(message);
  PeekOp claiming = op();
  claiming.claim = true;
  EXPECT_EQ(peek(claiming).length, message.size());
  EXPECT_EQ(peek(op()).status, Status::NoMessage);
  take_single(next);
  Bytes memory(300);
  ASSERT_TRUE(receive(memory));
  EXPECT_EQ(memory, next);
  ASSERT_TRUE(claim(memory));
  EXPECT_EQ(memory, message);
  EXPECT_EQ(b.sink.all.back().context, &operation);
  EXPECT_EQ(claim(memory).error(), Error::NotFound);
  expect_idle();
}

TEST_P(PeekTest, ClaimedMessageArrivesInTheBufferThatClaimsIt) {
  const Bytes message = pattern(2 * kMtu);
  take_half(message, 0);
  PeekOp claiming = op();
  claiming.claim = true;
  peek(claiming);
  Bytes memory(message.size());
  ASSERT_TRUE(claim(memory));
  EXPECT_EQ(b.sink.all.size(), 1u);
  take_half(message, 1);
  ASSERT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(memory, message);
  expect_idle();
}

TEST_P(PeekTest, DiscardedMessageIsGone) {
  take_single(pattern(300));
  PeekOp discarding = op();
  discarding.discard = true;
  EXPECT_EQ(peek(discarding).length, 300u);
  EXPECT_EQ(peek(op()).status, Status::NoMessage);
  expect_idle();
}

TEST_P(PeekTest, RestOfADiscardedMessageIsAcceptedAndDropped) {
  const Bytes message = pattern(2 * kMtu);
  take_half(message, 0);
  PeekOp discarding = op();
  discarding.discard = true;
  EXPECT_EQ(peek(discarding).length, message.size());
  EXPECT_EQ(b.buffers.in_use(), 0u);
  Bytes memory(message.size());
  ASSERT_TRUE(receive(memory));
  EXPECT_EQ(code_of(take_half(message, 1)), ReturnCode::Ok);
  EXPECT_EQ(b.sink.all.size(), 1u);
  expect_idle();
}

TEST_P(PeekTest, ClaimedMessageCanBeDiscarded) {
  take_single(pattern(300));
  PeekOp claiming = op();
  claiming.claim = true;
  peek(claiming);
  PeekOp discarding = op();
  discarding.claimed = discarding.discard = true;
  EXPECT_EQ(peek(discarding).status, Status::Ok);
  EXPECT_EQ(peek(discarding).status, Status::NoMessage);
  expect_idle();
}

TEST_P(PeekTest, Ses20_DirectedPeekSeesItsPeerOnly) {
  take_single(pattern(300));
  Peer source = a.peer();
  PeekOp directed = op();
  directed.source = &source;
  source.initiator = InitiatorId{6};
  EXPECT_EQ(peek(directed).status, Status::NoMessage);
  source.initiator = InitiatorId{5};
  EXPECT_EQ(peek(directed).status, Status::Ok);
}

TEST_P(PeekTest, Ses122_ClaimedMessageWhoseSenderIsLostIsGone) {
  take_half(pattern(2 * kMtu), 0);
  PeekOp claiming = op();
  claiming.claim = true;
  peek(claiming);
  b.ses.client().pdc_closed(kPdc, {}, kNow);
  Bytes memory(2 * kMtu);
  EXPECT_EQ(claim(memory).error(), Error::NotFound);
  expect_idle();
}

TEST_P(PeekTest, ClosingTheContextDropsClaimedMessages) {
  take_single(pattern(300));
  PeekOp claiming = op();
  claiming.claim = true;
  peek(claiming);
  b.ses.close_context(*b.context, kNow);
  expect_idle();
}

TEST_P(PeekTest, ImpossibleCombinationsAreRefused) {
  PeekOp both = op();
  both.claim = both.discard = true;
  EXPECT_EQ(b.ses.peek(*b.context, both, kNow).error(), Error::Invalid);
  ReceiveOp receive;
  receive.claim = receive.multi = true;
  EXPECT_EQ(b.ses.receive(*b.context, receive, kNow).error(), Error::Invalid);
}

INSTANTIATE_TEST_SUITE_P(Untagged, PeekTest, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Tagged, PeekTest, ::testing::Values(true));

}  // namespace
}  // namespace uet::ses::test
