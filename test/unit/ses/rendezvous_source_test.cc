// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends that their target can read again, seen from the sender: what its packets say, when it
// stops, when it is complete, and how it ends before that.
#include "ses/rendezvous_source.h"

#include <bit>

#include "unit/ses/operation_harness.h"
#include "unit/ses/rendezvous_harness.h"

namespace uet::ses::test {
namespace {

TEST_F(RendezvousTest, Ses56_Ses59_LongSend_EachPacketSaysItsSource) {
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

// The target would read it from the FEP of that port, which is another one.
TEST_F(RendezvousTest, Ses56_SendsFromAnotherPortArePlain) {
  a.context->config.via = 3;
  Bytes memory = pattern(kThreshold + 1);
  ASSERT_TRUE(send(memory));
  EXPECT_EQ(a.delivery.destination.address.via, 3u);
  EXPECT_TRUE(is_same_fep(a.delivery.destination.address, b.address));
  ASSERT_TRUE(send(memory, true));
  for (const Sent& packet : a.packets()) {
    EXPECT_EQ(packet.request().opcode, SesOpcode::Send);
    a.answered(packet, {});
  }
}

TEST_F(RendezvousTest, Ses110_SendsWithDeliveryCompleteAreReadable) {
  Bytes memory;
  ASSERT_TRUE(send(memory, true));
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::RendezvousSend);
  EXPECT_TRUE(sent[0].request().dc);
  a.answered(sent[0], {});
}

// Another implementation answers OVERFLOW, 0 to every unexpected message without bytes, and will
// not read it.
TEST_F(RendezvousTest, Ses110_OnlyToBeReadDelaysASendWithoutBytes) {
  for (const wire::List list : {wire::List::Expected, wire::List::Overflow, wire::List::ToBeRead}) {
    Bytes memory;
    ASSERT_TRUE(send(memory, true));
    const Sent sent = a.packet().value();
    wire::SesResponseHeader header;
    header.opcode = wire::ResponseOpcode::Response;
    header.return_code = ReturnCode::Ok;
    header.list = list;
    pds::Response response;
    response.next_hdr = NextHdr::Response;
    response.length = static_cast<std::uint8_t>(header.encode(response.bytes.data()));
    a.answered(sent, response);
    EXPECT_EQ(a.sink.all.size(), list == wire::List::ToBeRead ? 0u : 1u) << int(list);
    a.sink.all.clear();
  }
  a.ses.close_context(*a.context, kNow);
}

// With DC too: the default response is all that a target says which has delivered at once
// (SES-111).
TEST_F(RendezvousTest, Ses110_Ses111_DefaultResponse_MeansDelivered) {
  Bytes memory = pattern(100);
  ASSERT_TRUE(send(memory, true));
  a.answered(a.packet().value(), {});
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

TEST_F(RendezvousTest, Ses161_WithoutTheProfileNothingIsReadable) {
  Parameters parameters = rendezvous_parameters();
  parameters.rendezvous = false;
  Node plain(3, parameters);
  Bytes memory = pattern(kThreshold + 1);
  const Peer peer = to_b();
  const IoSlice slice = slice_of(memory);
  SendOp op;
  op.peer = &peer;
  op.local = {&slice, 1};
  ASSERT_TRUE(plain.ses.initiator().post(*plain.context, op, kNow));
  for (const Sent& sent : plain.packets()) {
    EXPECT_EQ(sent.request().opcode, SesOpcode::Send);
    plain.answered(sent, {});
  }
}

// The first dropped packet is answered in a way that cannot get lost; the sender stops there.
TEST_F(RendezvousTest, Ses67_Ses69_RestIsDropped_SenderStops) {
  Bytes out = pattern(20 * kMtu);
  ASSERT_TRUE(send(out));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const pds::Response response = deliver(a, b, a.packet().value());
    const wire::SesResponseHeader header = header_of(response);
    EXPECT_EQ(header.return_code, ReturnCode::Ok);
    const bool dropped = i == 2;
    EXPECT_EQ(response.guaranteed, dropped);
    EXPECT_EQ(header.list, dropped ? wire::List::Overflow : wire::List::Expected);
    EXPECT_EQ(header.modified_length, dropped ? 0 : out.size());
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

// A target that says so and refuses the message all the same gets no second one.
TEST_F(RendezvousTest, Ses54_MessageThatWillBeReadIsNotSentAgain) {
  Bytes out = pattern(8 * kMtu);
  ASSERT_TRUE(send(out));
  const Sent first = a.packet().value();
  const Sent second = a.packet().value();
  const auto say = [&](const Sent& sent, wire::List list, ReturnCode code) {
    wire::SesResponseHeader header;
    header.opcode = wire::ResponseOpcode::Response;
    header.return_code = code;
    header.list = list;
    pds::Response response;
    response.next_hdr = NextHdr::Response;
    response.length = static_cast<std::uint8_t>(header.encode(response.bytes.data()));
    a.answered(sent, response);
  };
  say(first, wire::List::Overflow, ReturnCode::Ok);
  say(second, wire::List::Expected, ReturnCode::NoMatch);
  for (const Sent& sent : turn(a)) a.answered(sent, {});
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::NoMatch);
  EXPECT_TRUE(turn(a).empty());
  expect_idle();
}

// The send must not complete while packets of the answer still point to its memory.
TEST_F(RendezvousTest, Ses61_ReadDataAcked_SendCompletes) {
  Bytes out = pattern(6 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  for (const Sent& ask : turn(b)) deliver(b, a, ask);
  const std::vector<Sent> data = turn(a);
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

TEST_F(RendezvousTest, Ses113_CancelBeforeTargetReads_Cancels) {
  Bytes out = pattern(8 * kMtu);
  int operation = 0;
  ASSERT_TRUE(send(out, false, &operation));
  std::vector<std::pair<Sent, pds::Response>> late;
  for (const Sent& sent : a.packets()) {
    late.emplace_back(sent, b.take(sent.next_hdr, sent.bytes, 1));
  }
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  for (const auto& [sent, response] : late) a.answered(sent, response);
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  expect_idle();
}

TEST_F(RendezvousTest, Ses64_CancelWhileRead_ReceiveEndsInError) {
  Bytes out = pattern(12 * kMtu);
  Bytes in(out.size());
  int operation = 0;
  send_unexpected(out, false, &operation);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const std::vector<Sent> asked = turn(b);  // not all of it: a limit
  deliver(b, a, asked.at(0));
  EXPECT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  EXPECT_TRUE(a.sink.all.empty()) << "an answer still points into its memory";
  for (std::size_t i = 1; i < asked.size(); ++i) {
    EXPECT_EQ(code_of(deliver(b, a, asked[i])), ReturnCode::BadMkey) << "nothing more is told";
  }
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Abandoned);
  expect_idle();
}

// Of two senders that differ in their secret alone, and of two messages of one sender.
TEST_F(RendezvousTest, Ses60_ReadKeysTellNothingOfEachOther) {
  Parameters parameters = rendezvous_parameters();
  std::vector<std::uint64_t> nonces;
  for (const std::uint64_t secret : {1, 2}) {
    parameters.key_secret = {secret, 0};
    Node c{1, parameters};
    const Peer peer = to_b();
    Bytes out = pattern(kThreshold + 1);
    const std::vector<IoSlice> local{slice_of(out)};
    SendOp op;
    op.peer = &peer;
    op.local = local;
    for (int message = 0; message < 2; ++message) {
      ASSERT_TRUE(c.ses.initiator().post(*c.context, op, kNow));
      const std::vector<Sent> sent = c.packets();
      nonces.push_back(sent.at(0).request().rendezvous.read_memory_key.value >> 16 & 0xFFFFFFFF);
      for (const Sent& packet : sent) c.answered(packet, {});
    }
  }
  for (std::size_t i = 0; i < nonces.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_GT(std::popcount(nonces[i] ^ nonces[j]), 4);
  }
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
  ASSERT_TRUE(c.ses.initiator().post(*c.context, op, kNow));
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

// The PDC of the send has been closed in favour of other peers (Delivery::watch).
class SendWithoutPdc : public RendezvousTest {
 protected:
  void begin(void* operation = nullptr) {
    send_unexpected(out, false, operation);
    for (Node* node : {&a, &b}) {
      node->ses.client().pdc_closed(kPdc, {}, kNow);
      node->delivery.locks = 0;
    }
    EXPECT_TRUE(a.sink.all.empty());
  }
  Bytes out = pattern(8 * kMtu);
  Bytes in = Bytes(out.size());
};

TEST_F(SendWithoutPdc, Pds180_IsReadOnAnother) {
  begin();
  ASSERT_TRUE(b.receive({slice_of(in)}));
  exchange();
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_EQ(b.sink.all[0].status, Status::Ok);
  EXPECT_EQ(in, out);
  expect_idle();
}

TEST_F(SendWithoutPdc, Pds125_AnotherTellsWhetherTheTargetLives) {
  begin();
  const Time again = a.ses.next_deadline();
  EXPECT_EQ(again, kNow + std::chrono::seconds(1));
  a.ses.progress(again - Duration(1));
  EXPECT_EQ(a.delivery.connects, 0);
  a.delivery.refuse = true;
  a.ses.progress(again);
  const Time later = a.ses.next_deadline();
  EXPECT_EQ(later, again + std::chrono::seconds(1));
  a.delivery.refuse = false;
  a.ses.progress(later);
  EXPECT_EQ(a.delivery.connects, 1);
  EXPECT_EQ(a.delivery.destination.address, b.address);
  EXPECT_EQ(a.delivery.locks, 1);
  EXPECT_EQ(a.ses.next_deadline(), kNever);
  a.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, later);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].pds_error, pds::PdsError::RtoExhausted);
}

TEST_F(SendWithoutPdc, Ses113_CancelledEndsAtItsTarget) {
  int operation = 0;
  begin(&operation);
  ASSERT_TRUE(a.ses.cancel(*a.context, &operation, kNow));
  for (const Sent& sent : a.packets()) {
    EXPECT_EQ(sent.request().opcode, SesOpcode::MsgError);
    const pds::Response response = b.take(sent.next_hdr, sent.bytes, 1, PdcId{0x42});
    a.answered(sent, response);
  }
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_TRUE(turn(b).empty());
  EXPECT_TRUE(b.sink.all.empty()) << "the receive waits for another message";
}

TEST_F(RendezvousTest, LossOfThePdcEndsTheWaitAtBothEnds) {
  Bytes out = pattern(8 * kMtu);
  send_unexpected(out);
  a.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  a.delivery.locks = 0;  // gone with the PDC
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::PdsError);
  b.ses.client().pdc_closed(kPdc, pds::PdsError::PeerLost, kNow);
  b.delivery.locks = 0;
  expect_idle();
  Bytes in(out.size());
  ASSERT_TRUE(b.receive({slice_of(in)}));
  EXPECT_TRUE(b.sink.all.empty());
}

TEST_F(RendezvousTest, SenderClosed_NoPacketPointsToItsMemory) {
  Bytes out = pattern(8 * kMtu);
  Bytes in(out.size());
  send_unexpected(out);
  ASSERT_TRUE(b.receive({slice_of(in)}));
  const std::vector<Sent> asked = turn(b);
  deliver(b, a, asked.at(0));
  const Sent answer = a.packet().value();
  Packet packet;
  packet.payload = {Slice{out.data(), kMtu}, Slice{}};
  pds::PreparedPacket prepared{.next_hdr = answer.next_hdr, .tag = answer.tag};
  a.delivery.on_edit = [&](const pds::Message& message, pds::PacketEditor& editor) {
    if (&message == answer.message) {
      EXPECT_TRUE(editor.edit(packet, prepared));
    }
  };
  a.ses.close_context(*a.context, kNow);
  EXPECT_EQ(packet.payload_length(), 0u);
  Sent refusal{answer.message, prepared.tag, prepared.next_hdr, {}};
  refusal.bytes.assign(packet.head().begin(), packet.head().end());
  deliver(a, b, refusal);
  for (std::size_t i = 1; i < asked.size(); ++i) deliver(b, a, asked[i]);  // refused as well
  for (const Sent& sent : a.packets()) deliver(a, b, sent);
  exchange();
  EXPECT_TRUE(a.ses.idle());
  EXPECT_TRUE(a.sink.all.empty());
  ASSERT_EQ(b.sink.all.size(), 1u);
  EXPECT_NE(b.sink.all[0].status, Status::Ok);
  EXPECT_EQ(b.delivery.locks, 0);
  a.context = a.ses.open_context(small_config(), a.sink).value();
}

TEST_F(RendezvousTest, Ses113_SenderClosedWhileItWaitsEndsItsMessage) {
  Bytes out = pattern(8 * kMtu);
  send_unexpected(out);
  a.ses.close_context(*a.context, kNow);
  const std::vector<Sent> sent = a.packets();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].request().opcode, SesOpcode::MsgError);
  deliver(a, b, sent[0]);
  expect_idle();
  EXPECT_EQ(a.delivery.aborts, 0);
  a.context = a.ses.open_context(small_config(), a.sink).value();
}

// ---- the object alone --------------------------------------------------------------------------

class RendezvousSourceTest : public OperationTest {
 protected:
  RendezvousSourceTest() : source(with_timeout(parameters), operations, watches) {
    watches.attach(delivery);
    peer.hpc = true;
  }
  static const Parameters& with_timeout(Parameters& parameters) {
    parameters.rendezvous_threshold_bytes = kThreshold;
    parameters.rendezvous_timeout = std::chrono::seconds(2);
    return parameters;
  }
  TxMessage& offered() {
    TxMessage& message = open(kThreshold + 1);
    source.offer(message, peer);
    EXPECT_TRUE(message.readable);
    return message;
  }
  Peer peer;
  Watches watches;
  RendezvousSource source;
};

TEST_F(RendezvousSourceTest, Ses60_KeyOpensItsMessageToItsTargetOnly) {
  TxMessage& message = offered();
  const Rkey key = message.header.rendezvous.read_memory_key;
  const JobId job = context.config.job;
  EXPECT_EQ(source.find(key, job, message.to), &message);
  EXPECT_EQ(source.find(key, job, address_of(3)), nullptr);
  EXPECT_EQ(source.find(key, JobId{7}, message.to), nullptr);
  EXPECT_EQ(source.find(Rkey{key.value ^ 1 << 16}, job, message.to), nullptr) << "its nonce";
  source.renew_key(message);
  EXPECT_EQ(source.find(key, job, message.to), nullptr);
  message.fail(ReturnCode::Dropped);
  EXPECT_EQ(source.find(message.header.rendezvous.read_memory_key, job, message.to), nullptr);
}

TEST_F(RendezvousSourceTest, Ses61_AllPacketsOfTheLastReadEndTheWait) {
  TxMessage& message = offered();
  source.served(message, false, 100, 100, kNow);
  EXPECT_TRUE(message.awaits_read) << "the answer that announces the read may have been lost";
  EXPECT_EQ(delivery.locks, 1);
  source.served(message, true, 60, 100, kNow);
  EXPECT_FALSE(message.read_out);
  source.served(message, true, 40, 100, kNow);
  EXPECT_TRUE(message.read_out);
  EXPECT_EQ(source.deadline(), kNever);
  source.stop_awaiting(message);
  EXPECT_FALSE(source.waits());
  watches.stop(message);
}

TEST_F(RendezvousSourceTest, Ses64_TargetThatDoesNotReadInTimeFailsTheSend) {
  TxMessage& message = offered();
  source.await_read(message, kNow);
  const Time due = kNow + std::chrono::seconds(2);
  EXPECT_EQ(source.deadline(), due);
  int ended = 0;
  const auto end = [&](TxMessage&) { ++ended; };
  source.expire(due - std::chrono::nanoseconds(1), end);
  EXPECT_EQ(ended, 0);
  source.expire(due, end);
  source.expire(due, end);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(message.pds_error, pds::PdsError::RtoExhausted);
  source.stop_awaiting(message);
  watches.stop(message);
}

TEST_F(RendezvousSourceTest, WaitingMessagesWithoutPdcAreConnected) {
  TxMessage& message = offered();
  source.await_read(message, kNow);
  watches.go_on_without_pdc(message, kNow);
  source.reconnect(kNow);
  EXPECT_EQ(delivery.connects, 1);
  source.stop_awaiting(message);
  watches.stop(message);
}

}  // namespace
}  // namespace uet::ses::test
