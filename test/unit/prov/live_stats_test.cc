// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The numbers of a peer as the live page shows them, and the page of a domain.
#include "objects/live_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "domain_testing.h"
#include "live/page_reader.h"

namespace uet::prov {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Time kNow = time_from_ns(1'000'000);

TEST(PeerRecord, TimesBecomeAgesAndNoNumberWraps) {
  pds::Peer peer;
  peer.counts.last_heard = kNow - Duration{40};
  peer.counts.rtt = Duration{77};
  peer.counts.packets_sent = 5;
  peer.counts.nacks_received.count(wire::NackCode::NoResource);
  const pds::PeerView view{.peer = &peer,
                           .pdcs = 2,
                           .inflight_bytes = -1,
                           .credit_bytes = -4000,
                           .oldest_sent = kNow - Duration{9}};
  const live::PeerRecord record = peer_record(view, kNow);
  EXPECT_EQ(record.silent_ns, 40U);
  EXPECT_EQ(record.rtt_ns, 77U);
  EXPECT_EQ(record.oldest_outstanding_ns, 9U);
  EXPECT_EQ(record.packets_sent, 5U);
  EXPECT_EQ(record.pdcs, 2U);
  EXPECT_EQ(record.inflight_bytes, 0U);
  EXPECT_EQ(record.credit_bytes, 0U);
  EXPECT_EQ(record.nacks_received[static_cast<std::size_t>(wire::NackCode::NoResource)], 1U);
  EXPECT_EQ(peer_record({.peer = &peer}, kNow).oldest_outstanding_ns, 0U);
}

TEST(KeepBusiest, MostBytesOfBothDirectionsFirst) {
  pds::Peer idle;
  pds::Peer busy;
  pds::Peer busiest;
  idle.counts.bytes_sent = 1;
  busy.counts.bytes_sent = 10;
  busiest.counts.bytes_sent = 5;
  busiest.counts.bytes_received = 6;
  std::vector<pds::PeerView> views{{.peer = &idle}, {.peer = &busy}, {.peer = &busiest}};
  keep_busiest(views, 2);
  ASSERT_THAT(views, SizeIs(2));
  EXPECT_EQ(views[0].peer, &busiest);
  EXPECT_EQ(views[1].peer, &busy);
}

TEST(LivePace, UpdatesTakeABoundedShareOfTheTime) {
  using std::chrono::milliseconds;
  const Pace usual = pace_after(kNow, std::chrono::microseconds(20));
  EXPECT_EQ(usual.earliest, kNow + milliseconds(10));
  EXPECT_EQ(usual.due, kNow + milliseconds(100));
  const Pace dear = pace_after(kNow, milliseconds(5));
  EXPECT_EQ(dear.earliest, kNow + milliseconds(1000));
  EXPECT_EQ(dear.due, kNow + milliseconds(1000));
}

TEST(LivePage, LivesAsLongAsTheDomain) {
  {
    const OpenDomain domain;
    EXPECT_THAT(live::find_pages(::getpid()), SizeIs(1));
  }
  EXPECT_THAT(live::find_pages(::getpid()), IsEmpty());
}

}  // namespace
}  // namespace uet::prov
