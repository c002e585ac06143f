// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages whose sender waits until they have been read to the end: bounded memory, and an end for
// every operation whatever happens in between.
#include "ses/receiver.h"

#include "unit/ses/rendezvous_harness.h"

namespace uet::ses::test {
namespace {

// ---- expected ----------------------------------------------------------------------------------

TEST_F(RendezvousTest, Ses57_Expected_PlacedLikeSendWithoutRead) {
  Bytes out = pattern(9 * kMtu + 3);
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  ASSERT_TRUE(send(out, true));
  for (const Sent& sent : a.packets()) {
    const wire::SesResponseHeader header = header_of(deliver(a, b, sent));
    EXPECT_EQ(header.list, wire::List::Expected);
  }
  EXPECT_TRUE(turn(b).empty());
  ASSERT_EQ(a.sink.all.size(), 1u);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].length, out.size());
  EXPECT_EQ(in, out);
  expect_idle();
}

// ---- longer than a message ---------------------------------------------------------------------

class OutsizedTest : public RendezvousTest {
 protected:
  static Parameters parameters() {
    Parameters parameters = rendezvous_parameters();
    parameters.rma_piece_bytes = 3 * kMtu;
    return parameters;
  }
  OutsizedTest() : RendezvousTest(parameters()) {}
  void expect_done(std::uint64_t length) {
    ASSERT_EQ(b.sink.all.size(), 1u) << "one completion";
    EXPECT_EQ(b.sink.all[0].status, Status::Ok);
    EXPECT_EQ(b.sink.all[0].length, length);
    ASSERT_EQ(a.sink.all.size(), 1u) << "one completion";
    EXPECT_EQ(a.sink.all[0].status, Status::Ok);
    EXPECT_EQ(a.sink.all[0].length, length);
    expect_idle();
  }
};

TEST_F(OutsizedTest, Ses164_OnePacketStatesTheWholeLength) {
  Bytes out = pattern(3 * kMtu + 1);
  ASSERT_TRUE(send(out));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  const SesRequest request = sent[0].request();
  EXPECT_EQ(request.request_length, UINT32_MAX);
  EXPECT_EQ(request.rendezvous.eager_length, kMtu);
  EXPECT_EQ(request.rendezvous.read_offset, out.size());
  a.answered(sent[0], {});
  EXPECT_TRUE(a.sink.all.empty()) << "completes only when it has been read";
  a.ses.close_context(*a.context, kNow);
}

TEST_F(OutsizedTest, Ses164_ExpectedMessageIsReadPieceByPiece) {
  for (const std::size_t length : {3 * kMtu + 1, 4 * kMtu, 20 * kMtu + 7}) {
    Bytes out = pattern(length);
    Bytes in(out.size());
    a.sink.all.clear();
    b.sink.all.clear();
    ASSERT_TRUE(b.receive({slice_of(in)}));
    ASSERT_TRUE(send(out));
    exchange();
    EXPECT_EQ(in, out);
    expect_done(length);
  }
}

TEST_F(OutsizedTest, Ses164_UnexpectedMessageIsReadPieceByPiece) {
  Bytes out = pattern(20 * kMtu + 7);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  EXPECT_EQ(in, out);
  expect_done(out.size());
}

TEST_F(OutsizedTest, Ses63_Ses164_ShortBufferIsTruncated) {
  Bytes out = pattern(20 * kMtu);
  Bytes in(7 * kMtu + 5);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  ASSERT_TRUE(send(out));
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Truncated);
  EXPECT_EQ(b.sink.all[0].length, in.size());
  EXPECT_EQ(b.sink.all[0].excess, out.size() - in.size());
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

TEST_F(OutsizedTest, Ses164_ReadBehindTheEndFailsTheSend) {
  Bytes out = pattern(20 * kMtu);
  ASSERT_TRUE(send(out));
  const Sent sent = a.packet().value();
  const Rkey key = sent.request().rendezvous.read_memory_key;
  a.answered(sent, {});
  EXPECT_EQ(read_code(a, key, out.size() + kMtu, kMtu), ReturnCode::BadAddr);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::ReturnCode);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::BadAddr);
}

TEST_F(OutsizedTest, Ses164_NoRendezvousAtPeer_NoLongerMessage) {
  Bytes memory(1);
  const Peer peer = b.peer();
  const std::array<IoSlice, 1> huge = {IoSlice{memory.data(), kMaxMessageBytes + 1}};
  SendOp op;
  op.peer = &peer;
  op.local = huge;
  EXPECT_EQ(a.ses.initiator().post(*a.context, op, kNow).error(), Error::TooLong);
}

// ---- unexpected --------------------------------------------------------------------------------

TEST_F(RendezvousTest, Ses62_Unexpected_KeepsPartAndReadsRest) {
  Bytes out = pattern(20 * kMtu + 7);
  Bytes in(out.size());
  send_unexpected(out);
  EXPECT_LE(b.context->unexpected_bytes, kKept + 1024);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_TRUE(b.sink.all.empty());
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Ok);
  EXPECT_EQ(b.sink.all[0].length, out.size());
  EXPECT_EQ(in, out);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

TEST_F(RendezvousTest, NothingIsKeptWhenMemoryIsShort) {
  b.context->unexpected_bytes = 32 * kMtu;  // half of its share
  Bytes out = pattern(6 * kMtu);
  send_unexpected(out);
  EXPECT_EQ(b.buffers.in_use(), 0u);
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  EXPECT_EQ(in, out);
  b.context->unexpected_bytes -= 32 * kMtu;
  expect_idle();
}

TEST_F(RendezvousTest, ReceiveDuringArrival_TakesPacketsReadsRest) {
  Bytes out = pattern(12 * kMtu);
  Bytes in(out.size());
  ASSERT_TRUE(send(out));
  std::vector<Sent> sent;
  for (int i = 0; i < 6; ++i) sent.push_back(a.packet().value());
  for (int i = 0; i < 4; ++i) deliver(a, b, sent[static_cast<std::size_t>(i)]);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  for (int i = 4; i < 6; ++i) deliver(a, b, sent[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(b.sink.all.empty());
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(in, out);
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(RendezvousTest, PacketsOfTheEagerPartMayComeInAnyOrder) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  ASSERT_TRUE(send(out));
  std::vector<Sent> sent = a.packets();
  std::reverse(sent.begin(), sent.end());
  for (const Sent& packet : sent) deliver(a, b, packet);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(in, out);
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

// ---- truncation --------------------------------------------------------------------------------

TEST_F(RendezvousTest, Ses63_ShorterReceive_ReadsPartTellsSender) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{10}, 5 * kMtu + std::size_t{1}}) {
    Bytes out = pattern(8 * kMtu);
    Bytes in(capacity);
    send_unexpected(out);
    ASSERT_TRUE(b.receive({slice_of(in)}));
    exchange();
    ASSERT_EQ(b.sink.all.size(), 1u);
    EXPECT_EQ(b.sink.all[0].status, Status::Truncated);
    EXPECT_EQ(b.sink.all[0].length, capacity);
    EXPECT_EQ(b.sink.all[0].excess, out.size() - capacity);
    EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all[0].status, Status::Ok);
    a.sink.all.clear();
    b.sink.all.clear();
    expect_idle();
  }
}

// ---- delivery complete -------------------------------------------------------------------------

TEST_F(RendezvousTest, Ses111_UnexpectedDelivery_WaitsForReceive) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, kMtu + std::size_t{1}}) {
    Bytes out = pattern(length);
    Bytes in(length);
    send_unexpected(out, true);
    ASSERT_TRUE(b.receive({slice_of(in)}));
    EXPECT_TRUE(a.sink.all.empty());
    exchange();
    ASSERT_EQ(b.sink.all.size(), 1u);
    EXPECT_EQ(in, out);
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all[0].status, Status::Ok);
    a.sink.all.clear();
    b.sink.all.clear();
    expect_idle();
  }
}

// ---- shortage ----------------------------------------------------------------------------------

TEST_F(RendezvousTest, ShortageOfPdcsAndMessagesDelaysTheRead) {
  std::vector<Bytes> out;
  std::vector<Bytes> in;
  for (unsigned i = 0; i < 9; ++i) {
    out.push_back(pattern(6 * kMtu, i));
    in.emplace_back(6 * kMtu);
  }
  for (Bytes& memory : out) ASSERT_TRUE(send(memory));
  exchange();
  b.delivery.refuse = true;
  for (Bytes& memory : in) ASSERT_TRUE(b.receive({slice_of(memory)}));
  EXPECT_TRUE(turn(b).empty());
  EXPECT_GT(b.ses.next_deadline(), kNow);
  EXPECT_LT(b.ses.next_deadline(), kNever);
  b.delivery.refuse = false;
  b.ses.progress(b.ses.next_deadline());
  EXPECT_EQ(b.delivery.backlog.size(), 4u) << "as many reads at a time as are allowed";
  exchange();
  EXPECT_EQ(in, out);
  EXPECT_EQ(a.sink.all.size(), 9u);
  expect_idle();
}

TEST_F(RendezvousTest, OneHost_CannotTakeAllUnexpectedMemory) {
  Parameters parameters = small_parameters();
  parameters.unexpected_bytes_per_peer = 8 * kMtu;
  Node c{2, parameters};
  SesRequest request = c.request_for(SesOpcode::Send);
  request.request_length = kMtu;
  std::uint16_t id = 1;
  const auto offer = [&](std::uint8_t host, PdcId pdc) {
    request.message_id = MsgId{id++};
    return c.take(request, pattern(kMtu), host, pdc);
  };
  int taken = 0;
  while (!offer(1, PdcId{7}).nack) ++taken;
  EXPECT_GE(taken, 4);
  EXPECT_LT(taken, 8);
  EXPECT_TRUE(offer(1, PdcId{8}).nack.has_value()) << "whichever PDC it uses";
  EXPECT_FALSE(offer(3, PdcId{9}).nack.has_value()) << "another one has its own share";
  Bytes in(kMtu);
  ASSERT_TRUE(c.receive({slice_of(in)}));
  EXPECT_FALSE(offer(1, PdcId{7}).nack.has_value()) << "what was taken is free again";
}

// Memory is the only bound, states included, and a share of it.
TEST_F(RendezvousTest, UnexpectedMessagesTakeMemoryAndNoStates) {
  Parameters parameters = small_parameters();
  parameters.rx_messages = 4;
  parameters.unexpected_bytes_per_context = 1 << 20;
  Node c{2, parameters};
  SesRequest request = part(c.request_for(SesOpcode::Send), 0, kMtu, 2 * kMtu);
  std::size_t taken = 0;
  while (!c.take(request, pattern(kMtu)).nack && taken < 2000) {
    request.message_id = MsgId{static_cast<std::uint16_t>(100 + ++taken)};
  }
  EXPECT_GT(taken, 4U);
  EXPECT_LT(taken, 2000U);
  EXPECT_FALSE(c.take(request, pattern(kMtu), 7).nack.has_value()) << "another host has a share";
}

TEST_F(RendezvousTest, MsgErrorFindsAMessageThatWaitsForItsRead) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  int operation = 0;
  send_unexpected(out, false, &operation);
  b.delivery.refuse = true;
  ASSERT_TRUE(b.receive({slice_of(in)}));
  b.ses.progress(kNow);
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  for (const Sent& sent : turn(a)) deliver(a, b, sent);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(RendezvousTest, Ses64_ReadFails_EndsReceiveAndSend) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const std::vector<Sent> asked = turn(b);
  for (const Sent& sent : asked) {
    sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::RtoExhausted, kNow);
  }
  for (const Sent& sent : b.packets()) b.answered(sent, {});  // MSG_ERROR, if it had not ended
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::PeerLost);
  EXPECT_TRUE(a.sink.all.empty());
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u) << "the target lives, so that nothing else would end the send";
  EXPECT_EQ(a.sink.all[0].status, Status::ReturnCode);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::Dropped);
  expect_idle();
}

// The sender asked for delivery and has closed meanwhile, for example after an injected message.
TEST_F(RendezvousTest, Ses110_WholeMessageOutlivesItsSender) {
  Bytes out = pattern(100);
  Bytes in(out.size());
  send_unexpected(out, true);
  b.ses.client().pdc_closed(kPdc, pds::PdsError::PeerLost, kNow);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Ok);
  EXPECT_EQ(in, out);
  EXPECT_TRUE(turn(b).empty()) << "the sender is gone";
  EXPECT_TRUE(b.ses.idle());
  a.ses.client().pdc_closed(kPdc, pds::PdsError::LocalClose, kNow);
}

// The sender waits for delivery even if its PDC has been closed in favour of other peers.
TEST_F(RendezvousTest, Ses110_SenderHearsOfDeliveryOnAnotherPdc) {
  Bytes out = pattern(100);
  Bytes in(out.size());
  send_unexpected(out, true);
  for (Node* node : {&a, &b}) {
    node->ses.client().pdc_closed(kPdc, {}, kNow);
    node->delivery.locks = 0;
  }
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  EXPECT_EQ(in, out);
  expect_idle();
}

// A read would open a PDC to whatever address a stranger has named.
TEST_F(RendezvousTest, Pds211_NothingIsReadBeforeTheSourceIsProved) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  b.delivery.source_proved = false;
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_TRUE(turn(b).empty());
  EXPECT_TRUE(turn(b, kNow + std::chrono::seconds(1)).empty());
  b.delivery.source_proved = true;
  b.ses.client().pdc_proved(kPdc);
  EXPECT_FALSE(turn(b, kNow + std::chrono::seconds(1)).empty()) << "at once";
}

TEST_F(RendezvousTest, Ses64_MessageThatIsNotWholeGoesWithItsSender) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out, true);
  b.ses.client().pdc_closed(kPdc, pds::PdsError::PeerLost, kNow);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_TRUE(turn(b).empty());
  a.ses.client().pdc_closed(kPdc, pds::PdsError::LocalClose, kNow);
}

// PDS-142, for reads that a target posts itself: the FEP of the sender has freed the PDC of the
// read. The read of the missing data and the read that informs the sender are both sent again.
TEST_F(RendezvousTest, Pds142_ReadsThatWereNotConsumedAreSentAgain) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(kKept + 10);
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  for (int read = 0; read < 2; ++read) {
    const std::vector<Sent> refused = turn(b);
    ASSERT_EQ(refused.size(), 1u);
    refused[0].message->owner->pds_error(*refused[0].message, refused[0].tag,
                                         pds::PdsError::NotConsumed, kNow);
    EXPECT_EQ(b.sink.all.size(), static_cast<std::size_t>(read));
    b.ses.progress(kNow + std::chrono::milliseconds(read));  // the first time at once
    const std::vector<Sent> again = b.packets();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].request().buffer_offset, refused[0].request().buffer_offset);
    deliver(b, a, again[0]);
    for (const Sent& data : a.packets()) deliver(a, b, data);
  }
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Truncated);
  EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()));
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

// A peer that refuses every PDC is given up.
TEST_F(RendezvousTest, Pds142_ReadsThatAreNeverConsumedAreGivenUp) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(kKept + 10);
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  Time now = kNow;
  std::size_t refused = 0;
  for (int i = 0; i < 1000 && b.sink.all.empty(); ++i) {
    now += std::chrono::milliseconds(1);
    b.ses.progress(now);
    for (const Sent& sent : b.packets()) {
      ++refused;
      sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::NotConsumed, now);
    }
  }
  EXPECT_EQ(refused, rendezvous_parameters().retries + 1u);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::PeerLost);
  b.ses.progress(now);
  for (const Sent& sent : b.packets()) {
    EXPECT_TRUE(sent.request().ie) << "SES-64: one try to tell the sender";
    sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::NotConsumed, now);
  }
  EXPECT_TRUE(b.ses.idle());
  EXPECT_EQ(b.ses.next_deadline(), kNever);
  a.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
}

TEST_F(RendezvousTest, Pds142_ContextCloses_SenderIsStillTold) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(kKept + 10);
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const std::vector<Sent> refused = turn(b);
  ASSERT_EQ(refused.size(), 1u);
  b.ses.close_context(*b.context, kNow);
  b.context = nullptr;
  refused[0].message->owner->pds_error(*refused[0].message, refused[0].tag,
                                       pds::PdsError::NotConsumed, kNow);
  exchange();
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
  b.context = b.ses.open_context(small_config(), b.sink).value();
}

// Its receive is gone, and so is the memory that the read was to fill.
TEST_F(RendezvousTest, Ses64_ContextClosesInFailingRead_SenderTold) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const std::vector<Sent> asked = turn(b);
  ASSERT_FALSE(asked.empty());
  b.ses.close_context(*b.context, kNow);
  b.context = nullptr;
  for (const Sent& sent : asked) {
    sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::RtoExhausted, kNow);
  }
  for (const Sent& sent : b.packets()) b.answered(sent, {});  // MSG_ERROR, if it had not ended
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::Dropped);
  expect_idle();
  b.context = b.ses.open_context(small_config(), b.sink).value();
}

TEST_F(RendezvousTest, SenderOfADiscardedMessageFinishes) {
  for (const bool arrived : {false, true}) {
    Bytes out = pattern(8 * kMtu);
    ASSERT_TRUE(send(out));
    for (int i = 0; i < 3; ++i) deliver(a, b, a.packet().value());
    if (arrived) exchange();
    PeekOp peek;
    peek.discard = true;
    ASSERT_TRUE(b.ses.peek(*b.context, peek, kNow));
    exchange();
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all[0].status, Status::Ok);
    a.sink.all.clear();
    expect_idle();
  }
}

TEST_F(RendezvousTest, ClosedTargetEndsSendsAndFailsDeliveryComplete) {
  for (const bool delivery_complete : {false, true}) {
    Bytes out = pattern(8 * kMtu);
    send_unexpected(out, delivery_complete);
    b.ses.close_context(*b.context, kNow);
    exchange();
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all[0].status, delivery_complete ? Status::ReturnCode : Status::Ok);
    a.sink.all.clear();
    expect_idle();
    b.context = b.ses.open_context(small_config(), b.sink).value();
    b.ses.enable(*b.context);
  }
}

TEST_F(RendezvousTest, TargetClosedWhileReading_WritesNoMore) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  for (const Sent& ask : turn(b)) deliver(b, a, ask);
  b.ses.close_context(*b.context, kNow);
  std::fill(in.begin(), in.end(), std::byte{0x5A});
  exchange();
  EXPECT_EQ(in, Bytes(out.size(), std::byte{0x5A}));
  EXPECT_EQ(a.sink.all.size(), 1u);
  EXPECT_TRUE(b.sink.all.empty());
  expect_idle();
  b.context = b.ses.open_context(small_config(), b.sink).value();
}

// ---- another implementation: the remainder must always be read ----------------------------------

class ForeignRendezvousTest : public RendezvousTest {
 protected:
  static constexpr std::uint32_t kEager = kMtu + 100;
  static constexpr std::uint64_t kReadOffset = 64;

  // As another implementation sends it: an eager part, and a region with the whole message to read.
  SesRequest request() const {
    SesRequest request = b.request_for(SesOpcode::RendezvousSend);
    request.request_length = static_cast<std::uint32_t>(out.size());
    request.rendezvous.eager_length = kEager;
    request.rendezvous.read_pid_on_fep = PidOnFep{2};
    request.rendezvous.read_resource_index = ResourceIndex{10};
    request.rendezvous.read_offset = kReadOffset;
    request.rendezvous.read_memory_key = key;
    return request;
  }
  pds::Response first_packet() {
    SesRequest first = request();
    first.eom = false;
    return b.take(first, Bytes(out.begin(), out.begin() + kMtu));
  }
  pds::Response second_packet() {
    SesRequest second = request();
    second.som = false;
    second.message_offset = kMtu;
    second.payload_length = kEager - kMtu;
    return b.take(second, Bytes(out.begin() + kMtu, out.begin() + kEager));
  }
  void SetUp() override {
    std::copy(out.begin(), out.end(), region.begin() + kReadOffset);
    std::fill_n(region.begin() + kReadOffset, kEager, std::byte{0});  // not to be read
    key = a.expose(region, ri::kRemoteRead);
  }

  Bytes out = pattern(5 * kMtu + 1);
  Bytes region = Bytes(kReadOffset + 5 * kMtu + 1);
  Rkey key;
};

TEST_F(ForeignRendezvousTest, Ses57_RemainderIsReadWhenTheMessageIsExpected) {
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_EQ(header_of(first_packet()).list, wire::List::Expected);
  EXPECT_TRUE(turn(b).empty()) << "first the eager part";
  EXPECT_EQ(header_of(second_packet()).list, wire::List::Expected);
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Ok);
  EXPECT_EQ(in, out);
  expect_idle();
}

TEST_F(ForeignRendezvousTest, Ses56_ReadGoesWhereTheExtensionSays) {
  SesRequest only = request();
  only.rendezvous = {.eager_length = 0,
                     .read_ri_generation = RiGeneration{0x2A},
                     .read_pid_on_fep = PidOnFep{7},
                     .read_resource_index = ResourceIndex{0x20},
                     .read_offset = kReadOffset,
                     .read_memory_key = Rkey{0x5678}};
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_EQ(code_of(b.take(only)), ReturnCode::Ok);
  const std::vector<Sent> asked = turn(b);
  ASSERT_FALSE(asked.empty());
  for (const Sent& sent : asked) {
    const SesRequest read = sent.request();
    EXPECT_EQ(read.opcode, SesOpcode::Read);
    EXPECT_EQ(read.ri_generation, RiGeneration{0x2A});
    EXPECT_EQ(read.pid_on_fep, PidOnFep{7});
    EXPECT_EQ(read.resource_index, ResourceIndex{0x20});
    EXPECT_EQ(read.buffer_offset, kReadOffset);
    EXPECT_EQ(read.match_bits, 0x5678u);
    EXPECT_EQ(read.job_id, only.job_id);
    EXPECT_EQ(read.request_length, out.size());
    sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::RtoExhausted, kNow);
  }
  for (const Sent& sent : b.packets()) b.answered(sent, {});
  EXPECT_EQ(b.sink.all.size(), 1u);
  for (const Sent& sent : turn(b)) {
    EXPECT_TRUE(sent.request().ie) << "SES-64";
    EXPECT_EQ(sent.request().match_bits, 0x5678u);
    b.answered(sent, {});
  }
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(ForeignRendezvousTest, Ses62_Unexpected_KeptAndReadOnReceive) {
  const wire::SesResponseHeader header = header_of(second_packet());
  EXPECT_EQ(header.list, wire::List::Overflow);
  EXPECT_EQ(header.modified_length, out.size());
  EXPECT_EQ(code_of(first_packet()), ReturnCode::Ok);
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(in, out);
  expect_idle();
}

// The answer that its last packet has put off names the generation of the context: it is given
// while there is one.
TEST_F(ForeignRendezvousTest, Ses46_ContextClosesWhileAnAnswerIsOwed) {
  SesRequest only = request();
  only.dc = true;
  only.rendezvous.eager_length = 100;
  only.payload_length = 100;
  const Bytes eager(out.begin(), out.begin() + 100);
  EXPECT_EQ(header_of(b.take(only, eager)).opcode, wire::ResponseOpcode::NoResponse);
  b.ses.close_context(*b.context, kNow);
  ASSERT_EQ(b.delivery.answers.size(), 1u);
  EXPECT_EQ(code_of(b.delivery.answers[0].response), ReturnCode::Dropped);
  exchange();
  EXPECT_EQ(b.delivery.answers.size(), 1u) << "once";
  expect_idle();
  b.context = b.ses.open_context(small_config(), b.sink).value();
}

TEST_F(ForeignRendezvousTest, Ses58_NoEagerPartAtAll) {
  std::copy(out.begin(), out.end(), region.begin() + kReadOffset);
  SesRequest only = request();
  only.rendezvous.eager_length = 0;
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_EQ(code_of(b.take(only)), ReturnCode::Ok);
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(in, out);
  expect_idle();
}

TEST_F(ForeignRendezvousTest, Ses63_ReceiveWithinEager_StillReadsTheEnd) {
  Bytes in(kEager);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  first_packet();
  second_packet();
  const std::vector<Sent> asked = turn(b);
  ASSERT_EQ(asked.size(), 1u);
  const SesRequest read = asked[0].request();
  EXPECT_EQ(read.opcode, SesOpcode::Read);
  EXPECT_EQ(read.request_length, 0u);
  EXPECT_EQ(read.buffer_offset, kReadOffset + out.size());
  EXPECT_TRUE(b.delivery.destination.reserved_pool);
  EXPECT_EQ(b.delivery.destination.mode, DeliveryMode::Rud);
  deliver(b, a, asked[0]);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Truncated);
  expect_idle();
}

TEST_F(ForeignRendezvousTest, Ses64_RefusedReadEndsTheReceiveWithAnError) {
  ASSERT_TRUE(a.regions.remove(key));
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  first_packet();
  second_packet();
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  expect_idle();
}

TEST_F(ForeignRendezvousTest, MemoryShort_NackSinceOnlyRestIsReadable) {
  b.context->unexpected_bytes = 64 * kMtu - 500;
  EXPECT_TRUE(first_packet().nack.has_value());
  b.context->unexpected_bytes = 0;
  EXPECT_TRUE(b.ses.idle());
  EXPECT_EQ(b.delivery.locks, 0);
}

TEST_F(ForeignRendezvousTest, ImpossibleLengthsAreRefused) {
  SesRequest wrong = request();
  wrong.rendezvous.eager_length = wrong.request_length + 1;
  EXPECT_EQ(code_of(b.take(wrong, pattern(10))), ReturnCode::OpViolation);
  wrong = request();
  wrong.message_id = MsgId{8};
  wrong.som = false;
  wrong.message_offset = kMtu;  // an unsolicited end of an unknown message
  EXPECT_EQ(code_of(b.take(wrong)), ReturnCode::OpViolation);
  first_packet();
  SesRequest changed = request();
  changed.som = false;
  changed.message_offset = kMtu;
  changed.payload_length = kEager - kMtu;
  changed.rendezvous.read_offset = 0;  // SES-115 step 15
  EXPECT_EQ(code_of(b.take(changed, Bytes(kEager - kMtu))), ReturnCode::PermViolation);
}

}  // namespace
}  // namespace uet::ses::test
