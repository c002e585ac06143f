// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiver credit on the wire: targets, grants, Credit Requests and peers that give none.
#include "pds/credits.h"

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;
using wire::PdsType;

// 10 Gb/s x 100 us: BDP 125,000, Wmax 187,500.
cms::Parameters with_credit(cms::Algorithm algorithm = cms::Algorithm::Rccc) {
  cms::Parameters cms;
  cms.algorithm = algorithm;
  cms.mtu_bytes = 1024 + 128;
  cms.base_rtt = microseconds(100);
  cms.tuning.unsolicited_bdp = 0;
  return cms;
}

std::vector<wire::ControlHeader> controls_of(const std::vector<Sent>& sent, CpType type) {
  std::vector<wire::ControlHeader> found;
  for (const wire::ControlHeader& header : controls(sent)) {
    if (header.ctl_type == type) found.push_back(header);
  }
  return found;
}

class CreditSourceTest : public Bench {
 protected:
  CreditSourceTest() { build(test_parameters(), with_credit()); }
  wire::ControlHeader credit(std::uint32_t units) const {
    wire::ControlHeader header = control(CpType::Credit, 0);
    header.ar = false;
    header.payload = units;
    return header;
  }
  // A PDC whose speculative allowance is over and that has nothing in flight.
  void open_without_credit() {
    open();
    ASSERT_FALSE(node->manager->find(pdc)->ccc().ccc->may_send(1024));
  }
};

class CreditReceiverTest : public Bench {
 protected:
  CreditReceiverTest() { build(test_parameters(), with_credit()); }
  wire::RequestHeader cc_request(std::uint32_t psn, std::uint32_t target, bool syn = false,
                                 std::uint8_t ccc_id = 5) const {
    wire::RequestHeader header = request(psn, syn);
    header.type = peer_mode == DeliveryMode::Rod ? PdsType::RodCcReq : PdsType::RudCcReq;
    header.ccc_id = ccc_id;
    header.credit_target = target;
    return header;
  }
  // The peer's PDC, whose first request asks for `target`.
  std::vector<Sent> accept_with(std::uint32_t target) {
    peer_start = 333;
    receive(cc_request(333, target, true));
    pdc = node->client.delivered.back().pdc;
    return turn();
  }
  wire::ControlHeader credit_request(std::uint32_t target) const {
    wire::ControlHeader header = control(CpType::CreditRequest, 0);
    header.ar = false;
    header.payload = target;
    return header;
  }
};

// ---- source -------------------------------------------------------------------------------------

TEST_F(CreditSourceTest, Cms200_Cms204_RequestsNameTheContextAndItsTarget) {
  send(10, DeliveryMode::Rud, 1024);
  const auto first = turn();
  ASSERT_EQ(requests(first).size(), 10U);
  for (const Sent& packet : first) EXPECT_EQ(packet.type(), PdsType::RudCcReq);
  EXPECT_GT(requests(first)[0].credit_target, 0U);
  // Another context has another name.
  send(1, DeliveryMode::Rod);
  const auto other = turn();
  ASSERT_EQ(other.size(), 1U);
  EXPECT_EQ(other[0].type(), PdsType::RodCcReq);
  EXPECT_NE(other[0].request()->ccc_id, requests(first)[0].ccc_id);
}

TEST_F(CreditSourceTest, Cms210_Cms211_WithoutCreditOnlyTheAllowanceGoes) {
  send(1000, DeliveryMode::Rud, 1024);
  const std::size_t allowed = requests(turn()).size();
  EXPECT_NEAR(static_cast<double>(allowed), 125'000.0 / 1096, 2);
}

TEST_F(CreditSourceTest, Cms213_CreditReleasesPackets) {
  open_without_credit();
  send(100, DeliveryMode::Rud, 1024);
  EXPECT_TRUE(requests(turn()).empty());
  const auto sent = requests(answer_to(credit(43)));  // 11,008 bytes
  EXPECT_EQ(sent.size(), 11U);
  EXPECT_TRUE(requests(answer_to(credit(43))).empty());
}

TEST_F(CreditSourceTest, Cms200_CreditInAnAckCounts) {
  open_without_credit();
  send(100, DeliveryMode::Rud, 1024);
  turn();
  wire::AckHeader with_state = ack(start_psn, start_psn);
  with_state.cc_type = wire::CcType::Credit;
  with_state.credit = 43;
  EXPECT_EQ(requests(answer_to(with_state)).size(), 11U);
}

TEST_F(CreditSourceTest, Cms215_DataWaitNothingInFlight_AsksForCredit) {
  open_without_credit();
  send(100, DeliveryMode::Rud, 1024);
  turn();
  EXPECT_TRUE(controls_of(after(microseconds(150)), CpType::CreditRequest).empty());
  const auto asked = controls_of(after(microseconds(100)), CpType::CreditRequest);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_GE(asked[0].payload * 256, 100U * 1024);
  EXPECT_FALSE(asked[0].ar);
  EXPECT_TRUE(controls_of(after(microseconds(300)), CpType::CreditRequest).empty());
  EXPECT_EQ(controls_of(after(microseconds(200)), CpType::CreditRequest).size(), 1U);
  // It goes on as soon as there is credit, and asks no more.
  EXPECT_FALSE(requests(answer_to(credit(1000))).empty());
  EXPECT_TRUE(controls_of(after(milliseconds(5)), CpType::CreditRequest).empty());
}

TEST_F(CreditSourceTest, Cms241_GoesOnWithNsccIfNoneIsEverGranted) {
  open_without_credit();
  TestMessage& message = send(100, DeliveryMode::Rud, 1024);
  turn();
  std::size_t asked = 0;
  std::vector<Sent> sent;
  for (int i = 0; i < 1000 && counters().credit_fallbacks == 0; ++i) {
    sent = after(microseconds(100));
    asked += controls_of(sent, CpType::CreditRequest).size();
    if (requests(sent).size() == 1) receive(ack(start_psn + 1, start_psn + 1));
  }
  EXPECT_EQ(asked, 4U);
  EXPECT_EQ(message.made, 100U);
  for (const Sent& packet : sent) EXPECT_EQ(packet.type(), PdsType::RudReq);
  EXPECT_EQ(counters().credit_fallbacks, 1U);
}

// Nothing is in flight that could time out, and what was sent last was answered.
TEST_F(CreditSourceTest, Pds125_Cms241_SilentPeerIsDeadWhileCreditIsDue) {
  open_without_credit();
  TestMessage& message = send(100, DeliveryMode::Rud, 1024);
  turn();
  receive(credit(0));
  for (int i = 0; i < 6000 && !message.failed && message.errors.empty(); ++i) {
    after(milliseconds(10));
  }
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_TRUE(message.failed == PdsError::RtoExhausted ||
              std::ranges::count(message.errors, PdsError::RtoExhausted) > 0);
  EXPECT_EQ(counters().credit_fallbacks, 0U);
}

// A PDC that the peer does not know carries no control packet: its SYN asks instead.
TEST_F(CreditSourceTest, Cms215_AnUnknownPdcAsksWithAPacket) {
  open_without_credit();
  node->manager->find(pdc)->begin_close(now);
  turn();
  TestMessage& message = send(10, DeliveryMode::Rud, 1024);
  ASSERT_NE(message.pdc, pdc);
  EXPECT_TRUE(requests(turn()).empty());
  const auto sent = requests(after(microseconds(250)));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0].syn);
  EXPECT_GT(sent[0].credit_target, 0U);
}

// PDS-62: what was trimmed opens nothing there, and more of it would need credit. Control does not
// (CMS-14).
TEST_F(CreditSourceTest, Pds62_Cms14_ANoopOpensWhatTrimmedPacketsDidNot) {
  send(10, DeliveryMode::Rud, 1024);
  const auto first = requests(turn());
  ASSERT_EQ(first.size(), 10U);
  wire::NackHeader refusal = nack(NackCode::TrimmedLastHop, first[0].psn.value);
  refusal.spdcid = PdcId{0};
  refusal.dpdcid = first[0].spdcid;
  receive(refusal);
  const auto noops = controls_of(turn(), CpType::Noop);
  ASSERT_EQ(noops.size(), 1U);
  EXPECT_TRUE(noops[0].syn);
  EXPECT_EQ(noops[0].psn, first[9].psn + 1);
  refusal.nack_psn = first[1].psn;
  receive(refusal);
  EXPECT_TRUE(controls_of(turn(), CpType::Noop).empty()) << "one is enough";
}

// A NOOP that leaves asks for credit instead of a packet: no more packets leave without credit.
TEST_F(CreditSourceTest, Cms14_Cms215_ANoopSparesThePacketThatWouldAsk) {
  send(1000, DeliveryMode::Rud, 1024);
  const auto lost = requests(turn());
  ASSERT_FALSE(lost.empty());
  std::size_t noops = 0;
  std::size_t again = 0;
  for (int i = 0; i < 1000 && noops == 0; ++i) {
    const auto sent = after(microseconds(100));
    noops += controls_of(sent, CpType::Noop).size();
    again += requests(sent).size();
  }
  EXPECT_EQ(noops, 1U);
  EXPECT_EQ(again, 0U);
}

// CMS-505: a trimmed packet has told a PDC there what is wanted.
TEST_F(CreditSourceTest, Cms505_ATrimmedPacketNamesTheContext) {
  send(10, DeliveryMode::Rud, 1024);
  const auto first = requests(turn());
  for (const wire::RequestHeader& request : first) {
    wire::NackHeader refusal = nack(NackCode::TrimmedLastHop, request.psn.value);
    refusal.dpdcid = request.spdcid;
    receive(refusal);
  }
  EXPECT_TRUE(requests(turn()).empty());
  EXPECT_EQ(controls_of(after(microseconds(250)), CpType::CreditRequest).size(), 1U);
}

// The same in the return direction: the request names the context, a Credit Request could not.
TEST_F(CreditSourceTest, Cms204_ContextUnknownToPeer_AsksWithPacket) {
  open_without_credit();
  peer_start = 333;
  wire::RequestHeader syn = request(333, true);
  syn.spdcid = PdcId{kPeerPdc.value + 1};
  receive(syn);
  ASSERT_EQ(node->client.delivered.size(), 1U);
  const PdcId accepted = pdc = node->client.delivered.back().pdc;
  prove(syn.spdcid);
  TestMessage& answer = node->message(10, 1024);
  answer.backlog_bytes = 10'240;
  ASSERT_TRUE(node->manager->send_on(accepted, answer, now).ok());
  EXPECT_TRUE(requests(turn()).empty());
  const auto sent = after(microseconds(250));
  EXPECT_TRUE(controls_of(sent, CpType::CreditRequest).empty());
  ASSERT_EQ(requests(sent).size(), 1U);
  EXPECT_EQ(sent[0].type(), PdsType::RudCcReq);
  EXPECT_GT(requests(sent)[0].credit_target, 0U);
}

TEST_F(CreditSourceTest, Cms4_RudiNeedsNoCredit) {
  open_without_credit();
  send(3, DeliveryMode::Rudi);
  EXPECT_EQ(turn().size(), 3U);
}

TEST_F(CreditSourceTest, CancelledDataAsksForNothing) {
  open_without_credit();
  TestMessage& message = send(100, DeliveryMode::Rud, 1024);
  turn();
  EXPECT_TRUE(node->manager->cancel(message));
  turn();
  EXPECT_FALSE(node->manager->find(pdc)->ccc().credit->has_data());
  EXPECT_TRUE(controls_of(after(milliseconds(50)), CpType::CreditRequest).empty());
}

// A packet that waited for credit to be sent again arrives after all: nothing waits any more, and
// no time counts as blocked.
TEST_F(CreditSourceTest, Cms10_AcknowledgedPacketDoesNotWait) {
  send(1, DeliveryMode::Rud, 1024);
  const auto first = requests(turn());
  ASSERT_EQ(first.size(), 1U);
  wire::NackHeader trimmed = nack(NackCode::TrimmedLastHop, first[0].psn.value);
  trimmed.dpdcid = first[0].spdcid;
  receive(trimmed);
  turn();
  SharedCcc& shared = node->manager->find(first[0].spdcid)->ccc();
  EXPECT_FALSE(shared.waiting.empty());
  after(microseconds(50));
  wire::AckHeader late = ack(first[0].psn.value, first[0].psn.value);
  late.dpdcid = first[0].spdcid;
  receive(late);
  turn();
  EXPECT_TRUE(shared.waiting.empty());
  const std::uint64_t blocked_ns = node->manager->counters().blocked_by_credit_ns;
  EXPECT_GT(blocked_ns, 0U);
  after(milliseconds(1));
  send(1, DeliveryMode::Rud, 1024);
  turn();
  EXPECT_EQ(node->manager->counters().blocked_by_credit_ns, blocked_ns);
}

// ---- receiver -----------------------------------------------------------------------------------

// An initiator that waits for credit cannot finish, but it asks.
TEST_F(CreditReceiverTest, Pds221_RefusedCreditIsNotRepeated) {
  accept_with(1000);
  ASSERT_FALSE(controls_of(after(microseconds(4)), CpType::Credit).empty());
  receive(nack(NackCode::UnexpEvent, 0));  // the PSN of a Credit
  EXPECT_NE(node->manager->find(pdc), nullptr);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(controls_of(after(microseconds(100)), CpType::Credit).empty()) << i;
  }
}

TEST_F(CreditReceiverTest, Pds177_ACreditRequestPutsTheEndOff) {
  accept_with(10);
  node->manager->find(pdc)->begin_close(now);
  turn();
  receive(ack(333, 333));
  const Duration patience = CloseHandshake::patience(test_parameters(), true);
  for (const Time asked = now; now < asked + 2 * patience;) {
    after(milliseconds(900));
    receive(credit_request(20));
    turn();
  }
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  after(patience + milliseconds(10));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(CreditReceiverTest, Cms202_Cms220_Cms222_GrantsComeAtTheirPace) {
  const auto first = accept_with(54);  // three turns of 4 MTU: 18 units each
  ASSERT_EQ(acks(first).size(), 1U);
  EXPECT_EQ(acks(first)[0].cc_type, wire::CcType::Credit);
  EXPECT_EQ(acks(first)[0].credit, 18U);
  EXPECT_TRUE(controls(first).empty());  // the ACK has said it
  std::vector<std::uint32_t> credits;
  for (int i = 0; i < 4; ++i) {
    for (const auto& header : controls_of(after(microseconds(4)), CpType::Credit)) {
      credits.push_back(header.payload);
    }
  }
  EXPECT_EQ(credits, (std::vector<std::uint32_t>{36, 54}));
}

TEST_F(CreditReceiverTest, Cms202_WithBothTheAckKeepsNsccsState) {
  build(test_parameters(), with_credit(cms::Algorithm::Both));
  const auto first = accept_with(18);
  ASSERT_EQ(acks(first).size(), 1U);
  EXPECT_EQ(acks(first)[0].cc_type, wire::CcType::Nscc);
  EXPECT_GT(acks(first)[0].rcvd_bytes, 0U);
  const auto granted = controls_of(first, CpType::Credit);
  ASSERT_EQ(granted.size(), 1U);
  EXPECT_EQ(granted[0].payload, 18U);
  EXPECT_EQ(granted[0].psn, Psn{0});
  EXPECT_FALSE(granted[0].ar);
}

TEST_F(CreditReceiverTest, Cms220_ATrimmedRequestRaisesTheTargetToo) {
  accept_with(0);
  rx_trimmed = true;
  receive(cc_request(334, 18));
  const auto sent = turn();
  EXPECT_EQ(nacks(sent).at(0).nack_code, NackCode::Trimmed);
  ASSERT_EQ(controls_of(sent, CpType::Credit).size(), 1U);
  EXPECT_EQ(controls_of(sent, CpType::Credit)[0].payload, 18U);
}

TEST_F(CreditReceiverTest, Cms203_Cms215_ACreditRequestIsAnsweredAtOnce) {
  accept_with(18);
  now += milliseconds(1);
  const auto again = controls_of(answer_to(credit_request(18)), CpType::Credit);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].payload, 18U);
  const auto more = controls_of(answer_to(credit_request(36)), CpType::Credit);
  ASSERT_FALSE(more.empty());
  EXPECT_EQ(more.back().payload, 36U);
  EXPECT_EQ(counters().credit_requests_received, 2U);
}

TEST_F(CreditReceiverTest, APdcThatNamedNoContextIsNotAnswered) {
  accept(333);
  EXPECT_TRUE(controls(answer_to(credit_request(18))).empty());
  EXPECT_EQ(counters().credit_ignored, 1U);
}

TEST_F(CreditReceiverTest, PlainRequestsAreAnsweredWithNsccsState) {
  accept(333);
  EXPECT_EQ(acks(answer_to(retransmission(333))).at(0).cc_type, wire::CcType::Nscc);
}

TEST_F(CreditReceiverTest, WithRcccOffCreditIsCountedOnly) {
  build(test_parameters(), open_window());
  const auto first = accept_with(100);
  EXPECT_EQ(acks(first).at(0).cc_type, wire::CcType::Nscc);
  EXPECT_TRUE(controls(after(milliseconds(1))).empty());
  EXPECT_TRUE(controls(answer_to(credit_request(18))).empty());
  wire::ControlHeader credit = control(CpType::Credit, 0);
  receive(credit);
  EXPECT_EQ(counters().credit_ignored, 2U);
}

TEST_F(CreditReceiverTest, GrantsEndWithTheirPdc) {
  accept_with(10'000);
  node->manager->abort(pdc, now);
  turn();
  EXPECT_TRUE(controls_of(after(milliseconds(1)), CpType::Credit).empty());
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

// ---- both ends ----------------------------------------------------------------------------------

class CreditPair : public Pair {
 protected:
  void with(cms::Algorithm for_a, cms::Algorithm for_b) {
    build(test_parameters(), target_parameters(), 8192, with_credit(for_a), with_credit(for_b));
  }
  // Sends from a to b and from b to a on PDCs of three kinds and waits for all answers.
  void exchange() {
    std::vector<std::pair<Node*, TestMessage*>> all;
    for (int round = 0; round < 3; ++round) {
      for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rod, DeliveryMode::Rudi}) {
        all.emplace_back(a.get(), &a->send(to_b(mode), 200, now, 1024));
        all.emplace_back(b.get(), &b->send(to_a(mode), 200, now, 1024));
      }
      EXPECT_TRUE(run_while_not([&] {
        return std::all_of(all.begin(), all.end(),
                           [](const auto& m) { return Node::answered_once(*m.second); });
      })) << "round "
          << round;
    }
    expect_clean_close();
    EXPECT_EQ(a->manager->contexts().in_use() + b->manager->contexts().in_use(),
              2U);  // what RUDI keeps
  }
};

TEST_F(CreditPair, Cms5_RcccAloneCarriesBothDirections) {
  with(cms::Algorithm::Rccc, cms::Algorithm::Rccc);
  exchange();
  EXPECT_GT(b->manager->counters().credits_sent, 0U);
  EXPECT_EQ(a->manager->counters().credit_fallbacks, 0U);
}

TEST_F(CreditPair, Cms240_BothCarryBothDirections) {
  with(cms::Algorithm::Both, cms::Algorithm::Both);
  exchange();
  EXPECT_GT(b->manager->counters().credits_sent, 0U);
  EXPECT_EQ(a->manager->counters().credit_fallbacks, 0U);
}

TEST_F(CreditPair, Cms203_LostCreditsAndRequestsDelayOnly) {
  for (const cms::Algorithm algorithm : {cms::Algorithm::Rccc, cms::Algorithm::Both}) {
    with(algorithm, algorithm);
    int count = 0;
    fate = [&](const Node&, const Sent& packet) {
      const auto header = packet.control();
      const bool credit = header && (header->ctl_type == CpType::Credit ||
                                     header->ctl_type == CpType::CreditRequest);
      return Fate{.copies = credit && ++count % 3 != 0 ? 0 : 1};
    };
    exchange();
    EXPECT_GT(count, 30);
  }
}

TEST_F(CreditPair, Cms241_EndsThatDifferStillTalk) {
  with(cms::Algorithm::Rccc, cms::Algorithm::Nscc);
  exchange();
  EXPECT_GT(a->manager->counters().credit_fallbacks, 0U);
  EXPECT_GT(b->manager->counters().credit_ignored, 0U);
}

}  // namespace
}  // namespace uet::pds::testing
