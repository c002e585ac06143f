// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is delivered, what is a duplicate, and when and how requests are acknowledged.
#include <bit>

#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::AckRequestCode;
using wire::CpType;

class PdcDestination : public Bench {
 protected:
  // PSNs 333 .. 332 + count arrive; 333 opens the PDC.
  void arrive(std::uint32_t count, DeliveryMode mode = DeliveryMode::Rud) {
    accept(333, mode);
    for (std::uint32_t i = 1; i < count; ++i) receive(request(333 + i));
    turn();
  }
  wire::RequestHeader asking(std::uint32_t psn) const {
    wire::RequestHeader header = request(psn);
    header.ar = true;
    return header;
  }
  std::vector<wire::AckHeader> acks_of(const wire::RequestHeader& header) {
    return acks(answer_to(header));
  }
  void answer_with(const Response& response) {
    node->client.respond = [response](const Delivered&) { return response; };
  }
  // The PSN is guaranteed if `guaranteed` says so.
  void guarantee(std::function<bool(std::uint32_t)> guaranteed) {
    node->client.respond = [guaranteed](const Delivered& packet) {
      return guaranteed(packet.psn.value)
                 ? guaranteed_response(static_cast<std::uint8_t>(packet.psn.value))
                 : default_response();
    };
  }
};

// ---- delivery -----------------------------------------------------------------------------------

TEST_F(PdcDestination, Pds18_EachRequest_HandedOverOnceAsSesNeeds) {
  accept(333);
  receive(request(334), 77, 100);
  ASSERT_EQ(node->client.delivered.size(), 2U);
  const Delivered& packet = node->client.delivered[1];
  EXPECT_EQ(packet.psn, Psn{334});
  EXPECT_EQ(packet.pdc, pdc);
  EXPECT_EQ(packet.source, peer);  // PDS-13
  EXPECT_EQ(packet.mode, DeliveryMode::Rud);
  EXPECT_EQ(packet.next_hdr, NextHdr::RequestStd);
  EXPECT_EQ(packet.message, 77U);
  EXPECT_EQ(packet.bytes, 100U);
}

TEST_F(PdcDestination, Pds45_Pds46_OutsideTheWindowIsRefused) {
  arrive(1);
  const auto refused = nacks(answer_to(request(333 + 1025)));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].nack_code, NackCode::PsnOorWindow);
  EXPECT_EQ(refused[0].nack_psn, Psn{333 + 1025});
  EXPECT_EQ(refused[0].spdcid, pdc);
  EXPECT_TRUE(nacks(answer_to(request(333 + 1024))).empty());
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 333 + 1024}));
}

TEST_F(PdcDestination, Pds46_SynOutsideTheWindowIsInvalid) {
  arrive(1);
  const auto refused = nacks(answer_to(request(333 + 1025, true)));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].nack_code, NackCode::InvalidSyn);
}

// By more than the largest window that a source may have begun with.
TEST_F(PdcDestination, Pds46_FarBelowTheWindowIsOutOfRange) {
  arrive(1100);
  EXPECT_TRUE(nacks(answer_to(request(333U + 1099 - 1024))).empty());
  EXPECT_TRUE(nacks(answer_to(request(333U + 1099 - 4095))).empty());
  EXPECT_EQ(nacks(answer_to(request(333U + 1099 - 4096))).size(), 1U);
  EXPECT_EQ(node->client.delivered.size(), 1100U);
}

TEST_F(PdcDestination, Pds211_RefusedPacketLeavesNoTrace) {
  accept(333);
  for (const NackCode code : {NackCode::NoSesMsgAvail, NackCode::NoResource}) {
    answer_with(refusal(code));
    const auto sent = answer_to(asking(334));
    ASSERT_EQ(nacks(sent).size(), 1U);
    EXPECT_EQ(nacks(sent)[0].nack_code, code);
    EXPECT_TRUE(acks(sent).empty());
  }
  answer_with(default_response());
  const auto answers = acks_of(asking(334));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].cack_psn, Psn{334});
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
}

TEST_F(PdcDestination, Pds212_NackCopiesRetxAndEntropy) {
  accept(333);
  answer_with(refusal(NackCode::NoResource));
  rx_entropy = 51234;
  for (const bool retx : {false, true}) {
    wire::RequestHeader header = request(334);
    header.retx = retx;
    const auto sent = answer_to(header);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].nack()->retx, retx);
    EXPECT_FALSE(sent[0].nack()->nt);
    EXPECT_EQ(sent[0].entropy, 51234);
    EXPECT_EQ(sent[0].to, peer);
    EXPECT_EQ(std::to_integer<int>(sent[0].bytes[0]) & 7, 0);  // next header NONE
  }
}

// ---- when an ACK leaves -------------------------------------------------------------------------

TEST_F(PdcDestination, Pds93_AtOnceIfAsked) {
  arrive(1);
  EXPECT_TRUE(acks_of(request(334)).empty());
  const auto answers = acks_of(asking(335));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].cack_psn, Psn{335});
  EXPECT_EQ(answers[0].ack_psn(), Psn{335});
}

TEST_F(PdcDestination, Pds94_AtOnceForSyn) {
  peer_start = 333;
  for (std::uint32_t psn = 333; psn < 337; ++psn) EXPECT_EQ(acks_of(request(psn, true)).size(), 1U);
}

TEST_F(PdcDestination, Pds95_GuaranteedResponsesGetOneAckEach) {
  arrive(1);
  guarantee([](std::uint32_t) { return true; });
  for (std::uint32_t psn = 334; psn < 338; ++psn) receive(request(psn));
  const auto answers = acks(turn());
  ASSERT_EQ(answers.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answers[i].ack_psn(), Psn{334 + i});
    EXPECT_EQ(answers[i].cack_psn, Psn{333});  // PDS-86
    EXPECT_EQ(answers[i].req, AckRequestCode::Clear);
    EXPECT_EQ(answers[i].next_hdr, NextHdr::Response);
  }
}

TEST_F(PdcDestination, Pds96_AtOnceForRetransmissions) {
  arrive(1);
  wire::RequestHeader again = request(334);
  again.retx = true;
  EXPECT_EQ(acks_of(again).size(), 1U);
}

TEST_F(PdcDestination, Pds97_Pds102_CoalescedAckForSixteenSmallPackets) {
  arrive(1);
  int answered_after = 0;
  std::vector<wire::AckHeader> answers;
  for (std::uint32_t psn = 334; answers.empty() && answered_after < 100; ++psn) {
    answers = acks_of(request(psn));
    ++answered_after;
  }
  EXPECT_EQ(answered_after, 16);
  EXPECT_EQ(answers.at(0).cack_psn, Psn{333 + 16});
  EXPECT_EQ(answers.at(0).ack_psn(), Psn{333 + 16});
  EXPECT_EQ(answers.at(0).req, AckRequestCode::None);
}

TEST_F(PdcDestination, Pds98_LastGapBelowAnArPacketTriggersAnAck) {
  arrive(1);
  EXPECT_EQ(acks_of(asking(336)).at(0).cack_psn, Psn{333});
  EXPECT_TRUE(acks_of(request(334)).empty());
  const auto answers = acks_of(request(335));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].cack_psn, Psn{336});
}

TEST_F(PdcDestination, Pds99_MarkedPacket_AckedAtOnceAndReflected) {
  arrive(1);
  rx_ecn = Ecn::Ce;
  const auto answers = acks_of(request(334));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers[0].ce);
  rx_ecn = Ecn::Ect0;
  EXPECT_FALSE(acks_of(asking(335)).at(0).ce);
}

// CMS-721; CMS-702: the marked packet is counted.
TEST_F(PdcDestination, Pds99_MarkIsNotLostInACoalescedAck) {
  arrive(1);
  rx_ecn = Ecn::Ce;
  receive(request(334));
  rx_ecn = Ecn::Ect0;
  receive(asking(335));
  const auto answers = acks(turn());
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers[0].ce);
  EXPECT_EQ(counters().marked_received, 1U);
}

// ---- what an ACK says ---------------------------------------------------------------------------

TEST_F(PdcDestination, Pds103_Pds106_AckReusesEntropyAndRepeatsRetx) {
  arrive(1);
  rx_entropy = 60123;
  auto sent = answer_to(retransmission(334));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].entropy, 60123);
  EXPECT_TRUE(sent[0].ack()->retx);
  rx_entropy = 60124;
  sent = answer_to(asking(335));
  EXPECT_EQ(sent.at(0).entropy, 60124);
  EXPECT_FALSE(sent[0].ack()->retx);
}

TEST_F(PdcDestination, Pds104_AckOfAControlPacketHasNoSesHeader) {
  arrive(1);
  const auto sent = answer_to(control(CpType::Noop, 334));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ack()->next_hdr, NextHdr::None);
  EXPECT_EQ(sent[0].ack()->cack_psn, Psn{334});
  EXPECT_TRUE(sent[0].body().empty());
  EXPECT_EQ(node->client.delivered.size(), 1U);
}

TEST_F(PdcDestination, Pds2_AckCarriesTheSesResponse) {
  arrive(1);
  Response response = default_response();
  response.bytes.fill(std::byte{0x42});
  answer_with(response);
  const auto sent = answer_to(asking(334));
  EXPECT_EQ(sent.at(0).ack()->next_hdr, NextHdr::Response);
  EXPECT_EQ(std::vector(sent[0].body().begin(), sent[0].body().end()),
            std::vector(12, std::byte{0x42}));
}

TEST_F(PdcDestination, Pds37_Pds38_OffsetsOfAnAckAreSigned) {
  arrive(1);
  auto answers = acks_of(asking(433));
  EXPECT_EQ(answers.at(0).cack_psn, Psn{333});
  EXPECT_EQ(answers[0].ack_psn_offset, 100);
  EXPECT_EQ(answers[0].sack_base(), Psn{334 + 64});  // PDS-92
  EXPECT_EQ(answers[0].sack_bitmap, 1ULL << (433 - 398));
  for (std::uint32_t psn = 334; psn < 433; ++psn) receive(request(psn));
  turn();
  answers = acks_of(retransmission(340));  // a duplicate below CACK
  EXPECT_EQ(answers.at(0).cack_psn, Psn{433});
  EXPECT_EQ(answers[0].ack_psn_offset, 340 - 433);
}

TEST_F(PdcDestination, Pds91_Pds92_Bitmap_FromCackOrTriggersBlock) {
  arrive(1);
  for (const std::uint32_t psn : {335U, 350U, 397U}) {
    const auto answers = acks_of(asking(psn));
    EXPECT_EQ(answers.at(0).sack_base(), Psn{334});
    EXPECT_TRUE(answers[0].sack_bitmap & (1ULL << (psn - 334)));
  }
  const auto answers = acks_of(asking(334 + 200));
  EXPECT_EQ(answers.at(0).sack_base(), Psn{334 + 192});
  EXPECT_EQ(answers[0].sack_bitmap, 1ULL << 8);
}

TEST_F(PdcDestination, Pds39_AckSaysTheRangeInUnitsOf128) {
  for (const std::uint8_t mpr : {1, 8, 32}) {
    Parameters parameters = test_parameters();
    parameters.default_mpr = mpr;
    build(parameters);
    peer_start = 333;
    EXPECT_EQ(acks_of(request(333, true)).at(0).mpr, mpr);
  }
}

TEST_F(PdcDestination, Pds43_MprIsNeverZero) {
  Parameters parameters = test_parameters();
  parameters.default_mpr = 0;
  build(parameters);
  peer_start = 333;
  EXPECT_EQ(acks_of(request(333, true)).at(0).mpr, 1);
}

// ---- CACK ---------------------------------------------------------------------------------------

TEST_F(PdcDestination, Pds83_Pds85_CackCoversWhatIsFinished) {
  arrive(1);
  EXPECT_EQ(acks_of(asking(335)).at(0).cack_psn, Psn{333});
  EXPECT_EQ(acks_of(asking(334)).at(0).cack_psn, Psn{335});
}

TEST_F(PdcDestination, Pds86_Clear_MovesCackOverFinishedOnes) {
  arrive(1);
  guarantee([](std::uint32_t psn) { return psn == 334; });
  receive(request(334));
  receive(request(335));
  receive(request(336));
  turn();
  wire::ControlHeader clear = control(CpType::Clear, 0);
  clear.payload = 334;
  EXPECT_TRUE(answer_to(clear).empty());  // PDS-116: not acknowledged
  EXPECT_EQ(acks_of(asking(337)).at(0).cack_psn, Psn{337});
}

// 336 asked and got its ACK while CACK was held; without another, 335 would wait for its time-out.
TEST_F(PdcDestination, Pds86_Pds98_ClearThatMovesCackOverAnArTriggersAnAck) {
  arrive(1);
  guarantee([](std::uint32_t psn) { return psn == 334 || psn == 337; });
  receive(request(334));
  receive(request(335));
  EXPECT_EQ(acks_of(asking(336)).at(0).cack_psn, Psn{333});
  receive(request(337));
  EXPECT_EQ(acks_of(asking(338)).at(0).cack_psn, Psn{333});
  wire::ControlHeader clear = control(CpType::Clear, 0);
  clear.payload = 334;  // 335 is not known to be finished, which keeps CLEAR_PSN below 337
  const auto answers = acks(answer_to(clear));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].cack_psn, Psn{336});
  EXPECT_EQ(answers[0].ack_psn(), Psn{336});
  EXPECT_EQ(answers[0].req, AckRequestCode::None);
}

// S2: the source has the response already, so nothing is news, neither now nor later.
TEST_F(PdcDestination, Pds86_ClearOfAnArPacketTriggersNoAck) {
  arrive(1);
  guarantee([](std::uint32_t psn) { return psn == 334; });
  EXPECT_EQ(acks_of(asking(334)).at(0).req, AckRequestCode::Clear);
  wire::ControlHeader clear = control(CpType::Clear, 0);
  clear.payload = 334;
  EXPECT_TRUE(answer_to(clear).empty());
  EXPECT_TRUE(answer_to(request(335)).empty());
}

TEST_F(PdcDestination, Pds84_BufferedRodPacketHoldsCack) {
  arrive(1, DeliveryMode::Rod);
  const auto sent = answer_to(request(335));
  EXPECT_EQ(acks(sent).at(0).cack_psn, Psn{333});
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333}));
}

// ---- guaranteed responses -----------------------------------------------------------------------

TEST_F(PdcDestination, Pds112_Pds203_StoredResponseIsResentUntilCleared) {
  arrive(1);
  guarantee([](std::uint32_t) { return true; });
  const auto first = answer_to(request(334));
  for (int i = 0; i < 3; ++i) {
    const auto again = answer_to(retransmission(334));
    ASSERT_EQ(acks(again).size(), 1U);
    EXPECT_EQ(acks(again)[0].req, AckRequestCode::Clear);
    EXPECT_EQ(acks(again)[0].ack_psn(), Psn{334});
    EXPECT_TRUE(std::ranges::equal(again[0].body(), first.at(0).body()));
  }
  EXPECT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(counters().duplicates_acked, 3U);
}

TEST_F(PdcDestination, Pds204_Duplicates_GetTheDefaultResponse) {
  arrive(1);
  guarantee([](std::uint32_t) { return true; });
  receive(request(334));
  wire::RequestHeader next = request(335);
  next.clear_psn_offset = -1;  // clears 334 (PDS-34)
  receive(next);
  turn();
  const auto again = answer_to(retransmission(334));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].ack()->next_hdr, NextHdr::Response);
  EXPECT_EQ(again[0].ack()->ack_psn(), Psn{334});
  EXPECT_EQ(again[0].ack()->req, AckRequestCode::None);
  EXPECT_EQ(again[0].ack()->cack_psn, Psn{334});
}

TEST_F(PdcDestination, Pds113_WithoutASlotThePacketIsNotConsumed) {
  Parameters parameters = test_parameters();
  parameters.default_mpr = 32;
  parameters.pdc_count = 64;
  build(parameters);
  guarantee([](std::uint32_t) { return true; });
  // Several PDCs fill the share of a host in the FEP's store of 16384.
  PdcId first{};
  for (std::uint16_t i = 0; i < 12; ++i) {
    peer_start = 333;
    for (std::uint32_t k = 0; k < 4096; ++k) {
      wire::RequestHeader header = request(333 + k, true);
      header.spdcid = PdcId{static_cast<std::uint16_t>(500 + i)};
      receive(header);
      if (k % 64 == 0) node->drain();
    }
    if (i == 0) first = node->client.delivered.back().pdc;
  }
  node->drain();
  const std::size_t delivered = node->client.delivered.size();
  EXPECT_EQ(delivered, 8192U);
  wire::RequestHeader one_more = request(333, true);
  one_more.spdcid = PdcId{600};
  const auto refused = nacks(answer_to(one_more));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].nack_code, NackCode::NoGtdDelAvail);
  EXPECT_EQ(node->client.delivered.size(), delivered);
  // PDS-202: that there is no slot is nothing to a packet which has one.
  wire::RequestHeader again = request(333 + 7, true);
  again.spdcid = PdcId{500};
  again.retx = true;
  EXPECT_EQ(acks(answer_to(again)).at(0).ack_psn(), Psn{333 + 7});
  // A CLEAR frees a stored response.
  wire::ControlHeader clear = control(CpType::Clear, 0);
  clear.spdcid = PdcId{500};
  clear.dpdcid = first;
  clear.payload = 333 + 100;
  receive(clear);
  node->drain();
  receive(one_more);
  EXPECT_EQ(node->client.delivered.size(), delivered + 1);
}

// A source whose window was held must learn that it has moved on.
TEST_F(PdcDestination, Pds48_ClearMovesWindowFar_IsAcked) {
  arrive(1);
  guarantee([](std::uint32_t) { return true; });
  for (std::uint32_t i = 1; i <= 1024; ++i) receive(request(333 + i));
  EXPECT_EQ(acks(turn()).back().cack_psn, Psn{333});
  wire::ControlHeader clear = control(CpType::Clear, 0);
  clear.payload = 333 + 1024;
  const auto answers = acks(answer_to(clear));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].cack_psn, Psn{333 + 1024});
}

// ---- duplicates ---------------------------------------------------------------------------------

TEST_F(PdcDestination, Pds201_Pds206_CopyMadeByTheNetworkIsDropped) {
  arrive(3);
  EXPECT_TRUE(answer_to(asking(334)).empty());
  EXPECT_EQ(counters().duplicates_dropped, 1U);
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334, 335}));
}

TEST_F(PdcDestination, Pds202_Duplicate_FoundBeforeResourceCheck) {
  arrive(2);
  answer_with(refusal(NackCode::NoResource));
  const auto sent = answer_to(retransmission(334));
  EXPECT_TRUE(nacks(sent).empty());
  EXPECT_EQ(acks(sent).size(), 1U);
}

TEST_F(PdcDestination, Pds204_FinishedDuplicateIsAcknowledgedAgain) {
  arrive(2);
  const auto sent = answer_to(retransmission(334));
  ASSERT_EQ(acks(sent).size(), 1U);
  EXPECT_EQ(acks(sent)[0].ack_psn(), Psn{334});
  EXPECT_EQ(acks(sent)[0].req, AckRequestCode::None);
  EXPECT_EQ(node->client.delivered.size(), 2U);
}

// A NIC that takes fewer packets in a time-out than sources repeat would never catch up.
TEST_F(PdcDestination, Pds204_NicFull_DuplicatesGetOneAnswer) {
  arrive(2);
  receive(retransmission(334));
  receive(retransmission(334));
  receive(retransmission(333));
  receive(retransmission(334));
  const auto sent = acks(turn());
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].ack_psn(), Psn{334});
  EXPECT_EQ(sent[1].ack_psn(), Psn{333});
  EXPECT_EQ(acks(answer_to(retransmission(334))).size(), 1U);  // it has left: once more
}

// A host that polls seldom finds all transmissions of a packet at once.
TEST_F(PdcDestination, Pds204_FirstAckOfAPacketAnswersItsCopiesToo) {
  arrive(1);
  receive(asking(334));
  receive(retransmission(334));
  receive(retransmission(334));
  const auto sent = acks(turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ack_psn(), Psn{334});
  EXPECT_FALSE(sent[0].retx) << "the first transmission has arrived";
  EXPECT_TRUE(acks(answer_to(retransmission(334))).at(0).retx);
}

TEST_F(PdcDestination, Pds205_DuplicateOfWaiting_IsInProgress) {
  arrive(1, DeliveryMode::Rod);
  receive(request(335));
  turn();
  const auto sent = answer_to(retransmission(335));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].nack()->nack_code, NackCode::RcvdSesProcg);
}

TEST_F(PdcDestination, Pds207_RetransmissionNotSeenBeforeIsDelivered) {
  arrive(1);
  EXPECT_EQ(acks(answer_to(retransmission(334))).size(), 1U);
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
}

TEST_F(PdcDestination, Pds209_ClearOfADuplicateIsApplied) {
  arrive(1);
  guarantee([](std::uint32_t) { return true; });
  receive(request(334));
  turn();
  receive(request(335));
  for (const bool retx : {false, true}) {
    const std::uint32_t held = retx ? 336 : 334;
    wire::RequestHeader copy = retx ? retransmission(337) : request(335);
    copy.clear_psn_offset = -1;
    if (retx) {
      receive(request(336));
      receive(request(337));
      turn();
    }
    receive(copy);
    turn();
    EXPECT_EQ(acks(answer_to(retransmission(held))).at(0).req, AckRequestCode::None) << held;
  }
  EXPECT_EQ(counters().duplicates_dropped, 1U);
}

// ---- ACK Request --------------------------------------------------------------------------------

TEST_F(PdcDestination, Pds156_AckRequest) {
  arrive(2);
  guarantee([](std::uint32_t) { return true; });
  receive(request(336));
  turn();
  EXPECT_TRUE(answer_to(control(CpType::AckRequest, 333 + 2000)).empty());
  auto sent = answer_to(control(CpType::AckRequest, 335));
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::PktNotRcvd);
  sent = answer_to(control(CpType::AckRequest, 334));
  ASSERT_EQ(acks(sent).size(), 1U);
  EXPECT_EQ(acks(sent)[0].ack_psn(), Psn{334});
  EXPECT_EQ(acks(sent)[0].req, AckRequestCode::None);
  sent = answer_to(control(CpType::AckRequest, 336));
  ASSERT_EQ(acks(sent).size(), 1U);
  EXPECT_EQ(acks(sent)[0].req, AckRequestCode::Clear);
  EXPECT_EQ(acks(sent)[0].next_hdr, NextHdr::Response);
  receive(request(337));  // it consumed no PSN
  EXPECT_EQ(node->client.delivered.back().psn, Psn{337});
}

TEST_F(PdcDestination, Pds156_AckRequestForABufferedPacket) {
  arrive(1, DeliveryMode::Rod);
  receive(request(335));
  turn();
  const auto sent = answer_to(control(CpType::AckRequest, 335));
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::RcvdSesProcg);
}

// ---- ROD ----------------------------------------------------------------------------------------

TEST_F(PdcDestination, Pds162_Pds164_EarlyPacketsWaitAndAreDeliveredInOrder) {
  arrive(1, DeliveryMode::Rod);
  for (const std::uint32_t psn : {336U, 335U, 338U}) receive(request(psn), psn);
  EXPECT_EQ(node->client.delivered.size(), 1U);
  receive(request(334), 334);
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334, 335, 336}));
  receive(request(337), 337);
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334, 335, 336, 337, 338}));
  for (std::size_t i = 1; i < 6; ++i) {
    EXPECT_EQ(node->client.delivered[i].message, 333 + i);  // each with its own bytes
    EXPECT_EQ(node->client.delivered[i].mode, DeliveryMode::Rod);
  }
  EXPECT_EQ(counters().rod_buffered, 3U);
  EXPECT_TRUE(node->manager->quiescent());
}

TEST_F(PdcDestination, Pds163_Pds165_OneRodOooPerGap) {
  arrive(1, DeliveryMode::Rod);
  auto sent = answer_to(request(335));
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::RodOoo);
  EXPECT_EQ(nacks(sent)[0].nack_psn, Psn{335});
  EXPECT_TRUE(answer_to(request(336)).empty());
  EXPECT_TRUE(answer_to(request(337)).empty());
  receive(request(334));
  turn();
  sent = answer_to(request(340));  // another gap
  EXPECT_EQ(nacks(sent).size(), 1U);
}

// CMS-111: what waits for a predecessor has arrived. Untold it would fill the window that the
// predecessor needs to come again.
TEST_F(PdcDestination, Pds97_Pds164_WhatIsBufferedIsToldToo) {
  Parameters parameters = test_parameters();
  parameters.ack_gen_trigger_bytes = 4096;
  build(parameters);
  arrive(1, DeliveryMode::Rod);
  answer_to(request(335));  // opens the gap
  std::size_t told = 0;
  std::uint32_t rcvd_bytes = 0;
  for (std::uint32_t psn = 336; psn < 348; ++psn) {
    const auto sent = answer_to(request(psn));  // each counts 1,024 bytes
    EXPECT_TRUE(nacks(sent).empty()) << psn;
    for (const wire::AckHeader& header : acks(sent)) {
      ++told;
      EXPECT_EQ(header.cack_psn, Psn{333});
      EXPECT_EQ(header.ack_psn(), Psn{333}) << "names nothing that SES has not had";
      EXPECT_GT(header.rcvd_bytes, rcvd_bytes);
      rcvd_bytes = header.rcvd_bytes;
      EXPECT_NE(header.sack_bitmap & 0b10, 0U);
    }
  }
  EXPECT_EQ(told, 3U);
  EXPECT_EQ(acks(answer_to(asking(350))).size(), 1U) << "PDS-93";
}

TEST_F(PdcDestination, Pds164_TooLargeForBuffer_DroppedAndResent) {
  arrive(1, DeliveryMode::Rod);
  receive(request(335), 1, Node::kEarlyBytes + 1);
  const auto sent = turn();
  EXPECT_EQ(nacks(sent).at(0).nack_code, NackCode::RodOoo);
  EXPECT_EQ(acks(sent).at(0).sack_bitmap, 0U);
  receive(request(334));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
  receive(request(335), 1, Node::kEarlyBytes + 1);
  EXPECT_EQ(node->client.delivered.size(), 3U);
  EXPECT_TRUE(node->manager->quiescent());
}

TEST_F(PdcDestination, Pds162_RefusedEarlyPacket_ComesBeforeNext) {
  arrive(1, DeliveryMode::Rod);
  for (const std::uint32_t psn : {335U, 336U, 337U}) receive(request(psn));
  turn();
  bool refuse = true;
  node->client.respond = [&](const Delivered& packet) {
    return refuse && packet.psn == Psn{336} ? refusal(NackCode::NoSesMsgAvail) : default_response();
  };
  auto sent = answer_to(request(334));
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_psn, Psn{336});
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334, 335}));
  EXPECT_EQ(acks_of(retransmission(334)).at(0).cack_psn, Psn{335});
  refuse = false;
  sent = answer_to(retransmission(336));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334, 335, 336, 337}));
  EXPECT_EQ(acks(sent).back().cack_psn, Psn{337});
  EXPECT_TRUE(node->manager->quiescent());
}

TEST_F(PdcDestination, Pds164_BufferReachesOverTheWholeWindow) {
  arrive(1, DeliveryMode::Rod);
  for (std::uint32_t i = 2; i <= 1024; ++i) receive(request(333 + i));
  receive(request(334));
  EXPECT_EQ(node->client.delivered.size(), 1025U);
  EXPECT_TRUE(node->manager->quiescent());
}

TEST_F(PdcDestination, Pds167_GuaranteedRodAcksLeaveInOrder) {
  arrive(1, DeliveryMode::Rod);
  guarantee([](std::uint32_t) { return true; });
  for (const std::uint32_t psn : {336U, 335U, 334U}) receive(request(psn));
  std::vector<std::uint32_t> order;
  for (const auto& header : acks(turn())) {
    if (header.req == AckRequestCode::Clear) order.push_back(header.ack_psn().value);
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{334, 335, 336}));
}

// The ACK of 334 waits for the end of the pass, that of 335 does not.
TEST_F(PdcDestination, Pds167_PlainAndGuaranteedRodAcksLeaveInOrder) {
  arrive(1, DeliveryMode::Rod);
  guarantee([](std::uint32_t psn) { return psn == 335; });
  for (const std::uint32_t psn : {334U, 335U, 336U}) receive(asking(psn));
  std::vector<std::uint32_t> order;
  for (const auto& header : acks(turn())) order.push_back(header.ack_psn().value);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{334, 335, 336}));
}

TEST_F(PdcDestination, EarlyPacketsOfAFailedPdcAreGivenBack) {
  arrive(1, DeliveryMode::Rod);
  for (std::uint32_t psn = 340; psn < 400; ++psn) receive(request(psn));
  node->manager->abort(pdc, now);
  turn();
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_TRUE(node->manager->quiescent());
}

TEST_F(PdcDestination, ClientMayAbortThePdcWhileItIsServed) {
  arrive(1, DeliveryMode::Rod);
  for (std::uint32_t psn = 335; psn < 340; ++psn) receive(request(psn));
  node->client.respond = [&](const Delivered& packet) {
    if (packet.psn == Psn{336}) node->manager->abort(pdc, now);
    return guaranteed_response();
  };
  receive(request(334));
  turn();
  EXPECT_EQ(node->client.delivered.back().psn, Psn{336});
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_TRUE(node->manager->quiescent());
}

// ---- trimmed ------------------------------------------------------------------------------------

TEST_F(PdcDestination, Pds149_Pds150_Trimmed_RequestRefusedCopyIsDuplicate) {
  arrive(1);
  rx_trimmed = true;
  const auto sent = answer_to(asking(334));
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::Trimmed);
  EXPECT_EQ(nacks(sent)[0].spdcid, pdc);
  EXPECT_TRUE(answer_to(request(333)).empty());
  EXPECT_EQ(acks(answer_to(retransmission(333))).size(), 1U);
  rx_trimmed = false;
  receive(request(334));
  EXPECT_EQ(delivered_psns(), (std::vector<std::uint32_t>{333, 334}));
}

// ---- closing ------------------------------------------------------------------------------------

TEST_F(PdcDestination, Pds170_CloseCommandClearsAllForwardPsns) {
  arrive(1);
  guarantee([](std::uint32_t) { return true; });
  for (std::uint32_t psn = 334; psn < 340; ++psn) receive(request(psn));
  turn();
  const auto answers = acks(answer_to(control(CpType::Close, 340)));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].cack_psn, Psn{340});
  EXPECT_EQ(answers[0].ack_psn(), Psn{340});
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_FALSE(node->client.closed[0].error.has_value());
}

TEST_F(PdcDestination, CloseWithReturnDataOutstandingClosesInError) {
  Pdc& accepted = accept(333);
  TestMessage& answer = node->message(2);
  ASSERT_TRUE(node->manager->send_on(accepted.id(), answer, now).ok());
  turn();
  const auto sent = answer_to(control(CpType::Close, 334));
  EXPECT_EQ(nacks(sent).at(0).nack_code, NackCode::ClosingInErr);
  EXPECT_EQ(answer.errors, std::vector(2, PdsError::ClosedInError));
  EXPECT_EQ(counters().close_in_error, 1U);
  EXPECT_EQ(node->packets.in_use(), 0U);
}

TEST_F(PdcDestination, Pds169_OnlyTheInitiatorCloses) {
  open();
  const auto sent = answer_to(control(CpType::Close, 70000));
  EXPECT_EQ(nacks(sent).at(0).nack_code, NackCode::UnexpEvent);
  EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Established);
  node->manager->abort(pdc, now);  // the peer's id is free for a PDC of its own
  turn();
  arrive(1);
  EXPECT_EQ(nacks(answer_to(control(CpType::CloseRequest, 334))).at(0).nack_code,
            NackCode::UnexpEvent);
}

// A hostile peer closes over a gap behind which a response is stored: its slot comes back once.
TEST_F(PdcDestination, CloseOverAGapGivesEverySlotBackOnce) {
  arrive(1);
  guarantee([](std::uint32_t) { return true; });
  receive(request(335));
  receive(control(CpType::Close, 336));
  turn();
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  // Two PDCs that store one response each must not share a slot.
  for (const std::uint16_t id : {501, 502}) {
    peer_start = 333;
    node->client.respond = [id](const Delivered&) {
      return guaranteed_response(static_cast<std::uint8_t>(id));
    };
    wire::RequestHeader header = request(333, true);
    header.spdcid = PdcId{static_cast<std::uint16_t>(id)};
    receive(header);
  }
  turn();
  for (const std::uint16_t id : {501, 502}) {
    wire::RequestHeader again = request(333, true);
    again.spdcid = PdcId{static_cast<std::uint16_t>(id)};
    again.retx = true;
    const auto sent = answer_to(again);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].body()[0], static_cast<std::byte>(id & 0xFF));
  }
}

}  // namespace
}  // namespace uet::pds::testing
