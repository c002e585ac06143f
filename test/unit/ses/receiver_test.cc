// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends that arrive: matching, unexpected messages, how they end.
#include "ses/receiver.h"

#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

using ReceiveTest = TwoNodes;

TEST_F(ReceiveTest, Idea1_TenReversed_CompleteOnceWithSomData) {
  const Bytes message = pattern(10 * kMtu);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  SesRequest request = b.request_for(SesOpcode::Send);
  request.hd = true;
  request.header_data = 0xDA7A;
  for (int i = 9; i >= 0; --i) {
    EXPECT_TRUE(b.sink.all.empty());
    const auto offset = static_cast<std::uint32_t>(i) * kMtu;
    SesRequest packet = request;
    packet.hd = i == 0;
    EXPECT_EQ(code_of(take_part(packet, message, offset, kMtu)), ReturnCode::Ok);
  }
  ASSERT_EQ(b.sink.all.size(), 1u);
  const Completion& completion = b.sink.all[0];
  EXPECT_EQ(completion.kind, Kind::Receive);
  EXPECT_EQ(completion.status, Status::Ok);
  EXPECT_EQ(completion.length, message.size());
  EXPECT_TRUE(completion.has_data);
  EXPECT_EQ(completion.data, 0xDA7Au);
  EXPECT_EQ(completion.buffer, memory.data());
  EXPECT_EQ(completion.source, address_of(1));
  EXPECT_EQ(completion.source_initiator, InitiatorId{5});
  EXPECT_EQ(memory, message);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(ReceiveTest, Idea2_Ses30_NoCompletionBeforeSomArrives) {
  const Bytes message = pattern(2 * kMtu);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  const SesRequest request = b.request_for(SesOpcode::Send);
  take_part(request, message, kMtu, kMtu);
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_FALSE(b.ses.idle());
  take_part(request, message, 0, kMtu);
  EXPECT_EQ(b.sink.all.size(), 1u);
}

TEST_F(ReceiveTest, Ses29_MessagesWithOneIdFromTwoPdcsAreTwo) {
  const Bytes message = pattern(2 * kMtu);
  Bytes first(message.size());
  Bytes second(message.size());
  ASSERT_TRUE(b.receive({slice_of(first)}));
  ASSERT_TRUE(b.receive({slice_of(second)}));
  const SesRequest request = b.request_for(SesOpcode::Send);
  const Bytes half(message.begin(), message.begin() + kMtu);
  const SesRequest packet = part(request, 0, kMtu, 2 * kMtu);
  EXPECT_EQ(code_of(b.take(packet, half, 1, PdcId{1})), ReturnCode::Ok);
  EXPECT_EQ(code_of(b.take(packet, half, 1, PdcId{2})), ReturnCode::Ok);
  EXPECT_EQ(first, second);
  b.ses.client().pdc_closed(PdcId{1}, {}, kNow);
  b.ses.client().pdc_closed(PdcId{2}, {}, kNow);
  EXPECT_EQ(b.sink.all.size(), 2u);
}

TEST_F(ReceiveTest, Ses31_ZeroLengthIsMatchedAndCompleted) {
  ASSERT_TRUE(b.receive({}, 7));
  SesRequest request = b.request_for(SesOpcode::TaggedSend);
  request.match_bits = 7;
  const pds::Response response = b.take(request);
  EXPECT_EQ(code_of(response), ReturnCode::Ok);
  EXPECT_FALSE(response.guaranteed);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].kind, Kind::TaggedReceive);
  EXPECT_EQ(b.sink.all[0].length, 0u);
  EXPECT_EQ(b.sink.all[0].tag, 7u);
}

TEST_F(ReceiveTest, Ses31_ZeroLengthUnexpectedIsKept) {
  EXPECT_EQ(header_of(b.take(b.request_for(SesOpcode::Send))).list, wire::List::Overflow);
  ASSERT_TRUE(b.receive({}));
  EXPECT_EQ(b.sink.all.size(), 1u);
  expect_idle();
}

// PDS hands them over as they come on RUD, and they match in that order.
TEST_F(ReceiveTest, Ses129_SwappedSends_MatchInArrivalOrder) {
  Bytes first(4);
  Bytes second(4);
  ASSERT_TRUE(b.receive({slice_of(first)}));
  ASSERT_TRUE(b.receive({slice_of(second)}));
  Bytes out[] = {pattern(4, 1), pattern(4, 2)};
  ASSERT_TRUE(a.send(b, {slice_of(out[0])}));
  ASSERT_TRUE(a.send(b, {slice_of(out[1])}));
  const std::vector<Sent> sent = a.packets();
  deliver(a, b, sent[1]);
  deliver(a, b, sent[0]);
  EXPECT_EQ(first, out[1]);
  EXPECT_EQ(second, out[0]);
  expect_idle();
}

TEST_F(ReceiveTest, Ses38_TaggedAndUntaggedAreSeparate) {
  Bytes memory(4);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  SesRequest request = part(b.request_for(SesOpcode::TaggedSend), 0, 4, 4);
  EXPECT_EQ(header_of(b.take(request, pattern(4))).list, wire::List::Overflow);
  EXPECT_TRUE(b.sink.all.empty());
  request.opcode = SesOpcode::Send;
  EXPECT_EQ(header_of(b.take(request, pattern(4))).list, wire::List::Expected);
  EXPECT_EQ(b.sink.all.size(), 1u);
}

TEST_F(ReceiveTest, Ses20_DirectedReceiveWaitsForItsPeer) {
  Bytes memory(4);
  Peer source;
  source.fep = address_of(1);
  source.initiator = InitiatorId{5};
  ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, nullptr, &source));
  const SesRequest request = part(b.request_for(SesOpcode::Send), 0, 4, 4);
  b.take(request, pattern(4), 3);  // same initiator id, other FEP
  EXPECT_TRUE(b.sink.all.empty());
  b.take(request, pattern(4), 1);
  EXPECT_EQ(b.sink.all.size(), 1u);
}

TEST_F(ReceiveTest, Ses75_DeferrableSendsAreOrdinarySends) {
  Bytes memory(8);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  ASSERT_TRUE(b.receive({slice_of(memory)}, 1, UINT64_MAX));
  EXPECT_EQ(code_of(b.take(part(b.request_for(SesOpcode::DeferrableSend), 0, 4, 4), pattern(4))),
            ReturnCode::Ok);
  EXPECT_EQ(code_of(b.take(part(b.request_for(SesOpcode::DeferrableTsend), 0, 4, 4), pattern(4))),
            ReturnCode::Ok);
  ASSERT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(b.sink.all[1].kind, Kind::TaggedReceive);
}

// SES-3: medium with a tag, small without.
TEST_F(ReceiveTest, Ses4_MediumAndSmallSendsAreTaken) {
  Bytes memory(8);
  ASSERT_TRUE(b.receive({slice_of(memory)}, 9));
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  SesRequest request = b.request_for(SesOpcode::TaggedSend);
  request.next_hdr = NextHdr::RequestMedium;
  request.match_bits = 9;
  request.hd = true;
  request.header_data = 3;
  request.request_length = 8;
  EXPECT_EQ(code_of(b.take(request, pattern(8))), ReturnCode::Ok);
  EXPECT_EQ(memory, pattern(8));
  request = b.request_for(SesOpcode::Send);
  request.next_hdr = NextHdr::RequestSmall;
  request.request_length = 5;
  EXPECT_EQ(code_of(b.take(request, pattern(5, 2))), ReturnCode::Ok);
  ASSERT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(b.sink.all[0].data, 3u);
  EXPECT_EQ(b.sink.all[1].length, 5u);
}

TEST_F(ReceiveTest, Idea8_Ses42_TruncationByOneByte) {
  const Bytes message = pattern(2 * kMtu);
  Bytes memory(message.size() - 1);
  ASSERT_TRUE(b.receive({{memory.data(), 5}, {memory.data() + 5, memory.size() - 5}}));
  const SesRequest request = b.request_for(SesOpcode::Send);
  take_part(request, message, 0, kMtu);
  const pds::Response last = take_part(request, message, kMtu, kMtu);
  EXPECT_EQ(code_of(last), ReturnCode::Ok) << "success for the sender";
  EXPECT_EQ(header_of(last).modified_length, memory.size());  // SES-43
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Truncated);
  EXPECT_EQ(b.sink.all[0].length, memory.size());
  EXPECT_EQ(b.sink.all[0].excess, 1u);
  EXPECT_TRUE(std::equal(memory.begin(), memory.end(), message.begin()));
}

// ---- unexpected --------------------------------------------------------------------------------

// An earlier one would hold CACK for all packets behind it (PDS-86).
TEST_F(ReceiveTest, Ses45_Ses105_Unexpected_OnlyLastPacketGuaranteed) {
  const Bytes message = pattern(3 * kMtu);
  const SesRequest request = b.request_for(SesOpcode::Send);
  for (const std::uint32_t offset : {kMtu, 0u}) {  // the first to come is not SOM (SES-23)
    const pds::Response early = take_part(request, message, offset, kMtu);
    EXPECT_FALSE(early.guaranteed);
    EXPECT_EQ(header_of(early).opcode, wire::ResponseOpcode::DefaultResponse);
  }
  const pds::Response last = take_part(request, message, 2 * kMtu, kMtu);
  EXPECT_TRUE(last.guaranteed);  // PDS-111: the overflow list
  EXPECT_EQ(header_of(last).opcode, wire::ResponseOpcode::Response);
  EXPECT_EQ(header_of(last).list, wire::List::Overflow);
  EXPECT_EQ(header_of(last).return_code, ReturnCode::Ok);
  EXPECT_EQ(header_of(last).modified_length, message.size());
  EXPECT_EQ(b.ses.counters().unexpected_messages, 1u);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(memory, message);
  expect_idle();
}

TEST_F(ReceiveTest, Ses37_LaterReceive_TakesPartialMessage) {
  const Bytes message = pattern(4 * kMtu);
  const SesRequest request = b.request_for(SesOpcode::Send);
  take_part(request, message, 3 * kMtu, kMtu);
  take_part(request, message, kMtu, kMtu);
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_EQ(b.buffers.in_use(), 0u) << "what was kept is copied, the rest lands directly";
  take_part(request, message, 0, kMtu);
  take_part(request, message, 2 * kMtu, kMtu);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(memory, message);
  expect_idle();
}

TEST_F(ReceiveTest, Idea5_Ses51_UnexpectedMessagesKeepTheirOrder) {
  const SesRequest request = part(b.request_for(SesOpcode::Send), 0, 4, 4);
  for (const unsigned seed : {1u, 2u, 3u}) b.take(request, pattern(4, seed));
  for (const unsigned seed : {1u, 2u, 3u}) {
    Bytes memory(4);
    ASSERT_TRUE(b.receive({slice_of(memory)}));
    EXPECT_EQ(memory, pattern(4, seed));
  }
  EXPECT_EQ(b.sink.all.size(), 3u);
}

TEST_F(ReceiveTest, Ses44_UnexpectedMemory_BoundedPerContext) {
  const SesRequest request = b.request_for(SesOpcode::Send);
  const Bytes message = pattern(kMtu);
  int kept = 0;
  std::optional<pds::NackCode> nack;
  while (!nack && kept < 1000) {
    nack = take_part(request, message, 0, kMtu).nack;
    kept += nack ? 0 : 1;
  }
  ASSERT_TRUE(nack.has_value()) << "refused for a while, never an SES error";
  EXPECT_GT(kept, 30);
  EXPECT_LT(kept, 64);
  EXPECT_EQ(b.ses.counters().unexpected_refused, 1u);
  EXPECT_EQ(b.ses.counters().unexpected_messages, static_cast<std::uint64_t>(kept));
  Bytes memory(kMtu);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  EXPECT_FALSE(take_part(request, message, 0, kMtu).nack.has_value()) << "memory is free again";
}

// CMS-305: with rendezvous, the first half of the memory does not count as occupied.
TEST_F(ReceiveTest, Cms305_UnexpectedMemory_SaysItsOccupancy) {
  for (const bool rendezvous : {false, true}) {
    Parameters parameters = small_parameters();
    parameters.rendezvous = rendezvous;
    parameters.unexpected_bytes_per_context = 32 * kMtu;
    Node target(3, parameters);
    const SesRequest request = part(target.request_for(SesOpcode::Send), 0, kMtu, kMtu);
    EXPECT_EQ(target.ses.unexpected_occupancy(), 0);
    const double limit = 32 * kMtu;
    const double unpressed = rendezvous ? limit / 2 : 0;
    for (int i = 0; i < 24; ++i) {
      target.take(request, pattern(kMtu), static_cast<std::uint8_t>(1 + i % 4));  // four hosts
      const auto bytes = static_cast<double>(target.ses.unexpected_bytes());
      EXPECT_GE(bytes, (i + 1) * kMtu);
      const double pressing = std::max(0.0, bytes - unpressed);
      EXPECT_DOUBLE_EQ(target.ses.unexpected_occupancy(), pressing / (limit - unpressed));
    }
    EXPECT_GT(target.ses.unexpected_occupancy(), 0.5);
    Bytes memory(kMtu);
    for (int i = 0; i < 24; ++i) ASSERT_TRUE(target.receive({slice_of(memory)}));
    EXPECT_EQ(target.ses.unexpected_occupancy(), 0);
    EXPECT_EQ(target.ses.unexpected_bytes(), 0U);
  }
}

TEST_F(ReceiveTest, Ses44_UnexpectedMessagesLeaveBuffersToOthers) {
  Node tight(3, small_parameters(), small_config(), 16);
  const SesRequest request = part(tight.request_for(SesOpcode::Send), 0, kMtu, kMtu);
  std::optional<pds::NackCode> nack;
  while (!nack) nack = tight.take(request, pattern(kMtu)).nack;
  EXPECT_EQ(*nack, pds::NackCode::NoPktBuffer);
  EXPECT_GE(tight.buffers.available(), 4u) << "one host takes no more than 3/4";
  for (std::uint8_t host = 2; host < 8; ++host)
    nack = tight.take(request, pattern(kMtu), host).nack;
  EXPECT_EQ(*nack, pds::NackCode::NoPktBuffer);
  EXPECT_EQ(tight.buffers.available(), 2u) << "of all hosts together 1/8 is kept";
}

TEST_F(ReceiveTest, Ses44_PacketRefusedInMidMessageComesAgain) {
  Node tight(3, small_parameters(), small_config(), 3);
  const SesRequest request = tight.request_for(SesOpcode::Send);
  const Bytes half = pattern(kMtu);
  tight.take(part(request, 0, kMtu, 4 * kMtu), half);
  tight.take(part(request, kMtu, kMtu, 4 * kMtu), half);
  EXPECT_TRUE(tight.take(part(request, 2 * kMtu, kMtu, 4 * kMtu), half).nack.has_value());
  Bytes memory(4 * kMtu);
  ASSERT_TRUE(tight.receive({slice_of(memory)}));
  EXPECT_EQ(code_of(tight.take(part(request, 2 * kMtu, kMtu, 4 * kMtu), half)), ReturnCode::Ok);
  EXPECT_EQ(code_of(tight.take(part(request, 3 * kMtu, kMtu, 4 * kMtu), half)), ReturnCode::Ok);
  EXPECT_EQ(tight.sink.all.size(), 1u);
}

TEST_F(ReceiveTest, Ses115_Step17_NoState_KeepsTheReceive) {
  Parameters parameters = small_parameters();
  parameters.rx_messages = 1;
  Node tight(3, parameters);
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(tight.receive({slice_of(memory)}));
  ASSERT_TRUE(tight.receive({slice_of(memory)}));
  SesRequest request = tight.request_for(SesOpcode::Send);
  tight.take(part(request, 0, kMtu, 2 * kMtu), pattern(kMtu));
  request.message_id = MsgId{10};
  const pds::Response refused = tight.take(part(request, 0, kMtu, 2 * kMtu), pattern(kMtu));
  EXPECT_EQ(refused.nack, pds::NackCode::NoSesMsgAvail);
  request.message_id = MsgId{9};
  tight.take(part(request, kMtu, kMtu, 2 * kMtu), pattern(kMtu));
  EXPECT_EQ(tight.sink.all.size(), 1u);
  EXPECT_EQ(code_of(tight.take(part(request, 0, 4, 4), pattern(4))), ReturnCode::Ok);
  EXPECT_EQ(tight.sink.all.size(), 2u);
}

// ---- the end of messages -----------------------------------------------------------------------

TEST_F(ReceiveTest, Idea13_Ses113_Abandoned_EndsOnlyItsReceive) {
  const Bytes message = pattern(4 * kMtu);
  Bytes first(message.size());
  Bytes second(message.size());
  ASSERT_TRUE(b.receive({slice_of(first)}));
  ASSERT_TRUE(b.receive({slice_of(second)}));
  SesRequest request = b.request_for(SesOpcode::Send);
  take_part(request, message, 0, kMtu);
  const SesRequest end = part(b.request_for(SesOpcode::MsgError), 2 * kMtu, 0, 4 * kMtu);
  EXPECT_EQ(code_of(b.take(end)), ReturnCode::Ok);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  EXPECT_EQ(b.sink.all[0].length, kMtu);
  EXPECT_FALSE(b.ses.idle()) << "one packet was sent before and is on its way (RUD)";
  take_part(request, message, kMtu, kMtu);
  EXPECT_TRUE(b.ses.idle());
  request.message_id = MsgId{10};
  for (std::uint32_t i = 0; i < 4; ++i) take_part(request, message, i * kMtu, kMtu);
  ASSERT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(b.sink.all[1].status, Status::Ok);
  EXPECT_EQ(second, message);
}

TEST_F(ReceiveTest, Ses113_NothingPlaced_ReceiveIsPutBack) {
  Bytes memory(10);
  int operation = 0;
  ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, &operation));
  const SesRequest request = b.request_for(SesOpcode::Send);
  const Bytes message = pattern(3 * kMtu);
  take_part(request, message, kMtu, kMtu);  // beyond the buffer: nothing placed
  b.take(part(b.request_for(SesOpcode::MsgError), kMtu, 0, 3 * kMtu));
  EXPECT_TRUE(b.sink.all.empty());
  b.take(part(request, 0, 10, 10), pattern(10));
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].context, &operation);
  EXPECT_EQ(b.sink.all[0].status, Status::Ok);
}

TEST_F(ReceiveTest, Ses113_AbandonedUnexpectedMessageVanishes) {
  const Bytes message = pattern(4 * kMtu);
  take_part(b.request_for(SesOpcode::Send), message, 0, kMtu);
  b.take(part(b.request_for(SesOpcode::MsgError), kMtu, 0, 4 * kMtu));
  expect_idle();
  Bytes memory(message.size());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  EXPECT_TRUE(b.sink.all.empty());
}

TEST_F(ReceiveTest, Ses122_PdcLostInMidMessage) {
  const Bytes message = pattern(4 * kMtu);
  Bytes memory(message.size());
  SesRequest request = b.request_for(SesOpcode::Send);
  take_part(request, message, 0, kMtu);  // unexpected
  request.message_id = MsgId{10};
  b.take(part(request, 0, 4, 4), pattern(4));  // unexpected and complete
  ASSERT_TRUE(b.receive({slice_of(memory)}));  // takes over the first
  request.message_id = MsgId{11};
  take_part(request, message, 0, kMtu);  // unexpected
  b.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::PeerLost);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  ASSERT_EQ(b.sink.all.size(), 2u) << "a complete message outlives its PDC";
  EXPECT_EQ(b.sink.all[1].length, 4u);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  EXPECT_EQ(b.sink.all.size(), 2u) << "the partial one is gone";
  expect_idle();
}

// Only a MSG_ERROR puts a receive back (SES-113).
TEST_F(ReceiveTest, Ses122_PdcLostBeforeAnythingWasPlaced) {
  Bytes memory(10);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  take_part(b.request_for(SesOpcode::Send), pattern(3 * kMtu), kMtu, kMtu);  // beyond the buffer
  b.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::PeerLost);
  EXPECT_EQ(b.sink.all[0].length, 0u);
  expect_idle();
}

// Too late to take it back, but an error is then that of a cancelled receive.
TEST_F(ReceiveTest, CancelledReceiveWhoseSenderDiesIsCancelled) {
  Bytes memory(4 * kMtu);
  int operation = 0;
  ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, &operation));
  take_part(b.request_for(SesOpcode::Send), pattern(4 * kMtu), 0, kMtu);
  EXPECT_EQ(b.ses.cancel(*b.context, &operation, kNow).error(), Error::NotFound);
  b.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Cancelled);
  expect_idle();
}

TEST_F(ReceiveTest, CancelledReceiveIsNotPutBack) {
  Bytes memory(10);
  int operation = 0;
  ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, &operation));
  take_part(b.request_for(SesOpcode::Send), pattern(3 * kMtu), kMtu, kMtu);  // beyond the buffer
  EXPECT_EQ(b.ses.cancel(*b.context, &operation, kNow).error(), Error::NotFound);
  b.take(part(b.request_for(SesOpcode::MsgError), kMtu, 0, 3 * kMtu));
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Cancelled);
}

TEST_F(ReceiveTest, ReceiveIsRefusedBeyondItsLimits) {
  EXPECT_EQ(b.receive({{nullptr, 1}}).error(), Error::Invalid);
  EXPECT_EQ(b.receive(std::vector<IoSlice>(kMaxIoSlices + 1)).error(), Error::Invalid);
  Bytes memory(4);
  for (std::size_t i = 0; i < small_parameters().posted_receives; ++i) {
    ASSERT_TRUE(b.receive({slice_of(memory)}));
  }
  EXPECT_EQ(b.receive({slice_of(memory)}).error(), Error::Again);
}

TEST_F(ReceiveTest, CancelledReceiveIsOutOfTheWay) {
  Bytes memory(4);
  int operation = 0;
  ASSERT_TRUE(b.receive({slice_of(memory)}, 5, 0, &operation));
  EXPECT_TRUE(b.ses.cancel(*b.context, &operation, kNow));
  EXPECT_EQ(b.ses.cancel(*b.context, &operation, kNow).error(), Error::NotFound);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Cancelled);
  SesRequest request = part(b.request_for(SesOpcode::TaggedSend), 0, 4, 4);
  request.match_bits = 5;
  EXPECT_EQ(header_of(b.take(request, pattern(4))).list, wire::List::Overflow);
}

// ---- sends that ask for delivery (DC flag) ------------------------------------------------------

// Sends of other implementations that ask for delivery and cannot be read (SES-110): NO_RESPONSE
// until a receive has the message (SES-46, SES-48).
class OwedAnswer : public TwoNodes {
 protected:
  // A packet of a plain send with the DC flag, `length` bytes at `offset` of `total`; the answer.
  pds::Response arrives(std::uint32_t offset, std::uint32_t length, std::uint32_t total) {
    SesRequest request = part(b.request_for(SesOpcode::Send), offset, length, total);
    request.dc = true;
    Bytes bytes(request.encoded_bytes());
    request.encode(bytes.data());
    const Bytes payload = pattern(length);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return b.take(request.next_hdr, bytes, 1, kPdc, 100 + offset / kMtu);
  }
  static bool is_put_off(const pds::Response& response) {
    return response.provisional && response.guaranteed &&
           header_of(response).opcode == wire::ResponseOpcode::NoResponse;
  }
  // The only answer that was given afterwards, to packet `number` of the message.
  wire::SesResponseHeader answer(std::uint32_t number) {
    EXPECT_EQ(b.delivery.answers.size(), 1u);
    if (b.delivery.answers.size() != 1) return {};
    const auto& given = b.delivery.answers[0];
    EXPECT_EQ(given.pdc, kPdc);
    EXPECT_EQ(given.psn, Psn{100 + number});
    EXPECT_TRUE(given.response.guaranteed);
    EXPECT_FALSE(given.response.provisional);
    return header_of(given.response);
  }

  Bytes in = Bytes(2 * kMtu);
};

TEST_F(OwedAnswer, Ses110_ExpectedSendIsAnsweredAtOnce) {
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_EQ(code_of(arrives(0, 100, 100)), ReturnCode::Ok);
  EXPECT_EQ(b.sink.all.size(), 1u);
  EXPECT_TRUE(b.delivery.answers.empty());
}

TEST_F(OwedAnswer, Ses46_Ses48_Ses110_Unexpected_AnsweredByReceive) {
  EXPECT_TRUE(is_put_off(arrives(0, 100, 100)));
  turn(b);
  EXPECT_TRUE(b.delivery.answers.empty());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const wire::SesResponseHeader header = answer(0);
  EXPECT_EQ(header.opcode, wire::ResponseOpcode::Response);
  EXPECT_EQ(header.return_code, ReturnCode::Ok);
  EXPECT_EQ(header.list, wire::List::Overflow);
  EXPECT_EQ(header.modified_length, 100u);
  EXPECT_EQ(header.message_id, MsgId{9});
  EXPECT_EQ(header.job_id, JobId{101});
  EXPECT_EQ(b.sink.all.size(), 1u);
  expect_idle();
}

// SES-105: one packet is enough, the last one; what comes behind the match is in the buffer when it
// is answered.
TEST_F(OwedAnswer, Ses105_OfALongerMessageOnlyTheLastPacketWaits) {
  const pds::Response first = arrives(0, kMtu, 2 * kMtu);
  EXPECT_FALSE(first.provisional);
  EXPECT_EQ(code_of(first), ReturnCode::Ok);
  EXPECT_TRUE(is_put_off(arrives(kMtu, kMtu, 2 * kMtu)));
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_EQ(answer(1).modified_length, 2u * kMtu);
  expect_idle();
}

TEST_F(OwedAnswer, LastPacketMayComeFirst) {
  EXPECT_TRUE(is_put_off(arrives(kMtu, kMtu, 2 * kMtu)));
  EXPECT_FALSE(arrives(0, kMtu, 2 * kMtu).provisional);
  EXPECT_TRUE(b.delivery.answers.empty());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_EQ(answer(1).return_code, ReturnCode::Ok);
  EXPECT_EQ(b.sink.all.size(), 1u);
  expect_idle();
}

// SES-67: OVERFLOW and 0 would put off a message that is deferrable.
TEST_F(OwedAnswer, Ses67_AnswerStatesTheBytesThatWillFit) {
  arrives(kMtu, 1, kMtu + 1);
  in.resize(10);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_EQ(answer(1).modified_length, 10u);
}

TEST_F(OwedAnswer, Ses49_SendWithoutTheFlagIsAnsweredAtOnce) {
  const SesRequest request = part(b.request_for(SesOpcode::Send), 0, 100, 100);
  const pds::Response response = b.take(request, pattern(100));
  EXPECT_FALSE(response.provisional);
  EXPECT_EQ(header_of(response).list, wire::List::Overflow);
}

// Its sender wants to finish (FI_DISCARD), and nothing went wrong.
TEST_F(OwedAnswer, DiscardedMessageIsAnswered) {
  arrives(0, 100, 100);
  PeekOp op;
  op.discard = true;
  ASSERT_TRUE(b.ses.peek(*b.context, op, kNow));
  EXPECT_EQ(answer(0).return_code, ReturnCode::Ok);
  expect_idle();
}

TEST_F(OwedAnswer, UnwantedMessageIsAnsweredWithAnError) {
  arrives(0, 100, 100);
  b.ses.close_context(*b.context, kNow);
  EXPECT_EQ(answer(0).return_code, ReturnCode::Dropped);
}

// SES-113: its sender gives the message up between its packets.
TEST_F(OwedAnswer, Ses113_MessageGivenUp_AnsweredWithError) {
  arrives(kMtu, kMtu, 2 * kMtu);
  b.take(part(b.request_for(SesOpcode::MsgError), kMtu, 0, 2 * kMtu));
  EXPECT_EQ(answer(1).return_code, ReturnCode::Dropped);
}

// SES-112: while the first packet is still missing.
TEST_F(OwedAnswer, Ses112_MessageThatIsBrokenIsAnsweredAtOnce) {
  arrives(2 * kMtu, kMtu, 3 * kMtu);
  SesRequest broken = part(b.request_for(SesOpcode::Send), kMtu, kMtu, 3 * kMtu);
  broken.dc = broken.ie = true;
  EXPECT_EQ(code_of(b.take(broken, pattern(kMtu))), ReturnCode::InitiatorErr);
  EXPECT_EQ(answer(2).return_code, ReturnCode::InitiatorErr);
}

}  // namespace
}  // namespace uet::ses::test
