// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The header, the path and the marks of packets that leave.
#include <set>

#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

class TransmissionTest : public Bench {};

TEST_F(TransmissionTest, Pds49_Pds50_FirstPacketsCarryDataSynAndTheirOffset) {
  send(3);
  const auto sent = turn();
  const auto headers = requests(sent);
  ASSERT_EQ(psns(headers), (std::vector<std::uint32_t>{70000, 70001, 70002}));
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(headers[i].syn);
    EXPECT_EQ(headers[i].psn_offset, i);
    EXPECT_EQ(headers[i].start_psn(), Psn{70000});
    EXPECT_EQ(headers[i].pdc_info, 0);
    EXPECT_EQ(headers[i].spdcid, PdcId{10});
    EXPECT_EQ(content(sent[i].body()), (std::pair{1U, i}));
    EXPECT_EQ(sent[i].body().size(), 72U);
  }
}

TEST_F(TransmissionTest, Pds2_ForwardRequest_CarriesTheSesHeader) {
  node->client.next_hdr = NextHdr::RequestMedium;
  send(1);
  EXPECT_EQ(requests(turn()).at(0).next_hdr, NextHdr::RequestMedium);
}

TEST_F(TransmissionTest, Pds51_Syn_UntilFirstAckTellsTargetId) {
  TestMessage& message = send(1);
  EXPECT_TRUE(requests(turn()).at(0).syn);
  pdc = message.pdc;
  send(1);
  EXPECT_TRUE(requests(turn()).at(0).syn);
  receive(ack(69999, 70001));
  send(1);
  const auto established = requests(turn()).at(0);
  EXPECT_FALSE(established.syn);
  EXPECT_EQ(established.dpdcid, kPeerPdc);
}

TEST_F(TransmissionTest, Pds33_FirstRequestSaysClearBelowStart) {
  send(1);
  const auto header = requests(turn()).at(0);
  EXPECT_EQ(header.psn, Psn{70000});
  EXPECT_EQ(header.clear_psn(), Psn{69999});
}

TEST_F(TransmissionTest, Pds54_EstablishedRetransmission_HasNoSyn) {
  TestMessage& message = send(2);
  turn();
  pdc = message.pdc;
  receive(ack(69999, 70001));
  const auto again = requests(after(milliseconds(1)));  // CMS-421
  ASSERT_EQ(psns(again), (std::vector<std::uint32_t>{70000}));
  EXPECT_FALSE(again[0].syn);
  EXPECT_EQ(again[0].dpdcid, kPeerPdc);
  EXPECT_TRUE(again[0].retx);
}

TEST_F(TransmissionTest, Pds34_ClearPsnIsAnOffsetFromThePsn) {
  Parameters parameters = test_parameters();
  parameters.start_psn = 335;
  build(parameters);
  open();  // 335 is acknowledged
  send(2);
  const auto headers = requests(turn());
  EXPECT_EQ(headers.at(0).psn, Psn{336});
  EXPECT_EQ(headers.at(0).clear_psn_offset, -1);
  EXPECT_EQ(headers.at(1).clear_psn_offset, -2);
}

TEST_F(TransmissionTest, Pds35_Pds36_RetransmissionCarriesTheCurrentClearPsn) {
  open();
  send(3);
  EXPECT_EQ(requests(turn()).at(2).clear_psn(), Psn{70000});
  receive(ack(70002, 70002));
  const auto again = requests(after(milliseconds(20)));
  ASSERT_EQ(psns(again), (std::vector<std::uint32_t>{70003}));
  EXPECT_EQ(again[0].clear_psn(), Psn{70002});
}

TEST_F(TransmissionTest, Pds3_OnlyDataIsEcnCapable) {
  Pdc& accepted = accept();
  TestMessage& answer = node->message(1);
  ASSERT_TRUE(node->manager->send_on(accepted.id(), answer, now).ok());
  wire::RequestHeader asks = request(334);
  asks.ar = true;
  for (const Sent& packet : answer_to(asks)) {
    EXPECT_EQ(packet.ecn, packet.request() ? Ecn::Ect0 : Ecn::NotEct);
    EXPECT_EQ(packet.dscp, packet.request() ? 0 : 46);  // PDS-160
  }
}

TEST_F(TransmissionTest, Pds161_RodKeepsOneEntropyValueRudMayNot) {
  cms::Parameters paths = open_window();
  paths.paths = cms::PathPolicy::Oblivious;
  paths.path_count = 16;
  for (const DeliveryMode mode : {DeliveryMode::Rod, DeliveryMode::Rud}) {
    build(test_parameters(), paths);
    send(64, mode);
    std::set<std::uint16_t> values;
    for (const Sent& packet : turn()) values.insert(packet.entropy);
    EXPECT_EQ(values.size(), mode == DeliveryMode::Rod ? 1U : 16U);
  }
}

}  // namespace
}  // namespace uet::pds::testing
