// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a packet to its PDC: lookup, identity checks, refusals, tombstones, nonsense.
#include <functional>

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class Demultiplex : public Bench {
 protected:
  // The NACK that `header` is answered with; code Reserved if there is none, or something else.
  template <class Header>
  wire::NackHeader refusal_of(const Header& header) {
    const auto sent = answer_to(header);
    if (sent.size() != 1 || !sent[0].nack()) return {};
    return *sent[0].nack();
  }
  template <class Header>
  std::vector<Sent> from(const FepAddress& source, const Header& header) {
    std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
    bytes.resize(header.encode(bytes.data()));
    bytes.resize(bytes.size() + 16);
    node->receive(bytes, source, now);
    return turn();
  }
};

// ---- lookup -------------------------------------------------------------------------------------

TEST_F(Demultiplex, Pds24_SynIsLookedUpBySourceAndSpdcid) {
  accept(333);
  const PdcId first = pdc;
  receive(request(334, true));
  EXPECT_EQ(node->client.delivered.back().pdc, first);
  wire::RequestHeader other = request(333, true);
  other.spdcid = PdcId{901};
  receive(other);
  EXPECT_NE(node->client.delivered.back().pdc, first);
  from(address_of(3), request(333, true));
  EXPECT_EQ(node->manager->open_pdcs(), 3U);
  EXPECT_EQ(counters().pdcs_accepted, 3U);
}

TEST_F(Demultiplex, Pds25_WithoutSynDpdcidAloneIsLookedUp) {
  accept(333);
  receive(request(334));
  EXPECT_EQ(node->client.delivered.back().pdc, pdc);
}

// A NIC looks for no connection on behalf of sources that anybody may have invented.
TEST_F(Demultiplex, Pds66_AnswerWithoutPdc_IsMarkedAsToAStranger) {
  accept(333);
  turn();
  receive(retransmission(2000));  // outside the window of its PDC
  ASSERT_TRUE(node->outbox.has_nacks());
  EXPECT_FALSE(node->outbox.nacks().front().answers_unknown_peer);
  node->drain();
  wire::RequestHeader unknown = request(334);
  unknown.dpdcid = PdcId{60'000};
  receive(unknown);
  ASSERT_TRUE(node->outbox.has_nacks());
  EXPECT_TRUE(node->outbox.nacks().front().answers_unknown_peer);
}

TEST_F(Demultiplex, Pds26_PeerIdentifierAndAddressMustMatch) {
  accept(333);
  wire::RequestHeader foreign = request(334);
  foreign.spdcid = PdcId{901};
  wire::NackHeader refused = refusal_of(foreign);
  EXPECT_EQ(refused.nack_code, NackCode::PdcHdrMismatch);
  EXPECT_EQ(refused.spdcid, PdcId{0});
  EXPECT_EQ(refused.dpdcid, PdcId{901});
  const auto sent = from(address_of(3), request(334));
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::PdcHdrMismatch);
  EXPECT_EQ(sent[0].to, address_of(3));
  EXPECT_EQ(node->client.delivered.size(), 1U);
}

TEST_F(Demultiplex, Pds27_PdcidZeroIsNeverAPdc) {
  peer_start = 333;
  wire::RequestHeader zero = request(333, true);
  zero.spdcid = {};
  EXPECT_TRUE(answer_to(zero).empty());
  EXPECT_EQ(counters().malformed, 1U);
  accept(333);
  zero = request(334);
  zero.dpdcid = {};
  EXPECT_EQ(refusal_of(zero).nack_code, NackCode::InvDpdcid);
  zero = request(334);
  zero.spdcid = {};
  EXPECT_EQ(refusal_of(zero).nack_code, NackCode::PdcHdrMismatch);
}

// With one port per process, answers go to the port in which our own processes listen.
TEST_F(Demultiplex, AnswersGoToTheSourcePortOnlyInTheKnownRange) {
  peer_start = 333;
  EXPECT_EQ(from(address_of(3, 4795), request(333, true)).at(0).to, address_of(3, 4795));
  EXPECT_EQ(from(address_of(3, 51000), request(333, true)).at(0).to, address_of(3));
  EXPECT_EQ(node->manager->open_pdcs(), 2U);
}

// ---- accepting ----------------------------------------------------------------------------------

// Two FEPs of another implementation at one IP address, whose packets leave from any port.
TEST_F(Demultiplex, Wire11_CopyOfASynFromAnotherPortIsOne) {
  const FepAddress low = address_of(3, 40'000);
  const FepAddress high = address_of(3, 50'000);
  for (const FepAddress& fep : {low, high}) node->manager->peer_ports().add(fep);
  for (const FepAddress& fep : {high, low}) {
    peer_start = fep.port;
    wire::RequestHeader syn = request(peer_start, true);
    syn.ar = true;
    const auto first = from(fep, syn);
    ASSERT_EQ(acks(first).size(), 1U);
    EXPECT_EQ(first[0].to, fep);
    syn.retx = true;
    const auto again = from(address_of(3, 0x4242), syn);
    ASSERT_EQ(acks(again).size(), 1U);
    EXPECT_EQ(again[0].to, fep);
    EXPECT_EQ(acks(again)[0].spdcid, acks(first)[0].spdcid);
  }
  EXPECT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(counters().pdcs_accepted, 2U);
}

TEST_F(Demultiplex, Wire11_LateSynFromAnotherPortOpensNothing) {
  for (const std::uint16_t port : {40'000, 50'000})
    node->manager->peer_ports().add(address_of(2, port));
  peer_start = 333;
  from(address_of(2, 50'000), request(333, true));
  pdc = node->client.delivered.back().pdc;
  from(address_of(2, 50'000), control(CpType::Close, 334));
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_TRUE(from(address_of(2, 0x4242), request(333, true)).empty());
  EXPECT_EQ(node->client.delivered.size(), 1U);
}

TEST_F(Demultiplex, Pds58_AnySynPacketOpensThePdc) {
  peer_start = 70000;
  const auto sent = answer_to(request(70003, true));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{70003}));
  EXPECT_EQ(acks(sent).at(0).cack_psn, Psn{69999});
  EXPECT_EQ(acks(sent)[0].sack_bitmap, 0b1000U);
}

TEST_F(Demultiplex, Pds58_StartPsnIsFoundAcrossTheWrap) {
  peer_start = 0xFFFFFFFEU;
  const auto sent = answer_to(request(1, true));  // psn_offset 3
  EXPECT_EQ(acks(sent).at(0).cack_psn, Psn{0xFFFFFFFDU});
  EXPECT_EQ(acks(sent)[0].ack_psn(), Psn{1});
}

TEST_F(Demultiplex, Pds59_TargetIsEstablishedAtOnce) {
  const Pdc& accepted = accept(333);
  EXPECT_EQ(accepted.state(), PdcState::Established);
  EXPECT_EQ(accepted.role(), Role::Target);
  EXPECT_NE(accepted.id(), PdcId{0});
  EXPECT_EQ(accepted.peer_id(), kPeerPdc);
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333}));
}

TEST_F(Demultiplex, Pds60_LaterSynIsAnOrdinaryRequest) {
  accept(333);
  EXPECT_EQ(acks(answer_to(request(334, true))).at(0).cack_psn, Psn{334});
  EXPECT_TRUE(answer_to(request(334, true)).empty());  // a copy
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
}

TEST_F(Demultiplex, Pds61_RodOpensWithItsFirstPacketOnly) {
  peer_start = 333;
  peer_mode = DeliveryMode::Rod;
  const wire::NackHeader refused = refusal_of(request(334, true));
  EXPECT_EQ(refused.nack_code, NackCode::RodOoo);
  EXPECT_EQ(refused.spdcid, PdcId{0});
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  receive(request(333, true));
  receive(request(334, true));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
}

TEST_F(Demultiplex, Pds62_TrimmedSynCreatesNothing) {
  peer_start = 333;
  rx_trimmed = true;
  const wire::NackHeader refused = refusal_of(request(333, true));
  EXPECT_EQ(refused.nack_code, NackCode::Trimmed);
  EXPECT_EQ(refused.spdcid, PdcId{0});
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(Demultiplex, Pds57_Pds158_NoopOpensAPdcOfTheModeItNames) {
  for (const bool rod : {false, true}) {
    build(test_parameters());
    wire::ControlHeader noop = control(CpType::Noop, 333);
    noop.syn = true;
    noop.isrod = rod;
    const auto sent = answer_to(noop);
    ASSERT_EQ(acks(sent).size(), 1U);
    EXPECT_EQ(acks(sent)[0].cack_psn, Psn{333});
    pdc = acks(sent)[0].spdcid;
    EXPECT_EQ(node->manager->find(pdc)->destination().mode,
              rod ? DeliveryMode::Rod : DeliveryMode::Rud);
    peer_start = 333;
    peer_mode = rod ? DeliveryMode::Rod : DeliveryMode::Rud;
    receive(request(334));  // the NOOP consumed a PSN
    EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{334}));
  }
}

// Its PDC id is that of a PDC which was opened here: a SYN is not for that one. When it has ended
// the peer may use the id again.
TEST_F(Demultiplex, Pds63_SynToAPdcThatWasOpenedHere) {
  Pdc& ours = open();
  peer_start = 333;
  const wire::NackHeader refused = refusal_of(request(333, true));
  EXPECT_EQ(refused.nack_code, NackCode::InvalidSyn);
  EXPECT_EQ(refused.dpdcid, kPeerPdc);
  EXPECT_TRUE(node->client.delivered.empty());
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  ours.begin_close(now);
  turn();
  receive(ack(70001, 70001));
  turn();
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  receive(request(333, true));
  EXPECT_EQ(delivered_psns(), std::vector<std::uint32_t>{333});
}

TEST_F(Demultiplex, Pds64_OtherControlPacketsOpenNothing) {
  for (const CpType type : {CpType::AckRequest, CpType::Close, CpType::CloseRequest, CpType::Probe,
                            CpType::Credit, CpType::CreditRequest}) {
    wire::ControlHeader header = control(type, 333);
    header.syn = true;
    const wire::NackHeader refused = refusal_of(header);
    EXPECT_EQ(refused.nack_code, NackCode::PdcModeMismatch) << static_cast<int>(type);
    EXPECT_EQ(refused.spdcid, PdcId{0});
    EXPECT_EQ(refused.dpdcid, kPeerPdc);
  }
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

// PDS-215: it consumes a PSN and may open a PDC, as a NOOP.
TEST_F(Demultiplex, Pds64_NegotiationIsAcknowledgedAsANoop) {
  wire::ControlHeader header = control(CpType::Negotiation, 333);
  header.syn = header.ar = true;
  const auto opened = answer_to(header);
  ASSERT_EQ(opened.size(), 1U);
  ASSERT_TRUE(opened[0].ack().has_value());
  EXPECT_EQ(opened[0].ack()->cack_psn, Psn{333});
  EXPECT_EQ(opened[0].ack()->next_hdr, NextHdr::None);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  pdc = opened[0].ack()->spdcid;
  wire::ControlHeader next = control(CpType::Negotiation, 334);
  next.ar = true;
  const auto second = answer_to(next);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].ack()->cack_psn, Psn{334}) << "else its PSN would be a gap";
  pdc = PdcId{4444};
  EXPECT_EQ(refusal_of(control(CpType::Negotiation, 333)).nack_code, NackCode::InvDpdcid);
}

class Negotiating : public Demultiplex {
 protected:
  // A Negotiation with this payload as the packet `psn` of the peer's PDC; its ACK and the bytes
  // behind it.
  Sent ask(std::uint32_t psn, std::vector<std::uint8_t> payload, bool retx = false) {
    wire::ControlHeader header = control(CpType::Negotiation, psn);
    header.ar = true;
    header.retx = retx;
    std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
    header.encode(bytes.data());
    bytes.resize(wire::Negotiation::kOffset);
    for (const std::uint8_t byte : payload) bytes.push_back(std::byte{byte});
    node->receive(bytes, peer, now);
    const auto sent = turn();
    EXPECT_EQ(sent.size(), 1U);
    EXPECT_TRUE(!sent.empty() && sent[0].ack().has_value());
    if (sent.empty() || !sent[0].ack()) return {};
    EXPECT_EQ(sent[0].ack()->cack_psn, Psn{psn}) << "else its PSN would be a gap";
    EXPECT_EQ(sent[0].ack()->next_hdr, NextHdr::None) << "PDS-104";
    return sent[0];
  }
  static std::vector<std::uint8_t> body_of(const Sent& sent) {
    std::vector<std::uint8_t> body;
    for (const std::byte byte : sent.body()) body.push_back(std::to_integer<std::uint8_t>(byte));
    return body;
  }
};

using Octets = std::vector<std::uint8_t>;

// PDS-216: tombstones stand where SYN_RETX_TRANSFER would.
TEST_F(Negotiating, Pds215_Pds216_NoFeatureIsAgreedTo) {
  accept(333);
  EXPECT_EQ(body_of(ask(334, {1, 2, 0, 0, 0, 0, 0, 1})), (Octets{1, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(body_of(ask(335, {1, 2, 0, 0, 255, 255, 255, 255})), (Octets{1, 2, 0, 0, 0, 0, 0, 0}));
}

TEST_F(Negotiating, Pds215_UnknownTypeIsAnsweredWithMask0) {
  accept(333);
  EXPECT_EQ(body_of(ask(334, {9, 2, 0, 0, 0, 0, 0, 1})), (Octets{9, 2, 0, 0, 0, 0, 0, 0}));
}

TEST_F(Negotiating, Pds215_RepeatedOrCutOneIsAcknowledged) {
  accept(333);
  EXPECT_FALSE(body_of(ask(334, {1, 2, 0, 0, 0, 0, 0, 1})).empty());
  EXPECT_TRUE(body_of(ask(334, {1, 2, 0, 0, 0, 0, 0, 1}, true)).empty());
  EXPECT_TRUE(body_of(ask(335, {1, 2, 0, 0})).empty());
}

TEST_F(Demultiplex, Pds65_SynWithoutASesRequestIsRefused) {
  peer_start = 333;
  for (const NextHdr next_hdr : {NextHdr::None, NextHdr::Response, NextHdr::ResponseData}) {
    wire::RequestHeader header = request(333, true);
    header.next_hdr = next_hdr;
    EXPECT_EQ(refusal_of(header).nack_code, NackCode::PdcHdrMismatch);
  }
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(Demultiplex, Pds67_AnotherStartPsnIsAnotherIncarnation) {
  accept(333);
  wire::RequestHeader stale = request(340, true);
  stale.psn_offset = 6;
  EXPECT_EQ(refusal_of(stale).nack_code, NackCode::InvalidSyn);
  receive(request(334));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
}

// ---- the rest of the pipeline -------------------------------------------------------------------

TEST_F(Demultiplex, Pds210_Step4_UnknownDpdcid) {
  pdc = PdcId{4444};
  rx_entropy = 54321;
  const auto sent = answer_to(request(333));
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::InvDpdcid);
  EXPECT_EQ(nacks(sent)[0].spdcid, PdcId{0});
  EXPECT_EQ(nacks(sent)[0].dpdcid, kPeerPdc);
  EXPECT_EQ(sent[0].entropy, 54321);
}

TEST_F(Demultiplex, Pds5_Pds210_Step6_ModeMustFitThePdc) {
  accept(333);
  wire::RequestHeader rod = request(334);
  rod.type = wire::PdsType::RodReq;
  EXPECT_EQ(refusal_of(rod).nack_code, NackCode::PdcModeMismatch);
  EXPECT_EQ(node->client.delivered.size(), 1U);
}

// Two things are wrong with each packet, and the step that comes first says what.
TEST_F(Demultiplex, Pds210_TheEarlierStepDecides) {
  struct Row {
    const char* steps;
    NackCode code;
    std::function<wire::RequestHeader()> packet;
    bool trimmed = false;
    DeliveryMode mode = DeliveryMode::Rud;
  };
  const auto with = [this](std::uint32_t psn, auto&& change) {
    wire::RequestHeader header = request(psn);
    change(header);
    return header;
  };
  const auto other_peer = [](wire::RequestHeader& header) { header.spdcid = PdcId{901}; };
  const auto other_mode = [](wire::RequestHeader& header) {
    header.type = header.rod() ? wire::PdsType::RudReq : wire::PdsType::RodReq;
  };
  constexpr std::uint32_t kFar = 333 + 2000;
  const std::vector<Row> rows = {
      {"4, 9", NackCode::InvDpdcid,
       [&] { return with(334, [](auto& header) { header.dpdcid = PdcId{4444}; }); }, true},
      {"5, 6", NackCode::PdcHdrMismatch,
       [&] {
         return with(334, [&](auto& header) {
           other_peer(header);
           other_mode(header);
         });
       }},
      {"5, 11", NackCode::PdcHdrMismatch, [&] { return with(kFar, other_peer); }},
      {"6, 9", NackCode::PdcModeMismatch, [&] { return with(334, other_mode); }, true},
      {"6, 11", NackCode::PdcModeMismatch, [&] { return with(kFar, other_mode); }},
      {"9, 11", NackCode::Trimmed, [&] { return request(kFar); }, true},
      {"9, 12", NackCode::Trimmed, [&] { return request(335); }, true, DeliveryMode::Rod},
      {"11, 12", NackCode::PsnOorWindow, [&] { return request(kFar); }, false, DeliveryMode::Rod},
      {"11, 13", NackCode::PsnOorWindow, [&] { return request(kFar); }},
      {"12, 13", NackCode::RodOoo, [&] { return request(335); }, false, DeliveryMode::Rod},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.steps);
    build(test_parameters());
    accept(333, row.mode);
    node->drain();
    node->client.respond = [](const Delivered&) { return refusal(NackCode::NoResource); };
    rx_trimmed = row.trimmed;
    receive(row.packet());
    rx_trimmed = false;
    const auto sent = nacks(node->drain());
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].nack_code, row.code);
  }
}

// Step 8 comes before the steps that refuse a packet: its CLEAR_PSN counts all the same.
TEST_F(Demultiplex, Pds210_Step8_RefusedPacket_ClearPsnApplied) {
  for (const bool cut : {true, false}) {
    build(test_parameters());
    accept(333);
    node->client.respond = [](const Delivered&) { return guaranteed_response(); };
    receive(request(334));
    node->drain();
    wire::RequestHeader refused = request(cut ? 335 : 335 + 1024);
    refused.clear_psn_offset = static_cast<std::int16_t>(Psn{334} - refused.psn);
    rx_trimmed = cut;
    EXPECT_EQ(refusal_of(refused).nack_code, cut ? NackCode::Trimmed : NackCode::PsnOorWindow);
    rx_trimmed = false;
    EXPECT_EQ(acks(answer_to(retransmission(334))).at(0).cack_psn, Psn{334});
  }
}

TEST_F(Demultiplex, RequestsWithCongestionWordsAreRequests) {
  accept(333);
  wire::RequestHeader header = request(334);
  header.type = wire::PdsType::RudCcReq;
  receive(header, 5, 40);
  ASSERT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(node->client.delivered[1].message, 5U);
  EXPECT_EQ(node->client.delivered[1].bytes, 40U);
}

TEST_F(Demultiplex, Pds213_AcksAndNacksAreNeverRefused) {
  pdc = PdcId{4444};
  EXPECT_TRUE(answer_to(ack(333, 333)).empty());
  for (int code = 0; code < 256; ++code) {
    EXPECT_TRUE(answer_to(nack(static_cast<NackCode>(code), 333)).empty());
  }
}

TEST_F(Demultiplex, UnknownTypesAreCounted) {
  for (const unsigned type : {0U, 1U, 15U, 31U}) {
    const std::vector<std::byte> packet(64, static_cast<std::byte>(type << 3));
    node->receive(packet, peer, now);
  }
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(counters().unsupported_type, 3U);
  EXPECT_EQ(counters().protected_dropped, 1U);
}

TEST_F(Demultiplex, Pds108_Step1_UnknownPdc_AckDroppedAndCounted) {
  pdc = PdcId{4444};
  receive(ack(333, 333));
  EXPECT_EQ(counters().acks_invalid, 1U);
}

TEST_F(Demultiplex, AcksAndNacksFromAnotherAddressAreNotBelieved) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  from(address_of(9), ack(70000, 70000));
  from(address_of(9), nack(NackCode::UnexpEvent, 70000));
  EXPECT_EQ(message.responses, 0U);
  EXPECT_TRUE(message.errors.empty());
  EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Creating);
}

TEST_F(Demultiplex, RudiNackIsNotForAPdc) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  wire::NackHeader rudi = nack(NackCode::UnexpEvent, 70000);
  rudi.nt = true;
  receive(rudi);
  EXPECT_TRUE(message.errors.empty());
}

TEST_F(Demultiplex, Pds157_ControlPacketsAreCheckedLikeRequests) {
  pdc = PdcId{4444};
  EXPECT_EQ(refusal_of(control(CpType::Noop, 1)).nack_code, NackCode::InvDpdcid);
  EXPECT_EQ(refusal_of(control(CpType::AckRequest, 1)).nack_code, NackCode::InvDpdcid);
  accept(333);
  wire::ControlHeader foreign = control(CpType::Noop, 334);
  foreign.spdcid = PdcId{901};
  EXPECT_EQ(refusal_of(foreign).nack_code, NackCode::PdcHdrMismatch);
  EXPECT_EQ(refusal_of(control(static_cast<CpType>(13), 334)).nack_code, NackCode::UnexpEvent);
  receive(request(334));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
}

// A target may write before its first ACK is here (PDS-199), so a PDC that is CREATING takes what
// comes from it: UNEXP_EVENT, which ends a PDC, would make an error of a packet that was overtaken.
// A packet that names a PSN of the peer shows its id; any other packet is as good as lost.
TEST_F(Demultiplex, Pds157_Pds199_ControlPacketsMayOvertakeTheFirstAck) {
  for (const CpType type : {CpType::Noop, CpType::CloseRequest, CpType::ClearRequest,
                            CpType::AckRequest, CpType::Probe, CpType::Credit}) {
    build(test_parameters());
    send(1);
    const auto sent = requests(turn());
    ASSERT_EQ(sent.size(), 1U);
    pdc = sent[0].spdcid;
    wire::ControlHeader header = control(type, sent[0].psn.value);
    for (const wire::NackHeader& refused : nacks(answer_to(header))) {
      EXPECT_EQ(refused.nack_code, NackCode::PktNotRcvd) << static_cast<int>(type);
    }
    const bool has_psn =
        type == CpType::Noop || type == CpType::CloseRequest || type == CpType::AckRequest;
    EXPECT_EQ(node->manager->find(pdc)->peer_id(), has_psn ? kPeerPdc : PdcId{})
        << static_cast<int>(type);
  }
}

// PDS-31, PDS-199: a stranger can guess the id of a PDC that waits for its first answer, but no
// PSN.
TEST_F(Demultiplex, Pds199_OutsideWindow_PeerIdIsNotLearned) {
  send(1);
  const auto sent = requests(turn());
  ASSERT_EQ(sent.size(), 1U);
  pdc = sent[0].spdcid;
  const std::uint32_t first = sent[0].psn.value;
  EXPECT_EQ(refusal_of(request(first + 100'000)).nack_code, NackCode::PdcHdrMismatch);
  EXPECT_EQ(refusal_of(control(CpType::Noop, first - 1)).nack_code, NackCode::PdcHdrMismatch);
  EXPECT_EQ(node->manager->find(pdc)->peer_id(), PdcId{});
  receive(request(first));
  EXPECT_EQ(node->manager->find(pdc)->peer_id(), kPeerPdc);
}

TEST_F(Demultiplex, Pds159_ClearForAnUnknownPdcIsDroppedSilently) {
  pdc = PdcId{4444};
  EXPECT_TRUE(answer_to(control(CpType::Clear, 0)).empty());
  EXPECT_TRUE(answer_to(control(CpType::ClearRequest, 0)).empty());
  EXPECT_EQ(counters().stray_packets, 2U);
}

TEST_F(Demultiplex, UnwantedControlPacketsAreCountedAndDropped) {
  accept(333);
  for (const CpType type : {CpType::Credit, CpType::CreditRequest}) {
    EXPECT_TRUE(answer_to(control(type, 334)).empty());
  }
  EXPECT_EQ(counters().credit_ignored, 2U);
}

// The answer repeats the opaque value, says what has arrived from the wanted PSN on, and carries no
// response; it consumes nothing.
TEST_F(Demultiplex, Pds106_Probe_AnsweredWithOpaqueAndBitmap) {
  accept(333);
  for (const std::uint32_t psn : {335U, 337U, 440U}) receive(request(psn));
  turn();
  wire::ControlHeader probe = control(CpType::Probe, 0);
  probe.probe_opaque = 0xBEEF;
  probe.payload = 336;
  const auto near = acks(answer_to(probe));
  ASSERT_EQ(near.size(), 1U);
  EXPECT_TRUE(near[0].p);
  EXPECT_EQ(near[0].probe_opaque, 0xBEEF);
  EXPECT_EQ(near[0].next_hdr, NextHdr::None);
  EXPECT_EQ(near[0].cack_psn, Psn{333});
  EXPECT_EQ(near[0].sack_base(), Psn{336});
  EXPECT_EQ(near[0].sack_bitmap, 0b10U);
  for (const std::uint32_t far : {0U, 332U, 333U + 2000U}) {
    probe.payload = far;
    const auto answer = acks(answer_to(probe));
    ASSERT_EQ(answer.size(), 1U);
    EXPECT_EQ(answer[0].sack_base(), Psn{334});
    EXPECT_EQ(answer[0].sack_bitmap, 0b1010U);
  }
  EXPECT_EQ(counters().unsupported_type, 0U);
}

// ---- nonsense -----------------------------------------------------------------------------------

// PDS-210 step 1: what does not parse is dropped and counted, never refused.
TEST_F(Demultiplex, Pds210_Step1_CutPacketsAreDroppedAndCounted) {
  accept(333);
  std::uint64_t malformed = counters().malformed;
  const auto cut = [&](const auto& header) {
    std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
    bytes.resize(header.encode(bytes.data()));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      node->receive(std::span(bytes).first(length), peer, now);
      EXPECT_EQ(counters().malformed, ++malformed);
    }
  };
  cut(request(334));
  cut(request(334, true));
  cut(ack(333, 333));
  cut(nack(NackCode::NoResource, 333));
  cut(control(CpType::Close, 334));
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(node->client.delivered.size(), 1U);
}

TEST_F(Demultiplex, RandomPacketsNeitherCrashNorLeak) {
  Parameters parameters = test_parameters();
  parameters.max_rto_retransmissions = 2;
  build(parameters);
  Rng rng(20240611);
  node->client.respond = [&](const Delivered&) {
    const std::uint64_t choice = rng.below(8);
    if (choice == 0) return refusal(NackCode::NoResource);
    return choice == 1 ? guaranteed_response() : default_response();
  };
  std::vector<TestMessage*> sent;
  std::vector<std::byte> bytes;
  PdcId opened{};  // the last PDC that was opened here
  for (int i = 0; i < 100'000; ++i) {
    if (i % 1000 == 0) {
      TestMessage& message = node->message(3);
      if (node->manager->send(message, to_peer(i % 2 ? DeliveryMode::Rod : DeliveryMode::Rud), now)
              .ok()) {
        sent.push_back(&message);
      }
    }
    bytes.resize(rng.below(64));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next());
    if (bytes.size() >= 12) {
      // Most of them shaped so that they get past the first check: a known type and known ids.
      bytes[0] = static_cast<std::byte>(rng.between(2, 14) << 3 | (rng.next() & 7));
      const bool has_ids = !rng.chance(0.1);
      const auto id = rng.chance(0.5) ? opened.value : rng.between(10, 40);
      const auto peer_id = static_cast<std::uint8_t>(rng.between(1, 12));
      const Psn near{70000U + static_cast<std::uint32_t>(rng.below(16))};
      if (has_ids) {
        bytes[8] = std::byte{0};
        bytes[9] = std::byte{peer_id};
        bytes[10] = static_cast<std::byte>(id >> 8);
        bytes[11] = static_cast<std::byte>(id);
        for (int k = 0; k < 4; ++k) {
          bytes[4 + static_cast<std::size_t>(k)] =
              static_cast<std::byte>(near.value >> (24 - 8 * k));
        }
      }
    }
    node->receive(bytes, peer, now, static_cast<std::uint16_t>(rng.next()),
                  static_cast<Ecn>(rng.below(4)), rng.chance(0.01));
    if (i % 16 == 0) {
      node->turn(now);
      for (const wire::RequestHeader& request : requests(node->drain())) {
        if (request.syn) opened = request.spdcid;
      }
    }
    if (i % 256 == 0) now += milliseconds(5);
  }
  EXPECT_GT(counters().requests_delivered, 50U);  // few: NEW_START_PSN moves PDCs away
  EXPECT_GT(counters().acks_received, 0U);
  node->manager->begin_close_all(now);
  for (int i = 0; i < 2000 && node->manager->open_pdcs() > 0; ++i) after(milliseconds(10));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_EQ(node->packets.in_use(), 0U);
  EXPECT_TRUE(node->manager->quiescent());
  for (const TestMessage* message : sent) {
    EXPECT_TRUE(Node::answered_once(*message) || message->failed.has_value());
    for (const int answers : message->answers) EXPECT_EQ(answers, 1);
  }
}

// ---- secure domains -----------------------------------------------------------------------------

// A FEP whose packets are protected; the peer is of the secure domain 5.
class SecureDemultiplex : public Demultiplex {
 protected:
  SecureDemultiplex() {
    Parameters parameters = test_parameters();
    parameters.secured = true;
    build(parameters);
  }
  static FepAddress of_domain(std::uint32_t sdi) {
    FepAddress address = address_of(2);
    address.sdi = sdi;
    return address;
  }
  // A PDC that the peer has opened under SDI 5.
  void accept_5() {
    peer_start = 333;
    from(of_domain(5), request(333, true));
    pdc = node->client.delivered.back().pdc;
    from(of_domain(5), request(334));
  }
};

// PDS-16, TSS-11, step 11 of TSS section 6: whatever names the PDC under another SDI is dropped,
// counted once, and not answered (TSS-39).
TEST_F(SecureDemultiplex, Tss11_PacketsOfAnotherSdiAreNotOfThePdc) {
  accept_5();
  wire::AckHeader ack;
  ack.dpdcid = pdc;
  ack.spdcid = kPeerPdc;
  wire::NackHeader refused = nack(NackCode::PktNotRcvd, 1);
  refused.dpdcid = pdc;
  EXPECT_TRUE(from(of_domain(0), request(335)).empty());
  EXPECT_TRUE(from(of_domain(6), control(CpType::Noop, 335)).empty());
  EXPECT_TRUE(from(of_domain(6), ack).empty());
  EXPECT_TRUE(from(of_domain(6), refused).empty());
  EXPECT_EQ(counters().binding_failures, 4U);
  EXPECT_EQ(counters().acks_invalid, 0U);
  EXPECT_EQ(counters().nacks_ignored, 0U);
  EXPECT_EQ(node->client.delivered.size(), 2U);
  from(of_domain(5), request(335));
  EXPECT_EQ(node->client.delivered.size(), 3U);
}

// The answers of a PDC and the NACKs without one leave under the SDI of what they answer.
TEST_F(SecureDemultiplex, Pds16AndTss10_AnswersKeepTheSdi) {
  accept_5();
  wire::RequestHeader asks = request(335);
  asks.ar = true;
  const auto acked = from(of_domain(5), asks);
  ASSERT_EQ(acked.size(), 1U);
  EXPECT_EQ(acked[0].to, of_domain(5));
  wire::RequestHeader unknown = request(336);
  unknown.dpdcid = PdcId{60'000};
  const auto refused = from(of_domain(6), unknown);
  ASSERT_EQ(nacks(refused).size(), 1U);
  EXPECT_EQ(refused[0].to, of_domain(6));
}

// The same SPDCID of the same address under another SDI is another peer's PDC.
TEST_F(SecureDemultiplex, Tss11_SynOfAnotherSdiOpensItsOwnPdc) {
  accept_5();
  from(of_domain(6), request(333, true));
  EXPECT_EQ(counters().pdcs_accepted, 2U);
  EXPECT_NE(node->client.delivered.back().pdc, pdc);
  EXPECT_EQ(node->client.delivered.back().source, of_domain(6));
}

TEST_F(SecureDemultiplex, Tss11_TombstonesAreBoundAsWell) {
  accept_5();
  from(of_domain(5), control(CpType::Close, 335));
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_TRUE(from(of_domain(6), control(CpType::Close, 335)).empty());
  EXPECT_EQ(counters().binding_failures, 1U);
  EXPECT_EQ(acks(from(of_domain(5), control(CpType::Close, 335))).size(), 1U);
}

// TSS-9: what a secure domain is to protect does not leave a FEP that protects nothing.
TEST_F(Demultiplex, Tss9_SecureDomain_DestinationsNeedTss) {
  Destination secure = to_peer();
  secure.address.sdi = 5;
  for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rudi, DeliveryMode::Uud}) {
    secure.mode = mode;
    TestMessage& message = node->message(1);
    EXPECT_EQ(node->manager->send(message, secure, now).error(), Error::Invalid);
  }
  EXPECT_EQ(node->manager->connect(to_peer(), now).ok(), true);
  secure.mode = DeliveryMode::Rud;
  EXPECT_EQ(node->manager->connect(secure, now).error(), Error::Invalid);
  Parameters parameters = test_parameters();
  parameters.secured = true;
  build(parameters);
  node->send(secure, 1, now);
  const auto sent = turn();
  ASSERT_EQ(requests(sent).size(), 1U);
  EXPECT_EQ(sent[0].to, secure.address);
}

}  // namespace
}  // namespace uet::pds::testing
