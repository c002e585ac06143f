// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opening ahead of the first message, and closing from either end when packets of the handshake are
// lost; what a failed PDC leaves.
#include <algorithm>

#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

class OpenAhead : public Bench {
 protected:
  std::vector<wire::ControlHeader> open_ahead(DeliveryMode mode) {
    EXPECT_TRUE(node->manager->connect(to_peer(mode), now).ok());
    return controls(turn());
  }
};

TEST_F(OpenAhead, Pds57_Pds158_ByANoopWithSynThatSaysTheMode) {
  for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rod}) {
    build(test_parameters());
    const auto sent = open_ahead(mode);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].ctl_type, CpType::Noop);
    EXPECT_TRUE(sent[0].syn && sent[0].ar && !sent[0].retx);
    EXPECT_EQ(sent[0].isrod, mode == DeliveryMode::Rod);
    EXPECT_EQ(sent[0].psn, Psn{70000});
    EXPECT_EQ(sent[0].psn_offset, 0);
    pdc = sent[0].spdcid;
    receive(ack(70000, 70000));
    EXPECT_EQ(node->manager->find(pdc)->state(), PdcState::Established);
    send(1, mode);  // on the same PDC, behind the NOOP
    const auto first = requests(turn());
    ASSERT_EQ(first.size(), 1U);
    EXPECT_FALSE(first[0].syn);
    EXPECT_EQ(first[0].psn, Psn{70001});
    EXPECT_EQ(first[0].spdcid, pdc);
  }
}

TEST_F(OpenAhead, Pds57_MessagesThatFollowAtOnceCarrySynToo) {
  open_ahead(DeliveryMode::Rud);
  send(1);
  const auto first = requests(turn());
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(first[0].syn);
  EXPECT_EQ(first[0].psn_offset, 1);
}

TEST_F(OpenAhead, NothingIsSentIfThereIsAPdcAlready) {
  open();
  EXPECT_TRUE(open_ahead(DeliveryMode::Rud).empty());
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  EXPECT_EQ(open_ahead(DeliveryMode::Rod).size(), 1U);  // of this mode there is none (PDS-5)
}

TEST_F(OpenAhead, Pds57_Pds155_ALostNoopIsSentAgainAndInTheEndGivenUp) {
  pdc = open_ahead(DeliveryMode::Rud).at(0).spdcid;
  const auto again = controls(after(test_parameters().rto_init + microseconds(64)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].syn && again[0].retx);
  EXPECT_EQ(again[0].psn, Psn{70000});
  for (int i = 0; i < 20; ++i) after(seconds(1));
  ASSERT_EQ(node->client.closed.size(), 1U);
  EXPECT_EQ(node->client.closed[0].error, PdsError::RtoExhausted);
  EXPECT_EQ(node->packets.in_use(), 0U);
}

// Section 6.3, CREATING: a shortage at the target delays it.
TEST_F(OpenAhead, Pds57_Pds122_ARefusedNoopIsSentAgainLater) {
  for (const NackCode code :
       {NackCode::NoPdcAvail, NackCode::NoCccAvail, NackCode::NoBitmap, NackCode::NoResource}) {
    build(test_parameters());
    pdc = open_ahead(DeliveryMode::Rod).at(0).spdcid;
    wire::NackHeader refused = nack(code, 70000);
    refused.spdcid = PdcId{0};
    EXPECT_TRUE(answer_to(refused).empty());
    const auto again =
        controls(after(test_parameters().nack_retransmission_time + microseconds(64)));
    ASSERT_EQ(again.size(), 1U);
    EXPECT_TRUE(again[0].syn && again[0].isrod);
  }
}

TEST_F(OpenAhead, OnlyWhereThereIsAPdcToOpen) {
  for (const DeliveryMode mode : {DeliveryMode::Rudi, DeliveryMode::Uud}) {
    EXPECT_EQ(node->manager->connect(to_peer(mode), now).error(), Error::Invalid);
  }
  Parameters parameters = test_parameters();
  parameters.pdc_count = 1;
  build(parameters);
  send(1);
  EXPECT_EQ(node->manager->connect(to_peer(DeliveryMode::Rod), now).error(), Error::Again);
}

TEST_F(OpenAhead, WithoutAPacketThereIsNoPdcEither) {
  std::vector<Packet*> taken;
  while (Packet* packet = node->packets.take()) taken.push_back(packet);
  EXPECT_EQ(node->manager->connect(to_peer(), now).error(), Error::Again);
  for (Packet* packet : taken) node->packets.give_back(packet);
  EXPECT_TRUE(turn().empty());
  EXPECT_EQ(node->manager->open_pdcs(), 0U);
}

class OpenClose : public Pair {
 protected:
  // Opens a PDC with one message; both ends are at rest afterwards.
  void opened() {
    TestMessage& message = send(3);
    run_for(milliseconds(5));
    ASSERT_TRUE(Node::answered_once(message));
  }
  std::size_t refused_ = 0;  // messages that were not consumed
  void expect_both_closed_in_order() {
    EXPECT_TRUE(run_while_not(
        [this] { return a->manager->open_pdcs() + b->manager->open_pdcs() == 0; }, seconds(5)));
    for (Node* node : {a.get(), b.get()}) {
      ASSERT_EQ(node->client.closed.size(), 1U);
      EXPECT_FALSE(node->client.closed[0].error.has_value());
      EXPECT_EQ(node->packets.in_use(), 0U);
      EXPECT_EQ(node->manager->counters().close_in_error, 0U);
      EXPECT_EQ(node->manager->counters().pdcs_closed, 1U);
    }
  }
};

TEST_F(OpenClose, Pds57_NoopOpensBothEndsAndMessagesFollow) {
  for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rod}) {
    build(test_parameters(), target_parameters());
    ASSERT_TRUE(a->manager->connect(to_b(mode), now).ok());
    run_for(milliseconds(1));
    ASSERT_NE(only_pdc(*b), nullptr);
    EXPECT_EQ(only_pdc(*b)->destination().mode, mode);
    EXPECT_TRUE(b->client.delivered.empty());  // SES hears nothing of a NOOP (PDS-104)
    TestMessage& message = send(3, mode);
    run_for(milliseconds(5));
    EXPECT_TRUE(Node::answered_once(message));
    EXPECT_EQ(b->manager->counters().pdcs_accepted, 1U);
    expect_clean_close();
  }
}

// PDS-155, PDS-169, PDS-172, PDS-175: the packets of the handshake that begins at `from`, and each
// of them lost, and each two in succession.
TEST_F(OpenClose, Pds169_Pds175_AnyPacketOfTheHandshakeMayBeLost) {
  for (const bool by_target : {false, true}) {
    for (int first_lost = 0; first_lost < 5; ++first_lost) {
      for (int count = 1; count <= 2; ++count) {
        SCOPED_TRACE(::testing::Message() << by_target << first_lost << count);
        build(test_parameters(), target_parameters());
        opened();
        int number = 0;
        fate = [&](const Node&, const Sent&) {
          const bool lost = number >= first_lost && number < first_lost + count;
          ++number;
          return Fate{.copies = lost ? 0 : 1};
        };
        (by_target ? b : a)->manager->begin_close_all(now);
        expect_both_closed_in_order();
        fate = nullptr;
      }
    }
  }
}

// PDS-174 and PDS-173 at once: the Close Request and the Close Command pass each other.
TEST_F(OpenClose, Pds169_BothEndsMayBegin) {
  opened();
  a->manager->begin_close_all(now);
  b->manager->begin_close_all(now);
  expect_both_closed_in_order();
}

// Section 6.3, CLOSE_ACK_WAIT: retries used up, free and count.
TEST_F(OpenClose, Pds121_CloseUnanswered_EndsWithoutError) {
  opened();
  fate = [](const Node&, const Sent&) { return Fate{.copies = 0}; };
  a->manager->begin_close_all(now);
  EXPECT_TRUE(run_while_not([this] { return a->manager->open_pdcs() == 0; }));
  ASSERT_EQ(a->client.closed.size(), 1U);
  EXPECT_FALSE(a->client.closed[0].error.has_value());
  EXPECT_EQ(a->manager->counters().close_in_error, 1U);
  EXPECT_EQ(a->manager->counters().pdcs_failed, 0U);
}

// The other end of the wait of PDS-177: the Close Request itself is never answered.
TEST_F(OpenClose, Pds173_CloseRequestNoRetriesLeft_ErrorClose) {
  Parameters for_b = target_parameters();
  for_b.max_rto_retransmissions = 2;
  build(test_parameters(), for_b);
  opened();
  fate = [](const Node&, const Sent&) { return Fate{.copies = 0}; };
  const Time asked = now;
  b->manager->begin_close_all(now);
  EXPECT_TRUE(run_while_not([this] { return b->manager->open_pdcs() == 0; }, seconds(5)));
  EXPECT_NEAR(std::chrono::duration<double>(now - asked).count(), 0.14, 0.01);
  ASSERT_EQ(b->client.closed.size(), 1U);
  EXPECT_EQ(b->client.closed[0].error, PdsError::RtoExhausted);
  EXPECT_EQ(b->manager->counters().close_in_error, 1U);
}

// Section 6.4: return data are under way when the Close Command comes. The initiator had its own
// reasons, and its PDC ends in order (section 6.3, CLOSING_IN_ERR).
TEST_F(OpenClose, Pds20_CloseDuringReturnData_IsTargetError) {
  opened();
  bool cut = true;
  fate = [&](const Node& from, const Sent& packet) {
    return Fate{.copies = cut && &from == b.get() && packet.request() ? 0 : 1};
  };
  TestMessage& data = b->message(2);
  ASSERT_TRUE(b->manager->send_on(only_pdc(*b)->id(), data, now).ok());
  run_for(milliseconds(1));
  a->manager->begin_close_all(now);
  EXPECT_TRUE(
      run_while_not([this] { return a->manager->open_pdcs() + b->manager->open_pdcs() == 0; }));
  EXPECT_EQ(data.errors, std::vector(2, PdsError::ClosedInError));
  EXPECT_EQ(b->manager->counters().close_in_error, 1U);
  ASSERT_EQ(a->client.closed.size(), 1U);
  EXPECT_FALSE(a->client.closed[0].error.has_value());
}

// PDS-175: after a close by either end, a late copy of the opening packet opens nothing.
TEST_F(OpenClose, Pds175_LateSynAfterEitherEndClosed) {
  for (const bool by_target : {false, true}) {
    build(test_parameters(), target_parameters());
    opened();
    std::vector<std::byte> syn;
    for (const auto& [from, packet] : log) {
      if (from == a.get() && packet.request() && packet.request()->syn) syn = packet.bytes;
    }
    ASSERT_FALSE(syn.empty());
    (by_target ? b : a)->manager->begin_close_all(now);
    expect_both_closed_in_order();
    b->receive(syn, a->address, now);
    EXPECT_EQ(b->manager->open_pdcs(), 0U);
    EXPECT_EQ(b->client.delivered.size(), 3U);
    log.clear();
  }
}

// ---- what comes for a PDC that has failed
// --------------------------------------------------------

// PDS-136, PDS-142: only what never arrived is refused, and may then be sent again on a new PDC. Of
// what has arrived the network may bring another copy, which must not look like the only one.
TEST_F(OpenAhead, Pds136_Pds142_Failure_RefusesOnlyNeverArrived) {
  accept(333);
  for (const std::uint32_t psn : {334U, 336U}) receive(request(psn));
  node->manager->abort(pdc, now);
  turn();
  ASSERT_EQ(node->manager->open_pdcs(), 0U);
  for (const std::uint32_t psn : {333U, 334U, 335U, 336U}) {
    EXPECT_TRUE(answer_to(request(psn)).empty()) << psn;
    EXPECT_EQ(nacks(answer_to(retransmission(psn))).size(), 0U) << psn;
  }
  EXPECT_TRUE(answer_to(request(333, true)).empty());
  const auto refused = nacks(answer_to(request(337)));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].nack_code, NackCode::Closing);
  EXPECT_EQ(refused[0].nack_psn, Psn{337});
  EXPECT_EQ(node->client.delivered.size(), 3U);
}

// The target fails while messages are under way, and the network copies packets: those that are
// sent again on a new PDC are delivered once (PDS-142, PDS-201).
TEST_F(OpenClose, Pds142_RetriedMessagesAreDeliveredOnce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    build(test_parameters(), target_parameters());
    Rng rng(seed);
    fate = [&](const Node&, const Sent&) {
      return Fate{.copies = rng.chance(0.1)   ? 0
                            : rng.chance(0.3) ? 2
                                              : 1,
                  .delay = microseconds(rng.below(200))};
    };
    std::vector<TestMessage*> all;
    for (int round = 0; round < 40; ++round) {
      all.push_back(&send(1));
      run_for(microseconds(rng.below(300)));
      if (Pdc* pdc = only_pdc(*b); pdc != nullptr && rng.chance(0.1)) {
        b->manager->abort(pdc->id(), now);
      }
    }
    run_for(seconds(20));
    std::vector<int> deliveries(all.size());
    const std::uint32_t first = all.front()->id;
    for (const Delivered& packet : b->client.delivered) ++deliveries.at(packet.message - first);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool not_consumed = all[i]->failed == PdsError::NotConsumed ||
                                std::ranges::count(all[i]->errors, PdsError::NotConsumed) > 0;
      if (!not_consumed) continue;
      ++refused;
      EXPECT_EQ(deliveries[i], 0) << "message " << i << " would be executed twice";
    }
    EXPECT_LE(*std::ranges::max_element(deliveries), 1);
    refused_ += refused;
    fate = nullptr;
  }
  EXPECT_GT(refused_, 0U);
}

// ---- a bounded number of receive windows
// ---------------------------------------------------------

class CloseRequest : public Bench {};

// Once it has been asked, its time runs, even if each repetition has to wait for the NIC.
TEST_F(CloseRequest, Pds177_FullNic_ExtendsCloseTimerUntilRequest) {
  Pdc& accepted = accept();
  accepted.begin_close(now);
  for (int i = 0; i < 600; ++i) node->turn(now += milliseconds(5));
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
  EXPECT_EQ(controls(node->drain()).size(), 1U);
  const Time asked = now;
  for (int i = 1; node->manager->open_pdcs() > 0 && i < 6000; ++i) {
    node->turn(now += milliseconds(5));
    if (i % 9 == 0) node->drain();
  }
  EXPECT_LE(now, asked + CloseHandshake::patience(test_parameters(), true) + milliseconds(10));
}

class BitmapShortage : public Bench {
 protected:
  void with_bitmaps(std::size_t count) {  // half of them for each side
    Parameters parameters = test_parameters();
    parameters.bitmap_count = count;
    build(parameters);
  }
};

TEST_F(BitmapShortage, Pds66_SaidWithANackAndNoStateIsKept) {
  with_bitmaps(2);
  peer_start = 333;
  accept(333);
  wire::RequestHeader header = request(333, true);
  header.spdcid = PdcId{901};
  receive(header);
  turn();
  pdc = node->client.delivered.back().pdc;
  prove(PdcId{901});
  header.spdcid = PdcId{902};
  const auto sent = answer_to(header);
  ASSERT_EQ(nacks(sent).size(), 1U);
  EXPECT_EQ(nacks(sent)[0].nack_code, NackCode::NoBitmap);
  EXPECT_EQ(nacks(sent)[0].spdcid, PdcId{0});
  EXPECT_EQ(nacks(sent)[0].dpdcid, PdcId{902});
  EXPECT_EQ(nacks(sent)[0].nack_psn, Psn{333});
  EXPECT_EQ(node->client.delivered.size(), 2U);
  EXPECT_EQ(node->manager->open_pdcs(), 2U);
  // PDS-174, PDS-180: an idle PDC is asked to close, and then the same SYN is taken.
  ASSERT_EQ(controls(sent).size(), 1U);
  EXPECT_EQ(controls(sent)[0].ctl_type, CpType::CloseRequest);
  pdc = controls(sent)[0].spdcid;
  wire::ControlHeader close = control(CpType::Close, 334);
  close.spdcid = controls(sent)[0].dpdcid;
  receive(close);
  turn();
  receive(header);
  turn();
  EXPECT_EQ(node->client.delivered.size(), 3U);
}

// Section 12.4: class NORMAL, after NACK_Retx_Time.
TEST_F(BitmapShortage, Pds122_TheRefusedInitiatorTriesAgainLater) {
  TestMessage& message = send(1);
  turn();
  pdc = message.pdc;
  wire::NackHeader refusal = nack(NackCode::NoBitmap, 70000);
  refusal.spdcid = PdcId{0};
  EXPECT_TRUE(requests(answer_to(refusal)).empty());
  const auto again = requests(after(test_parameters().nack_retransmission_time + microseconds(64)));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].syn && again[0].retx);
  receive(ack(70000, 70000));
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(BitmapShortage, Pds180_WithoutOneTheMessageIsToBeSentAgain) {
  with_bitmaps(2);
  const auto try_send = [&](std::uint8_t traffic_class) {
    Destination destination = to_peer();
    destination.traffic_class = traffic_class;
    return node->manager->send(node->message(1), destination, now);
  };
  EXPECT_TRUE(try_send(0).ok());
  EXPECT_EQ(try_send(1).error(), Error::Again);  // the other one is for the peer (PDS-182)
  EXPECT_TRUE(try_send(0).ok());
}

// Messages share a PDC rather than wait for a second one to the same destination.
TEST_F(BitmapShortage, Pds9_Pds180_ShortageMakesMessagesShareAPdc) {
  Parameters parameters = test_parameters();
  parameters.bitmap_count = 2;
  parameters.pdcs_per_destination = 4;
  build(parameters);
  for (int i = 0; i < 4; ++i) send(2);
  EXPECT_EQ(node->manager->open_pdcs(), 1U);
}

// Two FEPs that fill each other's windows: the share of the targets keeps both going.
TEST_F(OpenClose, Pds66_Pds182_BitmapShortageAtBothEndsIsNoDeadlock) {
  Parameters for_a = test_parameters();
  Parameters for_b = target_parameters();
  for_a.bitmap_count = 8;
  for_b.bitmap_count = 2;
  build(for_a, for_b);
  expect_both_reach_each_other();
  EXPECT_GT(b->manager->counters().nacks_sent[static_cast<std::size_t>(NackCode::NoBitmap)], 0U);
  expect_clean_close();
}

}  // namespace
}  // namespace uet::pds::testing
