// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations that their target refuses for now, and targets that do so.
#include "ses/retries.h"
#include "unit/ses/operation_harness.h"

namespace uet::ses::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint8_t kNewGeneration = 7;

ContextConfig ordered_config() {
  ContextConfig config = small_config();
  config.mode = DeliveryMode::Rod;
  return config;
}

class RetryTest : public TwoNodes {
 protected:
  static void answer(Node& node, const Sent& sent, ReturnCode code, std::uint8_t generation = 0) {
    const bool ok = code == ReturnCode::Ok;
    wire::SesResponseHeader header;
    header.opcode = ok ? wire::ResponseOpcode::DefaultResponse : wire::ResponseOpcode::Response;
    header.return_code = code;
    header.ri_generation = RiGeneration{generation};
    pds::Response response;
    response.next_hdr = NextHdr::Response;
    response.length = static_cast<std::uint8_t>(header.encode(response.bytes.data()));
    node.answered(sent, response);
  }
  // The packets that can be made at this time.
  static std::vector<Sent> turn(Node& node, Time now = kNow) {
    node.ses.progress(now);
    return node.packets();
  }
  // The node's only packet at this time.
  static Sent only(Node& node, Time now = kNow) {
    std::vector<Sent> sent = turn(node, now);
    EXPECT_EQ(sent.size(), 1u);
    return sent.at(0);
  }
};

TEST_F(RetryTest, Ses54_Refused_EndedAndResentAfterAWait) {
  Bytes memory = pattern(3 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent first = *a.packet();
  const Sent second = *a.packet();
  answer(a, first, ReturnCode::NoMatch);
  EXPECT_TRUE(a.packets().empty()) << "the MSG_ERROR waits for the answer of what is under way";
  answer(a, second, ReturnCode::NoMatch);
  const Sent end = only(a);
  EXPECT_EQ(end.request().opcode, SesOpcode::MsgError);
  EXPECT_TRUE(end.request().eom);
  EXPECT_FALSE(end.request().som);
  EXPECT_EQ(end.request().message_offset, 2 * kMtu);
  EXPECT_TRUE(end.request().payload.empty());
  answer(a, end, ReturnCode::Ok);

  EXPECT_TRUE(turn(a).empty());
  const Time due = a.ses.next_deadline();
  EXPECT_GE(due - kNow, microseconds(500));
  EXPECT_LE(due - kNow, milliseconds(1));
  EXPECT_TRUE(turn(a, due - Duration(1)).empty());
  const std::vector<Sent> again = turn(a, due);
  ASSERT_EQ(again.size(), 3u) << "the whole message";
  EXPECT_TRUE(again[0].request().som);
  EXPECT_NE(again[0].request().message_id, first.request().message_id);
  for (std::size_t i = 1; i < again.size(); ++i) {
    EXPECT_EQ(again[i].request().message_id, again[0].request().message_id);
    EXPECT_EQ(again[i].request().message_offset, i * kMtu);
    EXPECT_EQ(again[i].request().eom, i == 2);
  }
  EXPECT_TRUE(a.sink.all.empty());
  for (const Sent& sent : again) answer(a, sent, ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  EXPECT_EQ(a.ses.counters().messages_retried, 1u);
  expect_idle();
}

TEST_F(RetryTest, Ses54_WaitsGrowAndTheLastRefusalFails) {
  Parameters parameters = small_parameters();
  parameters.retries = 5;
  parameters.retry_wait = milliseconds(50);
  parameters.retry_wait_most = milliseconds(300);
  Node node(3, parameters);
  ASSERT_TRUE(node.send(b, {}));
  Time now = kNow;
  const milliseconds waits[] = {milliseconds(50), milliseconds(100), milliseconds(200),
                                milliseconds(300), milliseconds(300)};
  for (const milliseconds most : waits) {
    const Sent sent = only(node, now);
    wire::SesResponseHeader header;
    header.opcode = wire::ResponseOpcode::Response;
    header.return_code = ReturnCode::NoMatch;
    std::array<std::byte, 16> bytes{};
    const std::size_t length = header.encode(bytes.data());
    sent.message->owner->rx_rsp(*sent.message, sent.tag,
                                {NextHdr::Response, std::span(bytes).first(length), Psn{1}}, now);
    ASSERT_TRUE(node.sink.all.empty());
    const Time due = node.ses.next_deadline();
    EXPECT_GE(due - now, most / 2);
    EXPECT_LE(due - now, most);
    now = due;
  }
  answer(node, only(node, now), ReturnCode::DisabledGen);
  ASSERT_EQ(node.sink.all.size(), 1u);
  EXPECT_EQ(node.sink.all[0].status, Status::ReturnCode);
  EXPECT_EQ(node.sink.all[0].return_code, ReturnCode::DisabledGen);
  EXPECT_TRUE(node.ses.idle());
  EXPECT_EQ(node.ses.next_deadline(), kNever);
}

TEST_F(RetryTest, Ses55_Ses154_NewGeneration_TakenForPeerAndIndex) {
  ASSERT_TRUE(a.send(b, {}));
  const Sent stale = only(a);
  EXPECT_EQ(stale.request().ri_generation, RiGeneration{0});
  answer(a, stale, ReturnCode::BadGeneration, kNewGeneration);
  EXPECT_LE(a.ses.next_deadline(), kNow) << "no backoff";
  const Sent again = only(a);
  EXPECT_EQ(again.request().ri_generation, RiGeneration{kNewGeneration});
  answer(a, again, ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);

  ASSERT_TRUE(a.send(b, {}));
  Sent later = only(a);
  EXPECT_EQ(later.request().ri_generation, RiGeneration{kNewGeneration}) << "it is remembered";
  answer(a, later, ReturnCode::Ok);
  Peer other = b.peer();
  other.resource_index = ResourceIndex{11};
  SendOp op;
  op.peer = &other;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  later = only(a);
  EXPECT_EQ(later.request().ri_generation, RiGeneration{0}) << "of that index only";
  answer(a, later, ReturnCode::Ok);
  expect_idle();
}

// Whatever has the place in the table of generations: address, process, mode and context count.
TEST_F(RetryTest, Ses154_OneGenerationForEachAddressAndIndex) {
  ASSERT_TRUE(a.send(b, {}));
  answer(a, only(a), ReturnCode::BadGeneration, kNewGeneration);
  answer(a, only(a), ReturnCode::Ok);
  const auto generation_for = [&](Context& context, const Peer& peer) {
    SendOp op;
    op.peer = &peer;
    EXPECT_TRUE(a.ses.initiator().post(context, op, kNow));
    const Sent sent = only(a);
    answer(a, sent, ReturnCode::Ok);
    return sent.request().ri_generation;
  };
  Peer other = b.peer();
  EXPECT_EQ(generation_for(*a.context, other), RiGeneration{kNewGeneration});
  other.relative = !other.relative;
  EXPECT_EQ(generation_for(*a.context, other), RiGeneration{0});
  constexpr int kMany = 4 * Generations::kEntries;  // some share an entry
  for (int i = 1; i < kMany; ++i) {
    other = b.peer();
    other.fep.port = static_cast<std::uint16_t>(other.fep.port + i);
    ASSERT_EQ(generation_for(*a.context, other), RiGeneration{0}) << i;
  }
  for (std::uint16_t pid = 0; pid <= kMaxPidOnFep; ++pid) {
    other = b.peer();
    if (other.pid_on_fep.value == pid) continue;
    other.pid_on_fep = PidOnFep{pid};
    ASSERT_EQ(generation_for(*a.context, other), RiGeneration{0}) << pid;
  }
  ContextConfig absolute = small_config();
  absolute.relative = false;
  Sink sink;
  Context* second = a.ses.open_context(absolute, sink).value();
  EXPECT_EQ(generation_for(*second, b.peer()), RiGeneration{0}) << "learns for itself";
  EXPECT_EQ(generation_for(*a.context, b.peer()), RiGeneration{kNewGeneration});
  a.ses.close_context(*second, kNow);
}

TEST_F(RetryTest, Ses55_GenerationThatNeverFitsFailsInTheEnd) {
  ASSERT_TRUE(a.send(b, {}));
  for (int i = 0; i <= small_parameters().retries; ++i) {
    ASSERT_TRUE(a.sink.all.empty());
    answer(a, only(a), ReturnCode::BadGeneration, static_cast<std::uint8_t>(i + 1));
  }
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].return_code, ReturnCode::BadGeneration);
  expect_idle();
}

TEST_F(RetryTest, Idea12_ReadsWritesInjects_ResentWhole) {
  Bytes window = pattern(4 * kMtu);
  Bytes copy(3 * kMtu);
  Bytes source = pattern(2 * kMtu, 3);
  const Rkey key = b.expose(window);
  ASSERT_TRUE(a.read(b, {slice_of(copy)}, key));
  ASSERT_TRUE(a.write(b, {slice_of(source)}, key, 0, 5));
  const Peer peer = b.peer();
  Bytes word = pattern(8, 4);
  const IoSlice slice = slice_of(word);
  SendOp op;
  op.peer = &peer;
  op.local = {&slice, 1};
  op.inject = true;
  ASSERT_TRUE(a.ses.initiator().post(*a.context, op, kNow));
  word = Bytes(8);
  for (const Sent& sent : a.packets()) {
    answer(a, sent, ReturnCode::BadGeneration, 0);  // no other than ours, which will do
  }
  Bytes received(8);
  ASSERT_TRUE(b.receive({slice_of(received)}));
  a.ses.progress(kNow);
  exchange();
  ASSERT_EQ(a.sink.all.size(), 3u);
  for (const Completion& completion : a.sink.all) EXPECT_EQ(completion.status, Status::Ok);
  EXPECT_EQ(received, pattern(8, 4));
  EXPECT_TRUE(std::equal(source.begin(), source.end(), window.begin()));
  ASSERT_EQ(b.sink.all.size(), 2u) << "the receive, and the data of the write once";
  expect_idle();
}

TEST_F(RetryTest, TransientErrorIsTriedAgainLikeAMissingReceive) {
  ASSERT_TRUE(a.send(b, {}));
  answer(a, only(a), ReturnCode::UncorTrnsnt);
  answer(a, only(a, a.ses.next_deadline()), ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
}

TEST_F(RetryTest, WaitingMessageCanBeCancelledAndClosed) {
  int names[2];
  ASSERT_TRUE(a.send(b, {}, {}, &names[0]));
  ASSERT_TRUE(a.send(b, {}, {}, &names[1]));
  for (const Sent& sent : a.packets()) answer(a, sent, ReturnCode::NoMatch);
  ASSERT_TRUE(a.ses.cancel(*a.context, &names[0], kNow));
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  a.ses.close_context(*a.context, kNow);
  EXPECT_EQ(a.sink.all.size(), 1u);
  EXPECT_TRUE(a.ses.idle());
  EXPECT_EQ(a.ses.next_deadline(), kNever);
}

TEST_F(RetryTest, MessageToBeRetried_CanBeCancelled) {
  int name = 0;
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}, {}, &name));
  const std::vector<Sent> sent = a.packets();
  answer(a, sent[0], ReturnCode::NoMatch);
  ASSERT_TRUE(a.ses.cancel(*a.context, &name, kNow));
  answer(a, sent[1], ReturnCode::NoMatch);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Cancelled);
  expect_idle();
}

TEST_F(RetryTest, DeadPeerIsNotTriedAgain) {
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const std::vector<Sent> sent = a.packets();
  answer(a, sent[0], ReturnCode::NoMatch);
  sent[1].message->owner->pds_error(*sent[1].message, sent[1].tag, pds::PdsError::RtoExhausted,
                                    kNow);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::PdsError);
  expect_idle();
}

// ---- a PDC that the peer has freed --------------------------------------------------------------

void not_consumed(const Sent& sent) {
  sent.message->owner->pds_error(*sent.message, sent.tag, pds::PdsError::NotConsumed, kNow);
}

TEST_F(RetryTest, Pds142_WhatWasNotConsumedIsSentAgainAtOnce) {
  Bytes memory = pattern(64);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent first = only(a);
  not_consumed(first);
  EXPECT_TRUE(a.sink.all.empty());
  const Sent again = only(a);
  EXPECT_TRUE(again.request().som);
  EXPECT_TRUE(again.request().eom);
  EXPECT_NE(again.request().message_id, first.request().message_id);
  EXPECT_TRUE(std::ranges::equal(again.request().payload, memory));
  not_consumed(again);  // the second time after a wait
  EXPECT_TRUE(turn(a).empty());
  answer(a, only(a, kNow + milliseconds(2)), ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

TEST_F(RetryTest, Pds142_ReadThatWasNotConsumedIsSentAgain) {
  Bytes memory(64);
  ASSERT_TRUE(a.read(b, {slice_of(memory)}, Rkey{1}));
  not_consumed(only(a));
  const Sent again = only(a);
  EXPECT_EQ(again.request().opcode, SesOpcode::Read);
  EXPECT_TRUE(a.sink.all.empty());
  again.message->owner->pds_error(*again.message, again.tag, pds::PdsError::RtoExhausted, kNow);
  ASSERT_EQ(a.sink.all.size(), 1u);
  expect_idle();
}

TEST_F(RetryTest, Pds142_MessageWithAnotherPacketUnderWayFails) {
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const std::vector<Sent> sent = turn(a);
  ASSERT_EQ(sent.size(), 2u);
  not_consumed(sent[0]);
  sent[1].message->owner->pds_error(*sent[1].message, sent[1].tag, pds::PdsError::ProtocolError,
                                    kNow);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].pds_error, pds::PdsError::ProtocolError);
  EXPECT_TRUE(turn(a, kNow + milliseconds(200)).empty());
  expect_idle();
}

// The peer's process has ended before it read any of them.
TEST_F(RetryTest, Pds142_NoPacketConsumed_MessageIsResent) {
  Bytes memory = pattern(2 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const std::vector<Sent> sent = turn(a);
  ASSERT_EQ(sent.size(), 2u);
  for (const Sent& packet : sent) not_consumed(packet);
  EXPECT_TRUE(a.sink.all.empty());
  const std::vector<Sent> again = turn(a);
  ASSERT_EQ(again.size(), 2u);
  for (const Sent& packet : again) answer(a, packet, ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

TEST_F(RetryTest, Pds142_FirstAnsweredRestUnconsumed_Fails) {
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const std::vector<Sent> sent = turn(a);
  answer(a, sent[0], ReturnCode::Ok);
  not_consumed(sent[1]);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].pds_error, pds::PdsError::ProtocolError);
  expect_idle();
}

// The rest of the message was still in the backlog of the PDC.
TEST_F(RetryTest, Pds142_OnlyBegun_ResentFromTheStart) {
  Bytes memory = pattern(3 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent first = *a.packet();
  a.delivery.backlog.clear();
  not_consumed(first);
  first.message->owner->message_failed(*first.message, pds::PdsError::NotConsumed, kNow);
  EXPECT_TRUE(a.sink.all.empty());
  const std::vector<Sent> again = turn(a);
  ASSERT_EQ(again.size(), 3u);
  for (const Sent& sent : again) answer(a, sent, ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
  expect_idle();
}

TEST_F(RetryTest, Pds142_NotBegun_GoesToTheNewPdcToo) {
  ASSERT_TRUE(a.send(b, {}));
  pds::Message& message = *a.delivery.backlog.front();
  a.delivery.backlog.clear();
  message.owner->message_failed(message, pds::PdsError::NotConsumed, kNow);
  answer(a, only(a), ReturnCode::Ok);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::Ok);
}

TEST_F(RetryTest, Pds142_FirstPacketAnswered_NotResent) {
  Bytes memory(2 * kMtu);
  ASSERT_TRUE(a.send(b, {slice_of(memory)}));
  const Sent first = *a.packet();
  a.delivery.backlog.clear();
  answer(a, first, ReturnCode::Ok);
  first.message->owner->message_failed(*first.message, pds::PdsError::NotConsumed, kNow);
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].status, Status::PdsError);
  expect_idle();
}

TEST_F(RetryTest, Pds142_PeerThatRefusesEveryPdcIsGivenUp) {
  ASSERT_TRUE(a.send(b, {}));
  Time now = kNow;
  int tries = 0;
  for (; a.sink.all.empty() && tries < 1000; ++tries) {
    const std::vector<Sent> sent = turn(a, now);
    if (!sent.empty()) not_consumed(sent.at(0));
    now += milliseconds(200);
  }
  ASSERT_EQ(a.sink.all.size(), 1u);
  EXPECT_EQ(a.sink.all[0].pds_error, pds::PdsError::NotConsumed);
  EXPECT_EQ(tries, 1 + small_parameters().retries);
  expect_idle();
}

TEST_F(RetryTest, UnorderedMessagesOvertakeOneThatWaits) {
  ASSERT_TRUE(a.send(b, {}));
  answer(a, only(a), ReturnCode::NoMatch);
  ASSERT_TRUE(a.send(b, {}));
  answer(a, only(a), ReturnCode::Ok);
  EXPECT_EQ(a.sink.all.size(), 1u);
  a.ses.close_context(*a.context, kNow);
}

// ---- order -------------------------------------------------------------------------------------

class OrderedRetryTest : public RetryTest {
 protected:
  void send(std::uint64_t tag) { ASSERT_TRUE(node.send(b, {}, tag)); }
  static std::uint64_t tag_of(const Sent& sent) { return sent.request().match_bits; }
  Node node{3, small_parameters(), ordered_config()};
};

// 1 is refused for lack of a receive, and 2 because the generation has changed since; the answers
// come in the wrong order. 3 has not begun yet, 4 is posted meanwhile. PDS-168: all come again.
TEST_F(OrderedRetryTest, Ses54_EachIsSentWhenAllBeforeItHaveCompleted) {
  for (std::uint64_t tag = 1; tag <= 3; ++tag) send(tag);
  const Sent one = *node.packet();
  const Sent two = *node.packet();
  answer(node, two, ReturnCode::BadGeneration, kNewGeneration);
  send(4);
  EXPECT_TRUE(turn(node).empty()) << "3 was taken back, 4 waits";
  answer(node, one, ReturnCode::NoMatch);
  const Time due = node.ses.next_deadline();
  EXPECT_GT(due, kNow);
  for (std::uint64_t tag = 1; tag <= 4; ++tag) {
    const Sent sent = only(node, due);
    EXPECT_EQ(tag_of(sent), tag);
    EXPECT_EQ(sent.request().ri_generation, RiGeneration{kNewGeneration});
    answer(node, sent, ReturnCode::Ok);
  }
  EXPECT_EQ(node.sink.all.size(), 4u);
  EXPECT_TRUE(node.ses.idle());
}

// 2 was under way when 1 was refused: its own refusal may be lost, and 3 must not overtake it.
TEST_F(OrderedRetryTest, Ses54_WhatMayHaveBeenRefusedIsNotOvertaken) {
  send(1);
  send(2);
  const Sent one = *node.packet();
  const Sent two = *node.packet();
  answer(node, one, ReturnCode::BadGeneration, kNewGeneration);
  const Sent again = only(node);
  EXPECT_EQ(tag_of(again), 1u);
  answer(node, again, ReturnCode::Ok);
  send(3);
  EXPECT_TRUE(turn(node).empty());
  answer(node, two, ReturnCode::BadGeneration, kNewGeneration);
  for (std::uint64_t tag = 2; tag <= 3; ++tag) {
    const Sent sent = only(node);
    EXPECT_EQ(tag_of(sent), tag);
    answer(node, sent, ReturnCode::Ok);
  }
  EXPECT_EQ(node.sink.all.size(), 3u);
  EXPECT_TRUE(node.ses.idle());
}

// The same where the first one is given up: the generation is known then as well.
TEST_F(OrderedRetryTest, Ses54_MayBeRefused_NotOvertakenAfterFailure) {
  Parameters once = small_parameters();
  once.retries = 0;
  Node impatient{5, once, ordered_config()};
  for (std::uint64_t tag = 1; tag <= 2; ++tag) ASSERT_TRUE(impatient.send(b, {}, tag));
  const Sent one = *impatient.packet();
  const Sent two = *impatient.packet();
  answer(impatient, one, ReturnCode::BadGeneration, kNewGeneration);
  EXPECT_EQ(impatient.sink.all.size(), 1u);
  ASSERT_TRUE(impatient.send(b, {}, 3));
  EXPECT_TRUE(turn(impatient).empty());
  answer(impatient, two, ReturnCode::Ok);
  answer(impatient, only(impatient), ReturnCode::Ok);
  EXPECT_TRUE(impatient.ses.idle());
}

TEST_F(OrderedRetryTest, Ses54_RefusalHoldsBackNothingToAnotherPeer) {
  send(1);
  answer(node, only(node), ReturnCode::NoMatch);
  const Time due = node.ses.next_deadline();
  ASSERT_TRUE(node.send(a, {}, 2));
  ASSERT_TRUE(node.send(a, {}, 3));
  const std::vector<Sent> sent = turn(node);
  ASSERT_EQ(sent.size(), 2u) << "neither waits for the other";
  EXPECT_EQ(tag_of(sent[1]), 3u);
  for (const Sent& packet : sent) answer(node, packet, ReturnCode::Ok);
  answer(node, only(node, due), ReturnCode::Ok);
  EXPECT_TRUE(node.ses.idle());
}

// ---- the target --------------------------------------------------------------------------------

Parameters no_room() {
  Parameters parameters = small_parameters();
  parameters.no_match = true;
  parameters.unexpected_bytes_per_context = 0;
  return parameters;
}

class NoMatchTest : public RetryTest {
 protected:
  pds::Response deliver_to(Node& target, const Sent& sent) {
    pds::RequestView view;
    view.pdc = kPdc;
    view.source = sender.address;
    view.mode = DeliveryMode::Rod;
    view.next_hdr = sent.next_hdr;
    view.bytes = sent.bytes;
    const pds::Response response = target.ses.client().rx_req(view, kNow);
    sender.answered(sent, response);
    return response;
  }
  // Everything that `sender` has to say until nothing more happens, as time passes.
  void settle() {
    Time now = kNow;
    for (int round = 0; round < 50; ++round) {
      const std::vector<Sent> sent = turn(sender, now);
      for (const Sent& packet : sent) deliver_to(full, packet);
      const Time due = sender.ses.next_deadline();
      if (sent.empty() && due == kNever) return;
      if (due != kNever) now = std::max(now, due);
    }
    ADD_FAILURE() << "does not come to rest";
  }
  Node sender{3, small_parameters(), ordered_config()};
  Node full{4, no_room(), ordered_config()};
};

TEST_F(NoMatchTest, Idea5_Ses52_Refused_ComeInOrderOnceReceived) {
  Bytes first = pattern(2 * kMtu, 1);
  Bytes second = pattern(8, 2);
  ASSERT_TRUE(sender.send(full, {slice_of(first)}));
  ASSERT_TRUE(sender.send(full, {slice_of(second)}));
  const std::vector<Sent> sent = sender.packets();
  ASSERT_EQ(sent.size(), 3u);
  const pds::Response refused = deliver_to(full, sent[0]);
  EXPECT_EQ(code_of(refused), ReturnCode::NoMatch);
  EXPECT_TRUE(refused.guaranteed);
  EXPECT_EQ(code_of(deliver_to(full, sent[1])), ReturnCode::NoMatch) << "SES-35";
  EXPECT_EQ(code_of(deliver_to(full, sent[2])), ReturnCode::DisabledGen);
  Bytes one(2 * kMtu), two(2 * kMtu);
  ASSERT_TRUE(full.receive({slice_of(one)}));
  ASSERT_TRUE(full.receive({slice_of(two)}));
  settle();
  EXPECT_EQ(one, first);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), two.begin()));
  EXPECT_EQ(sender.sink.all.size(), 2u);
  EXPECT_EQ(full.ses.counters().no_match_answered, 1u);
  EXPECT_TRUE(sender.ses.idle());
  EXPECT_TRUE(full.ses.idle());
}

TEST_F(NoMatchTest, Ses52_Ses153_ReceiveAfterRefusal_NewGeneration) {
  Bytes buffer(8);
  ASSERT_TRUE(full.receive({slice_of(buffer)}));
  SesRequest request = full.request_for(SesOpcode::Send);
  request.som = request.eom = true;
  EXPECT_EQ(code_of(full.take(request)), ReturnCode::Ok) << "the generation is still 0";
  EXPECT_EQ(code_of(full.take(request)), ReturnCode::NoMatch);
  EXPECT_EQ(code_of(full.take(request)), ReturnCode::NoMatch) << "RUD: no order to keep";
  ASSERT_TRUE(full.receive({slice_of(buffer)}));
  EXPECT_EQ(code_of(full.take(request)), ReturnCode::Ok);
}

TEST_F(NoMatchTest, Ses152_GenerationWrapsAndIsTold) {
  ContextConfig config = ordered_config();
  config.generation = RiGeneration{255};
  Node last(5, no_room(), config);
  Bytes buffer(8);
  ASSERT_TRUE(sender.send(last, {}));
  const Sent sent = only(sender);
  EXPECT_EQ(sent.request().ri_generation, RiGeneration{255});
  EXPECT_EQ(code_of(deliver_to(last, sent)), ReturnCode::NoMatch);
  ASSERT_TRUE(last.receive({slice_of(buffer)}));
  const Sent again = only(sender, sender.ses.next_deadline());
  const pds::Response stale = deliver_to(last, again);
  EXPECT_EQ(code_of(stale), ReturnCode::BadGeneration);
  EXPECT_EQ(header_of(stale).ri_generation, RiGeneration{0}) << "SES-106";
  EXPECT_EQ(code_of(deliver_to(last, only(sender))), ReturnCode::Ok);
  EXPECT_TRUE(sender.ses.idle());
}

// Packets that find a receive later must not be taken for a message that is sent again (SES-35).
TEST_F(NoMatchTest, Ses35_RefusalNotRemembered_LeftToPds) {
  Parameters parameters = no_room();
  parameters.rx_messages = 6;  // one host has half of them
  Node node(5, parameters);
  SesRequest request = node.request_for(SesOpcode::Send);
  for (std::uint16_t id = 1; id <= 4; ++id) {
    request.message_id = MsgId{id};
    const pds::Response response = node.take(part(request, 0, kMtu, 2 * kMtu), pattern(kMtu));
    EXPECT_EQ(response.nack.has_value(), id == 4);
  }
  request.message_id = MsgId{1};
  EXPECT_EQ(code_of(node.take(part(request, kMtu, kMtu, 2 * kMtu), pattern(kMtu))),
            ReturnCode::NoMatch);
  request.message_id = MsgId{4};
  EXPECT_EQ(code_of(node.take(part(request, 0, kMtu, 2 * kMtu), pattern(kMtu))),
            ReturnCode::NoMatch)
      << "a state is free for it now";
  node.ses.client().pdc_closed(kPdc, {}, kNow);
  EXPECT_TRUE(node.ses.idle());
}

TEST_F(NoMatchTest, ContextMayCloseWhileItsGenerationIsDisabled) {
  ASSERT_TRUE(sender.send(full, {}));
  EXPECT_EQ(code_of(deliver_to(full, only(sender))), ReturnCode::NoMatch);
  full.ses.close_context(*full.context, kNow);
  EXPECT_EQ(code_of(deliver_to(full, only(sender, sender.ses.next_deadline()))),
            ReturnCode::BadPid);
}

TEST_F(NoMatchTest, WithoutNoMatchPdsKeepsTheMessage) {
  Parameters parameters = no_room();
  parameters.no_match = false;
  Node node(5, parameters);
  SesRequest request = node.request_for(SesOpcode::Send);
  request.som = request.eom = true;
  EXPECT_EQ(node.take(request).nack, pds::NackCode::NoResource);
}

// ---- the object alone --------------------------------------------------------------------------

class RetriesTest : public OperationTest {
 protected:
  RetriesTest() { retries.attach(delivery); }
  void TearDown() override {
    for (TxMessage& message : context.transmitting) {
      if (Fences::is_held(message)) fences.unhold(message);
    }
    OperationTest::TearDown();
  }
  void refuse(TxMessage& message, ReturnCode code, NextHdr form = NextHdr::Response) {
    wire::SesResponseHeader header;
    header.next_hdr = form;
    header.return_code = code;
    header.ri_generation = RiGeneration{kNewGeneration};
    retries.refused(message, header, kNow);
  }

  Generations generations;
  Watches watches;
  RendezvousSource rendezvous{parameters, operations, watches};
  DeferredSends deferred{parameters, watches};
  LongSendForms forms{kMtu, deferred};
  Fences fences;
  Retries retries{parameters,
                  {operations, generations, watches, rendezvous, deferred, forms, fences},
                  counters};
};

TEST_F(RetriesTest, Ses54_CodeThatPassesIsTriedAgainAfterAWait) {
  TxMessage& message = open();
  refuse(message, ReturnCode::NoMatch);
  EXPECT_TRUE(message.try_again);
  EXPECT_TRUE(message.refused);
  EXPECT_EQ(context.refused_count, 1u);
  EXPECT_GE(message.not_before, kNow + parameters.retry_wait / 2);
  EXPECT_LT(message.not_before, kNow + parameters.retry_wait);
  EXPECT_EQ(counters.errors_received, 1u);
}

TEST_F(RetriesTest, Ses54_CodeThatDoesNotPassEndsTheMessage) {
  TxMessage& message = open();
  refuse(message, ReturnCode::BadMkey);
  EXPECT_EQ(message.return_code, ReturnCode::BadMkey);
  EXPECT_FALSE(message.try_again);
}

TEST_F(RetriesTest, Ses55_StatedGenerationNeedsNoWait) {
  TxMessage& message = open();
  refuse(message, ReturnCode::BadGeneration);
  EXPECT_EQ(message.not_before, kNow);
  EXPECT_EQ(generations.of(message), RiGeneration{kNewGeneration});
}

TEST_F(RetriesTest, WaitDoublesUpToItsLimit) {
  TxMessage& message = open();
  for (std::uint16_t i = 0; i < parameters.retries; ++i) {
    refuse(message, ReturnCode::NoMatch);
    ASSERT_TRUE(message.try_again) << i;
    EXPECT_LT(message.not_before, kNow + parameters.retry_wait_most);
    retries.rewind(message);
    fences.unhold(message);
  }
  EXPECT_GE(message.not_before, kNow + parameters.retry_wait_most / 2);
  EXPECT_EQ(counters.messages_retried, parameters.retries);
  refuse(message, ReturnCode::NoMatch);
  EXPECT_FALSE(message.try_again) << "as often as `retries`";
}

TEST_F(RetriesTest, Ses54_RewoundMessageIsANewOneFromItsFirstByte) {
  TxMessage& message = open(3 * kMtu);
  const MsgId before = message.header.message_id;
  message.packets_made = message.packets_answered = 2;
  message.offset = 2 * kMtu;
  refuse(message, ReturnCode::NoMatch);
  retries.rewind(message);
  EXPECT_NE(message.header.message_id, before);
  EXPECT_FALSE(message.failed());
  EXPECT_EQ(message.offset, 0u);
  EXPECT_EQ(message.packets_made, 0u);
  EXPECT_TRUE(Fences::is_held(message));
  EXPECT_EQ(fences.deadline(), message.not_before);
}

TEST_F(RetriesTest, Ses54_OrderedOnesBehindARefusedOneAreHeld) {
  TxMessage& refused = open();
  TxMessage& not_begun = open();
  TxMessage& begun = open();
  TxMessage& elsewhere = open(0, Kind::Send, 3);
  for (TxMessage* message : {&refused, &not_begun, &begun, &elsewhere}) {
    message->mode = DeliveryMode::Rod;
    delivery.backlog.push_back(message);
  }
  begun.packets_made = 1;
  refuse(refused, ReturnCode::DisabledGen);
  EXPECT_TRUE(Fences::is_held(not_begun));
  EXPECT_FALSE(Fences::is_held(begun));
  EXPECT_TRUE(begun.refused) << "it may have been, without our having heard of it";
  EXPECT_FALSE(elsewhere.refused || Fences::is_held(elsewhere));
}

TEST_F(RetriesTest, Pds142_FirstTryOnANewPdcDoesNotWait) {
  TxMessage& message = open();
  retries.not_consumed(message, kNow);
  EXPECT_TRUE(message.try_again);
  EXPECT_EQ(message.not_before, kNow);
  retries.rewind(message);
  fences.unhold(message);
  retries.not_consumed(message, kNow);
  EXPECT_GT(message.not_before, kNow);
}

TEST_F(RetriesTest, CancelledMessageIsNotSentAgain) {
  TxMessage& message = open();
  message.cancelled = true;
  refuse(message, ReturnCode::NoMatch);
  EXPECT_FALSE(message.try_again);
}

}  // namespace
}  // namespace uet::ses::test
