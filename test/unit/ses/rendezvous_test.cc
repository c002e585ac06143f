// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends that their target can read again, both ends against each other: nothing to read when they
// are expected, bounded memory when they are not, and an end for every operation whatever happens
// in between.
#include "uet/ses/rendezvous.h"

#include "uet/ses/context.h"
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

constexpr std::size_t kThreshold = 4 * kMtu;
constexpr std::size_t kKept = 2 * kMtu;

Parameters rendezvous_parameters() {
  Parameters parameters = small_parameters();
  parameters.rendezvous_threshold_bytes = kThreshold;
  parameters.eager_bytes = kKept;
  parameters.pulls = 4;
  return parameters;
}

class RendezvousTest : public ::testing::Test {
 protected:
  using Deliver = std::function<void(Node& from, Node& to, const Sent& sent)>;

  static pds::Response deliver(Node& from, Node& to, const Sent& sent) {
    const pds::Response response = to.take(sent.next_hdr, sent.bytes, from.address.ip.bytes[3]);
    if (!response.nack) from.answered(sent, response);
    return response;
  }
  static std::vector<Sent> packets(Node& node) {
    node.ses.progress(kNow);
    return node.packets();
  }
  // Everything, both ways, until nothing is left.
  void exchange() {
    for (int round = 0; round < 100; ++round) {
      const std::vector<Sent> forth = packets(a);
      for (const Sent& sent : forth) deliver(a, b, sent);
      const std::vector<Sent> back = packets(b);
      for (const Sent& sent : back) deliver(b, a, sent);
      if (forth.empty() && back.empty()) return;
    }
    ADD_FAILURE() << "does not come to rest";
  }
  void expect_idle() {
    for (Node* node : {&a, &b}) {
      EXPECT_TRUE(node->ses.idle());
      EXPECT_EQ(node->buffers.in_use(), 0u);
      EXPECT_EQ(node->delivery.locks, 0);
      EXPECT_EQ(node->ses.next_deadline(), kNever);
    }
  }
  Peer to_b() const {
    Peer peer = b.peer();
    peer.rendezvous = true;
    return peer;
  }
  Result<void> send(Bytes& memory, bool delivery_complete = false, void* operation = nullptr,
                    std::size_t slices = 1, bool inject = false) {
    const Peer peer = to_b();
    std::vector<IoSlice> local;
    const std::size_t part = memory.size() / slices;
    for (std::size_t i = 0; i < slices; ++i) {
      local.push_back({memory.data() + i * part, i + 1 < slices ? part : memory.size() - i * part});
    }
    SendOp op;
    op.peer = &peer;
    op.local = local;
    op.delivery_complete = delivery_complete;
    op.context = operation;
    op.inject = inject;
    return a.ses.send(*a.context, op, kNow);
  }
  // Sends `memory`, of which b has kept the first part and dropped the rest.
  void send_unexpected(Bytes& memory, bool delivery_complete = false, void* operation = nullptr) {
    ASSERT_TRUE(send(memory, delivery_complete, operation));
    exchange();
    EXPECT_TRUE(a.sink.all.empty()) << "completes only when it has been read";
    EXPECT_GT(a.delivery.locks, 0) << "its sender watches whether the target lives";
    EXPECT_GT(b.delivery.locks, 0) << "and the other way";
  }
  static ReturnCode read_code(Node& source, Rkey key, std::uint64_t offset, std::uint32_t length,
                              std::uint8_t from = 2, std::uint32_t job = 101) {
    SesRequest read = source.request_for(SesOpcode::Read);
    read.match_bits = key.value;
    read.buffer_offset = offset;
    read.request_length = length;
    read.job_id = JobId{job};
    return code_of(source.take(read, {}, from));
  }

  Node a{1, rendezvous_parameters()};
  Node b{2, rendezvous_parameters()};
};

// ---- the sender's choice -----------------------------------------------------------------------

TEST_F(RendezvousTest, Ses56_Ses59_EveryPacketOfALongSendSaysWhereItCanBeRead) {
  Bytes memory = pattern(kThreshold + 1);
  ASSERT_TRUE(send(memory));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 5u);
  for (const Sent& packet : sent) {
    const SesRequest request = packet.request();
    EXPECT_EQ(request.opcode, SesOpcode::RendezvousSend);
    EXPECT_EQ(request.rendezvous.eager_length, memory.size()) << "all of it is sent";
    EXPECT_EQ(request.rendezvous.read_resource_index, a.ses.config(*a.context).resource_index);
    EXPECT_EQ(request.rendezvous.read_pid_on_fep, a.ses.config(*a.context).pid_on_fep);
    EXPECT_TRUE(is_message_key(request.rendezvous.read_memory_key));
    a.answered(packet, {});
  }
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
}

TEST_F(RendezvousTest, Ses161_ShortSendsAndOtherPeersGetPlainSends) {
  Bytes memory = pattern(kThreshold);
  ASSERT_TRUE(send(memory));
  Bytes longer = pattern(kThreshold + 1);
  ASSERT_TRUE(a.send(b, {slice_of(longer)}));  // its address does not say that it serves them
  for (const Sent& packet : a.packets()) {
    EXPECT_EQ(packet.request().opcode, SesOpcode::Send);
    a.answered(packet, {});
  }
}

TEST_F(RendezvousTest, Ses110_SendsThatMustTellOfDeliveryAreReadableWhateverTheirLength) {
  Bytes memory;
  ASSERT_TRUE(send(memory, true));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::RendezvousSend);
  EXPECT_TRUE(sent[0].request().dc);
  a.answered(sent[0], {});
}

// ---- expected ----------------------------------------------------------------------------------

TEST_F(RendezvousTest, Ses57_ExpectedMessageIsPlacedAsAPlainSendAndNothingIsRead) {
  Bytes out = pattern(9 * kMtu + 3);
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  ASSERT_TRUE(send(out, true));
  for (const Sent& sent : a.packets()) {
    const wire::SesResponseHeader header = header_of(deliver(a, b, sent));
    EXPECT_EQ(header.list, wire::List::Expected);
  }
  EXPECT_TRUE(packets(b).empty());
  ASSERT_EQ(a.sink.all.size(), 1u);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].length, out.size());
  EXPECT_EQ(in, out);
  expect_idle();
}

// ---- unexpected --------------------------------------------------------------------------------

TEST_F(RendezvousTest, Ses62_UnexpectedMessageKeepsABoundedPartAndReadsTheRest) {
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

// The first dropped packet is answered in a way that cannot get lost; the sender stops there.
TEST_F(RendezvousTest, Ses67_Ses69_SenderStopsWhenItHearsThatTheRestIsDropped) {
  Bytes out = pattern(20 * kMtu);
  ASSERT_TRUE(send(out));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const pds::Response response = deliver(a, b, a.packet().value());
    const wire::SesResponseHeader header = header_of(response);
    EXPECT_EQ(header.return_code, ReturnCode::Ok);
    EXPECT_EQ(response.guaranteed, i != 1);
    EXPECT_EQ(header.list, i == 1 ? wire::List::Expected : wire::List::Overflow);
    EXPECT_EQ(header.modified_length, i == 2 ? 0 : (i + 1) * kMtu);
  }
  const Sent end = a.packet().value();
  EXPECT_TRUE(a.delivery.backlog.empty());
  EXPECT_EQ(end.request().opcode, SesOpcode::RendezvousSend);
  EXPECT_TRUE(end.request().eom);
  EXPECT_FALSE(end.request().som);
  EXPECT_EQ(end.request().message_offset, 3 * kMtu);
  EXPECT_TRUE(end.request().payload.empty());
  deliver(a, b, end);
  EXPECT_TRUE(a.sink.all.empty());
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  EXPECT_EQ(in, out);
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

TEST_F(RendezvousTest, ReceiveThatComesWhilePacketsArriveTakesThemAndReadsTheRest) {
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

TEST_F(RendezvousTest, DataOfTheReadPointIntoTheSendersMemory) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  for (const Sent& ask : packets(b)) deliver(b, a, ask);
  EXPECT_FALSE(a.delivery.backlog.empty());
  EXPECT_EQ(a.buffers.in_use(), 0u) << "no copy";
  exchange();
  EXPECT_EQ(in, out);
  expect_idle();
}

// The send must not complete while packets of the answer still point to its memory.
TEST_F(RendezvousTest, Ses61_SendCompletesWhenTheDataReadAreAcknowledged) {
  Bytes out = pattern(6 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  for (const Sent& ask : packets(b)) deliver(b, a, ask);
  const std::vector<Sent> data = packets(a);
  ASSERT_EQ(data.size(), 4u);
  for (const Sent& packet : data) {
    EXPECT_TRUE(a.sink.all.empty());
    deliver(a, b, packet);
  }
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(RendezvousTest, ReadThatOvertakesTheAnswerToTheEagerPart) {
  Bytes out = pattern(6 * kMtu);
  Bytes in(out.size());
  ASSERT_TRUE(send(out));
  std::vector<std::pair<Sent, pds::Response>> late;
  for (const Sent& sent : a.packets()) {
    late.emplace_back(sent, b.take(sent.next_hdr, sent.bytes, 1));  // no answer arrives yet
  }
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  EXPECT_EQ(in, out);
  EXPECT_EQ(b.sink.all.size(), 1u);
  EXPECT_TRUE(a.sink.all.empty());
  for (const auto& [sent, response] : late) a.answered(sent, response);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

TEST_F(RendezvousTest, ScatteredMemoryAtBothEnds) {
  for (const std::size_t slices : {2u, 3u, 16u}) {
    Bytes out = pattern(9 * kMtu + 11);
    Bytes in(out.size());
    ASSERT_TRUE(send(out, false, nullptr, slices));
    exchange();
    std::vector<IoSlice> local;
    for (std::size_t at = 0; at < in.size(); at += 700) {
      local.push_back({in.data() + at, std::min<std::size_t>(700, in.size() - at)});
    }
    ASSERT_LE(local.size(), kMaxIoSlices);
    ASSERT_TRUE(b.receive(local));
    exchange();
    EXPECT_EQ(in, out) << slices;
    EXPECT_EQ(a.sink.all.size(), 1u);
    a.sink.all.clear();
    expect_idle();
  }
}

// ---- truncation --------------------------------------------------------------------------------

TEST_F(RendezvousTest, Ses63_ShorterReceiveReadsWhatFitsAndTellsTheSender) {
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

TEST_F(RendezvousTest, Ses111_UnexpectedDeliveryCompleteWaitsForTheReceive) {
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

TEST_F(RendezvousTest, InjectedDeliveryCompleteIsReadFromItsCopy) {
  b.context->unexpected_bytes = 32 * kMtu;  // nothing is kept
  Bytes out = pattern(600);
  const Bytes wanted = out;
  Bytes in(out.size());
  ASSERT_TRUE(send(out, true, nullptr, 1, true));
  std::fill(out.begin(), out.end(), std::byte{0});
  exchange();
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  EXPECT_EQ(in, wanted);
  b.context->unexpected_bytes -= 32 * kMtu;
  expect_idle();
}

// ---- keys --------------------------------------------------------------------------------------

TEST_F(RendezvousTest, Ses60_KeyIsForThisPeerJobAndMessageOnly) {
  Bytes out = pattern(6 * kMtu);
  ASSERT_TRUE(send(out));
  const std::vector<Sent> sent = a.packets();
  const Rkey key = sent[0].request().rendezvous.read_memory_key;
  EXPECT_EQ(read_code(a, Rkey{key.value ^ 0x10000}, 0, 8), ReturnCode::BadMkey);
  EXPECT_EQ(read_code(a, Rkey{key.value ^ 1}, 0, 8), ReturnCode::BadMkey);
  EXPECT_EQ(read_code(a, key, 0, 8, 3), ReturnCode::BadMkey) << "another FEP";
  EXPECT_EQ(read_code(a, key, 0, 8, 2, 102), ReturnCode::BadMkey) << "another job";
  EXPECT_EQ(read_code(a, key, 6 * kMtu, 1), ReturnCode::BadAddr);
  EXPECT_EQ(read_code(a, key, ~std::uint64_t{0}, 8), ReturnCode::BadAddr) << "SES-118";
  EXPECT_EQ(read_code(a, key, 0, 8), ReturnCode::Ok);
  for (const Sent& packet : sent) a.answered(packet, {});
  for (const Sent& packet : a.packets()) a.answered(packet, {});
  EXPECT_TRUE(a.sink.all.empty()) << "who has begun to read must read to the end";
  EXPECT_EQ(read_code(a, key, 6 * kMtu, 0), ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(read_code(a, key, 6 * kMtu, 0), ReturnCode::BadMkey) << "dead with its message";
  expect_idle();
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
  EXPECT_TRUE(packets(b).empty());
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

TEST_F(RendezvousTest, OnePeerCannotTakeAllMemoryForUnexpectedMessages) {
  Parameters parameters = small_parameters();
  parameters.unexpected_bytes_per_peer = 8 * kMtu;
  Node c{2, parameters};
  SesRequest request = c.request_for(SesOpcode::Send);
  request.request_length = kMtu;
  std::uint16_t id = 1;
  const auto offer = [&](PdcId pdc) {
    request.message_id = MsgId{id++};
    return c.take(request, pattern(kMtu), 1, pdc);
  };
  int taken = 0;
  while (!offer(PdcId{7}).nack) ++taken;
  EXPECT_GE(taken, 4);
  EXPECT_LT(taken, 8);
  EXPECT_FALSE(offer(PdcId{8}).nack.has_value()) << "another one has its own share";
  Bytes in(kMtu);
  ASSERT_TRUE(c.receive({slice_of(in)}));
  EXPECT_FALSE(offer(PdcId{7}).nack.has_value()) << "what was taken is free again";
  request.request_length = 0;
  taken = 0;
  for (;; ++taken) {
    request.message_id = MsgId{id++};
    if (c.take(request, {}, 1, PdcId{9}).nack) break;
  }
  EXPECT_LE(taken, 32) << "half of the message states";
  EXPECT_FALSE(offer(PdcId{10}).nack.has_value());
}

// ---- the end of one side -----------------------------------------------------------------------

TEST_F(RendezvousTest, Ses113_CancelWhileItWaitsForTheRead) {
  Bytes out = pattern(8 * kMtu);
  int operation = 0;
  send_unexpected(out, false, &operation);
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  expect_idle();
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_TRUE(b.sink.all.empty()) << "the unexpected message has vanished";
}

TEST_F(RendezvousTest, Ses64_CancelWhileItIsReadEndsTheReceiveWithAnError) {
  Bytes out = pattern(12 * kMtu);
  Bytes in(out.size());
  int operation = 0;
  send_unexpected(out, false, &operation);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const std::vector<Sent> asked = packets(b);  // not all of it: a limit
  deliver(b, a, asked.at(0));
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  EXPECT_TRUE(a.sink.all.empty()) << "an answer still points into its memory";
  for (std::size_t i = 1; i < asked.size(); ++i) deliver(b, a, asked[i]);
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  expect_idle();
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
  for (const Sent& sent : packets(a)) deliver(a, b, sent);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  EXPECT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(RendezvousTest, Ses64_TimeOutEndsTheSend) {
  Parameters parameters = rendezvous_parameters();
  parameters.rendezvous_timeout = std::chrono::seconds(30);
  Node c{1, parameters};
  const Peer peer = to_b();
  Bytes out = pattern(8 * kMtu);
  const std::vector<IoSlice> local{slice_of(out)};
  SendOp op;
  op.peer = &peer;
  op.local = local;
  ASSERT_TRUE(c.ses.send(*c.context, op, kNow));
  for (const Sent& sent : c.packets()) deliver(c, b, sent);
  const Time end = c.ses.next_deadline();
  EXPECT_EQ(end, kNow + std::chrono::seconds(30));
  c.ses.progress(end - Duration(1));
  EXPECT_TRUE(c.delivery.backlog.empty());
  c.ses.progress(end);
  for (const Sent& sent : c.packets()) {
    EXPECT_EQ(sent.request().opcode, SesOpcode::MsgError);
    deliver(c, b, sent);
  }
  ASSERT_EQ(c.sink.all.size(), 1u);
  EXPECT_EQ(c.sink.all[0].status, Status::PdsError);
  EXPECT_EQ(c.sink.all[0].pds_error, pds::PdsError::RtoExhausted);
  EXPECT_TRUE(b.ses.idle());
}

TEST_F(RendezvousTest, LossOfThePdcEndsTheWaitAtBothEnds) {
  Bytes out = pattern(8 * kMtu);
  send_unexpected(out);
  a.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  a.delivery.locks = 0;  // gone with the PDC
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::PdsError);
  b.ses.client().pdc_closed(kPdc, {}, kNow);
  b.delivery.locks = 0;
  expect_idle();
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_TRUE(b.sink.all.empty());
}

TEST_F(RendezvousTest, Ses64_FailureOfTheReadEndsTheReceive) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const std::vector<Sent> asked = packets(b);
  for (const Sent& sent : asked) {
    b.ses.client().pds_error(*sent.message, sent.tag, pds::PdsError::RtoExhausted, kNow);
  }
  for (const Sent& sent : b.packets()) b.answered(sent, {});  // MSG_ERROR, if it had not ended
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::PeerLost);
  EXPECT_TRUE(b.ses.idle());
  EXPECT_TRUE(a.sink.all.empty());
  a.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  EXPECT_EQ(a.sink.all.size(), 1u);
}

TEST_F(RendezvousTest, DiscardedMessageLetsItsSenderFinish) {
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

TEST_F(RendezvousTest, ClosedTargetLetsSendersFinishAndDeliveryFail) {
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

TEST_F(RendezvousTest, TargetClosedWhileItReadsWritesNoMoreToItsMemory) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  for (const Sent& ask : packets(b)) deliver(b, a, ask);
  b.ses.close_context(*b.context, kNow);
  std::fill(in.begin(), in.end(), std::byte{0x5A});
  exchange();
  EXPECT_EQ(in, Bytes(out.size(), std::byte{0x5A}));
  EXPECT_EQ(a.sink.all.size(), 1u);
  EXPECT_TRUE(b.sink.all.empty());
  expect_idle();
  b.context = b.ses.open_context(small_config(), b.sink).value();
}

TEST_F(RendezvousTest, SenderClosedWhileItIsReadHasNoPacketPointingToItsMemory) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const std::vector<Sent> asked = packets(b);
  deliver(b, a, asked.at(0));
  const Sent answer = a.packet().value();
  a.delivery.on_abort = [&](PdcId, Time) {
    a.ses.client().pds_error(*answer.message, answer.tag, pds::PdsError::LocalClose, kNow);
  };
  a.ses.close_context(*a.context, kNow);
  EXPECT_EQ(a.delivery.aborts, 1);
  EXPECT_TRUE(a.ses.idle());
  EXPECT_TRUE(a.sink.all.empty());
  a.context = a.ses.open_context(small_config(), a.sink).value();
}

TEST_F(RendezvousTest, SenderClosedWhileItWaitsIsGoneAtOnce) {
  Bytes out = pattern(8 * kMtu);
  send_unexpected(out);
  a.ses.close_context(*a.context, kNow);
  EXPECT_TRUE(a.ses.idle());
  EXPECT_EQ(a.delivery.aborts, 0);
  a.context = a.ses.open_context(small_config(), a.sink).value();
}

// ---- another make: the remainder must always be read --------------------------------------------

class ForeignRendezvousTest : public RendezvousTest {
 protected:
  static constexpr std::uint32_t kEager = kMtu + 100;
  static constexpr std::uint64_t kReadOffset = 64;

  // What another make sends: an eager part, and a region in which all of the message can be read.
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
  EXPECT_TRUE(packets(b).empty()) << "first the eager part";
  EXPECT_EQ(header_of(second_packet()).list, wire::List::Expected);
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Ok);
  EXPECT_EQ(in, out);
  expect_idle();
}

TEST_F(ForeignRendezvousTest, Ses62_UnexpectedOneIsKeptAndReadWhenAReceiveComes) {
  const wire::SesResponseHeader header = header_of(second_packet());
  EXPECT_EQ(header.list, wire::List::Overflow);
  EXPECT_EQ(header.modified_length, kEager - kMtu);
  EXPECT_EQ(code_of(first_packet()), ReturnCode::Ok);
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(in, out);
  expect_idle();
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

TEST_F(ForeignRendezvousTest, Ses63_ReceiveNoLongerThanTheEagerPartStillReadsTheEnd) {
  Bytes in(kEager);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  first_packet();
  second_packet();
  const std::vector<Sent> asked = packets(b);
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

TEST_F(ForeignRendezvousTest, MemoryShortageIsANackSinceOnlyTheRemainderMayBeReadable) {
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
  wrong.message_offset = kMtu;  // an end that nobody asked for, of no known message
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
