// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where PDCs begin to count, and their order within a destination.
#include "pds/destinations.h"

#include <cstdlib>
#include <iterator>
#include <set>
#include <vector>

#include "unit/pds/own_pdcs.h"

namespace uet::pds::testing {
namespace {

class OwnDestinations : public OwnPdcs {
 protected:
  std::vector<PdcId> order(Outgoing& outgoing) const {
    std::vector<PdcId> ids;
    for (PdcId id = outgoing.first; id != PdcId{}; id = known->next(id)) ids.push_back(id);
    return ids;
  }
  std::optional<Destinations> known;
};

TEST_F(OwnDestinations, Pds9_PdcsOfADestinationKeepTheirOrder) {
  known.emplace(env().parameters, *table, secret, node->rng);
  Outgoing& there = known->at(to_peer());
  const auto add = [&] {
    Pdc& pdc = initiator();
    known->append(there, pdc);
    return &pdc;
  };
  Pdc* const a = add();
  Pdc* const b = add();
  Pdc* const c = add();
  EXPECT_EQ(order(there), (std::vector{a->id(), b->id(), c->id()}));
  known->leave(*c);
  EXPECT_EQ(order(there), (std::vector{a->id(), b->id()}));
  known->leave(*b);
  known->leave(target());  // leads to no destination
  EXPECT_EQ(order(there), (std::vector{a->id()}));
}

TEST_F(OwnDestinations, Pds23_EachDestinationIsKnownOnce) {
  known.emplace(env().parameters, *table, secret, node->rng);
  Destination other = to_peer();
  other.traffic_class = 1;
  Outgoing& first = known->at(to_peer());
  Outgoing& second = known->at(other);
  EXPECT_NE(&first, &second);
  EXPECT_EQ(&known->at(to_peer()), &first);
  EXPECT_EQ(std::distance(known->begin(), known->end()), 2);
}

// A PDC that has failed counts although it is not freed yet.
TEST_F(OwnDestinations, Pds53_FinishedPdcCountsBeforeItIsFreed) {
  known.emplace(env().parameters, *table, secret, node->rng);
  Outgoing& there = known->at(to_peer());
  EXPECT_EQ(known->next_start_psn(there), Psn{70000});  // as the parameters say
  Pdc& pdc = initiator();
  known->append(there, pdc);
  pdc.fail(PdsError::PeerLost, now);
  EXPECT_NE(known->next_start_psn(there), Psn{70000});
  EXPECT_EQ(there.last_psn, pdc.close_psn());
}

class DestinationsTest : public Bench {};

TEST_F(DestinationsTest, Pds53_StartPsn_FarFromEndOfPreviousPdc) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Parameters parameters = test_parameters();
    parameters.start_psn.reset();
    node = std::make_unique<Node>(std::uint8_t{1}, parameters, open_window(), 8192, seed);
    send(1);
    const std::uint32_t first = requests(turn()).at(0).psn.value;
    EXPECT_GE(first, 1U << 16);
    start_psn = first;
    pdc = node->messages.back().pdc;
    receive(ack(first, first));
    close(first + 1);
    ASSERT_EQ(node->manager->open_pdcs(), 0U);
    send(1);
    const std::uint32_t second = requests(turn()).at(0).psn.value;
    const std::int32_t distance = Psn{second} - Psn{first + 1};
    EXPECT_GE(distance < 0 ? -distance : distance, 1 << 16);
  }
}

// The first PDC ends right where the next one would begin by chance.
TEST_F(DestinationsTest, Pds53_ACandidateTooNearIsNotTaken) {
  std::uint32_t start = 70000;
  for (const bool near : {false, true}) {
    Parameters parameters = test_parameters();
    parameters.start_psn = start;
    build(parameters);
    open();
    close(start + 1);
    send(1);
    const Psn second = requests(turn()).at(0).psn;
    EXPECT_GE(std::abs(second - Psn{start + 1}), 1 << 16);
    if (near) {
      EXPECT_NE(second, Psn{start});
    }
    start = second.value;  // what would be drawn the next time
  }
}

TEST_F(DestinationsTest, Pds53_StartPsnsDiffer) {
  Parameters parameters = test_parameters();
  parameters.start_psn.reset();
  build(parameters);
  std::set<std::uint32_t> starts;
  for (std::uint8_t i = 0; i < 4; ++i) {
    TestMessage& message = node->message(1);
    ASSERT_TRUE(try_send(message, i).ok());
  }
  for (const auto& header : requests(turn())) starts.insert(header.psn.value);
  EXPECT_EQ(starts.size(), 4U);
}

}  // namespace
}  // namespace uet::pds::testing
