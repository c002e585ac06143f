// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ids of PDCs, and their tombstones.
#include "pds/pdc_table.h"

#include <map>
#include <set>
#include <vector>

#include "unit/pds/own_pdcs.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class OwnTable : public OwnPdcs {};

TEST_F(OwnTable, Pds25_PdcIsFoundByItsIdUntilItFinishes) {
  Pdc& pdc = target();
  EXPECT_EQ(table->find(pdc.id()), &pdc);
  EXPECT_EQ(&table->in_slot(table->slot_of(pdc)), &pdc);
  EXPECT_EQ(table->find(PdcId{static_cast<std::uint16_t>(pdc.id().value + 1)}), nullptr);
  pdc.fail(PdsError::PeerLost, now);
  EXPECT_EQ(table->find(pdc.id()), nullptr);
  EXPECT_EQ(table->at(pdc.id()), &pdc);
}

TEST_F(OwnTable, Pds31_ReservedPlacesAreBounded) {
  own(2);
  const auto first = table->reserve();
  ASSERT_TRUE(first && table->reserve());
  EXPECT_FALSE(table->reserve());
  table->give_back(*first);
  EXPECT_TRUE(table->reserve());
}

TEST_F(OwnTable, Pds175_FreedPdcLeavesItsTombstone) {
  Pdc& pdc = target();
  const PdcId id = pdc.id();
  const PeerKey peer{pdc.destination().address, pdc.peer_id()};
  ASSERT_TRUE(table->reserve_accepted(peer));
  table->name_accepted(peer, id);
  EXPECT_TRUE(table->has_accepted(peer, Psn{333}));
  table->free(pdc, now);
  EXPECT_EQ(table->at(id), nullptr);
  ASSERT_NE(table->tombstone(id, now), nullptr);
  EXPECT_EQ(table->tombstone(id, now)->peer, peer);
  EXPECT_EQ(table->accepted_from(peer), id);
  EXPECT_TRUE(table->has_accepted(peer, Psn{333}));
  EXPECT_FALSE(table->has_accepted(peer, Psn{334}));
  EXPECT_EQ(table->tombstone(id, now + env().parameters.tombstone_time + seconds(1)), nullptr);
}

TEST_F(OwnTable, Pds24_ReservedNameEndsWithoutAPdc) {
  const PeerKey peer{address_of(3), PdcId{5}};
  ASSERT_TRUE(table->reserve_accepted(peer));
  table->name_accepted(peer, PdcId{9});
  ASSERT_TRUE(table->reserve_accepted(peer));
  table->drop_reserved(peer);
  EXPECT_EQ(table->accepted_from(peer), PdcId{9}) << "it had a PDC before";
  EXPECT_FALSE(table->has_accepted(peer, Psn{333}));
}

TEST_F(OwnTable, Pds63_PeerOfAnOpenedPdcIsKnownUntilItEnds) {
  Pdc& pdc = initiator();
  const PeerKey peer{pdc.destination().address, pdc.peer_id()};
  EXPECT_EQ(table->opened_to(peer), PdcId{});
  table->note_peer(pdc);
  table->note_peer(target());  // the peer has opened it
  EXPECT_EQ(table->opened_to(peer), pdc.id());
  table->free(pdc, now);
  EXPECT_EQ(table->opened_to(peer), PdcId{});
}

struct Guard final : PdcGuard {
  void start(std::uint32_t count, Duration each) override {
    new_pdcs = count;
    pace = each;
  }
  void open(PdcId id) override { ids.insert(id.value); }
  void close(PdcId id) override { ids.erase(id.value); }
  bool has(PdcId id) const { return ids.contains(id.value); }

  std::set<std::uint16_t> ids;
  std::uint32_t new_pdcs = 0;
  Duration pace{};
};

TEST_F(OwnTable, Pds236_GuardKnowsPdcsAndTombstones) {
  Guard guard;
  table->set_guard(guard);
  const PdcId first = target().id();
  const PdcId second = initiator().id();
  EXPECT_TRUE(guard.has(first) && guard.has(second));
  table->free(*table->find(first), now);
  EXPECT_TRUE(guard.has(first)) << "its tombstone answers";
  table->note_stray(first);
  EXPECT_FALSE(guard.has(first));
  EXPECT_TRUE(guard.has(second));
}

class PdcTableTest : public Bench {};

// The guard passes packets that have an effect or an answer.
TEST_F(PdcTableTest, Pds236_TombstonePasses_UntilItIsOver) {
  Guard guard;
  node->manager->demultiplexer().set_guard(guard);
  EXPECT_GT(guard.new_pdcs, 0U);
  EXPECT_GT(guard.pace, Duration{});
  accept(333);
  EXPECT_TRUE(guard.has(pdc));
  receive(control(CpType::Close, 334));
  turn();
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  const wire::ControlHeader again = control(CpType::Close, 334);
  EXPECT_EQ(acks(answer_to(again)).size(), 1U);
  EXPECT_TRUE(guard.has(pdc));
  now += test_parameters().tombstone_time + milliseconds(1);
  EXPECT_EQ(nacks(answer_to(again)).size(), 1U) << "INV_DPDCID, the last time";
  EXPECT_FALSE(guard.has(pdc));
}

TEST_F(PdcTableTest, Pds236_ReplacedTombstone_IsClosed) {
  Guard guard;
  node->manager->demultiplexer().set_guard(guard);
  peer_start = 333;
  std::vector<PdcId> ids;
  for (std::uint16_t i = 1; i <= Tombstones::kMost + 1; ++i) {
    wire::RequestHeader header = request(333, true);
    header.spdcid = PdcId{i};
    receive(header);
    ids.push_back(pdc = node->client.delivered.back().pdc);
    wire::ControlHeader close_it = control(CpType::Close, 334);
    close_it.spdcid = header.spdcid;
    receive(close_it);
    turn();
  }
  EXPECT_FALSE(guard.has(ids[0]));
  EXPECT_TRUE(guard.has(ids[1]) && guard.has(ids.back()));
  EXPECT_EQ(guard.ids.size(), Tombstones::kMost);
}

TEST_F(PdcTableTest, Pds27_Pds31_IdsRollAndSkipZero) {
  Parameters parameters = test_parameters();
  parameters.first_pdc_id = 65534;
  build(parameters);
  std::vector<std::uint16_t> ids;
  for (std::uint8_t i = 0; i < 4; ++i) {
    TestMessage& message = node->message(1);
    ASSERT_TRUE(try_send(message, i).ok());
    ids.push_back(message.pdc.value);
  }
  EXPECT_EQ(ids, (std::vector<std::uint16_t>{65534, 65535, 1, 2}));
}

// A FEP that shares its port: the kernel tells by the first bits of an id whose an answer is.
TEST_F(PdcTableTest, Pds27_Pds31_IdsBeginWithTheSlotAndRollWithinIt) {
  for (const std::uint8_t slot : {0, 3, 31}) {
    Parameters parameters = test_parameters();
    parameters.first_pdc_id = 65534;
    parameters.id_share = {.number = slot, .bits = kSlotBits};
    build(parameters);
    std::vector<std::uint16_t> ids;
    for (std::uint8_t i = 0; i < 4; ++i) {
      TestMessage& message = node->message(1);
      ASSERT_TRUE(try_send(message, i).ok());
      ids.push_back(message.pdc.value);
    }
    const auto id = [&](unsigned n) { return static_cast<std::uint16_t>(slot << 11 | n); };
    const auto first = slot == 0 ? std::vector<std::uint16_t>{1, 2} : std::vector{id(0), id(1)};
    EXPECT_EQ(ids, (std::vector<std::uint16_t>{id(2046), id(2047), first[0], first[1]}));
  }
}

// An observer of some ids cannot compute the next: differences between ids hardly ever repeat.
TEST_F(PdcTableTest, Pds27_Pds31_IdsAreDrawn) {
  for (const bool shared_port : {false, true}) {
    Parameters parameters = test_parameters();
    parameters.first_pdc_id.reset();
    parameters.pdc_count = 128;
    if (shared_port) parameters.id_share = {.number = 3, .bits = kSlotBits};
    build(parameters);
    std::vector<int> ids;
    std::map<int, int> steps;
    for (std::uint8_t i = 0; i < 50; ++i) {
      TestMessage& message = node->message(1);
      ASSERT_TRUE(try_send(message, i).ok());
      ids.push_back(message.pdc.value);
      EXPECT_TRUE(!shared_port || ids.back() >> 11 == 3);
      if (i > 0) ++steps[ids[i] - ids[i - 1U]];
    }
    EXPECT_EQ(std::set<int>(ids.begin(), ids.end()).size(), 50U);
    for (const auto& [step, count] : steps) EXPECT_LE(count, 3) << step;
  }
}

TEST_F(PdcTableTest, Pds31_FreedIdIsNotSoonGivenOutAgain) {
  Parameters parameters = test_parameters();
  parameters.pdc_count = 4;
  build(parameters);
  std::set<std::uint16_t> ids;
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(ids.insert(send(1).pdc.value).second);
    turn();
    node->manager->abort(PdcId{*ids.rbegin()}, now);
    turn();
  }
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(PdcTableTest, Pds175_RepeatedClose_AckedForTombstoneTime) {
  accept(333);
  receive(control(CpType::Close, 334));
  turn();
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  wire::ControlHeader again = control(CpType::Close, 334);
  again.retx = true;
  for (const Duration wait : {milliseconds(0), milliseconds(1999)}) {
    now += wait;
    const auto answers = acks(answer_to(again));
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].cack_psn, Psn{334});
    EXPECT_EQ(answers[0].ack_psn(), Psn{334});
    EXPECT_EQ(answers[0].spdcid, pdc);
    EXPECT_EQ(answers[0].dpdcid, kPeerPdc);
    EXPECT_TRUE(answers[0].retx);
  }
  now += milliseconds(2);
  const auto refused = nacks(answer_to(again));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].nack_code, NackCode::InvDpdcid);
}

// Test idea 5 of the reference.
TEST_F(PdcTableTest, Pds175_SynReplayedAfterClose_NotDelivered) {
  accept(333);
  receive(control(CpType::Close, 334));
  turn();
  for (const bool retx : {false, true}) {
    wire::RequestHeader replay = request(333, true);
    replay.retx = retx;
    EXPECT_TRUE(answer_to(replay).empty());
  }
  EXPECT_EQ(node->client.delivered.size(), 1U);
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

TEST_F(PdcTableTest, Pds175_AnotherStartPsnIsAnotherPdc) {
  accept(333);
  const PdcId first = pdc;
  receive(control(CpType::Close, 334));
  turn();
  accept(100'000);
  EXPECT_NE(pdc, first);
  EXPECT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
}

TEST_F(PdcTableTest, Pds175_ForgottenAfterItsTime) {
  accept(333);
  receive(control(CpType::Close, 334));
  turn();
  now += milliseconds(2001);
  receive(request(333, true));
  EXPECT_EQ(node->client.delivered.size(), 2U);
}

TEST_F(PdcTableTest, Pds176_RequestBehindTheCloseIsRefused) {
  accept(333);
  receive(control(CpType::Close, 334));
  turn();
  const auto refused = nacks(answer_to(request(335)));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].nack_code, NackCode::Closing);
  EXPECT_EQ(refused[0].nack_psn, Psn{335});
  EXPECT_TRUE(answer_to(request(333)).empty());  // anything else is dropped
  wire::ControlHeader other_close = control(CpType::Close, 335);
  EXPECT_TRUE(answer_to(other_close).empty());
}

// An initiator that polls seldom sends again what the target had delivered before it ended the PDC.
TEST_F(PdcTableTest, Pds175_Pds176_FailedPdc_TombstoneSaysDelivered) {
  accept(333);
  receive(request(334));
  receive(request(336));
  node->manager->abort(pdc, now);
  turn();
  now += seconds(9);  // longer than Tombstone_Time
  for (const std::uint32_t psn : {333U, 334U, 336U}) {
    const auto answers = acks(answer_to(retransmission(psn)));
    ASSERT_EQ(answers.size(), 1U) << psn;
    EXPECT_EQ(answers[0].cack_psn, Psn{334});
    EXPECT_EQ(answers[0].ack_psn(), Psn{psn});
    EXPECT_EQ(answers[0].spdcid, pdc);
    EXPECT_EQ(answers[0].dpdcid, kPeerPdc);
  }
  EXPECT_TRUE(answer_to(retransmission(335)).empty());  // what follows it was delivered
  const auto refused = nacks(answer_to(retransmission(337)));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].nack_code, NackCode::Closing);
  EXPECT_EQ(node->client.delivered.size(), 3U);
}

TEST_F(PdcTableTest, Pds175_TombstoneAnswersItsPeerOnly) {
  accept(333);
  receive(control(CpType::Close, 334));
  turn();
  wire::ControlHeader again = control(CpType::Close, 334);
  std::vector<std::byte> bytes(sizeof(wire::PdsControl));
  again.encode(bytes.data());
  node->receive(bytes, address_of(9), now);
  EXPECT_TRUE(turn().empty());
  again.spdcid = PdcId{901};  // another PDC of the peer
  EXPECT_TRUE(answer_to(again).empty());
  wire::RequestHeader behind = request(335);
  behind.spdcid = PdcId{901};
  EXPECT_TRUE(answer_to(behind).empty());
}

// Of a PDC that was opened here only time frees the place: whatever still comes for it is dropped.
TEST_F(PdcTableTest, Pds175_TheInitiatorsTombstoneIsSilent) {
  open();
  close(70001);
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  peer_start = 70000;
  const auto late = [&] {
    std::size_t answers = answer_to(request(70000)).size();
    answers += answer_to(retransmission(70005)).size();
    answers += answer_to(control(CpType::CloseRequest, 70002)).size();
    return answers + answer_to(ack(70001, 70001)).size();
  };
  EXPECT_EQ(late(), 0U);
  EXPECT_TRUE(node->client.delivered.empty());
  now += test_parameters().tombstone_time + milliseconds(1);
  EXPECT_EQ(late(), 3U);  // INV_DPDCID for all but the ACK
}

TEST_F(PdcTableTest, MoreTombstonesThanAreKeptForgetTheOldest) {
  peer_start = 333;
  for (std::uint32_t i = 0; i < 4200; ++i) {
    wire::RequestHeader header = request(333, true);
    header.spdcid = PdcId{static_cast<std::uint16_t>(i + 1)};
    receive(header);
    pdc = node->client.delivered.back().pdc;
    wire::ControlHeader close_it = control(CpType::Close, 334);
    close_it.spdcid = header.spdcid;
    receive(close_it);
    turn();
  }
  EXPECT_EQ(node->client.delivered.size(), 4200U);
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
  // The newest is remembered, the first is not.
  wire::RequestHeader replay = request(333, true);
  replay.spdcid = PdcId{4200};
  receive(replay);
  EXPECT_EQ(node->client.delivered.size(), 4200U);
  replay.spdcid = PdcId{1};
  receive(replay);
  EXPECT_EQ(node->client.delivered.size(), 4201U);
}

// Every PDC that the ids allow, less those kept for peers; then the message has to wait.
TEST_F(PdcTableTest, Pds27_Pds31_Pds180_SixtyFourThousandPdcs) {
  Parameters parameters = test_parameters();
  parameters.default_mpr = 1;
  parameters.pdc_count = 64535;  // the largest number of section 21
  build(parameters);
  const std::size_t most = parameters.pdc_count - parameters.reserved_target_pdcs;
  std::vector<bool> seen(65536);
  Destination destination = to_peer();
  for (std::uint32_t job = 1; job <= most; ++job) {
    destination.job = JobId{job};
    TestMessage& message = node->message(1);
    ASSERT_TRUE(node->manager->send(message, destination, now).ok()) << job;
    ASSERT_NE(message.pdc, PdcId{});
    ASSERT_FALSE(seen[message.pdc.value]);
    seen[message.pdc.value] = true;
  }
  EXPECT_EQ(node->manager->open_pdcs(), most);
  destination.job = JobId{0};
  TestMessage& waiting = node->message(1);
  EXPECT_EQ(node->manager->send(waiting, destination, now).error(), Error::Again);
  // The peer can still open its own (PDS-182), and one that closes frees an entry.
  accept(333);
  node->manager->abort(node->messages[0].pdc, now);
  node->manager->free_finished(now);
  EXPECT_TRUE(node->manager->send(waiting, destination, now).ok());
}

}  // namespace
}  // namespace uet::pds::testing
