// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cutting operations into packets, and completing them exactly once.
#include "ses/initiator.h"

#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

class InitiatorTest : public TwoNodes {
 protected:
  static pds::Response answer(ReturnCode code,
                              wire::ResponseOpcode opcode = wire::ResponseOpcode::Response) {
    wire::SesResponseHeader header;
    header.opcode = opcode;
    header.return_code = code;
    pds::Response response;
    response.next_hdr = NextHdr::Response;
    response.length = static_cast<std::uint8_t>(header.encode(response.bytes.data()));
    return response;
  }
  // A packet of the return direction with `length` bytes at `offset` of a read.
  static Bytes data_packet(MsgId id, std::uint32_t offset, const Bytes& data,
                           ReturnCode code = ReturnCode::Ok) {
    wire::SesResponseHeader header;
    header.next_hdr = NextHdr::ResponseData;
    header.opcode = wire::ResponseOpcode::ResponseWData;
    header.return_code = code;
    header.read_request_message_id = id;
    header.message_offset = offset;
    header.payload_length = static_cast<std::uint32_t>(data.size());
    Bytes bytes(sizeof(wire::SesResponseData));
    header.encode(bytes.data());
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
  }
  void read_data(const Sent& request, std::uint32_t offset, const Bytes& data,
                 ReturnCode code = ReturnCode::Ok, PdcId pdc = kPdc) {
    a.take(NextHdr::ResponseData, data_packet(request.request().message_id, offset, data, code), 2,
           pdc);
  }
  const pds::Response bare_ack{};
};

TEST_F(InitiatorTest, Ses8_StandardHeaderIsSentAlways) {
  Bytes memory = pattern(1);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  ASSERT_TRUE(a.write(b, {slice_of(memory)}, Rkey{1}));
  for (const Sent& sent : a.packets()) {
    EXPECT_EQ(sent.next_hdr, NextHdr::RequestStd);
    a.answered(sent, bare_ack);
  }
}

TEST_F(InitiatorTest, Ses21And22_LongMessage_FullPacketsAndMarks) {
  Bytes memory = pattern(2 * kMtu + 5);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 3u);
  const std::size_t lengths[] = {kMtu, kMtu, 5};
  for (std::size_t i = 0; i < 3; ++i) {
    const SesRequest request = sent[i].request();
    EXPECT_EQ(request.payload.size(), lengths[i]);
    EXPECT_EQ(request.som, i == 0);
    EXPECT_EQ(request.eom, i == 2);
    EXPECT_EQ(request.message_offset, i * kMtu);
    EXPECT_TRUE(std::equal(request.payload.begin(), request.payload.end(),
                           memory.begin() + static_cast<std::ptrdiff_t>(i * kMtu)));
    a.answered(sent[i], bare_ack);
  }
}

// SES-10: and every packet has the flags that it must have.
TEST_F(InitiatorTest, Ses23_EveryPacketRepeatsWhatNamesTheMessage) {
  Bytes memory = pattern(3 * kMtu);
  Peer peer = b.peer();
  peer.generation = RiGeneration{1};
  RmaOp op = a.rma(peer, {}, Rkey{0xACCE5}, 4096);
  const std::vector<IoSlice> local{slice_of(memory)};
  op.local = local;
  op.data = 0xDA7A;
  op.delivery_complete = true;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  for (const Sent& sent : a.packets()) {
    const SesRequest request = sent.request();
    EXPECT_EQ(request.opcode, SesOpcode::Write);
    EXPECT_EQ(request.message_id, MsgId{1});
    EXPECT_EQ(request.job_id, JobId{101});
    EXPECT_EQ(request.pid_on_fep, PidOnFep{2});
    EXPECT_EQ(request.resource_index, ResourceIndex{10});
    EXPECT_EQ(request.ri_generation, RiGeneration{1});
    EXPECT_EQ(request.initiator, InitiatorId{77});
    EXPECT_EQ(request.buffer_offset, 4096u);
    EXPECT_EQ(request.match_bits, 0xACCE5u);
    EXPECT_EQ(request.request_length, 3 * kMtu);
    EXPECT_TRUE(request.rel);  // SES-12
    EXPECT_TRUE(request.dc);   // SES-110
    EXPECT_FALSE(request.ie);
    EXPECT_EQ(request.som, request.message_offset == 0);
    EXPECT_EQ(request.eom, request.message_offset == 2 * kMtu);
    EXPECT_EQ(request.hd, request.som);  // SES-24
    EXPECT_EQ(request.header_data, request.som ? 0xDA7Au : 0u);
    a.answered(sent, bare_ack);
  }
}

TEST_F(InitiatorTest, Ses27And28_IdsAreNeverZeroNorInUse) {
  Bytes memory = pattern(1);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent kept = a.packets().at(0);
  std::uint16_t last = 1;
  bool wrapped = false;
  for (int i = 0; i < 0x10010; ++i) {
    ASSERT_TRUE(a.send(b, {slice_of(memory)}));
    const Sent sent = a.packets().at(0);
    const std::uint16_t id = sent.request().message_id.value;
    ASSERT_NE(id, 0);
    ASSERT_NE(id, kept.request().message_id.value);
    wrapped |= id < last;
    last = id;
    a.answered(sent, bare_ack);
    a.sink.all.clear();
  }
  EXPECT_TRUE(wrapped);
  a.answered(kept, bare_ack);
}

TEST_F(InitiatorTest, Ses31_ZeroLengthIsOnePacket) {
  ASSERT_TRUE(a.send(b, {}));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].request().som && sent[0].request().eom);
  EXPECT_EQ(sent[0].request().request_length, 0u);
  a.answered(sent[0], bare_ack);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
}

TEST_F(InitiatorTest, Ses32_LongestMessageIsTakenOneByteMoreIsNot) {
  std::byte memory{};
  ASSERT_TRUE(a.send(b, {{&memory, Ses::kMaxMessageBytes}}, {}, &memory));
  EXPECT_EQ(a.send(b, {{&memory, Ses::kMaxMessageBytes + 1}}).error(), Error::TooLong);
  EXPECT_TRUE(a.ses.cancel(*a.context, &memory, kNow));
}

TEST_F(InitiatorTest, Ses108_AllPacketsAnswered_CompletesOnce) {
  Bytes memory = pattern(3 * kMtu);
  int operation = 0;
  ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &operation));
  const std::vector<Sent> sent = a.packets();
  a.answered(sent[2], answer(ReturnCode::Ok));
  a.answered(sent[0], bare_ack);
  EXPECT_TRUE(a.sink.all.empty());
  EXPECT_EQ(a.ses.outstanding(*a.context), 1u);
  a.answered(sent[1], answer(ReturnCode::Null));  // SES-107
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  EXPECT_EQ(a.sink.all[0].context, &operation);
  EXPECT_EQ(a.ses.outstanding(*a.context), 0u);
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(InitiatorTest, Ses49_NoResponseCountsAsAcknowledged) {
  Bytes memory = pattern(1);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  a.answered(a.packets().at(0), answer(ReturnCode::Null, wire::ResponseOpcode::NoResponse));
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
}

// A sender that asked for delivery waits for the response that follows; so does a read for data.
TEST_F(InitiatorTest, Ses47_Ses49_DeliveryOrRead_NoResponseProvisional) {
  Bytes memory = pattern(64);
  const Peer target = b.peer();
  const IoSlice local[] = {slice_of(memory)};
  SendOp op;
  op.peer = &target;
  op.local = local;
  op.delivery_complete = true;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow).ok());
  const auto sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  const auto no_response = answer(ReturnCode::Null, wire::ResponseOpcode::NoResponse);
  EXPECT_EQ(a.answered(sent[0], no_response), pds::Verdict::Provisional);
  EXPECT_EQ(a.answered(sent[0], no_response), pds::Verdict::Provisional);
  EXPECT_TRUE(a.sink.all.empty());
  EXPECT_EQ(a.answered(sent[0], answer(ReturnCode::Disabled)), pds::Verdict::Final);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::ReturnCode);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  const Sent asked = a.packets().at(0);
  EXPECT_EQ(a.answered(asked, no_response), pds::Verdict::Provisional);
  EXPECT_EQ(a.answered(asked, answer(ReturnCode::Ok)), pds::Verdict::Final);
  EXPECT_EQ(a.sink.all.size(), 1u) << "SES-85: the data are still to come";
  read_data(asked, 0, pattern(64, 2));
  EXPECT_EQ(a.sink.all.size(), 2u);
  EXPECT_EQ(memory, pattern(64, 2));
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(InitiatorTest, Ses43_ShorterModifiedLength_IsSuccess) {
  Bytes memory = pattern(10);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  a.answered(a.packets().at(0), answer(ReturnCode::Ok));  // modified_length 0
  EXPECT_EQ(a.sink.all.at(0).status, Status::Ok);
}

TEST_F(InitiatorTest, Ses109_FirstErrorWins_MsgErrorEndsMessage) {
  Bytes memory = pattern(10 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent first = a.packet().value();
  const Sent second = a.packet().value();
  a.answered(first, answer(ReturnCode::Disabled));
  a.answered(second, answer(ReturnCode::BadJobId));
  EXPECT_TRUE(a.sink.all.empty()) << "not before PDS is done with the message";
  const std::vector<Sent> rest = a.packets();
  ASSERT_EQ(rest.size(), 1u);
  const SesRequest end = rest[0].request();  // SES-113
  EXPECT_EQ(end.opcode, SesOpcode::MsgError);
  EXPECT_FALSE(end.som);
  EXPECT_TRUE(end.eom);
  EXPECT_EQ(end.message_id, first.request().message_id);
  EXPECT_EQ(end.message_offset, 2 * kMtu);
  EXPECT_EQ(end.payload_length, 0u);  // WIRE 3.12
  EXPECT_TRUE(end.payload.empty());
  a.answered(rest[0], bare_ack);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::ReturnCode);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::Disabled);
  EXPECT_TRUE(a.ses.idle());
}

// Header data are the first packet's alone.
TEST_F(InitiatorTest, Ses24_Ses113_EndOfAMessageWithDataCarriesNone) {
  Bytes memory = pattern(3 * kMtu);
  const Peer peer = b.peer();
  const std::vector<IoSlice> local{slice_of(memory)};
  SendOp op;
  op.peer = &peer;
  op.local = local;
  op.data = 0xDA7A;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  const Sent first = a.packet().value();
  EXPECT_TRUE(first.request().hd);
  a.answered(first, answer(ReturnCode::Disabled));
  const std::vector<Sent> rest = a.packets();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].request().opcode, SesOpcode::MsgError);
  EXPECT_FALSE(rest[0].request().hd);
  a.answered(rest[0], bare_ack);
  EXPECT_EQ(a.sink.all.size(), 1u);
}

TEST_F(InitiatorTest, Ses109_ErrorAfterTheLastPacketNeedsNoMsgError) {
  Bytes memory = pattern(2 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const std::vector<Sent> sent = a.packets();
  a.answered(sent[0], answer(ReturnCode::Dropped));
  a.answered(sent[1], bare_ack);
  EXPECT_TRUE(a.packets().empty());
  EXPECT_EQ(a.sink.all.at(0).return_code, ReturnCode::Dropped);
}

TEST_F(InitiatorTest, Pds20_PdsErrorsEndInOneCompletion) {
  Bytes memory = pattern(3 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent first = a.packet().value();
  a.packet();
  pds::Message& message = *a.delivery.backlog.front();
  a.answered(first, bare_ack);
  message.owner->pds_error(message, first.tag, pds::PdsError::RtoExhausted, kNow);
  EXPECT_TRUE(a.sink.all.empty());
  a.delivery.backlog.clear();
  message.owner->message_failed(message, pds::PdsError::ClosedInError, kNow);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::PdsError);
  EXPECT_EQ(a.sink.all[0].pds_error, pds::PdsError::RtoExhausted);
}

TEST_F(InitiatorTest, MalformedResponseFailsTheOperation) {
  Bytes memory = pattern(1);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  pds::Response response = answer(ReturnCode::Ok);
  response.length = 5;
  a.answered(a.packets().at(0), response);
  EXPECT_EQ(a.sink.all.at(0).return_code, ReturnCode::Uncor);
  EXPECT_EQ(a.ses.counters().malformed, 1u);
}

TEST_F(InitiatorTest, Ses144_InjectLeavesTheBufferFree) {
  Bytes memory = pattern(300);
  const Bytes original = memory;
  const Peer peer = b.peer();
  const std::vector<IoSlice> local{{&memory[0], 100}, {&memory[100], 200}};
  SendOp op;
  op.peer = &peer;
  op.local = local;
  op.inject = true;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  memory.assign(memory.size(), std::byte{0});
  const Sent sent = a.packets().at(0);
  const SesRequest request = sent.request();
  EXPECT_TRUE(std::equal(request.payload.begin(), request.payload.end(), original.begin()));
  EXPECT_EQ(a.buffers.in_use(), 1u);
  a.answered(sent, bare_ack);
  EXPECT_EQ(a.buffers.in_use(), 0u);
}

TEST_F(InitiatorTest, Ses144_InjectIsOnePacketAtMost) {
  Bytes memory(kMtu + 1);
  const Peer peer = b.peer();
  const std::vector<IoSlice> local{slice_of(memory)};
  SendOp op;
  op.peer = &peer;
  op.local = local;
  op.inject = true;
  EXPECT_EQ(a.ses.max_inject_bytes(), kMtu);
  EXPECT_EQ(a.ses.initiator().post(*a.context, op, kNow).error(), Error::TooLong);
}

TEST_F(InitiatorTest, PacketAcrossManySlicesIsGatheredIntoABuffer) {
  Bytes memory = pattern(4 * kMtu);
  std::vector<IoSlice> local;  // long, then many short ones inside the second packet, then long
  std::size_t at = 0;
  for (const std::size_t length : {std::size_t{kMtu + 10}, std::size_t{1}, std::size_t{0},
                                   std::size_t{7}, std::size_t{300}, std::size_t{2 * kMtu}}) {
    local.push_back({memory.data() + at, length});
    at += length;
  }
  ASSERT_TRUE(a.send(b, local));
  EXPECT_EQ(a.buffers.in_use(), 1u);
  Bytes arrived;
  for (const Sent& sent : a.packets()) {
    const SesRequest request = sent.request();
    arrived.insert(arrived.end(), request.payload.begin(), request.payload.end());
    a.answered(sent, bare_ack);
  }
  memory.resize(at);
  EXPECT_EQ(arrived, memory);
  EXPECT_EQ(a.buffers.in_use(), 0u);
}

TEST_F(InitiatorTest, ShortageIsAgainAndLeavesNothingBehind) {
  Bytes memory = pattern(10);
  a.delivery.refuse = true;
  EXPECT_EQ(a.send(b, {slice_of(memory)}).error(), Error::Again);
  a.delivery.refuse = false;
  EXPECT_TRUE(a.ses.idle());
  for (std::size_t i = 0; i < small_parameters().tx_messages; ++i) {
    ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  }
  EXPECT_EQ(a.send(b, {slice_of(memory)}).error(), Error::Again);
  for (const Sent& sent : a.packets()) a.answered(sent, bare_ack);
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(InitiatorTest, ImpossibleArgumentsAreInvalid) {
  SendOp op;
  EXPECT_EQ(a.ses.initiator().post(*a.context, op, kNow).error(), Error::Invalid);
  EXPECT_EQ(a.send(b, {{nullptr, 1}}).error(), Error::Invalid);
  EXPECT_EQ(a.send(b, std::vector<IoSlice>(kMaxIoSlices + 1)).error(), Error::Invalid);
}

TEST_F(InitiatorTest, CancelOfWhatHasNotLeftCompletesAtOnce) {
  Bytes memory = pattern(2 * kMtu);
  int first = 0;
  int second = 0;
  ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &first));
  ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &second));
  const Sent sent = a.packet().value();
  EXPECT_TRUE(a.ses.cancel(*a.context, &second, kNow));
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  EXPECT_EQ(a.sink.all[0].context, &second);
  a.answered(sent, bare_ack);
  for (const Sent& rest : a.packets()) a.answered(rest, bare_ack);
  ASSERT_EQ(a.sink.all.size(), 2u);
  EXPECT_EQ(a.sink.all[1].status, Status::Ok);
}

TEST_F(InitiatorTest, Ses113_CancelOfWhatHasBegunEndsItWithMsgError) {
  Bytes memory = pattern(3 * kMtu);
  Bytes received(memory.size());
  int operation = 0;
  ASSERT_TRUE(b.receive({slice_of(received)}));
  ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &operation));
  deliver(a, b, a.packet().value());
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  EXPECT_EQ(a.ses.cancel(*a.context, &operation, kNow).error(), Error::NotFound) << "only once";
  EXPECT_TRUE(a.sink.all.empty()) << "not before the peer has answered";
  const Sent end = a.packet().value();
  EXPECT_EQ(end.request().opcode, SesOpcode::MsgError);
  EXPECT_EQ(end.request().message_offset, kMtu);
  deliver(a, b, end);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  expect_idle();
}

// A packet that the target refused and accepts later must not open a state that never ends.
TEST_F(InitiatorTest, Ses113_MsgErrorFollowsAllPacketsThatWereMade) {
  Bytes memory = pattern(4 * kMtu);
  int operation = 0;
  ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &operation));
  const Sent first = a.packet().value();
  const Sent second = a.packet().value();
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  deliver(a, b, second);
  EXPECT_TRUE(a.delivery.backlog.empty());
  deliver(a, b, first);
  ASSERT_EQ(a.delivery.backlog.size(), 1u);
  EXPECT_TRUE(a.delivery.backlog.front()->ends_message);
  const Sent end = a.packet().value();
  EXPECT_EQ(end.request().opcode, SesOpcode::MsgError);
  EXPECT_EQ(end.request().message_offset, 2 * kMtu);
  deliver(a, b, end);
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(InitiatorTest, CancelOfWhatHasLeftWholeIsTooLate) {
  Bytes memory = pattern(2 * kMtu);
  int operation = 0;
  ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &operation));
  const std::vector<Sent> sent = a.packets();
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  EXPECT_EQ(a.ses.cancel(*a.context, &operation, kNow).error(), Error::NotFound) << "only once";
  for (const Sent& packet : sent) a.answered(packet, bare_ack);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
}

// Mercury takes no other error of what it has cancelled.
TEST_F(InitiatorTest, CancelledOperationThatFailsIsCancelled) {
  Bytes memory = pattern(kMtu);
  int operations[2] = {};
  for (int& operation : operations) {
    ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &operation));
  }
  const std::vector<Sent> sent = a.packets();
  for (int& operation : operations) EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  a.fail(sent[0], pds::PdsError::RtoExhausted);
  a.answered(sent[1], answer(ReturnCode::NoMatch));  // else it would be tried again
  ASSERT_EQ(a.sink.all.size(), 2u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  EXPECT_EQ(a.sink.all[1].status, Status::Cancelled);
  expect_idle();
}

// One packet has failed, and another is still under way when it is cancelled.
TEST_F(InitiatorTest, FailedOperationMayStillBeCancelled) {
  Bytes memory = pattern(2 * kMtu);
  int operation = 0;
  ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &operation));
  const std::vector<Sent> sent = a.packets();
  a.fail(sent[0], pds::PdsError::RtoExhausted);
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  a.fail(sent[1], pds::PdsError::RtoExhausted);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
}

TEST_F(InitiatorTest, CancelOfAReadWaitsForTheDataAskedFor) {
  Bytes region = pattern(8 * kMtu);
  Bytes memory(region.size());
  const Rkey key = b.expose(region);
  const Peer peer = b.peer();
  int operation = 0;
  const std::vector<IoSlice> local{slice_of(memory)};
  RmaOp op = a.rma(peer, local, key, 0, Kind::Read);
  op.context = &operation;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  const std::vector<Sent> asked = a.packets();  // as many as may be outstanding at a time
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  EXPECT_TRUE(a.delivery.backlog.empty()) << "no request more";
  for (const Sent& sent : asked) deliver(a, b, sent);
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  expect_idle();
}

// ---- reads -------------------------------------------------------------------------------------

// WIRE 3.12: a request packet for each payload MTU of the answer.
TEST_F(InitiatorTest, Ses81_ReadAsksForOneMtuPerPacket) {
  Bytes memory(2 * kMtu + 1);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 3u);
  const std::uint32_t lengths[] = {0, kMtu, 1};  // SOM has no length field (SES-89)
  for (std::uint32_t i = 0; i < 3; ++i) {
    const SesRequest request = sent[i].request();
    EXPECT_EQ(request.som, i == 0);
    EXPECT_EQ(request.eom, i == 2);
    EXPECT_EQ(request.message_offset, i * kMtu);
    EXPECT_EQ(request.payload_length, lengths[i]);
    EXPECT_EQ(request.request_length, 2 * kMtu + 1);
    EXPECT_TRUE(request.payload.empty());
    EXPECT_EQ(request.message_id, sent[0].request().message_id);
  }
  a.ses.client().pdc_closed(kPdc, pds::PdsError::LocalClose, kNow);
  for (const Sent& packet : sent) a.answered(packet, bare_ack);
}

TEST_F(InitiatorTest, Ses85_AllBytesInAnyOrder_ReadCompletes) {
  Bytes memory(2 * kMtu + 1);
  const Bytes remote = pattern(memory.size());
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  const std::vector<Sent> sent = a.packets();
  for (const Sent& packet : sent) a.answered(packet, answer(ReturnCode::Ok));
  EXPECT_TRUE(a.sink.all.empty());
  EXPECT_EQ(a.delivery.locks, 3);  // SES-84
  for (const std::uint32_t i : {2u, 0u, 1u}) {
    const auto begin = remote.begin() + i * kMtu;
    const std::size_t count = std::min<std::size_t>(kMtu, remote.size() - i * kMtu);
    read_data(sent[0], i * kMtu, Bytes(begin, begin + static_cast<std::ptrdiff_t>(count)));
  }
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  EXPECT_EQ(memory, remote);
  EXPECT_EQ(a.delivery.locks, 0);
}

TEST_F(InitiatorTest, Pds199_DataMayComeBeforeTheAck) {
  Bytes memory(10);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  const Sent sent = a.packets().at(0);
  read_data(sent, 0, pattern(10));
  EXPECT_TRUE(a.sink.all.empty()) << "PDS still has the request";
  a.answered(sent, bare_ack);
  EXPECT_EQ(a.sink.all.size(), 1u);
}

// WIRE 3.12: the data in the ACK.
TEST_F(InitiatorTest, Ses82_DataMayRideInTheAck) {
  for (const NextHdr form : {NextHdr::ResponseData, NextHdr::ResponseDataSmall}) {
    Bytes memory(16);
    ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
    const Sent sent = a.packets().at(0);
    wire::SesResponseHeader header;
    header.next_hdr = form;
    header.opcode = wire::ResponseOpcode::ResponseWData;
    header.return_code = ReturnCode::Ok;
    header.payload_length = 16;
    pds::Response response;
    response.next_hdr = form;
    const std::size_t head = header.encode(response.bytes.data());
    const Bytes data = pattern(16);
    std::copy(data.begin(), data.end(), response.bytes.begin() + static_cast<int>(head));
    response.length = static_cast<std::uint8_t>(head + 16);
    a.sink.all.clear();
    a.answered(sent, response);
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(memory, data);
    EXPECT_EQ(a.delivery.locks, 0);
  }
}

TEST_F(InitiatorTest, Ses87_ReadErrorStopsAskingAndWaitsForTheRest) {
  Bytes memory(8 * kMtu);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  const Sent first = a.packet().value();
  const Sent second = a.packet().value();
  a.answered(first, answer(ReturnCode::BadAddr));
  EXPECT_TRUE(a.packets().empty());
  a.answered(second, bare_ack);
  const std::vector<Sent> rest = a.packets();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].request().opcode, SesOpcode::MsgError);
  a.answered(rest[0], bare_ack);
  EXPECT_TRUE(a.sink.all.empty()) << "data of the second packet are on their way";
  read_data(second, kMtu, {}, ReturnCode::HostPoisoned);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::BadAddr);
  EXPECT_EQ(a.delivery.locks, 0);
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(InitiatorTest, Ses87_ErrorInReturnDataFailsTheRead) {
  Bytes memory(10);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  const Sent sent = a.packets().at(0);
  a.answered(sent, bare_ack);
  read_data(sent, 0, {}, ReturnCode::HostPoisoned);
  EXPECT_EQ(a.sink.all.at(0).return_code, ReturnCode::HostPoisoned);
}

TEST_F(InitiatorTest, Ses88_OnlyPiecesAskedForAreTaken) {
  Bytes memory(3 * kMtu);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  const Sent sent = a.packet().value();  // only the first piece is asked for
  read_data(sent, kMtu, pattern(kMtu));
  read_data(sent, 1, pattern(kMtu));
  read_data(sent, UINT32_MAX, pattern(1));
  read_data(sent, 0, pattern(kMtu), ReturnCode::Ok, PdcId{0x99});  // another peer
  EXPECT_EQ(a.ses.counters().stray_responses, 4u);
  EXPECT_EQ(memory, Bytes(3 * kMtu)) << "nothing was placed";
  read_data(sent, 0, pattern(kMtu));
  read_data(sent, 0, pattern(kMtu, 2));  // a second answer to the same piece
  EXPECT_EQ(a.ses.counters().stray_responses, 5u);
  EXPECT_EQ(memory[0], pattern(1)[0]);
  a.ses.client().pdc_closed(kPdc, {}, kNow);
  sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::LocalClose, kNow);
  sent.message->owner->message_failed(*sent.message, pds::PdsError::LocalClose, kNow);
  EXPECT_TRUE(a.ses.idle());
}

// SES-25: both ends must agree on the payload MTU; a read must not wait for what cannot come.
TEST_F(InitiatorTest, Ses25_Ses88_PieceOfAnotherLengthFailsTheRead) {
  for (const std::size_t length : {kMtu - 1, kMtu + 1, std::uint32_t{0}}) {
    a.sink.all.clear();
    Bytes memory(2 * kMtu);
    ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
    const std::vector<Sent> sent = a.packets();
    for (const Sent& packet : sent) a.answered(packet, answer(ReturnCode::Ok));
    read_data(sent[0], 0, pattern(length));
    EXPECT_TRUE(a.sink.all.empty()) << "the other piece is on its way";
    read_data(sent[0], kMtu, pattern(kMtu));
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all[0].status, Status::ReturnCode);
    EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::OpViolation);
    EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + kMtu, Bytes(kMtu).begin()));
    EXPECT_TRUE(a.ses.idle());
  }
}

TEST_F(InitiatorTest, Ses6_DataThatNameAPsnAreNobodys) {
  wire::SesResponseHeader header;
  header.next_hdr = NextHdr::ResponseDataSmall;
  header.original_request_psn = Psn{1};
  Bytes bytes(sizeof(wire::SesResponseDataSmall));
  header.encode(bytes.data());
  EXPECT_EQ(a.take(NextHdr::ResponseDataSmall, bytes, 2).next_hdr, NextHdr::Response);
  EXPECT_EQ(a.ses.counters().stray_responses, 1u);
}

TEST_F(InitiatorTest, Pds15_OutstandingReadsAreLimitedPerPdc) {
  Bytes memory(6 * kMtu);  // the limit is four
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(a.delivery.kicks, 0);
  read_data(sent[0], 0, pattern(kMtu));
  EXPECT_EQ(a.delivery.kicks, 1);
  std::vector<Sent> more = a.packets();
  ASSERT_EQ(more.size(), 1u);
  read_data(sent[0], kMtu, pattern(kMtu));
  EXPECT_EQ(a.delivery.kicks, 2);
  sent.push_back(more[0]);
  sent.push_back(a.packets().at(0));
  for (std::uint32_t i = 2; i < 6; ++i) read_data(sent[0], i * kMtu, pattern(kMtu));
  for (const Sent& packet : sent) a.answered(packet, bare_ack);
  EXPECT_EQ(a.sink.all.size(), 1u);
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(InitiatorTest, Ses86_OrderlyCloseWithDataMissingFailsTheRead) {
  Bytes memory(10);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  a.answered(a.packets().at(0), bare_ack);
  a.ses.client().pdc_closed(PdcId{0x99}, {}, kNow);
  EXPECT_TRUE(a.sink.all.empty());
  a.ses.client().pdc_closed(kPdc, {}, kNow);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::PdsError);
  EXPECT_EQ(a.sink.all[0].pds_error, pds::PdsError::ClosedInError);
}

// The peer lives and has accepted the read.
TEST_F(InitiatorTest, Ses86_ReadWhoseDataNeverComeTimesOut) {
  const Duration timeout = Parameters{}.read_timeout;
  Bytes memory(3 * kMtu);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(a.ses.next_deadline(), kNever) << "until then PDS looks after it";
  a.answered(sent[0], bare_ack);
  a.answered(sent[1], bare_ack);
  EXPECT_EQ(a.ses.next_deadline(), kNow + timeout);
  const Time later = kNow + timeout / 2;
  sent[2].message->owner->rx_rsp(*sent[2].message, sent[2].tag, {bare_ack.next_hdr, {}, Psn{1}},
                                 later);
  a.ses.progress(kNow + timeout);
  EXPECT_TRUE(a.sink.all.empty());
  read_data(sent[0], kMtu, pattern(kMtu));
  a.ses.progress(later + timeout);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::PdsError);
  EXPECT_EQ(a.sink.all[0].pds_error, pds::PdsError::RtoExhausted);
  EXPECT_EQ(a.delivery.locks, 0);
  EXPECT_TRUE(a.ses.idle());
  read_data(sent[0], 0, pattern(kMtu));
  EXPECT_EQ(a.ses.counters().stray_responses, 1u);
  EXPECT_EQ(a.sink.all.size(), 1u);
}

TEST_F(InitiatorTest, Ses86_ReadThatTimesOutAsksForNoMore) {
  Bytes memory(6 * kMtu);  // the limit is four
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  for (const Sent& packet : a.packets()) a.answered(packet, bare_ack);
  a.ses.progress(kNow + Parameters{}.read_timeout);
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::MsgError);
  a.answered(sent[0], bare_ack);
  EXPECT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.ses.next_deadline(), kNever);
  EXPECT_TRUE(a.ses.idle());
}

// A PDC that nothing but this message needs may have sent its Close Command in a shortage.
TEST_F(InitiatorTest, Ses109_MsgErrorTakesAnotherPdcIfItsOwnCloses) {
  Bytes memory(6 * kMtu);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  for (const Sent& packet : a.packets()) a.answered(packet, bare_ack);
  a.delivery.pdc_closes = true;
  a.ses.progress(kNow + Parameters{}.read_timeout);
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::MsgError);
  a.answered(sent[0], bare_ack);
  EXPECT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.delivery.locks, 0);
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(InitiatorTest, ReadOfNothingCompletesWithItsAck) {
  ASSERT_TRUE(a.read(b, {}, Rkey{1}));
  a.answered(a.packets().at(0), answer(ReturnCode::Ok));
  EXPECT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.delivery.locks, 0);
}

TEST_F(InitiatorTest, ReadCannotBeInjectedNorBringData) {
  Bytes memory(10);
  const Peer peer = b.peer();
  const std::vector<IoSlice> local{slice_of(memory)};
  RmaOp op = a.rma(peer, local, Rkey{1}, 0, Kind::Read);
  op.inject = true;
  EXPECT_EQ(a.ses.initiator().post(*a.context, op, kNow).error(), Error::Invalid);
  op.inject = false;
  op.data = 1;
  EXPECT_EQ(a.ses.initiator().post(*a.context, op, kNow).error(), Error::Invalid);
}

// ---- operations that need no prompt ACK (PDS-128) -----------------------------------------------

class PromptAckTest : public InitiatorTest {
 protected:
  // Sends so many bytes; returns whether SES requests a prompt ACK from PDS.
  bool send(std::size_t bytes, bool prompt_ack) {
    const Peer peer = b.peer();
    const std::vector<IoSlice> local{IoSlice{memory.data(), bytes}};
    SendOp op;
    op.peer = &peer;
    op.local = local;
    op.prompt_ack = prompt_ack;
    EXPECT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
    return a.delivery.backlog.back()->prompt_ack;
  }
  Bytes memory = Bytes(2 * kMtu);
};

TEST_F(PromptAckTest, PdsIsTold) {
  EXPECT_TRUE(send(1, true));
  EXPECT_FALSE(send(kMtu, false));
  EXPECT_TRUE(send(kMtu + 1, false)) << "several packets: the buffer is held until the ACK";
}

TEST_F(PromptAckTest, PromptAcksWhenHalfOfAllMessagesAreInUse) {
  const std::size_t room = small_parameters().tx_messages;
  for (std::size_t i = 1; i <= room; ++i) EXPECT_EQ(send(1, false), i > room / 2) << i;
}

TEST_F(PromptAckTest, PromptAcksWhenHalfOfTheTxSizeIsInUse) {
  ContextConfig config = small_config();
  config.resource_index = ResourceIndex{9};
  config.tx_size = 8;
  const auto opened = a.ses.open_context(config, a.sink);
  ASSERT_TRUE(opened.ok());
  a.context = opened.value();
  for (std::size_t i = 1; i <= 8; ++i) EXPECT_EQ(send(1, false), i > 4) << i;
}

TEST_F(PromptAckTest, EachMessageRequestsAPromptAckOnlyOnce) {
  send(1, false);
  send(1, true);
  send(1, false);
  a.ses.initiator().request_acks_now(*a.context);
  EXPECT_EQ(a.delivery.requested_acks, 2);
  a.ses.initiator().request_acks_now(*a.context);
  EXPECT_EQ(a.delivery.requested_acks, 2);
}

}  // namespace
}  // namespace uet::ses::test
