// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Deferrable sends at their sender: when they are offered, put off, asked for again, given up.
#include "ses/deferred_sends.h"

#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

constexpr std::size_t kLength = 4 * kMtu;
constexpr std::uint32_t kTargetToken = 0xBEEF;

Parameters deferring() {
  Parameters parameters = small_parameters();
  parameters.deferrable = true;
  parameters.deferrable_threshold_bytes = kLength;
  parameters.deferred_timeout = std::chrono::seconds(5);
  return parameters;
}

class DeferrableTest : public TwoNodes {
 protected:
  Result<void> send(Bytes& memory, std::optional<std::uint64_t> tag = {},
                    void* operation = nullptr) {
    return send_from(sender, memory, true, tag, operation);
  }
  Result<void> send_from(Node& node, Bytes& memory, bool ai_full,
                         std::optional<std::uint64_t> tag = {}, void* operation = nullptr) {
    Peer peer = b.peer();
    peer.ai_full = ai_full;
    const IoSlice slice = slice_of(memory);
    SendOp op;
    op.peer = &peer;
    op.local = {&slice, 1};
    op.tag = tag;
    op.context = operation;
    return node.ses.initiator().post(*node.context, op, kNow);
  }
  // SES-67
  void put_off(const Sent& sent) {
    wire::SesResponseHeader header;
    header.opcode = wire::ResponseOpcode::Response;
    header.return_code = ReturnCode::Ok;
    header.list = wire::List::Overflow;
    pds::Response response;
    response.next_hdr = NextHdr::Response;
    response.length = static_cast<std::uint8_t>(header.encode(response.bytes.data()));
    sender.answered(sent, response);
  }
  // The request of the target that restarts the message, once it has a receive.
  SesRequest restart_of(const Sent& sent) const {
    SesRequest request;
    request.opcode = SesOpcode::DeferrableRtr;
    request.som = request.eom = true;
    request.message_id = MsgId{900};
    request.rel = true;
    request.job_id = sent.request().job_id;
    request.initiator = sent.request().initiator;
    request.set_restart_tokens(sent.request().initiator_restart_token(), kTargetToken);
    return request;
  }
  // A message that has been put off and is answered for.
  Sent parked(Bytes& memory, void* operation = nullptr) {
    EXPECT_TRUE(send(memory, {}, operation));
    const std::vector<Sent> sent = sender.packets();
    put_off(sent.at(0));
    for (std::size_t i = 1; i < sent.size(); ++i) sender.answered(sent[i], {});
    EXPECT_TRUE(sender.sink.all.empty());
    return sent[0];
  }
  std::vector<Sent> turn(Time now = kNow) {
    sender.ses.progress(now);
    return sender.packets();
  }
  void expect_sent_whole(const std::vector<Sent>& sent, MsgId old) {
    ASSERT_EQ(sent.size(), kLength / kMtu);
    EXPECT_TRUE(sent[0].request().som);
    EXPECT_NE(sent[0].request().message_id, old) << "SES-72";
    for (const Sent& packet : sent) {
      EXPECT_EQ(packet.request().target_restart_token(), kTargetToken);
      sender.answered(packet, {});
    }
    ASSERT_EQ(sender.sink.all.size(), 1u);
    EXPECT_EQ(sender.sink.all[0].status, Status::Ok);
    EXPECT_TRUE(sender.ses.idle());
    EXPECT_EQ(sender.delivery.locks, 0);
    EXPECT_EQ(sender.ses.next_deadline(), kNever);
  }
  Bytes memory = pattern(kLength);
  Node sender{3, deferring()};
};

TEST_F(DeferrableTest, Ses65_PacketsCarryOnlyTheTokenOfTheInitiator) {
  ASSERT_TRUE(send(memory));
  ASSERT_TRUE(send(memory, 5));
  const std::vector<Sent> sent = sender.packets();
  ASSERT_EQ(sent.size(), 2 * kLength / kMtu);
  EXPECT_EQ(sent.front().request().opcode, SesOpcode::DeferrableSend);
  EXPECT_EQ(sent.back().request().opcode, SesOpcode::DeferrableTsend);
  EXPECT_NE(sent.front().request().initiator_restart_token(),
            sent.back().request().initiator_restart_token());
  for (const Sent& packet : sent) {
    EXPECT_NE(packet.request().initiator_restart_token(), 0u);
    EXPECT_EQ(packet.request().target_restart_token(), 0u);
    sender.answered(packet, {});
  }
  EXPECT_EQ(sender.sink.all.size(), 2u) << "SES-75: a target need not put anything off";
  EXPECT_TRUE(sender.ses.idle());
}

// SES-151
TEST_F(DeferrableTest, Ses68_Ses74_Ses161_OnlyLongUnorderedOnesToTheAiFullProfile) {
  Bytes shorter(kLength - 1);
  ASSERT_TRUE(send(shorter));
  ASSERT_TRUE(send_from(sender, memory, false));
  ContextConfig ordered = small_config();
  ordered.mode = DeliveryMode::Rod;
  Node rod(4, deferring(), ordered);
  ASSERT_TRUE(send_from(rod, memory, true));
  Parameters all = deferring();
  all.deferrable_threshold_bytes = 0;
  Node any(5, all);
  Bytes none;
  ASSERT_TRUE(send_from(any, none, true));
  Node from_another_port(6, deferring());
  from_another_port.context->config.via = 3;  // where the target would restart it, it is not known
  ASSERT_TRUE(send_from(from_another_port, memory, true));
  for (Node* node : {&sender, &rod, &any, &from_another_port}) {
    for (const Sent& packet : node->packets()) {
      EXPECT_EQ(packet.request().opcode, SesOpcode::Send);
      node->answered(packet, {});
    }
    EXPECT_TRUE(node->ses.idle());
  }
}

TEST_F(DeferrableTest, Ses67_Ses69_SenderStopsWithAnEmptyPacketAndParks) {
  ASSERT_TRUE(send(memory));
  const Sent first = sender.packet().value();
  const Sent second = sender.packet().value();
  put_off(first);
  const std::vector<Sent> end = sender.packets();
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(end[0].request().opcode, SesOpcode::DeferrableSend);
  EXPECT_TRUE(end[0].request().eom);
  EXPECT_FALSE(end[0].request().som);
  EXPECT_EQ(end[0].request().message_offset, 2 * kMtu);
  EXPECT_TRUE(end[0].request().payload.empty());
  sender.answered(second, {});
  sender.answered(end[0], {});
  EXPECT_TRUE(sender.sink.all.empty());
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(sender.delivery.locks, 1) << "its PDC tells when the target dies";
  EXPECT_EQ(code_of(sender.take(restart_of(first), {}, 2)), ReturnCode::Ok);
  expect_sent_whole(turn(), first.request().message_id);
}

TEST_F(DeferrableTest, Idea6_Ses70_Ses72_Restart_IsANewWholeMessage) {
  const Sent first = parked(memory);
  SesRequest restart = restart_of(first);
  restart.buffer_offset = 2 * kMtu;  // whatever position it names
  EXPECT_EQ(code_of(sender.take(restart, {}, 2)), ReturnCode::Ok);
  expect_sent_whole(turn(), first.request().message_id);
}

TEST_F(DeferrableTest, Ses71_OnlyTheTarget_RestartsItsMessage) {
  const Sent first = parked(memory);
  SesRequest wrong = restart_of(first);
  EXPECT_EQ(code_of(sender.take(wrong, {}, 9)), ReturnCode::OpViolation) << "another FEP";
  wrong.initiator = InitiatorId{1};
  EXPECT_EQ(code_of(sender.take(wrong, {}, 2)), ReturnCode::OpViolation);
  wrong = restart_of(first);
  wrong.job_id = JobId{1};
  EXPECT_EQ(code_of(sender.take(wrong, {}, 2)), ReturnCode::OpViolation);
  wrong = restart_of(first);
  wrong.set_restart_tokens(first.request().initiator_restart_token() + 1, kTargetToken);
  EXPECT_EQ(code_of(sender.take(wrong, {}, 2)), ReturnCode::OpViolation);
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(code_of(sender.take(restart_of(first), {}, 2)), ReturnCode::Ok);
  const std::vector<Sent> again = turn();
  EXPECT_EQ(code_of(sender.take(restart_of(first), {}, 2)), ReturnCode::Ok) << "a repeated one";
  EXPECT_TRUE(turn().empty());
  expect_sent_whole(again, first.request().message_id);
}

// The answer that puts the message off may be slower than the request to send it again.
TEST_F(DeferrableTest, RestartBeforeTheAnswersWaitsForThem) {
  ASSERT_TRUE(send(memory));
  const std::vector<Sent> sent = sender.packets();
  EXPECT_EQ(code_of(sender.take(restart_of(sent[0]), {}, 2)), ReturnCode::Ok);
  EXPECT_TRUE(turn().empty());
  for (std::size_t i = 1; i < sent.size(); ++i) sender.answered(sent[i], {});
  EXPECT_TRUE(turn().empty());
  put_off(sent[0]);
  expect_sent_whole(turn(), sent[0].request().message_id);
}

TEST_F(DeferrableTest, RestartedMessageMayBePutOffAgain) {
  const Sent first = parked(memory);
  sender.take(restart_of(first), {}, 2);
  const std::vector<Sent> second = turn();
  put_off(second.at(0));
  for (std::size_t i = 1; i < second.size(); ++i) sender.answered(second[i], {});
  EXPECT_TRUE(sender.sink.all.empty());
  SesRequest restart = restart_of(second[0]);
  restart.set_restart_tokens(first.request().initiator_restart_token(), kTargetToken + 1);
  EXPECT_EQ(code_of(sender.take(restart, {}, 2)), ReturnCode::Ok);
  const std::vector<Sent> third = turn();
  ASSERT_FALSE(third.empty());
  EXPECT_EQ(third[0].request().target_restart_token(), kTargetToken + 1);
  for (const Sent& packet : third) sender.answered(packet, {});
  EXPECT_EQ(sender.sink.all.size(), 1u);
  EXPECT_TRUE(sender.ses.idle());
}

TEST_F(DeferrableTest, ParkedMessageFailsWithoutARestartRequest) {
  parked(memory);
  const Time due = sender.ses.next_deadline();
  EXPECT_EQ(due, kNow + std::chrono::seconds(5));
  EXPECT_TRUE(turn(due - Duration(1)).empty());
  const std::vector<Sent> end = turn(due);
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(end[0].request().opcode, SesOpcode::MsgError);
  sender.answered(end[0], {});
  ASSERT_EQ(sender.sink.all.size(), 1u);
  EXPECT_EQ(sender.sink.all[0].status, Status::PdsError);
  EXPECT_EQ(sender.sink.all[0].pds_error, pds::PdsError::RtoExhausted);  // FI_ETIMEDOUT
  EXPECT_TRUE(sender.ses.idle());
}

TEST_F(DeferrableTest, ParkedMessageFailsWithItsTarget) {
  parked(memory);
  sender.ses.client().pdc_closed(kPdc, pds::PdsError::RtoExhausted, kNow);
  ASSERT_EQ(sender.sink.all.size(), 1u);
  EXPECT_EQ(sender.sink.all[0].pds_error, pds::PdsError::RtoExhausted);
  EXPECT_TRUE(sender.ses.idle());
}

TEST_F(DeferrableTest, ParkedMessageCanBeCancelledAndClosed) {
  int name = 0;
  const Sent first = parked(memory, &name);
  ASSERT_TRUE(sender.ses.cancel(*sender.context, &name, kNow));
  const std::vector<Sent> end = sender.packets();
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(end[0].request().opcode, SesOpcode::MsgError);
  EXPECT_EQ(code_of(sender.take(restart_of(first), {}, 2)), ReturnCode::OpViolation);
  sender.answered(end[0], {});
  ASSERT_EQ(sender.sink.all.size(), 1u);
  EXPECT_EQ(sender.sink.all[0].status, Status::Cancelled);
  sender.sink.all.clear();
  parked(memory);
  sender.ses.close_context(*sender.context, kNow);
  const std::vector<Sent> last = sender.packets();
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].request().opcode, SesOpcode::MsgError);
  sender.answered(last[0], {});
  EXPECT_TRUE(sender.ses.idle());
  EXPECT_EQ(sender.delivery.locks, 0);
}

// ---- the object alone --------------------------------------------------------------------------

class DeferredSendsTest : public OperationTest {
 protected:
  DeferredSendsTest() : sends(deferring(), watches) {
    watches.attach(delivery);
    peer.ai_full = true;
  }
  TxMessage& offered() {
    TxMessage& message = open(kLength);
    message.packets_made = 1;
    sends.offer(message, peer);
    EXPECT_NE(message.restart_token, 0u);
    return message;
  }
  static SesRequest restart_of(const TxMessage& message, std::uint32_t token = kTargetToken) {
    SesRequest request;
    request.job_id = message.header.job_id;
    request.initiator = message.header.initiator;
    request.set_restart_tokens(message.restart_token, token);
    return request;
  }
  void forget(TxMessage& message) {
    watches.stop(message);
    sends.forget(message);
  }
  Peer peer;
  Watches watches;
  DeferredSends sends;
};

TEST_F(DeferredSendsTest, Ses74_OrderedShortOrReadableOnesAreNot) {
  TxMessage& ordered = open(kLength);
  ordered.mode = DeliveryMode::Rod;
  TxMessage& brief = open(kLength - 1);
  TxMessage& readable = open(kLength);
  readable.readable = true;
  for (TxMessage* message : {&ordered, &brief, &readable}) {
    sends.offer(*message, peer);
    EXPECT_EQ(message->restart_token, 0u);
    EXPECT_EQ(message->header.opcode, SesOpcode::Send);
  }
}

TEST_F(DeferredSendsTest, Ses71_RestartOfAnotherMessageIsRefused) {
  TxMessage& message = offered();
  const SesRequest request = restart_of(message);
  EXPECT_EQ(sends.restart(request, address_of(3), kNow).code, ReturnCode::OpViolation);
  SesRequest other = request;
  other.initiator = InitiatorId{1};
  EXPECT_EQ(sends.restart(other, message.to, kNow).code, ReturnCode::OpViolation);
  other = request;
  other.set_restart_tokens(message.restart_token + 1, kTargetToken);
  EXPECT_EQ(sends.restart(other, message.to, kNow).code, ReturnCode::OpViolation);
  EXPECT_FALSE(message.restart);
  forget(message);
}

TEST_F(DeferredSendsTest, Ses72_RestartIsTakenOnce) {
  TxMessage& message = offered();
  sends.park(message, kNow);
  EXPECT_TRUE(sends.waits());
  const DeferredSends::Restart first = sends.restart(restart_of(message), message.to, kNow);
  EXPECT_EQ(first.code, ReturnCode::Ok);
  EXPECT_EQ(first.message, &message);
  const DeferredSends::Restart again = sends.restart(restart_of(message), message.to, kNow);
  EXPECT_EQ(again.code, ReturnCode::Ok);
  EXPECT_EQ(again.message, nullptr);
  sends.unpark(message);
  EXPECT_FALSE(sends.waits());
  EXPECT_FALSE(message.deferred);
  EXPECT_EQ(message.header.target_restart_token(), kTargetToken);
  forget(message);
}

TEST_F(DeferredSendsTest, Ses64_TargetThatDoesNotAskInTimeFailsTheSend) {
  TxMessage& message = offered();
  sends.park(message, kNow);
  EXPECT_EQ(delivery.locks, 1);
  const Time due = kNow + deferring().deferred_timeout;
  EXPECT_EQ(sends.deadline(), due);
  int ended = 0;
  sends.expire(due - std::chrono::nanoseconds(1), [&](TxMessage&) { ++ended; });
  EXPECT_EQ(ended, 0);
  sends.expire(due, [&](TxMessage&) { ++ended; });
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(message.failed());
  EXPECT_EQ(sends.deadline(), kNever);
  forget(message);
}

}  // namespace
}  // namespace uet::ses::test
