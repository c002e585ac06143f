// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of a process of this host, which a NIC may know of: what its connections have carried
// fails at once. The next process at the same address is served.
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

constexpr std::uint16_t kFrom = 4;  // the connections of the first process at the address
constexpr std::uint16_t kTo = 5;
constexpr std::uint16_t kNextFrom = 6;
constexpr std::uint16_t kNextTo = 7;

class DeadPeerTest : public Bench {
 protected:
  DeadPeerTest() { use(kFrom, kTo); }
  void use(std::uint16_t from, std::uint16_t to) {
    node->connection = from;
    node->way = {to, 0};
  }
  // The first process has ended and has read nothing from `unread_from` on.
  void lose(std::uint64_t unread_from = UINT64_MAX, bool succeeded = false) {
    node->manager->on_dead_peer({.address = peer,
                                 .from = kFrom,
                                 .to = kTo,
                                 .unread_from = unread_from,
                                 .succeeded = succeeded},
                                now);
  }
};

// A back end that knows the end of a peer spares the time-outs of PDS-134; the peer gets no packet.
TEST_F(DeadPeerTest, Pds134_FailsEverythingWithItAtOnce) {
  const PdcId accepted = accept().id();
  open();
  TestMessage& message = send(3);
  turn();
  TestMessage& waiting = send(1);
  waiting.blocked = true;
  Destination elsewhere = to_peer();
  elsewhere.address = address_of(3);
  TestMessage& other = node->send(elsewhere, 1, now);
  turn();
  lose();
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(message.errors, std::vector(3, PdsError::PeerLost));
  EXPECT_EQ(waiting.failed, PdsError::PeerLost);
  EXPECT_TRUE(other.errors.empty());
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  EXPECT_EQ(node->manager->find(accepted), nullptr);
  EXPECT_EQ(node->manager->counters().pdcs_failed, 2U);
  EXPECT_TRUE(requests((send(1), turn())).at(0).syn) << "another process may have the address";
}

struct Watcher final : PeerWatcher {
  void peer_given_up(const FepAddress& address, PdsError error) noexcept override {
    told.emplace_back(address, error);
  }
  std::vector<std::pair<FepAddress, PdsError>> told;
};

TEST_F(DeadPeerTest, Pds134_WatcherHearsOnceWhateverThePdcs) {
  Watcher watcher;
  node->manager->watch_peers(&watcher);
  accept();
  open();
  send(2);
  turn();
  EXPECT_TRUE(watcher.told.empty());
  lose();
  turn();
  ASSERT_EQ(watcher.told.size(), 1U);
  EXPECT_EQ(watcher.told[0], std::make_pair(peer, PdsError::PeerLost));
  lose();  // no PDC is left
  EXPECT_EQ(watcher.told.size(), 2U);
  node->manager->watch_peers(nullptr);
}

TEST_F(DeadPeerTest, Pds134_WatcherHearsNothingWhileAPdcLives) {
  Watcher watcher;
  node->manager->watch_peers(&watcher);
  use(0, 0);
  accept();
  open();
  send(1);
  turn();
  lose(0);
  turn();
  EXPECT_TRUE(watcher.told.empty());
  node->manager->watch_peers(nullptr);
}

TEST_F(DeadPeerTest, Pds134_SuccessorKeepsItsPdcs) {
  use(kNextFrom, kNextTo);
  const PdcId accepted = accept().id();
  open();
  TestMessage& message = send(2);
  turn();
  lose(0, true);
  EXPECT_TRUE(message.errors.empty());
  EXPECT_EQ(node->manager->open_pdcs(), 2U);
  EXPECT_NE(node->manager->find(accepted), nullptr);
}

// The loss of a process at an address does not concern PDCs whose packets crossed the network.
TEST_F(DeadPeerTest, Pds134_PdcsOfTheNetworkLiveOn) {
  use(0, 0);
  accept();
  open();
  TestMessage& message = send(1);
  turn();
  lose(0);
  EXPECT_TRUE(message.errors.empty());
  EXPECT_EQ(node->manager->open_pdcs(), 2U);
}

TEST_F(DeadPeerTest, Pds134_UnansweredPdcBelongsToWhomAllWent) {
  TestMessage& old = send(1);
  turn();
  node->way.connection = LocalWay::kSeveral;
  Destination rod = to_peer(DeliveryMode::Rod);
  TestMessage& both = node->send(rod, 1, now);
  turn();
  lose();
  EXPECT_EQ(old.errors, std::vector{PdsError::PeerLost});
  EXPECT_TRUE(both.errors.empty());
}

// PDS-142: a successor may be sent what the lost peer has never seen.
TEST_F(DeadPeerTest, Pds142_WhatItHasNotReadIsNotConsumed) {
  open();
  TestMessage& read = send(1);
  turn();
  const std::uint64_t unread_from = node->way.position;
  TestMessage& unread = send(2);
  turn();
  TestMessage& waiting = send(1);
  waiting.blocked = true;
  turn();
  lose(unread_from, true);
  EXPECT_EQ(read.errors, std::vector{PdsError::PeerLost});
  EXPECT_EQ(unread.errors, std::vector(2, PdsError::NotConsumed));
  EXPECT_EQ(waiting.failed, PdsError::NotConsumed);
}

TEST_F(DeadPeerTest, Pds142_WithoutSuccessorUnreadFailsToo) {
  open();
  TestMessage& unread = send(1);
  turn();
  TestMessage& waiting = send(1);
  waiting.blocked = true;
  lose(0, false);
  EXPECT_EQ(unread.errors, std::vector{PdsError::PeerLost});
  EXPECT_EQ(waiting.failed, PdsError::PeerLost);
}

// ---- keep-alive ---------------------------------------------------------------------------------

class WatchedPeer : public Bench {
 protected:
  static constexpr Duration kPeriod = seconds(1);
  WatchedPeer() {
    Parameters parameters = test_parameters();
    parameters.peer_probe_period = kPeriod;
    parameters.initiator_idle_time = kPeriod / 2;
    build(parameters);
    node->manager->watch_peers(&watcher);
    open();
  }
  ~WatchedPeer() override { node->manager->watch_peers(nullptr); }
  // Moves the clock on by `time` in small steps. Returns the control packets that were sent.
  std::vector<wire::ControlHeader> pass(Duration time) {
    std::vector<wire::ControlHeader> asked;
    for (const Time end = now + time; now < end;) {
      for (const auto& header : controls(after(milliseconds(10)))) asked.push_back(header);
    }
    return asked;
  }
  // Time until the idle peer is asked.
  Psn await_question() {
    for (int i = 0; i < 130; ++i) {
      const auto asked = pass(milliseconds(10));
      if (asked.empty()) continue;
      EXPECT_EQ(asked[0].ctl_type, wire::CpType::Noop);
      return asked[0].psn;
    }
    ADD_FAILURE() << "not asked within a period and a quarter";
    return {};
  }
  Watcher watcher;
};

TEST_F(WatchedPeer, Pds234_IdlePeerIsAskedAndKept) {
  const Time start = now;
  while (now < start + 10 * kPeriod) {
    const Psn asked = await_question();
    receive(ack(asked.value, asked.value));
    turn();
  }
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  EXPECT_TRUE(watcher.told.empty());
}

TEST_F(WatchedPeer, Pds234_ClosedPortIsToldWithinTwoPeriods) {
  const Time died = now;
  await_question();
  node->manager->on_refusal(address_of(3));
  pass(milliseconds(100));
  node->manager->on_refusal(peer);
  while (watcher.told.empty() && now < died + 2 * kPeriod) pass(milliseconds(10));
  ASSERT_EQ(watcher.told.size(), 1U);
  EXPECT_EQ(watcher.told[0], std::make_pair(peer, PdsError::PeerLost));
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(WatchedPeer, Pds234_ForgedReportEndsNothing) {
  node->manager->on_refusal(peer);
  for (int i = 0; i < 3; ++i) {
    const Psn asked = await_question();
    node->manager->on_refusal(peer);
    receive(ack(asked.value, asked.value));
    turn();
  }
  await_question();
  pass(kPeriod);  // silence alone: the transport decides
  EXPECT_TRUE(watcher.told.empty());
}

TEST_F(WatchedPeer, Pds234_WithoutWatcherIdlePdcsClose) {
  node->manager->watch_peers(nullptr);
  const auto asked = pass(2 * kPeriod);
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked[0].ctl_type, wire::CpType::Close);
}

}  // namespace
}  // namespace uet::pds::testing
