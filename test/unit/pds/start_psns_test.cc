// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Start_PSN of secured PDCs (PDS section 7): the table alone, then at a target, then between
// two Managers.
#include "pds/start_psns.h"

#include <set>

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

Parameters secured_parameters(bool random_start = false) {
  Parameters parameters = test_parameters();
  parameters.secured = true;
  parameters.random_start = random_start;
  parameters.start_psn.reset();
  return parameters;
}

// ---- the table ----------------------------------------------------------------------------------

class StartPsnsTest : public ::testing::Test {
 protected:
  explicit StartPsnsTest(bool random_start = false)
      : parameters_(secured_parameters(random_start)) {}
  static PeerKey peer(std::uint8_t host, std::uint16_t spdcid = 900, std::uint32_t sdi = 0) {
    PeerKey key{address_of(host), PdcId{spdcid}};
    key.address.sdi = sdi;
    return key;
  }
  // The peer opens a PDC with this Start_PSN, which is accepted, and closes it.
  void use(const PeerKey& key, Psn start) {
    ASSERT_EQ(psns_.demanded(key, start, now_), std::nullopt);
    psns_.opened(key, start);
    psns_.ended(key.address.sdi, start);
  }

  Parameters parameters_;
  KeyedSequence secret_{5};
  Counters counters_;
  StartPsns psns_{parameters_, secret_, counters_};
  Time now_ = kStart;
};

TEST_F(StartPsnsTest, Pds69And78_EqualOrNewerStartsAreAccepted) {
  use(peer(2), Psn{5000});
  EXPECT_EQ(psns_.expected(0), Psn{5001});
  use(peer(2), Psn{5001});
  use(peer(3), Psn{5002 + 60'000});
  EXPECT_EQ(psns_.expected(0), Psn{65'003});
  psns_.ended(0, Psn{70});  // an older PDC that closes last changes nothing
  EXPECT_EQ(psns_.expected(0), Psn{65'003});
  use(peer(4), Psn{65'003});
}

TEST_F(StartPsnsTest, Pds70_Pds72_Pds73_AnOlderStartIsToldTheExpectedOne) {
  use(peer(2), Psn{5000});
  EXPECT_EQ(psns_.demanded(peer(2), Psn{5000}, now_), Psn{5001});
  use(peer(3), Psn{5001});  // moves Expected_PSN
  EXPECT_EQ(psns_.demanded(peer(2), Psn{4000}, now_), Psn{5001}) << "the same NACK again";
  EXPECT_EQ(psns_.demanded(peer(2), Psn{5002}, now_), Psn{5001}) << "exactly that one";
  EXPECT_EQ(psns_.demanded(peer(2), Psn{5001}, now_), std::nullopt);
  EXPECT_EQ(psns_.pending(), 1U);
  psns_.opened(peer(2), Psn{5001});
  EXPECT_EQ(psns_.pending(), 0U);
}

// PDS-233: else a few PDCs with drawn Start_PSNs would move Expected_PSN past an old one.
TEST_F(StartPsnsTest, Pds233_AStartFarAheadIsNotAccepted) {
  use(peer(2), Psn{5000});
  EXPECT_EQ(psns_.demanded(peer(3), Psn{5001 + 65'536}, now_), Psn{5001});
  EXPECT_EQ(psns_.demanded(peer(4), Psn{5001 + 65'535}, now_), std::nullopt);
}

TEST_F(StartPsnsTest, Pds69_NumbersWrap) {
  use(peer(2), Psn{0xFFFFFFFF});
  EXPECT_EQ(psns_.expected(0), Psn{0});
  EXPECT_EQ(psns_.demanded(peer(2), Psn{0xFFFFFFFF}, now_), Psn{0});
  EXPECT_EQ(psns_.demanded(peer(3), Psn{7}, now_), std::nullopt);
}

// PDS-69: one Expected_PSN for each SDI.
TEST_F(StartPsnsTest, Pds69_SecureDomainsCountAlone) {
  use(peer(2, 900, 5), Psn{5000});
  EXPECT_EQ(psns_.expected(5), Psn{5001});
  EXPECT_EQ(psns_.expected(6), std::nullopt);
  use(peer(2, 900, 6), Psn{4000});
  EXPECT_EQ(psns_.demanded(peer(3, 900, 5), Psn{4001}, now_), Psn{5001});
}

TEST_F(StartPsnsTest, Pds75And81_PendingEndsAfterNewPdcTime) {
  use(peer(2), Psn{5000});
  EXPECT_EQ(psns_.demanded(peer(2), Psn{1}, now_), Psn{5001});
  use(peer(3), Psn{5001});
  now_ += parameters_.new_pdc_time - milliseconds(1);
  EXPECT_EQ(psns_.demanded(peer(2), Psn{1}, now_), Psn{5001});
  EXPECT_EQ(counters_.pending_expired, 0U);
  now_ += milliseconds(1);
  EXPECT_EQ(psns_.demanded(peer(2), Psn{1}, now_), Psn{5002});
  EXPECT_EQ(counters_.pending_expired, 1U);
}

// A target that is short of PDCs refuses the SYN with the Start_PSN that it has demanded. As long
// as that SYN comes again, it does not demand another one.
TEST_F(StartPsnsTest, Pds75_AssignedStartStaysWhileRefused) {
  use(peer(2), Psn{5000});
  EXPECT_EQ(psns_.demanded(peer(2), Psn{1}, now_), Psn{5001});
  EXPECT_EQ(psns_.demanded(peer(3), Psn{1}, now_), Psn{5001});
  use(peer(4), Psn{5001});  // another one would be demanded now
  for (int i = 0; i < 5; ++i) {
    now_ += parameters_.new_pdc_time - milliseconds(1);
    EXPECT_EQ(psns_.demanded(peer(2), Psn{5001}, now_), std::nullopt);
  }
  EXPECT_EQ(psns_.pending(), 1U) << "peer 3 has not come again";
  now_ += parameters_.new_pdc_time;
  EXPECT_EQ(psns_.demanded(peer(2), Psn{5001}, now_), Psn{5002});
}

TEST_F(StartPsnsTest, PendingIsBounded) {
  use(peer(2), Psn{5000});
  for (std::uint16_t id = 1; id <= 2 * StartPsns::kPending; ++id) {
    EXPECT_EQ(psns_.demanded(peer(2, id), Psn{1}, now_), Psn{5001});
  }
  EXPECT_EQ(psns_.pending(), StartPsns::kPending);
}

class RandomStart : public StartPsnsTest {
 protected:
  RandomStart() : StartPsnsTest(true) {}
};

TEST_F(RandomStart, Pds71_EachPdcIsToldAStartOfItsOwn) {
  std::set<std::uint32_t> told;
  for (std::uint16_t id = 1; id <= 100; ++id) {
    const auto demanded = psns_.demanded(peer(2, id), Psn{70'000}, now_);
    ASSERT_TRUE(demanded.has_value());
    told.insert(demanded->value);
    EXPECT_EQ(psns_.demanded(peer(2, id), *demanded, now_), std::nullopt);
    psns_.opened(peer(2, id), *demanded);
    psns_.ended(0, *demanded);
  }
  EXPECT_EQ(told.size(), 100U);
  EXPECT_EQ(psns_.expected(0), std::nullopt);
}

// TSS-51, TSS-52: expected start begins with the first key change, and no Start_PSN from before is
// accepted then.
TEST_F(RandomStart, Tss51And52_KeyChangeEndsRandomStarts) {
  std::vector<Psn> used;
  for (std::uint16_t id = 1; id <= 50; ++id) {
    used.push_back(*psns_.demanded(peer(2, id), Psn{70'000}, now_));
    psns_.opened(peer(2, id), used.back());
    psns_.ended(0, used.back());
  }
  psns_.key_changed(0);
  const auto expected = psns_.expected(0);
  ASSERT_TRUE(expected.has_value());
  for (std::uint16_t id = 1; id <= 50; ++id) {
    EXPECT_EQ(psns_.demanded(peer(2, id), used[id - 1U], now_), expected);
  }
  use(peer(3), *expected);
  EXPECT_EQ(psns_.expected(0), *expected + 1);
  psns_.key_changed(0);
  EXPECT_EQ(psns_.expected(0), *expected + 1) << "a later change forgets nothing";
}

// ---- at a target --------------------------------------------------------------------------------

class SecuredTarget : public Bench {
 protected:
  SecuredTarget() { build(secured_parameters()); }
  wire::RequestHeader syn(std::uint32_t start, std::uint16_t spdcid) {
    peer_start = start;
    wire::RequestHeader header = request(start, true);
    header.spdcid = PdcId{spdcid};
    header.ar = true;
    return header;
  }
  // A PDC with one request that the peer opens and closes; the closing ACK.
  Sent use(std::uint32_t start, std::uint16_t spdcid) {
    receive(syn(start, spdcid));
    turn();
    pdc = node->client.delivered.back().pdc;
    wire::ControlHeader close = control(wire::CpType::Close, start + 1);
    close.spdcid = PdcId{spdcid};
    const auto sent = answer_to(close);
    EXPECT_EQ(acks(sent).size(), 1U);
    return sent.empty() ? Sent{} : sent[0];
  }
  static std::uint32_t expected_psn(const Sent& ack) {
    return ack.body().size() < 4 ? 0 : std::uint32_t{wire::load<wire::be32>(ack.body())};
  }
};

// PDS-78: flag and 32 bits behind the header, also when the Close Command comes again.
TEST_F(SecuredTarget, Pds78_ClosingAckReportsExpectedPsn) {
  const Sent closing = use(333, 901);
  ASSERT_TRUE(closing.ack().has_value());
  EXPECT_TRUE(closing.ack()->expected);
  EXPECT_EQ(expected_psn(closing), 334U);
  wire::ControlHeader close = control(wire::CpType::Close, 334);
  close.spdcid = PdcId{901};
  const auto again = answer_to(close);
  ASSERT_EQ(acks(again).size(), 1U);
  EXPECT_TRUE(acks(again)[0].expected);
  EXPECT_EQ(expected_psn(again[0]), 334U);
}

// TSS-49, PDS-70, PDS-72, PDS-74: the SYN of a PDC that has closed opens no PDC, delivers nothing
// and keeps no PDC.
TEST_F(SecuredTarget, Tss49_ReplayedPdcDeliversNothing) {
  use(333, 901);
  now += seconds(10);  // the tombstone has ended
  turn();
  const std::size_t delivered = node->client.delivered.size();
  const auto sent = answer_to(syn(333, 901));
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::NewStartPsn);
  EXPECT_EQ(nacks(sent)[0].payload, 334U);
  EXPECT_EQ(nacks(sent)[0].spdcid, PdcId{0});
  EXPECT_EQ(node->client.delivered.size(), delivered);
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  receive(syn(334, 901));
  EXPECT_EQ(node->client.delivered.size(), delivered + 1);
}

// PDS-190: why there is the setting below.
TEST_F(SecuredTarget, Pds190_ReplayedRudiRequestIsExecutedAgain) {
  std::array<std::byte, 32> bytes{};
  wire::RudiHeader{.type = wire::PdsType::RudiReq, .next_hdr = NextHdr::RequestStd}.encode(
      bytes.data());
  for (int copy = 0; copy < 2; ++copy) node->receive(bytes, peer, now);
  EXPECT_EQ(node->client.delivered.size(), 2U);
}

// PDS-77: a copy of the first SYN, from before the peer took the Start_PSN that it was told, comes
// late. It must not be told another one: the peer would begin again.
TEST_F(SecuredTarget, Pds77_LateSynOfBeforeARebaseIsNotAnswered) {
  use(333, 901);
  ASSERT_EQ(nacks(answer_to(syn(200, 902))).size(), 1U);
  receive(syn(334, 902));
  turn();
  const std::size_t delivered = node->client.delivered.size();
  const auto late = nacks(answer_to(syn(200, 902)));
  for (const wire::NackHeader& refused : late) EXPECT_NE(refused.nack_code, NackCode::NewStartPsn);
  EXPECT_EQ(node->client.delivered.size(), delivered);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
}

TEST_F(SecuredTarget, Tss50_RudiAndUudCanBeRefused) {
  Parameters parameters = secured_parameters();
  parameters.refuses_replayable = true;
  build(parameters);
  for (const DeliveryMode mode : {DeliveryMode::Rudi, DeliveryMode::Uud}) {
    TestMessage& message = node->message(1);
    EXPECT_EQ(node->manager->send(message, to_peer(mode), now).error(), Error::NotSupported);
  }
  std::array<std::byte, 32> bytes{};
  wire::RudiHeader{.type = wire::PdsType::RudiReq, .next_hdr = NextHdr::RequestStd}.encode(
      bytes.data());
  node->receive(bytes, peer, now);
  wire::UudHeader{.next_hdr = NextHdr::RequestStd}.encode(bytes.data());
  node->receive(bytes, peer, now);
  EXPECT_EQ(counters().replayable_refused, 2U);
  EXPECT_TRUE(node->client.delivered.empty());
  EXPECT_TRUE(turn().empty());
}

// ---- two Managers -------------------------------------------------------------------------------

// PDS-68: each end has its own method; all four combinations.
class StartMethods : public Pair {
 protected:
  std::size_t refusals(const Node& node) const {
    return node.manager->counters().nacks_sent[static_cast<std::uint8_t>(NackCode::NewStartPsn)];
  }
  void pass(Node& from, const Destination& to) {
    TestMessage& message = from.send(to, 3, now);
    ASSERT_TRUE(run_while_not([&] { return Node::answered_once(message); }));
  }
  void close_all() {
    for (Node* node : {a.get(), b.get()}) node->manager->begin_close_all(now);
    ASSERT_TRUE(
        run_while_not([&] { return a->manager->open_pdcs() + b->manager->open_pdcs() == 0; }));
  }
};

TEST_F(StartMethods, Pds68_MethodsOfTwoPeersMayDiffer) {
  for (const bool random_a : {false, true}) {
    for (const bool random_b : {false, true}) {
      build(secured_parameters(random_a), secured_parameters(random_b));
      for (int round = 0; round < 5; ++round) {
        pass(*a, to_b());
        pass(*b, to_a());
        close_all();
      }
      EXPECT_EQ(refusals(*a), random_a ? 15U : 0U) << "each packet that has a SYN";
      EXPECT_EQ(refusals(*b), random_b ? 15U : 0U);
      EXPECT_EQ(a->client.delivered.size(), 15U);
      EXPECT_EQ(b->client.delivered.size(), 15U);
    }
  }
}

// PDS-79: the next PDC opens with what the closing ACK reported.
TEST_F(StartMethods, Pds79_NextPdcBeginsWithTheExpectedPsn) {
  build(secured_parameters(), secured_parameters());
  pass(*a, to_b());
  close_all();
  const std::uint32_t first = psns_sent(*a).front();
  const std::size_t before = psns_sent(*a).size();
  pass(*a, to_b());
  EXPECT_EQ(psns_sent(*a).at(before), first + 1);
  EXPECT_EQ(refusals(*b), 0U);
}

// PDS-80, TSS-48: a PDC that has used its PSNs closes, and what follows goes on another one.
TEST_F(StartMethods, Pds80_PdcClosesAtItsLimitOfPsns) {
  Parameters parameters = secured_parameters();
  parameters.psn_limit = 100;
  build(parameters, parameters);
  for (int message = 0; message < 100; ++message) pass(*a, to_b());
  EXPECT_GE(a->manager->counters().pdcs_closed, 2U);
  EXPECT_EQ(b->client.delivered.size(), 300U);
  EXPECT_EQ(a->manager->counters().pdcs_failed, 0U);
}

}  // namespace
}  // namespace uet::pds::testing
