// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order of senders if several want to send: PDCs of one congestion context, contexts, and kinds
// of packets.
#include "pds/turns.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "pds/manager.h"
#include "unit/pds/own_pdcs.h"

namespace uet::pds::testing {
namespace {

// ---- the line alone -----------------------------------------------------------------------------

class Line : public OwnPdcs {
 protected:
  // A context of another traffic class, in which no PDC waits.
  SharedCcc& another_context() {
    Destination other = to_peer();
    other.traffic_class = 1;
    const PdcId id = node->send(other, 1, now).pdc;
    turn();
    return node->manager->find(id)->ccc();
  }
  Turns line;
};

TEST_F(Line, Cms11_ContextsAlternate) {
  Pdc& first = initiator();
  Pdc& second = initiator();
  Pdc& other = add(Role::Target, next_peer_id(), 3, another_context());
  for (Pdc* pdc : {&first, &second, &other}) line.add(*pdc);
  line.add(first);  // it is in line already
  EXPECT_EQ(&line.next(), &first);
  EXPECT_EQ(&line.next(), &other);
  EXPECT_FALSE(line.empty());
  EXPECT_EQ(&line.next(), &second);
  EXPECT_TRUE(line.empty());
}

TEST_F(Line, RemovedPdcHasNoTurn) {
  Pdc& first = initiator();
  Pdc& second = initiator();
  line.add(first);
  line.add(second);
  line.remove(first);
  line.remove(first);
  EXPECT_EQ(&line.next(), &second);
  line.add(first);
  line.remove(first);
  EXPECT_TRUE(line.empty());
}

// PDCs that wait for the congestion window have their turns before one that is in line without
// having waited: it would take the whole window.
TEST_F(Line, Cms11_WaitingPdcsComeFirstInTheirOrder) {
  std::vector<Pdc*> pdcs;
  for (int i = 0; i < 4; ++i) pdcs.push_back(&initiator());
  SharedCcc& context = pdcs[0]->ccc();
  line.add_waiting(context);
  EXPECT_TRUE(line.empty());
  line.add(*pdcs[0]);
  line.add(*pdcs[1]);
  for (const int i : {3, 1, 2}) context.waiting.push_back(*pdcs[static_cast<std::size_t>(i)]);
  line.add_waiting(context);
  line.add_waiting(context);
  for (const int i : {3, 1, 2, 0}) EXPECT_EQ(&line.next(), pdcs[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(line.empty());
  while (!context.waiting.empty()) context.waiting.pop_front();
}

TEST_F(Line, FinishedPdcsLeaveTheLineInOrder) {
  std::vector<Pdc*> pdcs;
  for (int i = 0; i < 4; ++i) line.add(*pdcs.emplace_back(&initiator()));
  pdcs[0]->fail(PdsError::PeerLost, now);
  pdcs[2]->fail(PdsError::PeerLost, now);
  IntrusiveList<Pdc, ReadyTag>& finished = line.finished();
  EXPECT_EQ(&finished.pop_front(), pdcs[0]);
  EXPECT_EQ(&finished.pop_front(), pdcs[2]);
  EXPECT_TRUE(finished.empty());
  EXPECT_EQ(&line.next(), pdcs[1]);
  EXPECT_EQ(&line.next(), pdcs[3]);
  EXPECT_TRUE(line.empty());
}

// ---- PDCs that send -----------------------------------------------------------------------------

class TurnsTest : public Bench {
 protected:
  // Of two PDCs of one context, whose window has space for one packet.
  std::pair<TestMessage&, TestMessage&> two_in_a_window_for_one() {
    cms::Parameters narrow = open_window();
    narrow.fixed_window_bytes = narrow.mtu_bytes = 4096;
    build(test_parameters(), narrow);
    Destination other_job = to_peer();
    other_job.job = JobId{8};
    TestMessage& first = send(1);
    return {first, node->send(other_job, 1, now)};
  }
};

TEST_F(TurnsTest, CongestionContextOfOnePeerIsSharedAndWakesAll) {
  auto [first, second] = two_in_a_window_for_one();
  EXPECT_EQ(requests(turn()).size(), 1U);
  const PdcId sender = first.made == 1 ? first.pdc : second.pdc;
  pdc = sender;
  receive(ack(70000, 70000));
  EXPECT_EQ(requests(turn()).size(), 1U);
  EXPECT_EQ(first.made + second.made, 2U);
}

// CMS-11: three PDCs of one class get as much as one of another. A turn is 32 packets.
TEST_F(TurnsTest, Cms11_Contexts_TakeTurnsDespitePdcCounts) {
  Destination many = to_peer(), one = to_peer();
  many.traffic_class = class_of_dscp(18);
  one.traffic_class = class_of_dscp(20);
  for (const std::uint32_t job : {7, 8, 9}) {
    many.job = JobId{job};
    node->send(many, 40, now);
  }
  node->send(one, 120, now);
  const auto sent = turn();
  ASSERT_EQ(sent.size(), 240U);
  const auto of_one = std::count_if(sent.begin(), sent.begin() + 192,
                                    [](const Sent& packet) { return packet.dscp == 20; });
  EXPECT_EQ(of_one, 96);
  std::set<std::uint16_t> ids;  // and each of the three had its turns
  for (std::size_t i = 0; i < 192; ++i) ids.insert(sent[i].request()->spdcid.value);
  EXPECT_EQ(ids.size(), 4U);
}

TEST_F(TurnsTest, Cms720_APassMakesNoMoreThanItsPackets) {
  Parameters few = test_parameters();
  few.packets_per_pass = 5;
  build(few, open_window());
  send(12);
  std::vector<std::size_t> passes;
  while (passes.size() < 9 && node->manager->pump(now)) passes.push_back(node->drain().size());
  EXPECT_EQ(passes, (std::vector<std::size_t>{5, 5, 2}));
}

// ACKs leave before retransmissions, and retransmissions before new packets (CMS-12).
TEST_F(TurnsTest, Pds214_AcksThenRetransmissionsThenNewRequests) {
  open();
  send(2);
  turn();
  send(1);
  receive(nack(NackCode::Trimmed, 70001));
  peer_start = 70000;
  wire::RequestHeader back = request(70000);
  back.ar = true;
  receive(back);
  const auto sent = turn();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_TRUE(sent[0].ack());
  EXPECT_EQ(sent[1].request().value().psn, Psn{70001});
  EXPECT_EQ(sent[2].request().value().psn, Psn{70003});
}

TEST_F(TurnsTest, FailedPdcFreesTheSharedWindow) {
  auto [first, second] = two_in_a_window_for_one();
  turn();
  const bool first_sent = first.made == 1;
  node->manager->abort(first_sent ? first.pdc : second.pdc, now);
  turn();
  EXPECT_EQ(first.made + second.made, 2U);
}

}  // namespace
}  // namespace uet::pds::testing
