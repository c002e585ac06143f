// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RUDI (PDS section 18): requests that arrive, and their responses.
#include "pds/rudi_target.h"

#include "unit/pds/rudi_harness.h"

namespace uet::pds::testing {
namespace {

class RudiTargetTest : public RudiBench {};

TEST_F(RudiTargetTest, Pds184_EachArrival_DeliveredAnsweredById) {
  rx_ecn = Ecn::Ce;
  for (int copy = 0; copy < 2; ++copy) {
    wire::RudiHeader header = request_with(0xCAFE);
    header.retx = copy == 1;
    arrive(header, 72);
    const std::vector<Sent> sent = turn();
    ASSERT_EQ(headers(sent).size(), 1U);
    const wire::RudiHeader response = headers(sent)[0];
    EXPECT_EQ(response.type, wire::PdsType::RudiResp);
    EXPECT_EQ(response.pkt_id, 0xCAFEU);
    EXPECT_EQ(response.next_hdr, NextHdr::Response);
    EXPECT_TRUE(response.ce);
    EXPECT_EQ(response.retx, copy == 1);
    EXPECT_EQ(sent[0].to, peer);
    EXPECT_EQ(sent[0].entropy, rx_entropy);
    EXPECT_EQ(sent[0].dscp, test_parameters().dscp_control);
    EXPECT_EQ(sent[0].body().size(), 12U);
  }
  ASSERT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(node->client.delivered[0].mode, DeliveryMode::Rudi);
  EXPECT_EQ(node->client.delivered[0].psn, Psn{0xCAFE});
  EXPECT_EQ(node->client.delivered[0].pdc, PdcId{});
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  expect_nothing_left();
}

TEST_F(RudiTargetTest, Pds187_ARefusalIsANackWithTheIdAndNoPdc) {
  node->client.respond = [](const Delivered&) { return refusal(NackCode::NoResource); };
  wire::RudiHeader header = request_with(77);
  header.retx = true;
  arrive(header, 72);
  const std::vector<Sent> sent = turn();
  ASSERT_EQ(nacks(sent).size(), 1U);
  const wire::NackHeader nack = nacks(sent)[0];
  EXPECT_TRUE(nack.nt);
  EXPECT_TRUE(nack.retx);
  EXPECT_EQ(nack.nack_code, NackCode::NoResource);
  EXPECT_EQ(nack.nack_psn, Psn{77});
  EXPECT_EQ(nack.spdcid, PdcId{});
  EXPECT_EQ(nack.dpdcid, PdcId{});
  EXPECT_EQ(sent[0].entropy, rx_entropy);
}

TEST_F(RudiTargetTest, Pds149_Trimmed_RequestRefusedResponseDropped) {
  rx_trimmed = true;
  arrive(request_with(77), 0);
  const std::vector<Sent> sent = turn();
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::Trimmed);
  EXPECT_TRUE(node->client.delivered.empty());
  respond(77);
  EXPECT_TRUE(turn().empty());
}

TEST_F(RudiTargetTest, MalformedOnesAreCounted) {
  wire::RudiHeader header = request_with(1);
  header.next_hdr = NextHdr::Response;
  arrive(header, 72);
  const std::vector<std::byte> cut(7, std::byte{0x21});
  node->receive(cut, peer, now);
  EXPECT_EQ(counters().malformed, 2U);
  EXPECT_TRUE(turn().empty());
}

// PDS-189: the data of a read are a message of its own, sent in the place of the response.
TEST_F(RudiTargetTest, Pds189_AResponseWithDataIsAMessageOfOnePacket) {
  TestMessage& data = node->message(1, 200);
  node->client.next_hdr = NextHdr::ResponseData;
  node->client.respond = [&](const Delivered&) {
    EXPECT_TRUE(node->manager->respond(data, now).ok());
    return default_response();
  };
  arrive(request_with(0xBEEF), 44);
  const std::vector<Sent> sent = turn();
  ASSERT_EQ(headers(sent).size(), 1U);
  EXPECT_EQ(headers(sent)[0].type, wire::PdsType::RudiResp);
  EXPECT_EQ(headers(sent)[0].pkt_id, 0xBEEFU);
  EXPECT_EQ(headers(sent)[0].next_hdr, NextHdr::ResponseData);
  EXPECT_EQ(sent[0].body().size(), 208U);
  EXPECT_EQ(sent[0].entropy, rx_entropy);
  node->manager->answer_datagrams(now);
  EXPECT_TRUE(Node::answered_once(data));
  EXPECT_EQ(node->manager->respond(data, now).error(), Error::Invalid);  // outside rx_req
}

// ---- sources that may be invented (PDS-222) -----------------------------------------------------

class RudiRead : public RudiTargetTest {
 protected:
  static constexpr std::uint32_t kData = 4096;
  RudiRead() {
    node->client.respond = [this](const Delivered&) { return answer_of(*node, now); };
  }
  // The data of a read, or its refusal, as SES answers.
  static Response answer_of(Node& target, Time now) {
    TestMessage& data = target.message(1, kData);
    data.backlog_bytes = kData;
    const bool taken = target.manager->respond(data, now).ok();
    return taken ? default_response() : refusal(NackCode::NoResource);
  }
  // Bytes of what goes back for one read of this host.
  std::size_t read_from(std::uint8_t host) {
    arrive(request_with(host), kRequest, address_of(host));
    std::size_t bytes = 0;
    for (const Sent& packet : turn()) {
      EXPECT_EQ(packet.to, address_of(host));
      bytes += cms::nominal_packet_bytes(static_cast<std::uint32_t>(packet.bytes.size()));
    }
    node->manager->answer_datagrams(now);
    return bytes;
  }
  void use_up_budget() {
    for (int i = 0; i < 100 && read_from(9) > kData; ++i) {
    }
  }
  static constexpr std::size_t kRequest = 44;
  static constexpr std::size_t kThrice =
      3 * cms::nominal_packet_bytes(sizeof(wire::PdsRudi) + kRequest);
};

TEST_F(RudiRead, Pds222_UnprovedHostsShareABudget) {
  std::size_t went = 0;
  constexpr std::size_t kReads = 200;
  for (std::size_t i = 0; i < kReads; ++i) went += read_from(static_cast<std::uint8_t>(10 + i));
  EXPECT_LE(went, ProvedHosts::kBurstBytes + kReads * kThrice);
  EXPECT_GT(went, ProvedHosts::kBurstBytes - kData) << "some are served";
  EXPECT_GT(counters().rudi_unproved_refused, kReads - 20);
  EXPECT_EQ(counters().nacks_sent[static_cast<std::size_t>(NackCode::NoResource)],
            counters().rudi_unproved_refused);
  now += milliseconds(10);
  EXPECT_GT(read_from(10), kData) << "10 KB more";
}

TEST_F(RudiRead, Pds222_HostWithAProvedPdcHasAllItsReads) {
  node->client.respond = {};
  accept();
  node->client.respond = [this](const Delivered&) { return answer_of(*node, now); };
  use_up_budget();
  for (int i = 0; i < 100; ++i) EXPECT_GT(read_from(2), kData);
  node->manager->find(pdc)->fail(PdsError::PeerLost, now);
  node->manager->free_finished(now);
  EXPECT_LT(read_from(2), kThrice) << "the proof ends with a PDC that failed";
}

TEST_F(RudiRead, Pds222_ProofOutlivesAPdcThatCloses) {
  node->client.respond = {};
  accept(333);
  receive(control(wire::CpType::Close, 334));
  turn();
  node->manager->free_finished(now);
  ASSERT_EQ(node->manager->find(pdc), nullptr);
  node->client.respond = [this](const Delivered&) { return answer_of(*node, now); };
  use_up_budget();
  EXPECT_GT(read_from(2), kData);
}

TEST_F(RudiRead, Pds222_OurAnsweredPdcIsAProofToo) {
  use_up_budget();
  EXPECT_LT(read_from(2), kThrice);
  open();
  EXPECT_GT(read_from(2), kData);
}

}  // namespace
}  // namespace uet::pds::testing
