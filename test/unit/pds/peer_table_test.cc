// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counts of peers outlive congestion contexts, within a bound.
#include "pds/peer_table.h"

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

TEST(PeerTable, CountsOutliveTheContext) {
  PeerTable table(2);
  Peer& peer = table.join(address_of(1));
  peer.counts.packets_sent = 7;
  table.leave(peer);
  EXPECT_EQ(table.join(address_of(1)).counts.packets_sent, 7U);
  EXPECT_EQ(table.size(), 1U);
}

TEST(PeerTable, PeersWithoutUsersGoFirstInFirstOut) {
  PeerTable table(1);  // two peers are kept
  Peer& used = table.join(address_of(1));
  for (const std::uint8_t last_byte : {2, 3, 4}) {
    Peer& peer = table.join(address_of(last_byte));
    peer.counts.packets_sent = last_byte;
    table.leave(peer);
  }
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(&table.join(address_of(1)), &used);
  EXPECT_EQ(table.join(address_of(4)).counts.packets_sent, 4U);
  EXPECT_EQ(table.join(address_of(2)).counts.packets_sent, 0U);
}

TEST(PeerNacks, CodesWithoutAnElementShareTheLast) {
  PeerNacks nacks;
  EXPECT_EQ(nacks.counts(), PeerNacks::Counts{});
  nacks.count(NackCode::NoResource);
  nacks.count(NackCode::ExpFatal);
  EXPECT_EQ(nacks.counts()[static_cast<std::size_t>(NackCode::NoResource)], 1U);
  EXPECT_EQ(nacks.counts().back(), 1U);
}

}  // namespace
}  // namespace uet::pds::testing
