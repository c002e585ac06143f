// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who shares a congestion context, and who gets none when they run short. CMS-2.
#include "pds/ccc_pool.h"

#include "cms/rccc.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

constexpr Use kInitiator{Role::Initiator, false};
constexpr Use kTarget{Role::Target, false};

CccKey key_of(std::uint8_t last_byte, std::uint8_t traffic_class = 0, std::uint16_t rod_pdc = 0) {
  return {address_of(last_byte), traffic_class, PdcId{rod_pdc}};
}

TEST(CccPool, OnePerPeerClassAndRodPdc) {
  const cms::Parameters cms = open_window();
  CccPool pool(cms, 8, 4, 0);
  SharedCcc* first = pool.share(key_of(1), kInitiator, kStart);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(pool.share(key_of(1), kTarget, kStart), first);
  for (const CccKey& other : {key_of(2), key_of(1, 1), key_of(1, 0, 7)}) {
    EXPECT_NE(pool.share(other, kTarget, kStart), first);
  }
  EXPECT_EQ(pool.in_use(), 4U);
}

TEST(CccPool, TheLastUserGivesItBack) {
  const cms::Parameters cms = open_window();
  CccPool pool(cms, 2, 1, 0);
  SharedCcc* shared = pool.share(key_of(1), kInitiator, kStart);
  pool.share(key_of(1), kInitiator, kStart);
  EXPECT_EQ(pool.share(key_of(2), kInitiator, kStart), nullptr);
  pool.release(*shared, kInitiator, kStart);
  EXPECT_EQ(pool.share(key_of(2), kInitiator, kStart), nullptr);
  pool.release(*shared, kInitiator, kStart);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_NE(pool.share(key_of(2), kInitiator, kStart), nullptr);
}

// CMS-722: no network, no congestion control. Whatever the port is that the peer has.
TEST(CccPool, Cms722_PeersAtOwnIp_HaveOwnAlgorithms) {
  cms::Parameters cms = open_window();
  cms.algorithm = cms::Algorithm::Both;
  cms.probes_base_rtt = true;
  cms.base_rtt.reset();
  cms.max_window_bytes = 100'000;
  cms.same_host = {.ip = address_of(1).ip, .fixed_window_bytes = 200'000};
  CccPool pool(cms, 4, 1, 0);
  CccKey here = key_of(1);
  here.address.port = 40'000;
  const SharedCcc* const beside = pool.share(here, kInitiator, kStart);
  ASSERT_NE(beside, nullptr);
  EXPECT_EQ(beside->credit, nullptr);
  EXPECT_EQ(beside->probes_wanted, 0);
  EXPECT_EQ(beside->ccc->window_bytes(), 200'000U);
  const SharedCcc* const elsewhere = pool.share(key_of(2), kInitiator, kStart);
  ASSERT_NE(elsewhere, nullptr);
  EXPECT_NE(elsewhere->credit, nullptr);
  EXPECT_EQ(elsewhere->probes_wanted, kBaseRttProbes);
}

// CMS 9.5: what contexts have counted outlives them, what they hold does not.
TEST(CccPool, CountsOfContextsThatHaveEnded) {
  const cms::Parameters cms = open_window();
  CccPool pool(cms, 2, 1, 0);
  SharedCcc* shared = pool.share(key_of(1), kInitiator, kStart);
  shared->ccc->on_sent(1000, kStart);
  shared->ccc->on_inferred_loss(1000, cms::LossCause::Path, kStart);
  EXPECT_EQ(pool.counters().contexts, 1U);
  EXPECT_EQ(pool.counters().losses_by_path, 1U);
  EXPECT_GT(pool.counters().window_bytes, 0U);
  pool.release(*shared, kInitiator, kStart);
  EXPECT_EQ(pool.counters().contexts, 0U);
  EXPECT_EQ(pool.counters().losses_by_path, 1U);
  EXPECT_EQ(pool.counters().window_bytes, 0U);
}

// CMS 9.5: whichever parameters they are made from.
TEST(CccPool, CountsWhatHappensToAllContexts) {
  cms::Parameters cms = open_window();
  cms.same_host = {.ip = address_of(1).ip, .fixed_window_bytes = 200'000};
  CccPool pool(cms, 4, 1, 0);
  for (std::uint8_t peer = 1; peer <= 3; ++peer) {
    const SharedCcc* shared = pool.share(key_of(peer), kInitiator, kStart);
    ASSERT_NE(shared, nullptr);
    shared->ccc->on_sent(1000, kStart);
    shared->ccc->on_inferred_loss(1000, cms::LossCause::Path, kStart);
  }
  EXPECT_EQ(pool.counters().contexts, 3U);
  EXPECT_EQ(pool.counters().losses_by_path, 3U);
}

// An initiator that joins a target's context would keep it from the targets when that one is gone.
TEST(CccPool, Pds182_Initiator_JoinsNoContextOfTargets) {
  const cms::Parameters cms = open_window();
  CccPool pool(cms, 2, 1, 0);
  ASSERT_NE(pool.share(key_of(1), kInitiator, kStart), nullptr);
  SharedCcc* kept = pool.share(key_of(2), kTarget, kStart);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(pool.share(key_of(2), kInitiator, kStart), nullptr);
  EXPECT_EQ(pool.share(key_of(2), kTarget, kStart), kept);  // unharmed
  EXPECT_EQ(pool.in_use(), 2U);
}

TEST(CccPool, InitiatorLeaves_ContextCountsForTarget) {
  const cms::Parameters cms = open_window();
  CccPool pool(cms, 2, 1, 0);
  SharedCcc* shared = pool.share(key_of(1), kTarget, kStart);
  ASSERT_EQ(pool.share(key_of(1), kInitiator, kStart), shared);
  EXPECT_EQ(pool.share(key_of(2), kInitiator, kStart), nullptr);
  pool.release(*shared, kInitiator, kStart);
  EXPECT_NE(pool.share(key_of(2), kInitiator, kStart), nullptr);
  EXPECT_EQ(pool.share(key_of(3), kTarget, kStart), nullptr);
}

// The next context inherits the base RTT that a context has learnt, and then sends no Probe.
TEST(CccPool, Cms140_Cms141_TheNextContextKnowsTheBaseRtt) {
  const cms::Parameters cms;
  CccPool pool(cms, 4, 1, 0);
  SharedCcc* first = pool.share(key_of(1), kInitiator, kStart);
  EXPECT_EQ(first->probes_wanted, kBaseRttProbes);
  for (int i = 0; i < 8; ++i) first->ccc->on_probe_answer(microseconds(40));
  pool.release(*first, kInitiator, kStart);
  SharedCcc* next = pool.share(key_of(1), kInitiator, kStart + seconds(3600));
  EXPECT_EQ(next->ccc->base_rtt(), std::nullopt) << "nothing of its own yet";
  EXPECT_EQ(next->probes_wanted, 0);
  EXPECT_EQ(next->ccc->window_bytes(), 75'000U) << "1.5 x 10 Gb/s x 40 us";
  EXPECT_EQ(pool.share(key_of(2), kInitiator, kStart)->probes_wanted, kBaseRttProbes)
      << "another peer";
}

// CMS 7.4: window and path scores live a second longer than the last PDC, and delay no PDC.
TEST(CccPool, Cms2_AContextLingersAfterItsLastUser) {
  cms::Parameters cms;
  cms.base_rtt = microseconds(100);
  CccPool pool(cms, 2, 1, 0);
  const auto lose_half = [](SharedCcc& shared) {
    shared.ccc->on_sent(100'000, kStart);
    shared.ccc->on_inferred_loss(100'000, cms::LossCause::Path, kStart);
    return shared.ccc->window_bytes();
  };
  SharedCcc* first = pool.share(key_of(1), kInitiator, kStart);
  const std::uint64_t fresh = first->ccc->window_bytes();
  const std::uint64_t left = lose_half(*first);
  ASSERT_LT(left, fresh);
  pool.release(*first, kInitiator, kStart);
  EXPECT_EQ(pool.in_use(), 0U);
  SharedCcc* again = pool.share(key_of(1), kInitiator, kStart + milliseconds(999));
  EXPECT_EQ(again->ccc->window_bytes(), left);
  pool.release(*again, kInitiator, kStart + milliseconds(999));
  again = pool.share(key_of(1), kInitiator, kStart + milliseconds(1999));
  EXPECT_EQ(again->ccc->window_bytes(), fresh) << "a second is over";
  lose_half(*again);
  pool.release(*again, kInitiator, kStart + seconds(2));
  for (const std::uint8_t other : {2, 3}) {  // lingering contexts are freed for others
    ASSERT_NE(pool.share(key_of(other), kTarget, kStart + seconds(2)), nullptr);
  }
  EXPECT_EQ(pool.counters().losses_by_path, 2U);
}

// A ROD PDC never comes again, and a receiver counts the credit of a new PDC from 0 on.
TEST(CccPool, Cms201_ContextsOfRodPdcsAndOfCreditEndAtOnce) {
  cms::Parameters cms;
  cms.algorithm = cms::Algorithm::Rccc;
  CccPool credit(cms, 2, 1, 0);
  SharedCcc* first = credit.share(key_of(1), kInitiator, kStart);
  const std::uint8_t ccc_id = first->credit->ccc_id();
  credit.release(*first, kInitiator, kStart);
  EXPECT_NE(credit.share(key_of(1), kInitiator, kStart)->credit->ccc_id(), ccc_id);
  cms.algorithm = cms::Algorithm::Nscc;
  CccPool rod(cms, 2, 1, 0);
  SharedCcc* ordered = rod.share(key_of(1, 0, 7), kInitiator, kStart);
  ordered->ccc->on_sent(50'000, kStart);
  ordered->ccc->on_inferred_loss(50'000, cms::LossCause::Path, kStart);
  const std::uint64_t left = ordered->ccc->window_bytes();
  rod.release(*ordered, kInitiator, kStart);
  EXPECT_GT(rod.share(key_of(1, 0, 7), kInitiator, kStart)->ccc->window_bytes(), left);
}

TEST(CccPool, Cms140_KnownRttOrFixedWindow_NoProbe) {
  cms::Parameters configured;
  configured.base_rtt = microseconds(100);
  for (const cms::Parameters& cms : {configured, open_window()}) {
    CccPool pool(cms, 4, 1, 0);
    EXPECT_EQ(pool.share(key_of(1), kInitiator, kStart)->probes_wanted, 0);
  }
}

TEST(CccPool, Cms404_ContextPathsShared_UnlessOneEach) {
  cms::Parameters cms = open_window();
  cms.path_count = 64;
  Rng rng(1);
  CccPool pool(cms, 4, 1, 0);
  SharedCcc* shared = pool.share(key_of(1), kInitiator, kStart);
  std::optional<cms::PathSelector> own[4];
  EXPECT_EQ(&paths_for(*shared, own[0], cms, false, rng), &*own[0]);  // `single`
  cms.paths = cms::PathPolicy::Mixed;
  cms::PathSelector& common = paths_for(*shared, own[1], cms, false, rng);
  EXPECT_EQ(common.path_count(), 64);
  EXPECT_EQ(&paths_for(*shared, own[2], cms, false, rng), &common);
  EXPECT_FALSE(own[2].has_value());
  EXPECT_EQ(&paths_for(*shared, own[3], cms, true, rng), &*own[3]);  // ROD
  EXPECT_EQ(own[3]->path_count(), 1);
}

// ---- PDCs without a context
// -----------------------------------------------------------------------

class CccShortage : public Bench {
 protected:
  void with_cccs(std::size_t count) {  // half of them for each side
    Parameters parameters = test_parameters();
    parameters.ccc_count = count;
    build(parameters);
  }
  Result<void> try_send(std::uint8_t traffic_class, DeliveryMode mode = DeliveryMode::Rud) {
    Destination destination = to_peer(mode);
    destination.traffic_class = traffic_class;
    return node->manager->send(node->message(1), destination, now);
  }
};

TEST_F(CccShortage, Pds66_Cms204_SaidWithANackAndNoStateIsKept) {
  with_cccs(2);
  peer_mode = DeliveryMode::Rod;  // each of them has its own
  peer_start = 333;
  wire::RequestHeader header = request(333, true);
  receive(header);
  header.spdcid = PdcId{901};
  receive(header);
  turn();
  const std::size_t pdcs = node->manager->open_pdcs();
  header.spdcid = PdcId{902};
  const auto sent = answer_to(header);
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::NoCccAvail);
  EXPECT_EQ(nacks(sent)[0].spdcid, PdcId{0});
  EXPECT_EQ(nacks(sent)[0].dpdcid, PdcId{902});
  EXPECT_EQ(nacks(sent)[0].nack_psn, Psn{333});
  EXPECT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(node->manager->open_pdcs(), pdcs);
  EXPECT_EQ(node->manager->contexts().in_use(), 2U);
}

// The refused SYN is tried again, and what keeps the context from it is asked to close.
TEST_F(CccShortage, Pds66_Pds174_IdlePdcClosesForTheRefusedOne) {
  with_cccs(1);
  accept(333, DeliveryMode::Rod);
  wire::RequestHeader header = request(333, true);
  header.spdcid = PdcId{901};
  const auto refused = answer_to(header);
  ASSERT_EQ(nacks(refused).size(), 1U);
  EXPECT_EQ(nacks(refused)[0].nack_code, NackCode::NoCccAvail);
  ASSERT_EQ(controls(refused).size(), 1U);
  EXPECT_EQ(controls(refused)[0].ctl_type, CpType::CloseRequest);
  receive(control(CpType::Close, 334));
  turn();
  EXPECT_EQ(node->manager->contexts().in_use(), 0U);
  receive(header);
  turn();
  EXPECT_EQ(node->client.delivered.size(), 2U);
}

TEST_F(CccShortage, Pds180_NoContext_MessageIsSentAgain) {
  with_cccs(4);
  EXPECT_TRUE(try_send(0).ok());
  EXPECT_TRUE(try_send(1).ok());
  EXPECT_EQ(try_send(2).error(), Error::Again);
  EXPECT_TRUE(try_send(1).ok());
  EXPECT_EQ(node->manager->open_pdcs(), 2U);
}

// Section 12.4: class NORMAL, after NACK_Retx_Time.
TEST_F(CccShortage, Pds122_TheRefusedInitiatorTriesAgainLater) {
  send(1);
  turn();
  pdc = node->messages.back().pdc;
  wire::NackHeader refusal = nack(NackCode::NoCccAvail, start_psn);
  refusal.spdcid = PdcId{0};
  EXPECT_TRUE(requests(answer_to(refusal)).empty());
  const auto again = requests(after(test_parameters().nack_retransmission_time + microseconds(32)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].syn);
  EXPECT_TRUE(again[0].retx);
  receive(ack(start_psn, start_psn));
  turn();
  EXPECT_TRUE(Node::answered_once(node->messages.back()));
}

TEST_F(CccShortage, RudiGivesItsContextBackWhenOthersNeedIt) {
  with_cccs(2);
  ASSERT_TRUE(try_send(0, DeliveryMode::Rudi).ok());
  const auto sent = turn();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(try_send(1).error(), Error::Again);  // it is busy
  EXPECT_EQ(node->manager->contexts().in_use(), 1U);
  wire::RudiHeader response;
  ASSERT_TRUE(wire::RudiHeader::decode(sent[0].bytes, response));
  response.type = wire::PdsType::RudiResp;
  response.next_hdr = NextHdr::Response;
  std::vector<std::byte> bytes(sizeof(wire::PdsRudi) + 12);
  response.encode(bytes.data());
  node->receive(bytes, peer, now);
  EXPECT_EQ(try_send(1).error(), Error::Again);
  EXPECT_EQ(node->manager->contexts().in_use(), 0U);
  EXPECT_TRUE(try_send(1).ok());
}

// Two FEPs that fill each other's contexts: the share of the targets keeps both going.
TEST_F(Pair, Pds182_CccShortageAtBothEndsIsNoDeadlock) {
  Parameters for_a = test_parameters();
  Parameters for_b = target_parameters();
  for_a.ccc_count = 8;
  for_b.ccc_count = 2;
  build(for_a, for_b);
  expect_both_reach_each_other();
  const auto code = static_cast<std::size_t>(NackCode::NoCccAvail);
  EXPECT_LE(a->manager->contexts().in_use(), 8U);
  EXPECT_LE(b->manager->contexts().in_use(), 2U);
  EXPECT_GT(b->manager->counters().nacks_sent[code], 0U);
  expect_clean_close();
}

}  // namespace
}  // namespace uet::pds::testing
