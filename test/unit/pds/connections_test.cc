// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which PDC a message goes to, and who gets one in a shortage.
#include "pds/connections.h"

#include <algorithm>
#include <set>
#include <vector>

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class ConnectionsTest : public Bench {
 protected:
  TestMessage& send_of_class(std::uint8_t size_class, std::uint32_t packets) {
    TestMessage& message = node->message(packets);
    message.size_class = size_class;
    EXPECT_TRUE(node->manager->send(message, to_peer(), now).ok());
    return message;
  }
  // The peer has no PDC for the packet `number` of the PDC.
  void refuse(PdcId refused, std::uint32_t number) {
    pdc = refused;
    const Psn psn = node->manager->find(refused)->start_psn() + static_cast<std::int32_t>(number);
    wire::NackHeader refusal = nack(NackCode::NoPdcAvail, psn.value);
    refusal.spdcid = PdcId{};
    receive(refusal);
  }
};

TEST_F(ConnectionsTest, Pds23_KeyIsAddressJobModeAndClass) {
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

TEST_F(ConnectionsTest, Pds5_RudAndRodNeverShareAPdc) {
  const TestMessage& rud = send(1, DeliveryMode::Rud);
  const TestMessage& rod = send(1, DeliveryMode::Rod);
  EXPECT_NE(rud.pdc, rod.pdc);
  for (const Sent& packet : turn()) {
    const bool is_rod = packet.request()->spdcid == rod.pdc;
    EXPECT_EQ(packet.type(), is_rod ? wire::PdsType::RodReq : wire::PdsType::RudReq);
  }
}

// SES-125: and so do all ordered operations between two endpoints.
TEST_F(ConnectionsTest, Pds17_PacketsOfOneRodContextStayOnOnePdc) {
  std::set<std::uint16_t> ids;
  for (int i = 0; i < 20; ++i) ids.insert(send(3, DeliveryMode::Rod).pdc.value);
  EXPECT_EQ(ids.size(), 1U);
}

TEST_F(ConnectionsTest, Pds28_CreatingPdcTakesFurtherMessages) {
  TestMessage& first = send(1);
  turn();
  TestMessage& second = send(1);
  EXPECT_EQ(first.pdc, second.pdc);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
}

TEST_F(ConnectionsTest, Pds29_ClosingPdcTakesNoNewMessage) {
  Pdc& closing = open();
  closing.begin_close(now);
  TestMessage& message = send(1);
  EXPECT_NE(message.pdc, pdc);
  EXPECT_TRUE(requests(turn()).at(0).syn);
}

// A process that comes back to an address gets a new PDC; others keep their PDCs.
TEST_F(ConnectionsTest, Pds29_Pds180_ForgottenAddressIsMetWithANewPdc) {
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

TEST_F(ConnectionsTest, Pds180_Pds181_NoPdcIsAgainAndQueuesNothing) {
  with_pdcs(2);  // one for each side
  send(1);
  TestMessage& refused = node->message(1);
  const Result<void> result = try_send(refused, 1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error(), Error::Again);
  EXPECT_FALSE(refused.linked());
  EXPECT_FALSE(refused.failed.has_value());
}

TEST_F(ConnectionsTest, Pds174_Pds180_ShortageClosesTheLongestIdlePdc) {
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
TEST_F(ConnectionsTest, Pds181_PendTimeout_ClosesBusyPdcForWaiter) {
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
TEST_F(ConnectionsTest, Pds181_OnePdcPerPendTimeoutWhileAMessageWaits) {
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

TEST_F(ConnectionsTest, Pds182_SomePdcsAreKeptForThePeer) {
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
TEST_F(ConnectionsTest, Pds9_Pds182_TheReservedPoolHasItsOwnPdcsInBothRoles) {
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

TEST_F(ConnectionsTest, Pds66_Pds179_ShortageIsSaidWithANackAndKeepsNoState) {
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

TEST_F(ConnectionsTest, MemoryOfAFreedPdcIsUsedAgainClean) {
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

// PDS-9, PDS-6, PDS-7: a long message keeps its PDC; a short one that follows takes another and is
// on the wire before the long one has ended.
TEST_F(ConnectionsTest, Pds9_AShortMessageDoesNotWaitBehindALongOne) {
  for (const std::size_t most : {1U, 2U, 3U}) {
    Parameters parameters = test_parameters();
    parameters.pdcs_per_destination = most;
    build(parameters);
    TestMessage& longest = send_of_class(3, 3000);
    TestMessage& second = send_of_class(1, 20);
    TestMessage& shortest = send_of_class(0, 1);
    turn();
    EXPECT_EQ(node->manager->open_pdcs(), most);
    EXPECT_EQ(longest.made, 1024U);  // Default_MPR
    EXPECT_EQ(second.made, most > 1 ? 20U : 0U);
    EXPECT_EQ(shortest.made, most > 1 ? 1U : 0U);
    EXPECT_EQ(shortest.pdc == second.pdc, most < 3);
    EXPECT_EQ(shortest.pdc == longest.pdc, most == 1);
  }
}

// Whatever there is of one size class shares a PDC, and the PDCs that are open are used before
// another one is opened.
TEST_F(ConnectionsTest, Pds9_MessagesOfOneSizeClassShareAPdc) {
  for (std::uint8_t size_class = 0; size_class < kSizeClasses; ++size_class) {
    build(test_parameters());
    std::set<std::uint16_t> used;
    for (int i = 0; i < 5; ++i) used.insert(send_of_class(size_class, 3000).pdc.value);
    EXPECT_EQ(used.size(), 1U);
    EXPECT_EQ(node->manager->open_pdcs(), 1U);
  }
}

TEST_F(ConnectionsTest, Pds9_ALongMessageOpensNoPdcForItself) {
  build(test_parameters());
  const PdcId pdc = send_of_class(0, 2000).pdc;
  EXPECT_EQ(send_of_class(2, 1).pdc, pdc);
  EXPECT_NE(send_of_class(0, 1).pdc, pdc);
  EXPECT_EQ(node->manager->open_pdcs(), 2U);
}

// The others to there go on, and another one takes the place of the one that is gone.
TEST_F(ConnectionsTest, Pds9_AnyOfThePdcsToADestinationMayEnd) {
  for (const std::uint8_t ended : {0, 1, 2}) {
    Parameters parameters = test_parameters();
    parameters.pdcs_per_destination = 3;
    build(parameters);
    std::vector<PdcId> pdcs;
    const auto send_three = [&] {
      pdcs.clear();
      for (const std::uint8_t size_class : {3, 2, 1}) {
        pdcs.push_back(send_of_class(size_class, 3000).pdc);
      }
    };
    send_three();
    EXPECT_EQ(node->manager->open_pdcs(), 3U);
    const PdcId gone = pdcs[ended];
    node->manager->abort(gone, now);
    turn();
    EXPECT_EQ(node->manager->open_pdcs(), 2U);
    send_three();
    EXPECT_EQ(node->manager->open_pdcs(), 3U);
    EXPECT_EQ(std::set<std::uint16_t>({pdcs[0].value, pdcs[1].value, pdcs[2].value}).size(), 3U);
    EXPECT_EQ(std::count(pdcs.begin(), pdcs.end(), gone), 0);
  }
}

// However many long messages there are, and whichever PDC was used last.
TEST_F(ConnectionsTest, Pds9_LongMessagesLeaveAPdcToShortOnes) {
  for (const std::size_t most : {2U, 3U}) {
    Parameters parameters = test_parameters();
    parameters.pdcs_per_destination = most;
    build(parameters);
    std::set<std::uint16_t> used;
    for (int i = 0; i < 5; ++i) used.insert(send_of_class(3, 3000).pdc.value);
    EXPECT_EQ(used.size(), 1U);
    turn();
    for (int i = 0; i < 5; ++i) {
      TestMessage& shortest = send_of_class(0, 1);
      EXPECT_FALSE(used.contains(shortest.pdc.value));
      turn();
      EXPECT_EQ(shortest.made, 1U);
      EXPECT_TRUE(used.contains(send_of_class(3, 3000).pdc.value));
    }
    EXPECT_EQ(node->manager->open_pdcs(), 2U);
  }
}

// Ordered messages stay on one PDC (PDS-17); one PDC serves all others while it keeps up.
TEST_F(ConnectionsTest, Pds9_Pds17_OneRodPdcAndNoMorePdcsThanAreNeeded) {
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

// PDS-180: an additional PDC is no reason to close another one or to refuse the message, and takes
// none of the half that is left to other peers.
TEST_F(ConnectionsTest, Pds9_Pds180_ShortageMakesMessagesShareAPdc) {
  Parameters parameters = test_parameters();
  for (const std::size_t count : {4U, 6U}) {
    parameters.pdc_count = count;
    parameters.reserved_target_pdcs = 1;
    build(parameters);
    std::set<std::uint16_t> used;
    for (const std::uint8_t size_class : {3, 2, 1, 0, 1, 2}) {
      used.insert(send_of_class(size_class, 2000).pdc.value);
    }
    EXPECT_EQ(used.size(), count / 2);
    EXPECT_EQ(used.size(), node->manager->open_pdcs());
  }
}

// PDS-237: a peer that has no PDC beside the first one gets the messages on that one, and is asked
// for no other for a second.
TEST_F(ConnectionsTest, Pds237_ARefusedAdditionalPdcGivesWay) {
  build(test_parameters());
  TestMessage& longest = send_of_class(3, 3000);
  TestMessage& shortest = send_of_class(0, 2);
  TestMessage& waiting = send_of_class(0, 3000);
  turn();
  ASSERT_NE(shortest.pdc, longest.pdc);
  ASSERT_EQ(shortest.made, 2U);
  const std::uint32_t sent = 2 + waiting.made;
  for (std::uint32_t i = sent; i-- > 0;) {
    ASSERT_TRUE(shortest.errors.empty());  // i + 1 packets may still find a PDC
    refuse(shortest.pdc, i);
    EXPECT_TRUE(requests(turn()).empty());
  }
  EXPECT_EQ(shortest.errors, std::vector(2, PdsError::NotConsumed));
  EXPECT_EQ(waiting.failed, PdsError::NotConsumed);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  EXPECT_TRUE(longest.errors.empty());
  EXPECT_EQ(counters().additional_pdcs_refused, 1U);
  EXPECT_EQ(counters().pdcs_failed, 0U);
  EXPECT_EQ(send_of_class(0, 1).pdc, longest.pdc);
  now += std::chrono::seconds(1);
  EXPECT_NE(send_of_class(1, 1).pdc, longest.pdc);
}

// PDS-237: the only PDC to a peer waits for it (PDS-223), and a PDC with a packet that was sent
// again does not give way: another copy may still find a PDC at the peer.
TEST_F(ConnectionsTest, Pds237_PdcsThatDoNotGiveWay) {
  build(test_parameters());
  TestMessage& longest = send_of_class(3, 3000);
  TestMessage& shortest = send_of_class(0, 1);
  turn();
  refuse(longest.pdc, 0);
  EXPECT_TRUE(longest.errors.empty());
  const std::vector<Sent> sent = after(test_parameters().rto_init);
  ASSERT_TRUE(std::any_of(sent.begin(), sent.end(), [&](const Sent& packet) {
    return packet.request() && packet.request()->spdcid == shortest.pdc;
  }));
  refuse(shortest.pdc, 0);
  turn();
  EXPECT_TRUE(shortest.errors.empty());
  EXPECT_EQ(counters().additional_pdcs_refused, 0U);
}

}  // namespace
}  // namespace uet::pds::testing
