// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closing with a handshake, idle PDCs, and failures.
#include "pds/pdc.h"

#include <set>

#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::AckRequestCode;
using wire::CpType;

class PdcTest : public Bench {
 protected:
  void with_mpr(std::uint8_t mpr) {
    Parameters parameters = test_parameters();
    parameters.default_mpr = mpr;
    build(parameters);
  }
  // Requests of all that the node sends now, retransmissions apart.
  std::size_t sends_now() { return requests(turn()).size(); }
  // Answers the Close Command in `sent`, so that the PDC closes.
  void let_close(const std::vector<Sent>& sent) {
    const auto closes = controls(sent);
    ASSERT_EQ(closes.size(), 1U);
    ASSERT_EQ(closes[0].ctl_type, CpType::Close);
    const std::uint32_t psn = closes[0].psn.value;
    receive(ack(psn, psn));
    turn();
  }
};

// ---- closing ------------------------------------------------------------------------------------

TEST_F(PdcTest, Pds169_CloseCommand_TakesNextPsnEndsByAck) {
  Pdc& open_pdc = open();
  open_pdc.begin_close(now);
  const auto sent = turn();
  ASSERT_EQ(controls(sent).size(), 1U);
  EXPECT_EQ(controls(sent)[0].ctl_type, CpType::Close);
  EXPECT_EQ(controls(sent)[0].psn, Psn{70001});
  EXPECT_TRUE(controls(sent)[0].ar);
  EXPECT_EQ(open_pdc.state(), PdcState::CloseAckWait);
  receive(ack(70001, 70001));
  turn();
  EXPECT_EQ(node->manager->find(pdc), nullptr);
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_FALSE(node->client.closed[0].error.has_value());
  EXPECT_EQ(counters().pdcs_closed, 1U);
}

TEST_F(PdcTest, Pds169_Close_WaitsUntilAllIsSentAndAcked) {
  Pdc& open_pdc = open();
  send(2);
  open_pdc.begin_close(now);
  const auto sent = turn();
  EXPECT_EQ(requests(sent).size(), 2U);
  EXPECT_TRUE(controls(sent).empty());
  EXPECT_EQ(open_pdc.state(), PdcState::AckWait);
  EXPECT_TRUE(controls(answer_to(ack(70001, 70001))).empty());
  EXPECT_EQ(controls(answer_to(ack(70002, 70002))).size(), 1U);
}

TEST_F(PdcTest, Pds14_UnfinishedMessageKeepsThePdcOpen) {
  Pdc& open_pdc = open();
  TestMessage& message = send(3);
  message.block_at = 2;
  turn();
  receive(ack(70002, 70002));
  open_pdc.begin_close(now);
  EXPECT_TRUE(controls(turn()).empty());
  EXPECT_EQ(open_pdc.state(), PdcState::Quiesce);
  message.block_at = 0;
  open_pdc.make_ready();
  turn();
  EXPECT_EQ(controls(answer_to(ack(70003, 70003))).size(), 1U);
}

TEST_F(PdcTest, Pds15_LockKeepsThePdcOpen) {
  Pdc& open_pdc = open();
  node->manager->lock(pdc);
  node->manager->lock(pdc);
  open_pdc.begin_close(now);
  EXPECT_TRUE(turn().empty());
  node->manager->unlock(pdc);
  EXPECT_TRUE(turn().empty());
  node->manager->unlock(pdc);
  let_close(turn());
}

// The last response may announce that the peer will read the data of the message.
TEST_F(PdcTest, Pds15_LockWithLastResponse_KeepsPdcOpen) {
  Pdc& open_pdc = open();
  send(1);
  turn();
  open_pdc.begin_close(now);
  turn();
  EXPECT_EQ(open_pdc.state(), PdcState::AckWait);
  node->manager->lock(pdc);
  EXPECT_TRUE(controls(answer_to(ack(70001, 70001))).empty());
  TestMessage& more = node->message(1);
  ASSERT_TRUE(node->manager->send_on(pdc, more, now).ok());
  EXPECT_EQ(requests(turn()).size(), 1U);
  node->manager->unlock(pdc);
  EXPECT_TRUE(controls(turn()).empty()) << "its answer is still to come";
  EXPECT_EQ(controls(answer_to(ack(70002, 70002))).size(), 1U);
}

TEST_F(PdcTest, Pds56_CloseWaitsForEstablishment) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  node->manager->find(pdc)->begin_close(now);
  EXPECT_TRUE(controls(turn()).empty());
  EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Creating);
  let_close(answer_to(ack(70000, 70000)));
  EXPECT_EQ(node->manager->find(pdc), nullptr);
}

// Its only message was taken back before anything left: the peer knows nothing of it.
TEST_F(PdcTest, PdcThatNeverSentIsClosedWithoutAWord) {
  TestMessage& message = node->message(1);
  ASSERT_TRUE(node->manager->send(message, to_peer(), now).ok());
  ASSERT_TRUE(node->manager->cancel(message));
  EXPECT_TRUE(turn().empty());
  node->manager->begin_close_all(now);
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(PdcTest, Pds172_CloseRequest_AckedBeforeClosing) {
  open();
  receive(control(CpType::CloseRequest, 70000));
  const auto sent = turn();
  ASSERT_EQ(sent.size(), 2U);
  ASSERT_TRUE(sent[0].ack());
  EXPECT_EQ(sent[0].ack()->ack_psn(), Psn{70000});
  ASSERT_TRUE(sent[1].control());
  EXPECT_EQ(sent[1].control()->ctl_type, CpType::Close);
}

TEST_F(PdcTest, Pds105_CloseWantedInAnAckStartsClosing) {
  open();
  wire::AckHeader wanted = ack(70000, 70000);
  wanted.req = AckRequestCode::Close;
  let_close(answer_to(wanted));
}

TEST_F(PdcTest, Pds171_InvDpdcidForTheCloseCommandIsSuccess) {
  for (const NackCode code : {NackCode::InvDpdcid, NackCode::ClosingInErr}) {
    build(test_parameters());
    open().begin_close(now);
    turn();
    wire::NackHeader gone = nack(code, 70001);
    if (code == NackCode::InvDpdcid) gone.spdcid = {};
    receive(gone);
    turn();
    ASSERT_EQ(node->client.closed.size(), 1U);
    EXPECT_FALSE(node->client.closed[0].error.has_value());
    EXPECT_EQ(node->packets.in_use(), 0U);
  }
}

// The window is full of guaranteed responses and the ACK that would show their CLEAR was lost.
TEST_F(PdcTest, CloseFindsOutThatTheWindowHasMovedOn) {
  with_mpr(1);
  Pdc& open_pdc = open();
  send(128);
  turn();
  answer_with_held_responses();
  open_pdc.begin_close(now);
  turn();
  EXPECT_EQ(open_pdc.state(), PdcState::AckWait);
  const auto asked = controls(after(milliseconds(20)));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].ctl_type, CpType::AckRequest);
  wire::AckHeader moved = ack(70128, 70128);
  moved.mpr = 1;
  let_close(answer_to(moved));
}

// The answer to that question can also be that the peer has no such PDC.
TEST_F(PdcTest, Pds224_DenialOfAPdcWithAClosedWindowEndsIt) {
  with_mpr(1);
  Pdc& open_pdc = open();
  send(128);
  turn();
  answer_with_held_responses();
  open_pdc.begin_close(now);
  turn();
  const auto asked = controls(after(milliseconds(20)));
  ASSERT_EQ(asked.size(), 1U);
  wire::NackHeader denied = nack(NackCode::InvDpdcid, 0);
  denied.spdcid = {};
  denied.nack_psn = asked[0].psn;
  receive(denied);
  EXPECT_TRUE(turn().empty()) << "no handshake";
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(PdcTest, Pds174_IdleInitiatorCloses) {
  open();
  std::vector<Sent> sent;
  const Time idle_since = now;
  while (sent.empty() && now < idle_since + seconds(20)) sent = after(milliseconds(100));
  EXPECT_GE(now, idle_since + seconds(10));
  EXPECT_LE(now, idle_since + seconds(11));
  let_close(sent);
}

TEST_F(PdcTest, Pds173_IdleTargetAsksForTheClose) {
  accept();
  std::vector<Sent> sent;
  const Time idle_since = now;
  while (sent.empty() && now < idle_since + seconds(100)) sent = after(milliseconds(100));
  EXPECT_GE(now, idle_since + seconds(60));
  EXPECT_LE(now, idle_since + seconds(61));
  ASSERT_EQ(controls(sent).size(), 1U);
  EXPECT_EQ(controls(sent)[0].ctl_type, CpType::CloseRequest);
  EXPECT_EQ(controls(sent)[0].psn, Psn{333});  // the return direction begins at Start_PSN (PDS-32)
  EXPECT_TRUE(controls(sent)[0].ar);
}

// PDS-140: without outstanding return packets only this tells a target that its initiator died.
TEST_F(PdcTest, Pds140_Pds173_Pds177_TargetOfADeadInitiatorClosesInError) {
  Pdc& accepted = accept();
  accepted.begin_close(now);
  EXPECT_EQ(controls(turn()).size(), 1U);
  receive(ack(333, 333));
  const Time asked = now;
  const Duration patience = CloseHandshake::patience(test_parameters(), true);
  ASSERT_GT(patience, test_parameters().close_request_time);
  while (node->manager->open_pdcs() > 0 && now < asked + seconds(30)) after(milliseconds(5));
  EXPECT_GE(now, asked + patience);
  EXPECT_LE(now, asked + patience + milliseconds(10));
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_EQ(node->client.closed[0].error, PdsError::ClosedInError);
  EXPECT_EQ(counters().close_in_error, 1U);
  node->drain();
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// An initiator that polls every seven seconds finishes first what it has begun.
TEST_F(PdcTest, Pds177_SlowInitiatorHasTheTimeOfASilentPeer) {
  Pdc& accepted = accept();
  accepted.begin_close(now);
  turn();
  receive(ack(333, 333));
  for (std::uint32_t psn = 334; psn < 337; ++psn) {
    after(seconds(7));
    receive(retransmission(psn));
    turn();
  }
  after(seconds(7));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334, 335, 336}));
  EXPECT_EQ(acks(answer_to(control(CpType::Close, 337))).size(), 1U);
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_EQ(counters().close_in_error, 0U);
}

TEST_F(PdcTest, Pds177_CloseCommandInTimeEndsTheWait) {
  Pdc& accepted = accept();
  accepted.begin_close(now);
  turn();
  receive(ack(333, 333));
  now += milliseconds(999);
  receive(control(CpType::Close, 334));
  turn();
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_FALSE(node->client.closed[0].error.has_value());
}

TEST_F(PdcTest, Pds155_NoopShowsThatTheExpectedPeerLives) {
  open();
  node->manager->lock(pdc);
  const auto sent = controls(after(milliseconds(500)));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::Noop);
  EXPECT_EQ(sent[0].psn, Psn{70001});
  EXPECT_TRUE(sent[0].ar);
  // Resent with RETX like a request, and it fails the PDC like one.
  const auto again = controls(after(milliseconds(20)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].retx);
  EXPECT_EQ(again[0].psn, Psn{70001});
  for (int i = 0; i < 4000 && node->client.closed.empty(); ++i) after(milliseconds(5));
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_EQ(node->client.closed[0].error, PdsError::RtoExhausted);
}

TEST_F(PdcTest, Pds155_NoopObeysTheWindow) {
  with_mpr(1);
  open();
  send(128);
  turn();
  for (std::uint32_t psn = 70001; psn <= 70128; ++psn) {
    wire::AckHeader held = ack(70000, psn);
    held.mpr = 1;
    receive(held);
  }
  node->manager->lock(pdc);
  turn();
  for (const auto& header : controls(after(seconds(1)))) EXPECT_NE(header.ctl_type, CpType::Noop);
}

TEST_F(PdcTest, Pds135_FailedInitiatorCloses_TargetAsks) {
  open();
  node->manager->abort(pdc, now);
  auto last = controls(node->drain());
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].ctl_type, CpType::Close);
  EXPECT_EQ(last[0].psn, Psn{70001});
  EXPECT_TRUE(turn().empty());

  accept();
  node->manager->abort(pdc, now);
  last = controls(node->drain());
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].ctl_type, CpType::CloseRequest);
}

TEST_F(PdcTest, Pds135_FailureDuringTheCloseFreesAtOnce) {
  open().begin_close(now);
  turn();
  node->manager->abort(pdc, now);
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// ---- few packets --------------------------------------------------------------------------------

TEST_F(PdcTest, CloseThatFindsNoPacketIsTriedAgain) {
  build(test_parameters(), open_window(), 8);
  open().begin_close(now);
  std::vector<Packet*> taken;
  while (Packet* packet = node->packets.take()) taken.push_back(packet);
  EXPECT_TRUE(turn().empty());
  for (Packet* packet : taken) node->packets.give_back(packet);
  let_close(after(milliseconds(20)));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(PdcTest, CloseRequestThatFindsNoPacketIsTriedAgain) {
  build(test_parameters(), open_window(), 8);
  Pdc& accepted = accept();
  std::vector<Packet*> taken;
  while (Packet* packet = node->packets.take()) taken.push_back(packet);
  accepted.begin_close(now);
  EXPECT_TRUE(turn().empty());
  for (Packet* packet : taken) node->packets.give_back(packet);
  const auto sent = controls(after(milliseconds(20)));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::CloseRequest);
}

}  // namespace
}  // namespace uet::pds::testing
