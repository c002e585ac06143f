// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SES of two FEPs against each other, contexts, and bytes that no peer should have sent.
#include "ses/ses.h"

#include "base/rng.h"
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

class SesTest : public TwoNodes {};

TEST_F(SesTest, SendsOfManySizesArriveWhole) {
  for (const std::size_t size : {0u, 1u, 255u, 256u, 257u, kMtu - 1, kMtu, kMtu + 1, 5 * kMtu}) {
    for (const bool expected : {true, false}) {
      Bytes out = pattern(size);
      Bytes in(size);
      if (expected) {
        ASSERT_TRUE(b.receive({slice_of(in)}, 7));
      }
      ASSERT_TRUE(a.send(b, {slice_of(out)}, 7));
      exchange();
      if (!expected) {
        ASSERT_TRUE(b.receive({slice_of(in)}, 7));
      }
      ASSERT_EQ(a.sink.all.size(), 1u);
      ASSERT_EQ(b.sink.all.size(), 1u);
      EXPECT_EQ(a.sink.all[0].status, Status::Ok);
      EXPECT_EQ(b.sink.all[0].length, size);
      EXPECT_EQ(in, out);
      a.sink.all.clear();
      b.sink.all.clear();
      expect_idle();
    }
  }
}

TEST_F(SesTest, Idea10_WriteThenReadBackOfManySizes) {
  Bytes region(16 * kMtu);
  const Rkey key = b.expose(region);
  for (const std::size_t size : {0u, 1u, 64u, kMtu, kMtu + 1, 9 * kMtu}) {
    Bytes out = pattern(size, static_cast<unsigned>(size));
    Bytes in(size);
    ASSERT_TRUE(a.write(b, {slice_of(out)}, key, 33, 0xDA7A));
    exchange();
    ASSERT_TRUE(a.read(b, {slice_of(in)}, key, 33));
    exchange();
    ASSERT_EQ(a.sink.all.size(), 2u);
    EXPECT_EQ(a.sink.all[0].status, Status::Ok);
    EXPECT_EQ(a.sink.all[1].status, Status::Ok);
    EXPECT_EQ(in, out);
    EXPECT_EQ(b.sink.all.size(), 1u);
    a.sink.all.clear();
    b.sink.all.clear();
    expect_idle();
  }
}

TEST_F(SesTest, MessagesInterleaveAndPacketsComeInAnyOrder) {
  Rng rng(7);
  std::vector<Bytes> out;
  std::vector<Bytes> in;
  for (unsigned i = 0; i < 8; ++i) {
    out.push_back(pattern(3 * kMtu + i, i));
    in.emplace_back(4 * kMtu);
  }
  for (unsigned i = 0; i < 8; i += 2) ASSERT_TRUE(b.receive({slice_of(in[i])}, i));
  for (unsigned i = 0; i < 8; ++i) ASSERT_TRUE(a.send(b, {slice_of(out[i])}, i));
  std::vector<Sent> sent = a.packets();
  for (std::size_t i = sent.size(); i > 1; --i) std::swap(sent[i - 1], sent[rng.below(i)]);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (i == sent.size() / 2) {
      for (unsigned late = 1; late < 8; late += 2)
        ASSERT_TRUE(b.receive({slice_of(in[late])}, late));
    }
    deliver(a, b, sent[i]);
  }
  EXPECT_EQ(a.sink.all.size(), 8u);
  EXPECT_EQ(b.sink.all.size(), 8u);
  for (unsigned i = 0; i < 8; ++i) {
    in[i].resize(out[i].size());
    EXPECT_EQ(in[i], out[i]);
  }
  expect_idle();
}

TEST_F(SesTest, Idea3_OneErrorCompletionForARefusedWrite) {
  Bytes region(kMtu);
  const Rkey key = b.expose(region);
  Bytes out = pattern(kMtu);
  int operation = 0;
  const Peer peer = b.peer();
  const std::vector<IoSlice> local{slice_of(out)};
  RmaOp op = a.rma(peer, local, key, 1);
  op.context = &operation;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::ReturnCode);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::BadAddr);
  EXPECT_EQ(a.sink.all[0].context, &operation);
  EXPECT_EQ(region, Bytes(kMtu));
  expect_idle();
}

TEST_F(SesTest, Ses54_RefusedLongMessageEndsAtBothSides) {
  Bytes region(4 * kMtu);
  const Rkey key = b.expose(region, ri::kRemoteRead);
  Bytes out = pattern(4 * kMtu);
  ASSERT_TRUE(a.write(b, {slice_of(out)}, key));
  for (int packets = 0; !a.delivery.backlog.empty(); ++packets) {
    deliver(a, b, a.packet().value());
    ASSERT_LT(packets, 2);
  }
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::OpViolation);
  expect_idle();
}

// Operations that wait for a read of the peer would else keep the answers to the peer's reads back,
// and these the answer to that read.
TEST_F(SesTest, CopiesLeaveBuffersToAnswers) {
  Parameters parameters = small_parameters();
  parameters.tx_messages = 64;
  ContextConfig config = small_config();
  config.tx_size = 64;
  Node tight(3, parameters, config, 16);
  Bytes memory = pattern(300);
  const Peer peer = b.peer();
  const std::vector<IoSlice> local{slice_of(memory)};
  SendOp op;
  op.peer = &peer;
  op.local = local;
  op.inject = true;
  Result<void> posted;
  for (int i = 0; i < 64 && posted; ++i)
    posted = tight.ses.initiator().post(*tight.context, op, kNow);
  EXPECT_EQ(posted.error(), Error::Again);
  EXPECT_EQ(tight.buffers.available(), 1U);
  AtomicOp sum;
  sum.peer = &peer;
  sum.local = local;
  sum.datatype = wire::AmoDatatype::Uint8;
  EXPECT_EQ(tight.ses.initiator().post(*tight.context, sum, kNow).error(), Error::Again);
  op.inject = false;
  EXPECT_TRUE(tight.ses.initiator().post(*tight.context, op, kNow)) << "it needs no copy";
}

TEST_F(SesTest, DestinationNamesPeerJobModeAndClass) {
  ContextConfig config = small_config();
  config.resource_index = ResourceIndex{11};
  config.mode = DeliveryMode::Rod;
  config.traffic_class = 3;
  Sink sink;
  Context* context = a.ses.open_context(config, sink).value();
  const Peer peer = b.peer();
  SendOp op;
  op.peer = &peer;
  ASSERT_TRUE(a.ses.initiator().post(*context, op, kNow));
  EXPECT_EQ(a.delivery.destination,
            (pds::Destination{b.address, JobId{101}, DeliveryMode::Rod, 3}));
  exchange();
  EXPECT_EQ(sink.all.size(), 1u);
  EXPECT_TRUE(a.sink.all.empty());
}

// ---- contexts ----------------------------------------------------------------------------------

TEST_F(SesTest, Ses14_SecondContextAtAddress_IsRefused) {
  EXPECT_EQ(b.ses.open_context(small_config(), b.sink).error(), Error::KeyInUse);
}

TEST_F(SesTest, Ses115_Step6_DisabledUntilEnabled) {
  ContextConfig config = small_config();
  config.resource_index = ResourceIndex{11};
  Context* context = b.ses.open_context(config, b.sink).value();
  SesRequest request = b.request_for(SesOpcode::Send);
  request.resource_index = config.resource_index;
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::Disabled);
  b.ses.enable(*context);
  EXPECT_EQ(code_of(b.take(request)), ReturnCode::Ok);
}

TEST_F(SesTest, QueuesOfTwoContextsAreSeparate) {
  ContextConfig config = small_config();
  config.resource_index = ResourceIndex{11};
  Sink sink;
  Context* context = b.ses.open_context(config, sink).value();
  b.ses.enable(*context);
  Bytes memory(4);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  SesRequest request = b.request_for(SesOpcode::Send);
  request.resource_index = config.resource_index;
  EXPECT_EQ(header_of(b.take(request)).list, wire::List::Overflow);
  EXPECT_TRUE(b.sink.all.empty());
}

TEST_F(SesTest, TransmitOnlyContextSendsAndTakesNoAddress) {
  ContextConfig config = small_config();
  config.receives = false;
  Sink sink;
  Context* first = a.ses.open_context(config, sink).value();  // the address of a.context
  Context* second = a.ses.open_context(config, sink).value();
  Bytes out = pattern(2 * kMtu);
  Bytes in(2 * kMtu);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const Peer target = b.peer();
  const std::vector<IoSlice> local = {slice_of(out)};
  SendOp op;
  op.peer = &target;
  op.local = local;
  ASSERT_TRUE(a.ses.initiator().post(*first, op, kNow));
  exchange();
  EXPECT_EQ(in, out);
  ASSERT_EQ(sink.all.size(), 1u);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].source_initiator, config.initiator);
  a.ses.close_context(*second, kNow);
  a.ses.close_context(*first, kNow);
  ASSERT_TRUE(a.receive({slice_of(in)}));
  ASSERT_TRUE(b.send(a, {slice_of(out)}));  // what was there before still has its address
  exchange();
  EXPECT_EQ(a.sink.all.size(), 1u);
}

TEST_F(SesTest, CloseContextEndsReceivesAndMessagesSilently) {
  Bytes memory(2 * kMtu);
  SesRequest request = b.request_for(SesOpcode::TaggedSend);
  request.eom = false;
  request.request_length = 2 * kMtu;
  b.take(request, pattern(kMtu));  // unexpected, partial
  request.message_id = MsgId{10};
  request.opcode = SesOpcode::Send;
  ASSERT_TRUE(b.receive({{&memory[0], 1}, {&memory[1], 2 * kMtu - 1}}));
  b.take(request, pattern(kMtu));  // matched, partial
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  b.ses.close_context(*b.context, kNow);
  EXPECT_TRUE(b.sink.all.empty());
  expect_idle();
  request.eom = true;
  request.som = false;
  EXPECT_EQ(code_of(b.take(request, {})), ReturnCode::BadPid);
}

// Other contexts use the PDC, too. SES-113: the half-sent message is ended at its target.
TEST_F(SesTest, Ses165_ClosedContextLeavesThePdcToOthers) {
  Bytes memory = pattern(2 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent whole = a.packet().value();
  const Sent rest = a.packet().value();
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent half = a.packet().value();
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  a.ses.close_context(*a.context, kNow);
  EXPECT_EQ(a.delivery.aborts, 0);
  EXPECT_TRUE(a.delivery.backlog.empty());
  a.answered(whole, {});
  a.answered(rest, {});
  EXPECT_FALSE(a.ses.idle());
  a.answered(half, {});
  ASSERT_EQ(a.delivery.backlog.size(), 1u);
  const Sent end = a.packet().value();
  EXPECT_EQ(end.request().opcode, SesOpcode::MsgError);
  EXPECT_EQ(end.request().message_offset, kMtu);
  a.answered(end, {});
  EXPECT_TRUE(a.sink.all.empty());
  expect_idle();
}

TEST_F(SesTest, AnswersAfterTheirContextClosedAreIgnored) {
  Bytes memory = pattern(4);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent sent = a.packet().value();
  a.ses.close_context(*a.context, kNow);
  EXPECT_FALSE(a.ses.idle());
  a.answered(sent, {});
  EXPECT_TRUE(a.sink.all.empty());
  expect_idle();
}

TEST_F(SesTest, Ses165_DataForAClosedContextAreDropped) {
  Bytes region = pattern(2 * kMtu);
  const Rkey key = b.expose(region);
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, key));
  for (const Sent& sent : a.packets()) deliver(a, b, sent);
  const std::vector<Sent> data = b.packets();
  ASSERT_EQ(data.size(), 2u);
  a.ses.close_context(*a.context, kNow);
  EXPECT_FALSE(a.ses.idle());
  for (const Sent& sent : data) deliver(b, a, sent);
  EXPECT_EQ(memory, Bytes(2 * kMtu));
  EXPECT_EQ(a.ses.counters().stray_responses, 0u);
  expect_idle();
}

TEST_F(SesTest, DestructionWithEverythingInProgressIsClean) {
  Bytes memory = pattern(4 * kMtu);
  const Rkey key = b.expose(memory);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, key));
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  deliver(a, b, a.packet().value());
  SesRequest request = b.request_for(SesOpcode::Read);
  request.match_bits = key.value;
  request.request_length = 4;
  b.take(request);
  EXPECT_FALSE(a.ses.idle());
  EXPECT_FALSE(b.ses.idle());
}

// ---- hostile bytes -----------------------------------------------------------------------------

// Requests whose fields are drawn from values that sit at the edges. Nothing outside the registered
// region and the posted buffers may be touched (the sanitizer build watches), and when the PDC
// goes, everything is free again.
// SES-103: whatever the request, one response or one NACK.
TEST_F(SesTest, Ses117And118_AnyRequest_TouchesOnlyItsMemory) {
  Rng rng(11);
  Bytes region(2 * kMtu);
  const Rkey key = b.expose(region);
  Bytes memory(kMtu + 3);
  const std::uint64_t edges[] = {0,        1,        kMtu - 1,   kMtu,       kMtu + 1,
                                 2 * kMtu, 3 * kMtu, UINT32_MAX, UINT64_MAX, UINT64_MAX - kMtu};
  const auto edge = [&] { return edges[rng.below(std::size(edges))]; };
  const SesOpcode opcodes[] = {SesOpcode::Send, SesOpcode::TaggedSend, SesOpcode::Write,
                               SesOpcode::Read, SesOpcode::MsgError};
  for (int i = 0; i < 20000; ++i) {
    SesRequest request = b.request_for(opcodes[rng.below(std::size(opcodes))]);
    request.message_id = MsgId{static_cast<std::uint16_t>(rng.below(4))};
    request.som = rng.chance(0.5);
    request.eom = rng.chance(0.3);
    request.hd = rng.chance(0.3);
    request.ie = rng.chance(0.02);
    request.match_bits = rng.chance(0.8) ? key.value : edge();
    request.buffer_offset = rng.chance(0.5) ? 0 : edge();
    request.request_length = static_cast<std::uint32_t>(edge());
    request.message_offset = static_cast<std::uint32_t>(edge());
    request.payload_length = static_cast<std::uint32_t>(edge() & wire::kMaxPayloadLength);
    b.sink.room = rng.chance(0.8);
    if (rng.chance(0.2)) (void)b.receive({slice_of(memory)});
    if (rng.chance(0.2)) (void)b.receive({slice_of(memory)}, 0, UINT64_MAX);
    const std::size_t payload = rng.chance(0.7) ? kMtu : rng.below(3 * kMtu);
    const PdcId pdc{static_cast<std::uint16_t>(1 + rng.below(3))};
    const pds::Response response = b.take(request, pattern(payload), 1, pdc);
    EXPECT_TRUE(response.nack.has_value() || wire::is_response(response.next_hdr));
    for (const Sent& sent : b.packets()) b.answered(sent, {});
    if (rng.chance(0.01)) b.ses.client().pdc_closed(pdc, {}, kNow);
  }
  for (const std::uint16_t pdc : {1, 2, 3}) b.ses.client().pdc_closed(PdcId{pdc}, {}, kNow);
  b.ses.close_context(*b.context, kNow);
  expect_idle();
}

TEST_F(SesTest, AnyBytesOfAnyKindAreAnswered) {
  Rng rng(13);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes(rng.below(120));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
    (void)b.take(static_cast<NextHdr>(rng.below(16)), bytes, 1);
  }
  b.ses.client().pdc_closed(kPdc, {}, kNow);
  b.ses.close_context(*b.context, kNow);
  expect_idle();
}

}  // namespace
}  // namespace uet::ses::test
