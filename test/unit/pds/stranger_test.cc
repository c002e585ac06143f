// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What hosts that have no right to anything can take from others: stored responses, the reorder
// buffer, PDCs, and bytes that are sent to addresses which they invent.
#include <string>

#include "pds/pdc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

constexpr std::uint32_t kStart = 333;

class Stranger : public Bench {
 protected:
  void with_pdcs(std::size_t count) {
    Parameters parameters = test_parameters();
    parameters.pdc_count = count;
    parameters.default_mpr = 32;
    build(parameters);
    peer_start = kStart;
  }
  template <class Header>
  std::vector<Sent> from(std::uint8_t host, const Header& header, std::size_t bytes = 16) {
    std::vector<std::byte> packet(wire::kMaxPdsHeaderBytes);
    packet.resize(header.encode(packet.data()));
    packet.resize(packet.size() + bytes);
    node->receive(packet, address_of(host), now);
    return turn();
  }
  wire::RequestHeader syn(std::uint16_t spdcid, std::uint32_t psn = kStart) const {
    wire::RequestHeader header = request(psn, true);
    header.spdcid = PdcId{spdcid};
    return header;
  }
  // A PDC that the host opens with its PDC id, and proves. `pdc` names it.
  void open_from(std::uint8_t host, std::uint16_t spdcid, DeliveryMode mode = DeliveryMode::Rud) {
    peer_mode = mode;
    from(host, syn(spdcid));
    pdc = node->client.delivered.back().pdc;
    wire::ControlHeader clear = control(CpType::Clear, 0);
    clear.spdcid = PdcId{spdcid};
    clear.payload = kStart - 1;
    from(host, clear);
    ASSERT_TRUE(node->manager->find(pdc)->proved());
  }
  std::uint16_t burst_ = 0;  // ids used
  std::size_t unproved_dropped() const { return counters().pdcs_unproved_dropped; }
  static std::size_t nominal(const std::vector<Sent>& sent) {
    std::size_t bytes = 0;
    for (const Sent& packet : sent) {
      bytes += cms::nominal_packet_bytes(static_cast<std::uint32_t>(packet.bytes.size()));
    }
    return bytes;
  }
};

// ---- stored responses ---------------------------------------------------------------------------

TEST_F(Stranger, Pds113_OneHostLeavesStoredResponsesToOthers) {
  with_pdcs(32);
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  for (std::uint16_t id = 500; id < 512; ++id) {
    open_from(3, id);
    for (std::uint32_t k = 1; k < 4096; ++k) {
      wire::RequestHeader header = request(kStart + k);
      header.spdcid = PdcId{id};
      from(3, header);
    }
  }
  const std::size_t delivered = node->client.delivered.size();
  EXPECT_LE(delivered, 8192U + 12);
  EXPECT_GT(counters().nacks_sent[static_cast<std::size_t>(NackCode::NoGtdDelAvail)], 0U);
  open_from(4, 500);
  EXPECT_EQ(node->client.delivered.size(), delivered + 1);
  EXPECT_EQ(counters().pdcs_uncleared_closed, 0U);
}

// A host whose responses wait for a CLEAR loses its oldest PDC when its share is used up.
TEST_F(Stranger, Pds113_PdcThatNeverClearsEndsInAShortage) {
  with_pdcs(32);
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  const auto fill = [&](std::uint16_t id) {
    for (std::uint32_t k = 1; k < 4096; ++k) {
      wire::RequestHeader header = request(kStart + k);
      header.spdcid = PdcId{id};
      from(3, header);
    }
  };
  open_from(3, 500);
  const PdcId first = pdc;
  fill(500);
  now += seconds(31);
  for (std::uint16_t id = 501; id < 512; ++id) {
    open_from(3, id);
    fill(id);
  }
  EXPECT_EQ(node->manager->find(first), nullptr);
  EXPECT_EQ(counters().pdcs_uncleared_closed, 1U);
}

// A request that matches no endpoint is refused above a small number, and its response is not
// forgotten: a retransmission would get a success.
TEST_F(Stranger, Pds111_NoEndpoint_AnswersFewAndStored) {
  with_pdcs(32);
  node->client.respond = [](const Delivered&) {
    Response response = guaranteed_response();
    response.matches_no_endpoint = true;
    return response;
  };
  open_from(3, 500);
  for (std::uint32_t k = 1; k < 200; ++k) {
    wire::RequestHeader header = request(kStart + k);
    header.spdcid = PdcId{500};
    const auto sent = from(3, header);
    if (k < 64) {
      EXPECT_EQ(acks(sent).size(), 1U);
    } else {
      ASSERT_EQ(nacks(sent).size(), 1U);
      EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::NoGtdDelAvail);
    }
  }
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  wire::RequestHeader good = request(kStart + 64);
  good.spdcid = PdcId{500};
  EXPECT_EQ(acks(from(3, good)).size(), 1U);
}

// No CLEAR can come over a gap: the packet that CACK waits for is answered, however many are stored
// behind it.
TEST_F(Stranger, Pds111_NoEndpointAnswerClosesGap_IsStored) {
  with_pdcs(32);
  open_from(3, 500);
  node->client.respond = [](const Delivered&) {
    Response response = guaranteed_response();
    response.matches_no_endpoint = true;
    return response;
  };
  const auto answers = [&](std::uint32_t k) {
    wire::RequestHeader header = request(kStart + k);
    header.spdcid = PdcId{500};
    return acks(from(3, header)).size();
  };
  for (std::uint32_t k = 2; k < 66; ++k) ASSERT_EQ(answers(k), 1U) << k;
  EXPECT_EQ(answers(66), 0U);
  EXPECT_EQ(answers(1), 1U);
  EXPECT_EQ(answers(67), 0U);
}

// ---- reorder buffer -----------------------------------------------------------------------------

TEST_F(Stranger, Cms305_ReorderBufferPressesItsOwnHostOnly) {
  with_pdcs(32);
  for (std::uint16_t id = 500; id < 505; ++id) {
    open_from(3, id, DeliveryMode::Rod);
    for (std::uint32_t k = 2; k < 1000; ++k) {
      wire::RequestHeader header = request(kStart + k);
      header.spdcid = PdcId{id};
      from(3, header);
    }
  }
  EXPECT_LE(counters().rod_buffered, 2048U);
  node->manager->set_receive_load({});
  wire::RequestHeader asking = request(kStart + 1);
  asking.spdcid = PdcId{504};
  asking.ar = true;
  const auto to_stranger = acks(from(3, asking));
  ASSERT_FALSE(to_stranger.empty());
  EXPECT_EQ(to_stranger[0].rcv_cwnd_pend, 127U);
  open_from(4, 500, DeliveryMode::Rod);
  wire::RequestHeader gap = request(kStart + 2);
  gap.spdcid = PdcId{500};
  const std::uint64_t buffered = counters().rod_buffered;
  const auto to_other = acks(from(4, gap));
  EXPECT_EQ(counters().rod_buffered, buffered + 1);
  ASSERT_FALSE(to_other.empty());
  EXPECT_EQ(to_other[0].rcv_cwnd_pend, 0U);
}

// ---- PDCs ---------------------------------------------------------------------------------------

TEST_F(Stranger, Pds66_UnprovedPdcsTakeHalfAndGoFirst) {
  with_pdcs(32);
  for (std::uint8_t host = 10; host < 18; ++host) open_from(host, 7);
  now += seconds(5);  // long idle
  std::size_t asked = 0;
  for (std::uint16_t id = 1; id <= 100; ++id) {
    const auto sent = from(static_cast<std::uint8_t>(100 + id), syn(id));
    if (id <= 16) continue;
    ASSERT_EQ(nacks(sent).size(), 1U);
    EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::NoPdcAvail);
    for (const wire::ControlHeader& header : controls(sent)) {  // the oldest is asked for its proof
      EXPECT_EQ(header.ctl_type, wire::CpType::AckRequest);
      ++asked;
    }
  }
  EXPECT_LE(asked, 16U);  // once each
  EXPECT_EQ(node->manager->open_pdcs(), 24U);
  now += seconds(2);
  for (std::uint16_t id = 200; id < 216; ++id) {
    now += milliseconds(10);
    EXPECT_TRUE(nacks(from(200, syn(id))).empty());
  }
  EXPECT_EQ(unproved_dropped(), 16U);
  EXPECT_EQ(node->manager->open_pdcs(), 24U);
}

// A flood fills a quarter at once; then entries become free again and again.
TEST_F(Stranger, Pds66_ManyUnprovedPdcsAreTakenAtAPace) {
  with_pdcs(128);
  const auto taken = [&] {
    std::size_t count = 0;
    for (int i = 0; i < 100; ++i) {
      const std::size_t before = node->manager->open_pdcs();
      from(9, syn(++burst_));
      count += node->manager->open_pdcs() - before;
    }
    return count;
  };
  EXPECT_EQ(taken(), 33U);
  EXPECT_EQ(taken(), 0U);
  now += milliseconds(10);
  EXPECT_EQ(taken(), 1U);
  now += milliseconds(10);
  EXPECT_EQ(taken(), 1U);
}

// Established ones close for a 16th of the table, however many SYNs come.
TEST_F(Stranger, Pds174_SynsClosePdcsForFewUnprovedOnes) {
  with_pdcs(64);
  for (std::uint16_t id = 1; id <= 64; ++id) open_from(2, id);
  std::size_t asked = 0;
  for (std::uint16_t id = 1; id <= 100; ++id) {
    now += milliseconds(2);
    for (const wire::ControlHeader& header : controls(from(3, syn(id)))) {
      asked += header.ctl_type == CpType::CloseRequest && !header.retx ? 1U : 0U;
    }
  }
  EXPECT_EQ(asked, 4U);
}

TEST_F(Stranger, Pds180_OwnMessagesReplaceUnprovedPdcs) {
  with_pdcs(4);
  from(3, syn(1));
  from(4, syn(2));
  Destination destination = to_peer();
  for (std::uint32_t job = 1; job <= 3; ++job) {
    destination.job = JobId{job};
    const bool room = job <= 2;
    EXPECT_EQ(node->manager->send(node->message(1), destination, now).ok(), room);
  }
  now += seconds(3);
  turn();
  wire::RequestHeader later = syn(3);
  EXPECT_TRUE(nacks(from(5, later)).empty());
  EXPECT_EQ(unproved_dropped(), 1U);
}

// A SYN in the name of a peer: that one takes its id back, though not at once, since the other SYN
// may have been its own.
TEST_F(Stranger, Pds67_HalfOpenOccupantIsReplaced) {
  with_pdcs(8);
  from(2, syn(7));
  wire::RequestHeader own = syn(7, 90000);
  own.psn_offset = 0;
  EXPECT_EQ(nacks(from(2, own)).at(0).nack_code, NackCode::NoPdcAvail);
  now += seconds(2);
  rx_trimmed = true;  // opens nothing, and so replaces nothing
  own.spdcid = PdcId{7};
  receive(own);
  rx_trimmed = false;
  EXPECT_EQ(unproved_dropped(), 0U);
  node->drain();
  EXPECT_EQ(acks(from(2, own)).at(0).cack_psn, Psn{90000});
  EXPECT_EQ(unproved_dropped(), 1U);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
}

// Above an eighth of the table the answer to an ACK Request proves who is real.
TEST_F(Stranger, Pds66_ManyNewPeersAreAskedForTheirProof) {
  with_pdcs(16);
  std::vector<wire::ControlHeader> asked;
  for (std::uint16_t id = 1; id <= 8; ++id) {
    for (const wire::ControlHeader& header : controls(from(2, syn(id)))) asked.push_back(header);
  }
  ASSERT_EQ(asked.size(), 6U);
  for (const wire::ControlHeader& header : asked) {
    EXPECT_EQ(header.ctl_type, CpType::AckRequest);
    EXPECT_EQ(header.psn, Psn{kStart - 1});
    wire::AckHeader answer = ack(kStart - 1, kStart - 1);
    answer.spdcid = header.dpdcid;
    answer.dpdcid = header.spdcid;
    from(2, answer);
    EXPECT_TRUE(node->manager->find(header.spdcid)->proved());
  }
  for (std::uint16_t id = 9; id <= 12; ++id) EXPECT_TRUE(nacks(from(2, syn(id))).empty());
}

// Only what names our PDC id and fits the window proves.
TEST_F(Stranger, Pds26_WhatProvesAPdc) {
  with_pdcs(8);
  from(2, syn(kPeerPdc.value));
  pdc = node->client.delivered.back().pdc;
  const Pdc& open = *node->manager->find(pdc);
  from(2, syn(kPeerPdc.value, kStart + 1));
  from(2, request(kStart + 100'000));
  from(2, nack(NackCode::Trimmed, kStart));
  from(2, ack(kStart + 50, kStart + 50));
  wire::RequestHeader of_another = request(kStart + 2);
  of_another.spdcid = PdcId{901};
  from(2, of_another);
  from(3, request(kStart + 2));
  EXPECT_FALSE(open.proved());
  from(2, request(kStart + 2));
  EXPECT_TRUE(open.proved());
}

// After the proof, the host's own share is charged and no longer the one that all strangers use.
TEST_F(Stranger, Pds113_ProofMovesTheChargeToTheHost) {
  with_pdcs(8);
  node->client.respond = [](const Delivered&) { return guaranteed_response(); };
  for (std::uint32_t k = 0; k < 4096; ++k) from(3, syn(500, kStart + k));
  const std::size_t alone = node->client.delivered.size();
  pdc = node->client.delivered.back().pdc;
  for (std::uint32_t k = 0; k < 4096; ++k) from(4, syn(500, kStart + k));
  const std::size_t together = node->client.delivered.size() - alone;
  EXPECT_LT(together, alone);  // one share for both
  wire::ControlHeader clear = control(CpType::Clear, 0);
  clear.spdcid = PdcId{500};
  clear.payload = kStart - 1;
  from(3, clear);
  for (std::uint32_t k = 0; k < 4096; ++k) from(4, syn(500, kStart + k));
  EXPECT_GT(node->client.delivered.size() - alone, together + 100);
}

// ---- bytes to invented addresses ----------------------------------------------------------------

// Return data, their repetition, questions and answers: three bytes for each that came.
TEST_F(Stranger, AnswersToAnUnprovedAddressAreBounded) {
  with_pdcs(8);
  const wire::RequestHeader first = syn(500);
  std::vector<std::byte> bytes(wire::kMaxPdsHeaderBytes);
  const std::size_t came =
      cms::nominal_packet_bytes(static_cast<std::uint32_t>(first.encode(bytes.data()) + 16));
  std::size_t went = nominal(from(3, first));
  pdc = node->client.delivered.back().pdc;
  TestMessage& data = node->message(20, 1024);
  data.backlog_bytes = 20 * 1024;
  ASSERT_TRUE(node->manager->send_on(pdc, data, now).ok());
  const auto sent = turn();
  went += nominal(sent);
  EXPECT_TRUE(requests(sent).empty());
  ASSERT_EQ(controls(sent).size(), 1U);
  EXPECT_EQ(controls(sent)[0].ctl_type, CpType::AckRequest);
  std::size_t repeated = 0;
  for (int i = 0; i < 400 && node->manager->open_pdcs() > 0; ++i) {
    repeated += nominal(after(milliseconds(100)));
  }
  EXPECT_LE(went + repeated, 3 * came);
  EXPECT_EQ(node->manager->open_pdcs(), 0U) << "it waits for a peer that is none";
  EXPECT_EQ(data.failed, PdsError::PeerLost);
}

TEST_F(Stranger, ProofReleasesTheData) {
  with_pdcs(8);
  from(2, syn(kPeerPdc.value));
  pdc = node->client.delivered.back().pdc;
  TestMessage& data = node->message(20, 1024);
  data.backlog_bytes = 20 * 1024;
  ASSERT_TRUE(node->manager->send_on(pdc, data, now).ok());
  EXPECT_TRUE(requests(turn()).empty());
  EXPECT_EQ(requests(from(2, ack(kStart - 1, kStart - 1))).size(), 20U);
}

// A short answer needs no proof, and its repetitions end with the bytes that are allowed.
TEST_F(Stranger, ShortAnswerLeavesAtOnce) {
  with_pdcs(8);
  from(2, syn(kPeerPdc.value), 40);
  pdc = node->client.delivered.back().pdc;
  TestMessage& data = node->message(1, 16);
  data.backlog_bytes = 16;
  ASSERT_TRUE(node->manager->send_on(pdc, data, now).ok());
  EXPECT_EQ(requests(turn()).size(), 1U);
  std::size_t repeated = 0;
  for (int i = 0; i < 50; ++i) repeated += requests(after(milliseconds(100))).size();
  EXPECT_LE(repeated, 1U);
}

// An unused PDC that is not proved ends as others do. Its address gets no more packets than the SYN
// allows: questions for the proof, and one whether to close.
TEST_F(Stranger, Pds173_IdleUnprovedPdcEndsAlmostInSilence) {
  with_pdcs(8);
  from(3, syn(500));
  std::size_t bytes = 0;
  for (int i = 0; i < 700 && node->manager->open_pdcs() > 0; ++i) {
    for (const Sent& packet : after(milliseconds(100))) {
      bytes += cms::nominal_packet_bytes(static_cast<std::uint32_t>(packet.bytes.size()));
    }
  }
  EXPECT_LE(bytes, 3 * cms::nominal_packet_bytes(sizeof(wire::PdsRequest) + 72));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

// A timer that repeated the question while the NIC takes nothing would fill the outbox with it.
TEST_F(Stranger, Pds225_QuestionIsRepeatedInTheTurnOfThePdc) {
  with_pdcs(8);
  from(3, syn(500), 1000);
  turn();
  for (int i = 0; i < 5; ++i) {
    now += test_parameters().keepalive_time;
    node->manager->expire(now);
    EXPECT_TRUE(node->outbox.empty()) << "the NIC takes no packets, so that no PDC has a turn";
  }
  const auto asked = controls(turn());
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].ctl_type, wire::CpType::AckRequest);
}

TEST_F(Stranger, Pds177_UnprovedPeerHasCloseReqTimeOnly) {
  with_pdcs(8);
  from(3, syn(500), 40);
  node->manager->find(node->client.delivered.back().pdc)->begin_close(now);
  turn();
  after(test_parameters().close_request_time - milliseconds(1));
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  after(milliseconds(2));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

// Another implementation may not know the question. A host that was named by a stranger knows no
// PDC.
TEST_F(Stranger, Pds221_QuestionRefused_ProvesUnlessNoPdc) {
  for (const NackCode code : {NackCode::UnexpEvent, NackCode::PktNotRcvd, NackCode::InvDpdcid}) {
    with_pdcs(8);
    from(2, syn(kPeerPdc.value), 40);
    pdc = node->client.delivered.back().pdc;
    TestMessage& data = node->message(1, 1000);
    data.backlog_bytes = 1000;
    ASSERT_TRUE(node->manager->send_on(pdc, data, now).ok());
    const auto asked = controls(turn());
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].ctl_type, wire::CpType::AckRequest);
    wire::NackHeader refused = nack(code, 0);
    refused.nack_psn = asked[0].psn;
    receive(refused);
    const bool proves = code != NackCode::InvDpdcid;
    EXPECT_EQ(requests(turn()).size(), proves ? 1U : 0U) << static_cast<int>(code);
  }
}

TEST_F(Stranger, Pds224_PeerThatDeniesThePdcEndsIt) {
  with_pdcs(8);
  from(2, syn(kPeerPdc.value), 40);
  pdc = node->client.delivered.back().pdc;
  TestMessage& data = node->message(1, 1000);
  data.backlog_bytes = 1000;
  ASSERT_TRUE(node->manager->send_on(pdc, data, now).ok());
  const auto asked = controls(turn());
  ASSERT_EQ(asked.size(), 1U);
  wire::NackHeader denied = nack(NackCode::InvDpdcid, 0);
  denied.spdcid = {};
  denied.nack_psn = asked[0].psn + 7;
  receive(denied);
  turn();
  EXPECT_EQ(node->manager->open_pdcs(), 1U) << "it names another PSN (PDS-141)";
  denied.nack_psn = asked[0].psn;
  receive(denied);
  EXPECT_TRUE(turn().empty()) << "no handshake";
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  EXPECT_EQ(data.failed, PdsError::PeerLost);
}

}  // namespace
}  // namespace uet::pds::testing
