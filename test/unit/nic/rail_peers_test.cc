// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When a rail to a peer counts as silent; rails_test.cc has the messages that go with it.
#include "nic/rail_peers.h"

#include <gtest/gtest.h>

namespace uet::nic {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using State = RailPeers::State;

class Peers : public ::testing::Test {
 protected:
  Peers() { RailPeers::set(peer.ways[1], further, State::Up); }
  // At this time after the packet of rail 1 left.
  State look_after(Duration time) {
    peers.look(kSent + time);
    return peer.ways[1].state;
  }

  static constexpr Time kSent{milliseconds(50)};
  FepAddress first = [] {
    FepAddress address;
    address.ip.bytes = {10, 0, 0, 2};
    return address;
  }();
  FabricAddress further{};
  std::vector<std::size_t> hellos;  // by rail
  RailPeers peers{2, [this](RailPeers::Peer&, std::size_t rail) { hellos.push_back(rail); }};
  RailPeers::Peer& peer = peers.get(first);
};

TEST_F(Peers, BothRailsAreAskedAfterASilence) {
  peers.note_departure(peer, 1, true, kSent);
  EXPECT_EQ(peers.next_look(), kSent + RailPeers::kSilence);
  EXPECT_EQ(look_after(RailPeers::kSilence - microseconds(1)), State::Up);
  EXPECT_TRUE(hellos.empty());
  look_after(RailPeers::kSilence);
  EXPECT_EQ(hellos, (std::vector<std::size_t>{1, 0}));
  look_after(2 * RailPeers::kSilence);
  EXPECT_EQ(hellos.size(), 2U);
}

TEST_F(Peers, AnAnswerByAnotherRailProvesTheSilence) {
  peers.note_departure(peer, 1, true, kSent);
  look_after(RailPeers::kSilence);
  EXPECT_EQ(peers.next_look(), kNever) << "a peer that computes is waited for";
  EXPECT_EQ(look_after(milliseconds(100)), State::Up);
  peers.note_arrival(peer, 0, kSent + milliseconds(100));
  EXPECT_EQ(look_after(milliseconds(200)), State::Up) << "it may have left before the Hello came";
  peers.note_answer(peer, 0, kSent + milliseconds(200));
  EXPECT_EQ(look_after(milliseconds(200) + RailPeers::kSilence - microseconds(1)), State::Up);
  EXPECT_EQ(look_after(milliseconds(200) + RailPeers::kSilence), State::Silent);
  const auto lost = peers.poll_lost();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->peer, first);
  EXPECT_EQ(lost->rail, 1);
}

TEST_F(Peers, AnAnswerOnTheRailEndsTheSilence) {
  peers.note_departure(peer, 1, true, kSent);
  look_after(RailPeers::kSilence);
  peers.note_answer(peer, 0, kSent + milliseconds(2));
  peers.note_answer(peer, 1, kSent + milliseconds(2));
  EXPECT_EQ(look_after(milliseconds(100)), State::Up);
  EXPECT_EQ(peers.next_look(), kNever);
}

// Nothing answers an ACK: a pause after it is no silence, as long as the peer sends nothing either.
TEST_F(Peers, AnAckIsNoQuestion) {
  peers.note_departure(peer, 1, false, kSent);
  EXPECT_EQ(look_after(milliseconds(100)), State::Up);
  EXPECT_TRUE(hellos.empty());
  peers.note_arrival(peer, 0, kSent + milliseconds(200));
  look_after(milliseconds(200));
  EXPECT_EQ(hellos.size(), 2U);
}

TEST_F(Peers, ARailWithoutCarrierIsUsedForNoPeer) {
  peers.set_carrier(1, false);
  EXPECT_FALSE(peers.may_use(peer, 1, kSent));
  EXPECT_TRUE(peers.may_use(peer, 0, kSent));
  EXPECT_EQ(peers.other_rail(peer, 0), std::nullopt);
  const auto lost = peers.poll_lost();
  ASSERT_TRUE(lost);
  EXPECT_FALSE(lost->peer);
  peers.set_carrier(1, true);
  EXPECT_TRUE(peers.may_use(peer, 1, kSent));
  EXPECT_FALSE(peers.poll_lost());
}

// Pauses between Hellos have become long; the rail works again.
TEST_F(Peers, ARailThatIsBackIsAskedSoon) {
  for (const bool carrier : {true, false}) {
    peers.leave(peer, 1, kSent);
    Time now = kSent;
    for (int i = 0; i < 100; ++i) peers.may_use(peer, 1, now += milliseconds(1));
    hellos.clear();
    if (carrier) {
      peers.set_carrier(1, false);
      peers.set_carrier(1, true);
    } else {
      peers.note_arrival(peer, 1, now);
      EXPECT_FALSE(peers.may_use(peer, 1, now));
      EXPECT_TRUE(hellos.empty()) << "each packet that comes would be answered with one";
      peers.note_arrival(peer, 1, now + milliseconds(1));
      now += RailPeers::kFirstPause;
    }
    EXPECT_FALSE(peers.may_use(peer, 1, now));
    EXPECT_EQ(hellos, (std::vector<std::size_t>{1})) << (carrier ? "carrier" : "packet");
    EXPECT_FALSE(peers.may_use(peer, 1, now));
    EXPECT_EQ(hellos.size(), 1U) << "once";
  }
}

}  // namespace
}  // namespace uet::nic
