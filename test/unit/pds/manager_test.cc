// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which PDC a message goes to, and the life of PDCs from slot to tombstone.
#include "uet/pds/manager.h"

#include <cstdlib>
#include <map>
#include <set>

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class ManagerTest : public Bench {
 protected:
  void with_pdcs(std::size_t count) {  // half of them for each side
    Parameters parameters = test_parameters();
    parameters.pdc_count = count;
    build(parameters);
  }
  Result<void> try_send(TestMessage& message, std::uint8_t traffic_class) {
    Destination destination = to_peer();
    destination.traffic_class = traffic_class;
    return node->manager->send(message, destination, now);
  }
  // Closes the PDC with a handshake.
  void close(std::uint32_t close_psn) {
    node->manager->find(pdc)->begin_close(now);
    turn();
    receive(ack(close_psn, close_psn));
    turn();
  }
};

// ---- selection ----------------------------------------------------------------------------------

TEST_F(ManagerTest, Pds23_KeyIsAddressJobModeAndClass) {
  with_pdcs(16);
  const Destination base = to_peer();
  std::vector<Destination> keys(7, base);
  keys[1].address = address_of(3);
  keys[2].address.port = kUetUdpPort + 1;
  keys[3].job = JobId{8};
  keys[4].mode = DeliveryMode::Rod;
  keys[5].traffic_class = 1;
  keys[6].reserved_pool = true;
  std::set<std::uint16_t> ids;
  for (const Destination& key : keys) ids.insert(node->send(key, 1, now).pdc.value);
  EXPECT_EQ(ids.size(), 7U);
  for (const Destination& key : keys) ids.insert(node->send(key, 1, now).pdc.value);
  EXPECT_EQ(ids.size(), 7U);
}

// A class that names a DSCP gives it to data, and to data only.
TEST_F(ManagerTest, Ses130_TheClassChoosesTheDscpOfData) {
  Destination named = to_peer();
  named.traffic_class = class_of_dscp(18);
  node->send(named, 1, now);
  const auto sent = turn();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].dscp, 18);
  EXPECT_EQ(dscp_of_class(class_of_dscp(0), 63), 0);
  EXPECT_EQ(dscp_of_class(0, 63), 63);
  for (const DeliveryMode mode : {DeliveryMode::Rudi, DeliveryMode::Uud}) {
    named.mode = mode;
    node->send(named, 1, now);
    const auto other = turn();
    ASSERT_EQ(other.size(), 1U);
    EXPECT_EQ(other[0].dscp, 18);
  }
}

TEST_F(ManagerTest, Pds5_RudAndRodNeverShareAPdc) {
  const TestMessage& rud = send(1, DeliveryMode::Rud);
  const TestMessage& rod = send(1, DeliveryMode::Rod);
  EXPECT_NE(rud.pdc, rod.pdc);
  for (const Sent& packet : turn()) {
    const bool is_rod = packet.request()->spdcid == rod.pdc;
    EXPECT_EQ(packet.type(), is_rod ? wire::PdsType::RodReq : wire::PdsType::RudReq);
  }
}

// Another traffic class is how a short message gets past a long one.
TEST_F(ManagerTest, Pds6_Pds9_SeveralPdcsToOnePeerTakeTurns) {
  Destination other = to_peer();
  other.traffic_class = 1;
  TestMessage& long_one = send(900);
  TestMessage& short_one = node->send(other, 2, now);
  node->manager->pump(now);  // one pass
  EXPECT_EQ(short_one.made, 2U);
  EXPECT_LT(long_one.made, 900U);
  turn();
  EXPECT_EQ(long_one.made, 900U);
}

// SES-125: and so do all ordered operations between two endpoints.
TEST_F(ManagerTest, Pds17_PacketsOfOneRodContextStayOnOnePdc) {
  std::set<std::uint16_t> ids;
  for (int i = 0; i < 20; ++i) ids.insert(send(3, DeliveryMode::Rod).pdc.value);
  EXPECT_EQ(ids.size(), 1U);
}

TEST_F(ManagerTest, Pds28_CreatingPdcTakesFurtherMessages) {
  TestMessage& first = send(1);
  turn();
  TestMessage& second = send(1);
  EXPECT_EQ(first.pdc, second.pdc);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
}

TEST_F(ManagerTest, Pds29_ClosingPdcTakesNoNewMessage) {
  Pdc& closing = open();
  closing.begin_close(now);
  TestMessage& message = send(1);
  EXPECT_NE(message.pdc, pdc);
  EXPECT_TRUE(requests(turn()).at(0).syn);
}

// A process that comes back to an address gets a new PDC; others keep their PDCs.
TEST_F(ManagerTest, Pds29_Pds180_ForgottenAddressIsMetWithANewPdc) {
  open();
  const PdcId old = pdc;
  Destination elsewhere = to_peer();
  elsewhere.address = address_of(3);
  const PdcId other = node->send(elsewhere, 1, now).pdc;
  turn();
  node->manager->forget(to_peer().address, now);
  const auto sent = controls(turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::Close);
  EXPECT_EQ(sent[0].spdcid, old);
  TestMessage& message = send(1);
  EXPECT_NE(message.pdc, old);
  EXPECT_TRUE(requests(turn()).at(0).syn);
  EXPECT_EQ(node->send(elsewhere, 1, now).pdc, other);
}

TEST_F(ManagerTest, Pds27_Pds31_IdsRollAndSkipZero) {
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
TEST_F(ManagerTest, Pds27_Pds31_IdsBeginWithThePlaceAndRollWithinIt) {
  for (const std::uint8_t place : {0, 3, 31}) {
    Parameters parameters = test_parameters();
    parameters.first_pdc_id = 65534;
    parameters.place = place;
    build(parameters);
    std::vector<std::uint16_t> ids;
    for (std::uint8_t i = 0; i < 4; ++i) {
      TestMessage& message = node->message(1);
      ASSERT_TRUE(try_send(message, i).ok());
      ids.push_back(message.pdc.value);
    }
    const auto id = [&](unsigned n) { return static_cast<std::uint16_t>(place << 11 | n); };
    const auto first = place == 0 ? std::vector<std::uint16_t>{1, 2} : std::vector{id(0), id(1)};
    EXPECT_EQ(ids, (std::vector<std::uint16_t>{id(2046), id(2047), first[0], first[1]}));
  }
}

// An observer of some ids cannot compute the next: differences between ids hardly ever repeat.
TEST_F(ManagerTest, Pds27_Pds31_IdsAreDrawn) {
  for (const bool shared_port : {false, true}) {
    Parameters parameters = test_parameters();
    parameters.first_pdc_id.reset();
    parameters.pdc_count = 128;
    if (shared_port) parameters.place = 3;
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

TEST_F(ManagerTest, Pds31_FreedIdIsNotSoonGivenOutAgain) {
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

TEST_F(ManagerTest, Pds53_StartPsnIsFarFromWhereThePreviousPdcEnded) {
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
TEST_F(ManagerTest, Pds53_ACandidateTooNearIsNotTaken) {
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

TEST_F(ManagerTest, Pds53_StartPsnsDiffer) {
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

TEST_F(ManagerTest, SendOnAnUnknownPdcIsNotFound) {
  TestMessage& message = node->message(1);
  EXPECT_EQ(node->manager->send_on(PdcId{77}, message, now).error(), Error::NotFound);
  EXPECT_EQ(node->manager->send_on(PdcId{0}, message, now).error(), Error::NotFound);
}

TEST_F(ManagerTest, CancelTakesAMessageOutOfTheBacklog) {
  open();
  TestMessage& first = node->message(1);
  first.blocked = true;
  ASSERT_TRUE(node->manager->send(first, to_peer(), now).ok());
  TestMessage& second = send(1);
  EXPECT_TRUE(node->manager->cancel(first));
  EXPECT_FALSE(node->manager->cancel(first));
  EXPECT_EQ(requests(turn()).size(), 1U);
  EXPECT_EQ(second.made, 1U);
  EXPECT_EQ(first.made, 0U);
  EXPECT_FALSE(node->manager->cancel(second));
}

// ---- shortage -----------------------------------------------------------------------------------

TEST_F(ManagerTest, Pds180_Pds181_NoPdcIsAgainAndQueuesNothing) {
  with_pdcs(2);  // one for each side
  send(1);
  TestMessage& refused = node->message(1);
  const Result<void> result = try_send(refused, 1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error(), Error::Again);
  EXPECT_FALSE(refused.linked());
  EXPECT_FALSE(refused.failed.has_value());
}

TEST_F(ManagerTest, Pds174_Pds180_ShortageClosesTheLongestIdlePdc) {
  with_pdcs(4);  // two for each side
  open();
  const PdcId older = pdc;
  now += milliseconds(10);
  TestMessage& second = node->message(1);
  ASSERT_TRUE(try_send(second, 1).ok());
  turn();
  pdc = second.pdc;
  receive(ack(70000, 70000));
  turn();
  TestMessage& third = node->message(1);
  EXPECT_EQ(try_send(third, 2).error(), Error::Again);
  const auto sent = controls(turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::Close);
  EXPECT_EQ(sent[0].spdcid, older);
  pdc = older;
  receive(ack(70001, 70001));
  turn();
  EXPECT_TRUE(try_send(third, 2).ok());
}

// The only PDC is never idle, and a message to another destination waits for it.
TEST_F(ManagerTest, Pds181_ABusyPdcIsClosedForWhoHasWaitedForPendTimeout) {
  with_pdcs(2);  // one for each side
  const PdcId busy = open().id();
  TestMessage* last = &send(1);
  turn();
  std::uint32_t psn = 70001;
  TestMessage& waiting = node->message(1);
  const auto step = [&] {  // the next message is there before the last one has been answered
    TestMessage& next = node->message(1);
    const bool taken = node->manager->send(next, to_peer(), now).ok();
    turn();
    receive(ack(psn, psn));
    if (!taken) return;
    last = &next;
    ++psn;
  };
  const Time begun = now;
  ASSERT_EQ(try_send(waiting, 1).error(), Error::Again);
  while (node->manager->find(busy)->takes_messages() && now < begun + seconds(10)) {
    step();
    now += milliseconds(1);
    EXPECT_EQ(try_send(waiting, 1).error(), Error::Again);
  }
  EXPECT_EQ(now - begun, test_parameters().pending_timeout);
  receive(ack(psn, psn));
  const auto sent = controls(turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].ctl_type, CpType::Close);
  EXPECT_EQ(sent[0].psn, Psn{psn + 1});
  EXPECT_TRUE(Node::answered_once(*last));  // what it had been given was sent
  receive(ack(psn + 1, psn + 1));
  turn();
  EXPECT_TRUE(try_send(waiting, 1).ok());
}

// One more after each further Pend_Timeout, until the message has a PDC or no message waits.
TEST_F(ManagerTest, Pds181_OnePdcPerPendTimeoutWhileAMessageWaits) {
  with_pdcs(8);  // four for each side
  std::vector<PdcId> pdcs;
  for (std::uint8_t i = 0; i < 4; ++i) {
    TestMessage& message = node->message(2000);
    ASSERT_TRUE(try_send(message, i).ok());
    turn();
    pdc = message.pdc;
    receive(ack(69999, 70000));  // established, and never done
    pdcs.push_back(message.pdc);
    now += milliseconds(1);
  }
  const auto closing = [&] {
    std::vector<bool> all;
    for (const PdcId id : pdcs) all.push_back(!node->manager->find(id)->takes_messages());
    return all;
  };
  const auto wait = [&](Duration time) {
    for (const Time end = now + time; now < end; now += milliseconds(1)) {
      EXPECT_FALSE(try_send(node->message(1), 9).ok());
    }
  };
  wait(milliseconds(100));
  now += milliseconds(300);  // given up
  wait(milliseconds(100));
  EXPECT_EQ(closing(), (std::vector{false, false, false, false}));
  wait(milliseconds(1));
  EXPECT_EQ(closing(), (std::vector{true, false, false, false}));
  wait(milliseconds(100));
  EXPECT_EQ(closing(), (std::vector{true, true, false, false}));
}

TEST_F(ManagerTest, Pds182_SomePdcsAreKeptForThePeer) {
  with_pdcs(4);
  for (std::uint8_t i = 0; i < 4; ++i) {
    TestMessage& message = node->message(1);
    EXPECT_EQ(try_send(message, i).ok(), i < 2);
  }
  turn();
  peer_start = 333;
  for (std::uint16_t id = 1; id <= 3; ++id) {
    wire::RequestHeader header = request(333, true);
    header.spdcid = PdcId{id};
    receive(header);
  }
  EXPECT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(node->manager->open_pdcs(), 4U);
}

// A read of what the peer could not keep needs a PDC at both ends when all others wait for it.
TEST_F(ManagerTest, Pds9_Pds182_TheReservedPoolHasItsOwnPdcsInBothRoles) {
  Parameters parameters = test_parameters();
  parameters.pdc_count = 8;
  parameters.reserved_pool_pdcs = 1;
  build(parameters);
  for (std::uint8_t i = 0; i < 8; ++i) {  // four are for the peer, one is of the pool
    EXPECT_EQ(try_send(node->message(1), i).ok(), i < 3);
  }
  turn();
  peer_start = 333;
  for (std::uint16_t id = 1; id <= 5; ++id) {
    wire::RequestHeader header = request(333, true);
    header.spdcid = PdcId{id};
    receive(header);
  }
  EXPECT_EQ(node->client.delivered.size(), 3U);  // with both shares of the pool free
  for (const std::uint8_t pdc_info : {1, 8}) {   // WIRE 6.1: either place of the bit
    wire::RequestHeader header = request(333, true);
    header.spdcid = PdcId{static_cast<std::uint16_t>(10 + pdc_info)};
    header.pdc_info = pdc_info;
    receive(header);
  }
  EXPECT_EQ(node->client.delivered.size(), 4U);
  Destination pool = to_peer();
  pool.reserved_pool = true;
  TestMessage& read = node->message(1);
  ASSERT_TRUE(node->manager->send(read, pool, now).ok());
  const auto sent = requests(turn());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].pdc_info, wire::kReservedPool);
  EXPECT_EQ(node->manager->open_pdcs(), 8U);
}

TEST_F(ManagerTest, Pds66_Pds179_ShortageIsSaidWithANackAndKeepsNoState) {
  with_pdcs(2);
  peer_start = 333;
  accept(333);
  wire::RequestHeader header = request(333, true);
  header.spdcid = PdcId{901};
  receive(header);
  turn();
  header.spdcid = PdcId{902};
  rx_entropy = 55555;
  const auto sent = answer_to(header);
  ASSERT_EQ(nacks(sent).size(), 1U);
  const auto refused = nacks(sent)[0];
  EXPECT_EQ(refused.nack_code, NackCode::NoPdcAvail);
  EXPECT_EQ(refused.spdcid, PdcId{0});
  EXPECT_EQ(refused.dpdcid, PdcId{902});
  EXPECT_EQ(refused.nack_psn, Psn{333});
  EXPECT_EQ(node->client.delivered.size(), 2U);
}

// ---- end and tombstones -------------------------------------------------------------------------

TEST_F(ManagerTest, Pds175_RepeatedCloseHasItsAckAgainForTombstoneTime) {
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
TEST_F(ManagerTest, Pds175_ReplayedSynAfterTheCloseDeliversNothing) {
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

TEST_F(ManagerTest, Pds175_AnotherStartPsnIsAnotherPdc) {
  accept(333);
  const PdcId first = pdc;
  receive(control(CpType::Close, 334));
  turn();
  accept(100'000);
  EXPECT_NE(pdc, first);
  EXPECT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
}

TEST_F(ManagerTest, Pds175_ForgottenAfterItsTime) {
  accept(333);
  receive(control(CpType::Close, 334));
  turn();
  now += milliseconds(2001);
  receive(request(333, true));
  EXPECT_EQ(node->client.delivered.size(), 2U);
}

TEST_F(ManagerTest, Pds176_RequestBehindTheCloseIsRefused) {
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

TEST_F(ManagerTest, Pds175_TombstoneAnswersItsPeerOnly) {
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
TEST_F(ManagerTest, Pds175_TheInitiatorsTombstoneIsSilent) {
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

TEST_F(ManagerTest, MoreTombstonesThanAreKeptForgetTheOldest) {
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

TEST_F(ManagerTest, MemoryOfABuriedPdcIsUsedAgainClean) {
  Parameters parameters = test_parameters();
  parameters.pdc_count = 2;
  parameters.start_psn.reset();
  build(parameters);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    // One that leaves with packets outstanding, one with responses stored and gaps behind them.
    TestMessage& message = send(100);
    start_psn = requests(turn()).at(0).psn.value;
    pdc = message.pdc;
    wire::AckHeader gap = ack(start_psn - 1, start_psn + 50);
    gap.spdcid = PdcId{901};
    receive(gap);
    peer_start = 1000 * round;
    const std::size_t before = node->client.delivered.size();
    node->client.respond = [](const Delivered&) { return guaranteed_response(); };
    receive(request(peer_start, true));
    ASSERT_EQ(node->client.delivered.size(), before + 1);
    pdc = node->client.delivered.back().pdc;
    for (std::uint32_t i = 2; i < 60; i += 2) {
      receive(request(peer_start + i));
      ASSERT_EQ(node->client.delivered.back().psn, Psn{peer_start + i});
    }
    turn();
    EXPECT_EQ(message.responses, 1U);
    node->manager->abort(pdc, now);
    node->manager->abort(message.pdc, now);
    turn();
    EXPECT_TRUE(Node::answered_once(message));
    ASSERT_EQ(node->manager->open_pdcs(), 0U);
    ASSERT_EQ(node->packets.in_use(), 0U);
  }
}

TEST_F(ManagerTest, QuiescentMeansNothingOutstanding) {
  EXPECT_TRUE(node->manager->quiescent());
  open();
  EXPECT_TRUE(node->manager->quiescent());
  send(1);
  EXPECT_FALSE(node->manager->quiescent());
  turn();
  EXPECT_FALSE(node->manager->quiescent());
  receive(ack(70001, 70001));
  EXPECT_TRUE(node->manager->quiescent());
  node->manager->lock(pdc);
  EXPECT_FALSE(node->manager->quiescent());
  node->manager->unlock(pdc);
}

TEST_F(ManagerTest, DestructionGivesEverythingBack) {
  open();
  send(50);
  turn();
  send(5);
  TestMessage& queued = node->messages.back();
  node->manager.reset();
  EXPECT_FALSE(queued.linked());
  node->drain();
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// PDS-9, PDS-6, PDS-7: a long message keeps its PDC; a short one that follows takes another and is
// on the wire before the long one has ended.
TEST_F(ManagerTest, Pds9_AShortMessageDoesNotWaitBehindALongOne) {
  for (const std::size_t most : {1U, 2U, 3U}) {
    Parameters parameters = test_parameters();
    parameters.pdcs_per_destination = most;
    build(parameters);
    TestMessage& longest = send(3000);
    TestMessage& second = send(3000);
    TestMessage& shortest = send(1);
    turn();
    EXPECT_EQ(node->manager->open_pdcs(), most);
    EXPECT_EQ(longest.made, 1024U);  // Default_MPR
    EXPECT_EQ(second.made, most > 1 ? 1024U : 0U);
    EXPECT_EQ(shortest.made, most > 2 ? 1U : 0U);
    EXPECT_EQ(shortest.pdc == longest.pdc, most < 3);
    EXPECT_EQ(send(1).pdc, most == 1 ? longest.pdc : most == 2 ? second.pdc : shortest.pdc);
  }
}

// The others to there go on, and another one takes the place of the one that is gone.
TEST_F(ManagerTest, Pds9_AnyOfThePdcsToADestinationMayEnd) {
  for (const std::size_t ended : {0U, 1U, 2U}) {
    Parameters parameters = test_parameters();
    parameters.pdcs_per_destination = 3;
    build(parameters);
    std::vector<PdcId> pdcs;
    for (int i = 0; i < 3; ++i) pdcs.push_back(send(3000).pdc);
    EXPECT_EQ(node->manager->open_pdcs(), 3U);
    node->manager->abort(pdcs[ended], now);
    turn();
    EXPECT_EQ(node->manager->open_pdcs(), 2U);
    std::set<std::uint16_t> used;
    for (int i = 0; i < 6; ++i) used.insert(send(3000).pdc.value);
    EXPECT_EQ(node->manager->open_pdcs(), 3U);
    EXPECT_EQ(used.size(), 3U);
    EXPECT_FALSE(used.contains(pdcs[ended].value));
  }
}

// However many long messages there are, and whichever PDC was used last.
TEST_F(ManagerTest, Pds9_LongMessagesLeaveAPdcToShortOnes) {
  for (const std::size_t most : {2U, 3U}) {
    Parameters parameters = test_parameters();
    parameters.pdcs_per_destination = most;
    build(parameters);
    const auto send_long = [&]() -> TestMessage& {
      TestMessage& message = node->message(3000);
      message.is_long = true;
      EXPECT_TRUE(node->manager->send(message, to_peer(), now).ok());
      return message;
    };
    std::set<std::uint16_t> used;
    for (int i = 0; i < 5; ++i) used.insert(send_long().pdc.value);
    EXPECT_EQ(used.size(), most - 1);
    turn();
    for (int i = 0; i < 5; ++i) {
      TestMessage& shortest = send(1);
      EXPECT_FALSE(used.contains(shortest.pdc.value));
      turn();
      EXPECT_EQ(shortest.made, 1U);
      EXPECT_TRUE(used.contains(send_long().pdc.value));
    }
    EXPECT_EQ(node->manager->open_pdcs(), most);
  }
}

// Ordered messages stay on one PDC (PDS-17); one PDC serves all others while it keeps up.
TEST_F(ManagerTest, Pds9_Pds17_OneRodPdcAndNoMorePdcsThanAreNeeded) {
  Parameters parameters = test_parameters();
  parameters.pdcs_per_destination = 4;
  build(parameters);
  for (int i = 0; i < 4; ++i) send(2000, DeliveryMode::Rod);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  for (int i = 0; i < 10; ++i) {
    send(1);
    turn();
  }
  EXPECT_EQ(node->manager->open_pdcs(), 2U);
}

// PDS-180: an additional PDC is no reason to close another one or to refuse the message.
TEST_F(ManagerTest, Pds9_Pds180_ShortageMakesMessagesShareAPdc) {
  Parameters parameters = test_parameters();
  parameters.pdcs_per_destination = 8;
  parameters.pdc_count = 4;  // two of them are kept for the peer
  build(parameters);
  std::set<std::uint16_t> used;
  for (int i = 0; i < 6; ++i) used.insert(send(2000).pdc.value);
  EXPECT_EQ(used.size(), node->manager->open_pdcs());
  EXPECT_LT(used.size(), 4U);
  EXPECT_GT(used.size(), 1U);
}

// Every PDC that the ids allow, less those kept for peers; then the message has to wait.
TEST_F(ManagerTest, Pds27_Pds31_Pds180_SixtyFourThousandPdcs) {
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
  node->manager->bury_finished(now);
  EXPECT_TRUE(node->manager->send(waiting, destination, now).ok());
}

}  // namespace
}  // namespace uet::pds::testing
