// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Deferrable sends at their target: when they are put off, asked for, taken, given up.
#include "unit/ses/harness.h"

namespace uet::ses::test {
namespace {

constexpr std::size_t kLength = 4 * kMtu;
constexpr auto kTimeout = std::chrono::seconds(5);
constexpr unsigned kParked = 4;  // at most

Parameters deferring() {
  Parameters parameters = small_parameters();
  parameters.deferrable = true;
  parameters.deferrable_threshold_bytes = kLength;
  parameters.deferred_timeout = kTimeout;
  parameters.parked_per_context = kParked;
  return parameters;
}

// Node a sends, node b puts off.
class TargetDeferrableTest : public TwoNodes {
 protected:
  explicit TargetDeferrableTest(const Parameters& parameters = deferring())
      : TwoNodes(parameters) {}

  Result<void> send(Bytes& memory, std::optional<std::uint64_t> tag = {},
                    void* operation = nullptr) {
    Peer peer = b.peer();
    peer.ai_full = true;
    const IoSlice slice = slice_of(memory);
    SendOp op;
    op.peer = &peer;
    op.local = {&slice, 1};
    op.tag = tag;
    op.context = operation;
    return a.ses.initiator().post(*a.context, op, kNow);
  }
  void send_unexpected(Bytes& message, std::optional<std::uint64_t> tag = {},
                       void* operation = nullptr) {
    ASSERT_TRUE(send(message, tag, operation));
    exchange();
    EXPECT_TRUE(a.sink.all.empty());
    EXPECT_EQ(b.buffers.in_use(), 0u) << "no data is kept";
  }
  // The request to send it again that b makes now.
  Sent asks() {
    std::vector<Sent> sent = turn(b);
    EXPECT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.at(0).request().opcode, SesOpcode::DeferrableRtr);
    return sent.at(0);
  }
  void expect_received(const Bytes& memory, const Bytes& message, std::size_t index = 0) {
    ASSERT_GT(b.sink.all.size(), index);
    EXPECT_EQ(b.sink.all[index].status, Status::Ok);
    EXPECT_EQ(b.sink.all[index].length, message.size());
    EXPECT_EQ(memory, message);
  }
  void expect_sent() {
    ASSERT_EQ(a.sink.all.size(), 1u);
    EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  }
  Completion peek(bool discard = false, bool claim = false) {
    PeekOp op;
    op.context = &name;
    op.discard = discard;
    op.claim = claim;
    EXPECT_TRUE(b.ses.peek(*b.context, op, kNow));
    const Completion found = b.sink.all.back();
    b.sink.all.pop_back();
    return found;
  }

  int name = 0;
  Bytes message = pattern(kLength);
  Bytes memory = Bytes(kLength);
};

TEST_F(TargetDeferrableTest, Ses66_Ses67_WithoutAReceiveOnlyTheNameIsKept) {
  ASSERT_TRUE(send(message));
  const std::vector<Sent> sent = a.packets();
  const pds::Response first = deliver(a, b, sent.at(0));
  const wire::SesResponseHeader header = header_of(first);
  EXPECT_EQ(header.opcode, wire::ResponseOpcode::Response);
  EXPECT_EQ(header.return_code, ReturnCode::Ok);
  EXPECT_EQ(header.list, wire::List::Overflow);
  EXPECT_EQ(header.modified_length, 0u);
  EXPECT_TRUE(first.guaranteed);
  for (std::size_t i = 1; i < sent.size(); ++i) {
    const pds::Response later = deliver(a, b, sent[i]);
    EXPECT_EQ(code_of(later), ReturnCode::Ok);
    EXPECT_FALSE(later.guaranteed);
  }
  EXPECT_EQ(b.buffers.in_use(), 0u);
  EXPECT_EQ(b.delivery.locks, 1) << "tells when the sender dies";
  EXPECT_EQ(b.ses.counters().messages_parked, 1u);
  EXPECT_TRUE(turn(b).empty());
  const Completion found = peek();
  EXPECT_EQ(found.status, Status::Ok);
  EXPECT_EQ(found.length, kLength);
  EXPECT_EQ(found.source, a.address);
}

TEST_F(TargetDeferrableTest, Ses69_SenderEndsItWhereItStands) {
  ASSERT_TRUE(send(message));
  deliver(a, b, a.packet().value());
  exchange();
  EXPECT_TRUE(a.sink.all.empty());
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  exchange();
  expect_received(memory, message);
  expect_sent();
  expect_idle();
}

// The request to send it again is faster than the answer that puts it off.
TEST_F(TargetDeferrableTest, Ses23_EndOfTheFirstTryRepeatsItsTokens) {
  ASSERT_TRUE(send(message));
  const Sent first = a.packet().value();
  const pds::Response put_off = b.take(first.next_hdr, first.bytes, 1);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  deliver(b, a, asks());
  const std::vector<Sent> end = turn(a);
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(end[0].request().buffer_offset, first.request().buffer_offset);
  EXPECT_EQ(code_of(deliver(a, b, end[0])), ReturnCode::Ok);
  a.answered(first, put_off);
  exchange();
  expect_received(memory, message);
  expect_sent();
  expect_idle();
}

TEST_F(TargetDeferrableTest, Ses70_Ses72_ReceiveAsksForItWithBothTokens) {
  send_unexpected(message, 5);
  EXPECT_EQ(b.ses.next_deadline(), kNow + kTimeout);
  ASSERT_TRUE(b.receive({slice_of(memory)}, 5));
  b.delivery.refuse = true;
  EXPECT_TRUE(turn(b).empty()) << "no PDC: tried again";
  EXPECT_LT(b.ses.next_deadline(), kNow + kTimeout);
  b.delivery.refuse = false;
  b.ses.progress(kNow + std::chrono::milliseconds(2));
  const Sent sent = asks();
  const SesRequest request = sent.request();
  EXPECT_TRUE(request.som && request.eom);
  EXPECT_NE(request.initiator_restart_token(), 0u);
  EXPECT_NE(request.target_restart_token(), 0u);
  EXPECT_EQ(request.buffer_offset, 0u) << "from its beginning";
  EXPECT_EQ(request.initiator, small_config().initiator);
  EXPECT_EQ(b.delivery.destination.address, a.address);
  EXPECT_EQ(b.delivery.destination.mode, DeliveryMode::Rud);
  deliver(b, a, sent);
  exchange();
  expect_received(memory, message);
  EXPECT_EQ(b.sink.all.size(), 1u);
  expect_sent();
  expect_idle();
}

TEST_F(TargetDeferrableTest, Ses70_Request_NeedNotWaitForFirstTry) {
  ASSERT_TRUE(send(message));
  const std::vector<Sent> sent = a.packets();
  const pds::Response first = b.take(sent[1].next_hdr, sent[1].bytes, 1);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  deliver(b, a, asks());
  deliver(a, b, sent[0]);
  a.answered(sent[1], first);
  EXPECT_TRUE(turn(a).empty());
  for (std::size_t i = 2; i < sent.size(); ++i) deliver(a, b, sent[i]);
  EXPECT_EQ(memory, Bytes(kLength)) << "what comes of the first try is dropped";
  exchange();
  expect_received(memory, message);
  expect_sent();
  expect_idle();
}

TEST_F(TargetDeferrableTest, Ses71_RestartedMessageGoesToItsOwnReceive) {
  send_unexpected(message);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  Bytes other(kLength);
  ASSERT_TRUE(b.receive({slice_of(other)}));
  Bytes second = pattern(kLength, 2);
  ASSERT_TRUE(send(second));
  for (const Sent& sent : a.packets()) deliver(a, b, sent);  // overtakes it
  EXPECT_EQ(other, second);
  Bytes third(kLength);
  ASSERT_TRUE(b.receive({slice_of(third)}));
  exchange();
  EXPECT_EQ(memory, message);
  EXPECT_EQ(third, Bytes(kLength));
  EXPECT_EQ(a.sink.all.size(), 2u);
  EXPECT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(b.delivery.locks, 0);
}

// The receive is reserved for one message of one sender.
Parameters one_message_at_a_time() {
  Parameters parameters = deferring();
  parameters.rx_messages = 2;  // one host has half of them
  return parameters;
}

class OneMessageAtATime : public TargetDeferrableTest {
 protected:
  OneMessageAtATime() : TargetDeferrableTest(one_message_at_a_time()) {}
};

// A parked message that its receive has asked for must not take the state of its own restart.
TEST_F(OneMessageAtATime, Ses71_ParkedMessageLeavesTheStateOfItsRestart) {
  send_unexpected(message);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  exchange();
  expect_received(memory, message);
  expect_sent();
  expect_idle();
}

TEST_F(TargetDeferrableTest, Ses71_TokenOfAnotherMessageLeadsNowhere) {
  send_unexpected(message);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  const Sent rtr = asks();
  SesRequest wrong = b.request_for(SesOpcode::DeferrableSend);
  wrong.initiator = small_config().initiator;
  wrong.set_restart_tokens(rtr.request().initiator_restart_token(),
                           rtr.request().target_restart_token());
  const auto take = [&](const SesRequest& request, std::uint32_t length, std::uint8_t from) {
    return header_of(b.take(part(request, kMtu, kMtu, length), Bytes(kMtu), from)).list;
  };
  EXPECT_EQ(take(wrong, kLength, 9), wire::List::Overflow) << "of another FEP";
  wrong.message_id = MsgId{10};
  EXPECT_EQ(take(wrong, kLength - 1, 1), wire::List::Overflow) << "of another length";
  wrong.message_id = MsgId{11};
  wrong.initiator = InitiatorId{1};
  EXPECT_EQ(take(wrong, kLength, 1), wire::List::Overflow);
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_EQ(memory, Bytes(kLength));
  deliver(b, a, rtr);
  for (const Sent& sent : turn(a)) deliver(a, b, sent);
  expect_received(memory, message);
  expect_sent();
}

TEST_F(TargetDeferrableTest, Ses51_OrderAmongUnexpectedMessagesIsKept) {
  Bytes shorter = pattern(100, 2);
  Bytes second = pattern(kLength, 3);
  send_unexpected(message);
  ASSERT_TRUE(send(shorter));
  ASSERT_TRUE(send(second));
  exchange();
  a.sink.all.clear();  // the short one
  std::array<Bytes, 3> room{Bytes(kLength), Bytes(100), Bytes(kLength)};
  for (Bytes& into : room) {
    ASSERT_TRUE(b.receive({slice_of(into)}));
    exchange();
  }
  EXPECT_EQ(room[0], message);
  EXPECT_EQ(room[1], shorter);
  EXPECT_EQ(room[2], second);
  EXPECT_EQ(a.sink.all.size(), 2u);
  expect_idle();
}

TEST_F(TargetDeferrableTest, Ses66_NoMoreThanTheLimitThenOrdinarySends) {
  std::vector<Bytes> messages;
  for (unsigned i = 0; i <= kParked; ++i) messages.push_back(pattern(kLength, i));
  for (Bytes& each : messages) ASSERT_TRUE(send(each));
  exchange();
  EXPECT_EQ(b.ses.counters().messages_parked, kParked);
  EXPECT_EQ(b.buffers.in_use(), kLength / kMtu) << "the last one";
  EXPECT_EQ(a.sink.all.size(), 1u);
  for (unsigned i = 0; i <= kParked; ++i) {
    Bytes into(kLength);
    ASSERT_TRUE(b.receive({slice_of(into)}));
    exchange();
    expect_received(into, messages[i], i);
  }
  EXPECT_EQ(a.sink.all.size(), kParked + 1);
  expect_idle();
  b.sink.all.clear();
  a.sink.all.clear();
  send_unexpected(message);
  EXPECT_EQ(b.ses.counters().messages_parked, kParked + 1) << "no message is parked any more";
}

TEST_F(TargetDeferrableTest, Ses74_NothingIsPutOffOnAnOrderedStream) {
  SesRequest request = b.request_for(SesOpcode::DeferrableSend);
  request.set_restart_tokens(3, 0);
  const SesRequest whole = part(request, 0, 100, 100);
  Bytes bytes(whole.encoded_bytes());
  whole.encode(bytes.data());
  const Bytes payload = pattern(100);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  pds::RequestView view;
  view.pdc = kPdc;
  view.mode = DeliveryMode::Rod;
  view.source = a.address;
  view.next_hdr = whole.next_hdr;
  view.bytes = bytes;
  EXPECT_EQ(header_of(b.ses.client().rx_req(view, kNow)).modified_length, 100u);
  EXPECT_EQ(b.ses.counters().messages_parked, 0u);
  view.mode = DeliveryMode::Rud;
  EXPECT_EQ(header_of(b.ses.client().rx_req(view, kNow)).modified_length, 0u);
  EXPECT_EQ(b.ses.counters().messages_parked, 1u);
  EXPECT_EQ(b.delivery.locks, 1) << "also for one packet";
}

TEST_F(TargetDeferrableTest, Ses75_OnlyAiFull_NeverWithoutBytes) {
  Node base{3};
  SesRequest request = base.request_for(SesOpcode::DeferrableSend);
  request.set_restart_tokens(3, 0);
  EXPECT_EQ(header_of(base.take(part(request, 0, 100, 100), Bytes(100))).modified_length, 100u);
  EXPECT_EQ(base.ses.counters().messages_parked, 0u);
  request.request_length = 0;
  request.som = request.eom = true;
  b.take(request);  // SES-68
  EXPECT_EQ(b.ses.counters().messages_parked, 0u);
}

TEST_F(TargetDeferrableTest, Ses76_ReceiveCancelled_RestartIsUnexpected) {
  for (const bool asked : {false, true}) {
    send_unexpected(message);
    ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, &name));
    if (asked) deliver(b, a, asks());
    ASSERT_TRUE(b.ses.cancel(*b.context, &name, kNow));
    ASSERT_EQ(b.sink.all.size(), 1u);
    EXPECT_EQ(b.sink.all[0].status, Status::Cancelled);
    EXPECT_FALSE(b.ses.cancel(*b.context, &name, kNow));
    exchange();
    EXPECT_TRUE(a.sink.all.empty());
    EXPECT_EQ(memory, Bytes(kLength));
    EXPECT_EQ(peek().length, kLength) << "it is unexpected again";
    Bytes into(kLength);
    ASSERT_TRUE(b.receive({slice_of(into)}));
    exchange();
    expect_received(into, message, 1);
    expect_sent();
    expect_idle();
    a.sink.all.clear();
    b.sink.all.clear();
  }
}

TEST_F(TargetDeferrableTest, DiscardedMessageComesAgainAndIsDropped) {
  send_unexpected(message);
  EXPECT_EQ(peek(true).status, Status::Ok);
  EXPECT_EQ(peek().status, Status::NoMessage);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  exchange();
  expect_sent();
  EXPECT_EQ(memory, Bytes(kLength));
  EXPECT_TRUE(b.sink.all.empty());
  expect_idle();
}

TEST_F(TargetDeferrableTest, ClaimedMessage_AskedForByItsReceive) {
  send_unexpected(message);
  EXPECT_EQ(peek(false, true).length, kLength);
  Bytes other(kLength);
  ASSERT_TRUE(b.receive({slice_of(other)}));
  exchange();
  EXPECT_TRUE(a.sink.all.empty());
  const IoSlice slice = slice_of(memory);
  ReceiveOp claim;
  claim.local = {&slice, 1};
  claim.claim = true;
  claim.context = &name;
  ASSERT_TRUE(b.ses.receive(*b.context, claim, kNow));
  exchange();
  expect_received(memory, message);
  EXPECT_EQ(b.sink.all[0].context, &name);
  expect_sent();
  expect_idle();
}

TEST_F(TargetDeferrableTest, ReceiveWaitsAgainAfterARefusedRequest) {
  send_unexpected(message, {}, &name);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  const Sent rtr = asks();
  ASSERT_TRUE(a.ses.cancel(*a.context, &name, kNow));
  deliver(b, a, rtr);  // OP_VIOLATION
  exchange();          // and MSG_ERROR of what is forgotten
  EXPECT_TRUE(b.sink.all.empty());
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  expect_idle();
  ASSERT_TRUE(send(message));
  exchange();
  expect_received(memory, message);
}

// The sender has freed the PDC on which the request arrived.
TEST_F(TargetDeferrableTest, Pds142_RequestThatWasNotConsumedIsMadeAgain) {
  send_unexpected(message);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  const Sent first = asks();
  first.message->owner->pds_error(*first.message, first.tag, pds::PdsError::NotConsumed, kNow);
  EXPECT_TRUE(b.sink.all.empty());
  const Sent second = asks();
  EXPECT_NE(second.request().target_restart_token(), first.request().target_restart_token());
  deliver(b, a, second);
  exchange();
  expect_received(memory, message);
  expect_sent();
  expect_idle();
}

// A sender that frees each PDC is asked once and `retries` times more.
TEST_F(TargetDeferrableTest, Pds142_RequestThatIsNeverConsumedIsGivenUp) {
  send_unexpected(message);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  Time now = kNow;
  std::size_t asked = 0;
  for (int i = 0; i < 1000; ++i) {
    now += std::chrono::milliseconds(1);
    b.ses.progress(now);
    for (const Sent& sent : b.packets()) {
      ++asked;
      sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::NotConsumed, now);
    }
  }
  EXPECT_EQ(asked, deferring().retries + 1U);
  EXPECT_TRUE(b.sink.all.empty()) << "the receive waits again";
  EXPECT_EQ(peek().status, Status::NoMessage);
  a.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
}

TEST_F(TargetDeferrableTest, SenderThatGivesUpEndsIt) {
  for (const bool wanted : {false, true}) {
    send_unexpected(message, {}, &name);
    if (wanted) {
      ASSERT_TRUE(b.receive({slice_of(memory)}));
    }
    ASSERT_TRUE(a.ses.cancel(*a.context, &name, kNow));
    for (const Sent& sent : turn(a)) deliver(a, b, sent);
    EXPECT_EQ(peek().status, Status::NoMessage);
    exchange();
    EXPECT_TRUE(b.sink.all.empty());
    expect_idle();
    a.sink.all.clear();
  }
}

TEST_F(TargetDeferrableTest, ReceiveWaitsAgainIfThePeerOrTheRequestFails) {
  for (const bool asked : {false, true}) {
    send_unexpected(message);
    ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, &name));
    if (asked) {
      const Sent rtr = asks();
      rtr.message->owner->pds_error(*rtr.message, rtr.tag, pds::PdsError::RtoExhausted, kNow);
    } else {
      b.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
      b.delivery.locks = 0;
    }
    EXPECT_TRUE(b.sink.all.empty());
    EXPECT_TRUE(b.ses.idle());
    EXPECT_EQ(b.delivery.locks, 0);
    EXPECT_EQ(b.ses.next_deadline(), kNever);
    ASSERT_TRUE(b.ses.cancel(*b.context, &name, kNow)) << "it waits";
    b.sink.all.clear();
    a.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
    a.sink.all.clear();
    a.delivery.locks = 0;
  }
  send_unexpected(message);
  b.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  EXPECT_TRUE(b.ses.idle());
  EXPECT_EQ(peek().status, Status::NoMessage);
}

// The sender needs the PDC of the first try no more once it has been asked; the receive stays its
// own (SES-71).
TEST_F(TargetDeferrableTest, Ses71_AskedFor_PdcOfFirstTryMayClose) {
  send_unexpected(message);
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  deliver(b, a, asks());
  b.ses.client().pdc_closed(kPdc, {}, kNow);
  EXPECT_EQ(b.delivery.locks, 1) << "its own is gone with the PDC";
  b.delivery.locks = 0;
  const SesRequest other = part(b.request_for(SesOpcode::Send), 0, 10, 10);
  EXPECT_EQ(header_of(b.take(other, pattern(10))).list, wire::List::Overflow);
  exchange();
  expect_received(memory, message);
  expect_sent();
}

TEST_F(TargetDeferrableTest, PeerThatDiesInTheFirstTryIsForgotten) {
  ASSERT_TRUE(send(message));
  deliver(a, b, a.packet().value());
  ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, &name));
  b.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_TRUE(b.ses.idle());
  EXPECT_TRUE(b.ses.cancel(*b.context, &name, kNow));
}

TEST_F(TargetDeferrableTest, TimeoutForgetsItWantedOrNot) {
  send_unexpected(message);
  EXPECT_TRUE(turn(b, kNow + kTimeout - Duration(1)).empty());
  EXPECT_EQ(peek().status, Status::Ok);
  EXPECT_TRUE(turn(b, kNow + kTimeout).empty());
  EXPECT_EQ(peek().status, Status::NoMessage);
  EXPECT_TRUE(b.ses.idle());

  Bytes second = pattern(kLength, 2);
  send_unexpected(second);
  ASSERT_TRUE(b.receive({slice_of(memory)}, {}, 0, &name));
  const Sent rtr = asks();
  EXPECT_EQ(b.ses.next_deadline(), kNow + kTimeout);
  EXPECT_TRUE(turn(b, kNow + kTimeout).empty());
  EXPECT_TRUE(b.sink.all.empty());
  EXPECT_EQ(b.delivery.locks, 0);
  EXPECT_EQ(b.ses.next_deadline(), kNever);
  deliver(b, a, rtr);  // late: its token leads nowhere, but the receive waits for any
  exchange();
  expect_received(memory, second);
}

TEST_F(TargetDeferrableTest, ClosedContextForgetsAllAndTheSendersHearOfIt) {
  std::vector<Bytes> messages;
  for (unsigned i = 0; i < 3; ++i) messages.push_back(pattern(kLength, i));
  for (Bytes& each : messages) ASSERT_TRUE(send(each));
  exchange();
  ASSERT_TRUE(b.receive({slice_of(memory)}));
  deliver(b, a, asks());
  Bytes second(kLength);
  ASSERT_TRUE(b.receive({slice_of(second)}));
  b.ses.close_context(*b.context, kNow);
  EXPECT_TRUE(b.sink.all.empty());
  exchange();
  EXPECT_EQ(memory, Bytes(kLength));
  EXPECT_EQ(second, Bytes(kLength));
  ASSERT_EQ(a.sink.all.size(), 3u);
  for (const Completion& done : a.sink.all) EXPECT_EQ(done.status, Status::ReturnCode);
  expect_idle();
}

TEST_F(TargetDeferrableTest, MultiReceiveReservesBytesForEachMessage) {
  std::array<Bytes, 2> messages{pattern(kLength, 1), pattern(kLength, 2)};
  for (Bytes& each : messages) ASSERT_TRUE(send(each));
  exchange();
  Bytes room(2 * kLength);
  const IoSlice slice = slice_of(room);
  ReceiveOp op;
  op.local = {&slice, 1};
  op.multi = true;
  ASSERT_TRUE(b.ses.receive(*b.context, op, kNow));
  exchange();
  ASSERT_EQ(b.sink.all.size(), 2u);
  EXPECT_EQ(Bytes(room.begin(), room.begin() + kLength), messages[0]);
  EXPECT_EQ(Bytes(room.begin() + kLength, room.end()), messages[1]);
  EXPECT_TRUE(b.sink.all[1].released);
  EXPECT_EQ(a.sink.all.size(), 2u);
  expect_idle();
}

}  // namespace
}  // namespace uet::ses::test
