// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DATAGRAM_SEND: one packet, matched like any send, dropped where a send would be refused.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

ContextConfig datagram_config() {
  ContextConfig config = small_config();
  config.mode = DeliveryMode::Uud;
  return config;
}

class DatagramTest : public ::testing::Test {
 protected:
  // A datagram for `node`, as it comes over the wire.
  static void arrive(Node& node, const SesRequest& request, const Bytes& payload = {}) {
    Bytes bytes(request.encoded_bytes());
    request.encode(bytes.data());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    arrive(node, request.next_hdr, bytes);
  }
  static void arrive(Node& node, NextHdr next_hdr, const Bytes& bytes) {
    pds::RequestView view;
    view.source = address_of(1);
    view.mode = DeliveryMode::Uud;
    view.next_hdr = next_hdr;
    view.bytes = bytes;
    node.ses.client().rx_req(view, kNow);
  }
  static SesRequest request_for(const Node& node, std::size_t length) {
    SesRequest request = node.request_for(SesOpcode::DatagramSend);
    request.message_id = MsgId{};
    request.request_length = static_cast<std::uint32_t>(length);
    return request;
  }
  void expect_dropped(const SesRequest& request, const Bytes& payload) {
    const std::uint64_t before = b.ses.counters().datagrams_dropped;
    arrive(b, request, payload);
    EXPECT_EQ(b.ses.counters().datagrams_dropped, before + 1);
    EXPECT_TRUE(b.sink.all.empty());
  }

  Node a{1, small_parameters(), datagram_config()};
  Node b{2, small_parameters(), datagram_config()};
};

TEST_F(DatagramTest, Ses77_OneStandardPacketWithMessageIdZero) {
  Bytes memory = pattern(100);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  EXPECT_EQ(a.delivery.destination.mode, DeliveryMode::Uud);
  EXPECT_EQ(a.delivery.destination.address, b.address);
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  const SesRequest request = sent[0].request();
  EXPECT_EQ(sent[0].next_hdr, NextHdr::RequestStd);
  EXPECT_EQ(request.opcode, SesOpcode::DatagramSend);
  EXPECT_EQ(request.message_id, MsgId{});  // SES-27
  EXPECT_TRUE(request.som && request.eom);
  EXPECT_EQ(request.request_length, 100u);
  EXPECT_TRUE(std::ranges::equal(request.payload, memory));
  EXPECT_TRUE(a.sink.all.empty());
  a.answered(sent[0], {});
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].kind, Kind::Send);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(DatagramTest, Ses77_OneIsAtMostOnePayloadMtu) {
  Bytes largest = pattern(kMtu);
  Bytes longer = pattern(kMtu + 1);
  EXPECT_TRUE(a.send(b, {slice_of(largest)}));
  EXPECT_EQ(a.send(b, {slice_of(longer)}).error(), Error::TooLong);
  for (const Sent& sent : a.packets()) a.answered(sent, {});
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(DatagramTest, TagsDeliveryCompleteAndRmaAreNoDatagrams) {
  Bytes memory = pattern(8);
  const Peer peer = b.peer();
  const std::vector<IoSlice> local{slice_of(memory)};
  EXPECT_EQ(a.send(b, local, 7).error(), Error::Invalid);
  SendOp op;
  op.peer = &peer;
  op.local = local;
  op.delivery_complete = true;
  EXPECT_EQ(a.ses.initiator().post(*a.context, op, kNow).error(), Error::Invalid);
  EXPECT_EQ(a.write(b, local, Rkey{1}).error(), Error::Invalid);
  EXPECT_EQ(a.read(b, local, Rkey{1}).error(), Error::Invalid);
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(DatagramTest, InjectedAndScatteredOnesAreCopied) {
  Bytes memory = pattern(300);
  const Bytes expected = memory;
  std::vector<IoSlice> thirds;
  for (std::size_t i = 0; i < 3; ++i) thirds.push_back({memory.data() + i * 100, 100});
  const Peer peer = b.peer();
  SendOp op;
  op.peer = &peer;
  op.local = thirds;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  op.inject = true;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 2u);
  for (const Sent& packet : sent) {
    EXPECT_TRUE(std::ranges::equal(packet.request().payload, expected));
    a.answered(packet, {});
  }
  EXPECT_TRUE(a.ses.idle());
}

TEST_F(DatagramTest, TheyMatchUntaggedReceivesWithDataAndSource) {
  Bytes memory(200);
  int operation = 0;
  ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, &operation));
  const Bytes payload = pattern(120);
  SesRequest request = request_for(b, payload.size());
  request.hd = true;
  request.header_data = 0xDA7A;
  arrive(b, request, payload);
  ASSERT_EQ(b.sink.all.size(), 1u);
  const Completion& done = b.sink.all[0];
  EXPECT_EQ(done.kind, Kind::Receive);
  EXPECT_EQ(done.status, Status::Ok);
  EXPECT_EQ(done.context, &operation);
  EXPECT_EQ(done.length, 120u);
  EXPECT_TRUE(done.has_data);
  EXPECT_EQ(done.data, 0xDA7Au);
  EXPECT_EQ(done.source, address_of(1));
  EXPECT_EQ(done.source_initiator, InitiatorId{5});
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), memory.begin()));
  EXPECT_EQ(b.ses.counters().datagrams_dropped, 0u);
}

TEST_F(DatagramTest, ALongOneIsTruncated) {
  Bytes memory(50);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  arrive(b, request_for(b, 80), pattern(80));
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Truncated);
  EXPECT_EQ(b.sink.all[0].excess, 30u);
}

TEST_F(DatagramTest, UnexpectedOnesAreKeptInOrder) {
  for (unsigned i = 0; i < 3; ++i) arrive(b, request_for(b, 20), pattern(20, i));
  for (unsigned i = 0; i < 3; ++i) {
    Bytes memory(20);
    ASSERT_TRUE(b.receive({slice_of(memory)}));
    ASSERT_EQ(b.sink.all.size(), i + 1);
    EXPECT_EQ(memory, pattern(20, i));
  }
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(DatagramTest, Pds193_MemoryFull_UnexpectedDroppedCounted) {
  const Bytes payload = pattern(kMtu);
  for (int i = 0; i < 200; ++i) arrive(b, request_for(b, kMtu), payload);
  const Counters& counters = b.ses.counters();
  EXPECT_GT(counters.unexpected_messages, 10u);
  EXPECT_GT(counters.datagrams_dropped, 10u);
  EXPECT_EQ(counters.unexpected_messages + counters.datagrams_dropped, 200u);
  Bytes memory(kMtu);
  for (std::uint64_t i = 0; i < counters.unexpected_messages; ++i) {
    ASSERT_TRUE(b.receive({slice_of(memory)}));
  }
  EXPECT_EQ(b.sink.all.size(), counters.unexpected_messages);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(DatagramTest, Ses115_Step9_TheGenerationIsNotCompared) {
  Bytes memory(4);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  SesRequest request = request_for(b, 4);
  request.ri_generation = RiGeneration{99};
  arrive(b, request, pattern(4));
  EXPECT_EQ(b.sink.all.size(), 1u);
}

TEST_F(DatagramTest, Pds193_WhatBelongsNowhereIsDroppedAndCounted) {
  Bytes memory(64);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  const Bytes payload = pattern(16);
  const SesRequest good = request_for(b, 16);
  SesRequest bad = good;
  bad.job_id = JobId{102};
  expect_dropped(bad, payload);
  bad = good;
  bad.pid_on_fep = PidOnFep{3};
  expect_dropped(bad, payload);
  bad = good;
  bad.resource_index = ResourceIndex{11};
  expect_dropped(bad, payload);
  bad = good;
  bad.ie = true;
  expect_dropped(bad, payload);
  bad = good;
  bad.request_length = 17;  // longer than the packet
  expect_dropped(bad, payload);
  const Bytes longer = pattern(kMtu + 1);
  expect_dropped(request_for(b, longer.size()), longer);
  EXPECT_EQ(b.ses.counters().malformed, 0u);
  arrive(b, good, payload);
  EXPECT_EQ(b.sink.all.size(), 1u);
}

// SES-114: a MSG_ERROR on UUD is dropped like every other opcode.
// WIRE 3.12: some initiators say SEND, and give a message id.
TEST_F(DatagramTest, OnlyWholeUntaggedSendsAreDatagrams) {
  const SesRequest good = request_for(b, 4);
  for (unsigned opcode = 0; opcode < 64; ++opcode) {
    SesRequest bad = good;
    bad.opcode = static_cast<SesOpcode>(opcode);
    if (bad.opcode == SesOpcode::DatagramSend || bad.opcode == SesOpcode::Send) continue;
    expect_dropped(bad, pattern(100));
  }
  SesRequest part = good;
  part.eom = false;
  expect_dropped(part, pattern(4));
  SesRequest later = good;
  later.version = 1;
  expect_dropped(later, pattern(4));
  arrive(b, NextHdr::RequestStd, Bytes(10));
  EXPECT_EQ(b.ses.counters().malformed, 65u);
  EXPECT_EQ(b.ses.counters().errors_answered, 0u);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(DatagramTest, ReliableAndDatagramContexts_StayApart) {
  EXPECT_EQ(code_of(b.take(b.request_for(SesOpcode::Send))), ReturnCode::UnsupportedOp);
  EXPECT_EQ(code_of(b.take(b.request_for(SesOpcode::Write))), ReturnCode::UnsupportedOp);
  EXPECT_EQ(code_of(b.take(b.request_for(SesOpcode::Read))), ReturnCode::UnsupportedOp);
  Node reliable{3};
  EXPECT_EQ(code_of(reliable.take(reliable.request_for(SesOpcode::DatagramSend))),
            ReturnCode::UnsupportedOp);
  arrive(reliable, request_for(reliable, 4), pattern(4));
  EXPECT_EQ(reliable.ses.counters().datagrams_dropped, 1u);
  EXPECT_TRUE(b.ses.idle());
  EXPECT_TRUE(reliable.ses.idle());
}

}  // namespace
}  // namespace uet::ses::test
