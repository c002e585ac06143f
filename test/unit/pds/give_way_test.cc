// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDCs without traffic whose peer waits for its application: they close if others need a PDC
// (Delivery::watch), and are opened again later (Delivery::connect).
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class GiveWay : public Bench {
 protected:
  static std::size_t count(const std::vector<Sent>& sent, CpType type) {
    return static_cast<std::size_t>(
        std::ranges::count(controls(sent), type, &wire::ControlHeader::ctl_type));
  }
  Result<PdcId> connect() { return node->manager->connect(to_peer(), now); }
};

// PDS-15: what is locked does not close, since data have to come on it.
TEST_F(GiveWay, Pds172_WatchedPdc_InitiatorClosesIfAsked) {
  for (const bool locked : {false, true}) {
    build(test_parameters());
    open();
    node->manager->watch(pdc);
    if (locked) node->manager->lock(pdc);
    peer_start = start_psn;
    const auto sent = answer_to(control(CpType::CloseRequest, start_psn));
    EXPECT_EQ(acks(sent).size(), 1U);
    EXPECT_EQ(count(sent, CpType::Close), locked ? 0U : 1U);
    if (!locked) continue;
    node->manager->unlock(pdc);
    EXPECT_EQ(count(turn(), CpType::Close), 1U);
  }
}

TEST_F(GiveWay, Pds173_OfItselfItDoesNotClose) {
  Parameters parameters = test_parameters();
  parameters.initiator_idle_time = parameters.keepalive_time;
  build(parameters);
  open();
  node->manager->watch(pdc);
  const auto sent = after(2 * parameters.keepalive_time);
  EXPECT_EQ(count(sent, CpType::Close), 0U);
  EXPECT_EQ(count(sent, CpType::Noop), 1U) << "asks whether the peer lives";
}

// An idle one closes first.
TEST_F(GiveWay, Pds174_ShortageClosesIdleOnesThenWatchedOnes) {
  Parameters parameters = test_parameters();
  parameters.pdc_count = 6;
  build(parameters);
  const PdcId watched = accept(333).id();
  node->manager->watch(watched);
  now += milliseconds(10);
  wire::RequestHeader second = request(333, true);
  second.spdcid = PdcId{kPeerPdc.value + 1};
  receive(second);
  const PdcId idle = pdc = node->client.delivered.back().pdc;
  turn();
  prove(second.spdcid);
  Destination other = to_peer();
  const auto post = [&] {
    ++other.traffic_class;
    return node->manager->send(node->message(1), other, now).ok();
  };
  while (post()) {
  }
  turn();
  EXPECT_TRUE(node->manager->find(watched)->takes_messages());
  EXPECT_FALSE(node->manager->find(idle)->takes_messages());
  now += parameters.pending_timeout;
  EXPECT_FALSE(post());
  EXPECT_FALSE(node->manager->find(watched)->takes_messages());
}

// PDS-177: a target whose initiator is slow to close loses nothing that waits for the application.
TEST_F(GiveWay, Pds177_SlowInitiatorCostsNothingThatIsWatched) {
  accept(333);
  node->drain();
  node->manager->watch(pdc);
  Pdc& target = *node->manager->find(pdc);
  target.close_for_shortage(now);
  const auto asked = controls(turn());
  ASSERT_EQ(asked.size(), 1U);
  wire::AckHeader taken = ack(asked[0].psn.value, asked[0].psn.value);
  receive(taken);
  const auto live_for = [&](Duration time) {  // the peer answers, but does not close
    for (Duration waited{}; waited < time; waited += milliseconds(50)) {
      for (const wire::ControlHeader& header : controls(after(milliseconds(50)))) {
        if (header.ctl_type == CpType::Noop) receive(ack(header.psn.value, header.psn.value));
      }
    }
  };
  const Duration patience = CloseHandshake::patience(test_parameters(), true);
  live_for(2 * patience);
  ASSERT_NE(node->manager->find(pdc), nullptr);
  node->manager->unwatch(pdc);
  live_for(patience + 2 * test_parameters().keepalive_time);
  EXPECT_EQ(node->manager->find(pdc), nullptr) << "now the time runs";
}

// PDS section 6.3: the target has its own return packets in mind, which are all here. INV_DPDCID
// says that the PDC, and what its SES held, may have gone before.
TEST_F(GiveWay, Pds171_WatchedPdcCloseRefused_ErrorIfNoPdc) {
  for (const NackCode code : {NackCode::ClosingInErr, NackCode::InvDpdcid}) {
    build(test_parameters());
    open();
    node->manager->watch(pdc);
    peer_start = start_psn;
    const auto closing = controls(answer_to(control(CpType::CloseRequest, start_psn)));
    const auto close = std::ranges::find(closing, CpType::Close, &wire::ControlHeader::ctl_type);
    ASSERT_NE(close, closing.end());
    wire::NackHeader refused = nack(code, close->psn.value);
    if (code == NackCode::InvDpdcid) refused.spdcid = {};
    receive(refused);
    turn();
    ASSERT_EQ(node->client.closed.size(), 1U);
    EXPECT_EQ(node->client.closed[0].error.has_value(), code == NackCode::InvDpdcid);
  }
}

TEST_F(GiveWay, Pds172_NothingFollowsTheCloseCommand) {
  build(test_parameters());
  open();
  node->manager->watch(pdc);
  peer_start = start_psn;
  ASSERT_EQ(count(answer_to(control(CpType::CloseRequest, start_psn)), CpType::Close), 1U);
  EXPECT_EQ(node->manager->send_on(pdc, node->message(1), now).error(), Error::Busy);
}

TEST_F(GiveWay, Pds57_ConnectOpensOnceAndNamesThePdc) {
  const Result<PdcId> first = connect();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(count(turn(), CpType::Noop), 1U);
  const Result<PdcId> second = connect();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value(), first.value());
  EXPECT_TRUE(turn().empty());
}

// A peer that is short of PDCs lives. A PDC that carries nothing closes, so that others can try.
TEST_F(GiveWay, Pds66_NoPdcsAtPeer_EmptyOneEnds) {
  for (const bool carries : {false, true}) {
    build(test_parameters());
    const PdcId id = connect().value();
    node->manager->watch(id);
    const auto noop = controls(turn());
    ASSERT_EQ(noop.size(), 1U);
    if (carries) send(1);
    wire::NackHeader refused = nack(NackCode::NoPdcAvail, noop[0].psn.value);
    refused.spdcid = PdcId{0};
    refused.dpdcid = id;
    receive(refused);
    turn();
    const auto later = after(milliseconds(5));
    EXPECT_EQ(count(later, CpType::Noop), carries ? 1U : 0U);
    EXPECT_EQ(node->manager->open_pdcs(), carries ? 1U : 0U);
    if (carries) continue;
    ASSERT_EQ(node->client.closed.size(), 1U);
    EXPECT_FALSE(node->client.closed[0].error.has_value());
  }
}

}  // namespace
}  // namespace uet::pds::testing
