// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two Managers over a wire that loses, copies and delays: the sequences of PDS section 9 and the
// test ideas of section 22.
#include <set>

#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::AckRequestCode;
using wire::CpType;

class Sequences : public Pair {
 protected:
  // An open PDC from a to b on which everything up to `last` is finished; the log is empty.
  void open_up_to(std::uint32_t last, DeliveryMode mode = DeliveryMode::Rud) {
    Parameters parameters = test_parameters();
    parameters.start_psn = last;
    build(parameters, target_parameters());
    send(1, mode);
    run_for(milliseconds(1));
    ASSERT_EQ(b->client.delivered.size(), 1U);
    b->client.delivered.clear();
    a->client.answered.clear();
    log.clear();
  }
  template <class Header>
  std::vector<Header> sent_by(const Node& node,
                              std::vector<Header> (*pick)(const std::vector<Sent>&)) const {
    std::vector<Sent> packets;
    for (const auto& [from, packet] : log) {
      if (from == &node) packets.push_back(packet);
    }
    return pick(packets);
  }
  std::vector<std::uint32_t> delivered_at(const Node& node) const {
    std::vector<std::uint32_t> values;
    for (const Delivered& packet : node.client.delivered) values.push_back(packet.psn.value);
    return values;
  }
  // Loses the first `count` packets of `from` for which `match` holds.
  void lose(const Node& from, int count, std::function<bool(const Sent&)> match) {
    fate = [&from, left = count, match](const Node& sender, const Sent& packet) mutable {
      if (&sender != &from || left == 0 || !match(packet)) return Fate{};
      --left;
      return Fate{.copies = 0};
    };
  }
  static bool is_request(const Sent& packet) { return packet.request().has_value(); }
  static auto request_with(std::uint32_t psn) {
    return [psn](const Sent& packet) {
      const auto header = packet.request();
      return header && header->psn == Psn{psn};
    };
  }
  static auto control_of(CpType type) {
    return [type](const Sent& packet) {
      const auto header = packet.control();
      return header && header->ctl_type == type;
    };
  }
};

// ---- section 9 ----------------------------------------------------------------------------------

TEST_F(Sequences, S1_NonGuaranteed) {
  open_up_to(332);
  send(1);
  run_for(milliseconds(5));
  EXPECT_EQ(psns_sent(*a), (std::vector<std::uint32_t>{333}));
  const auto answers = sent_by(*b, acks);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].ack_psn(), Psn{333});
  EXPECT_EQ(answers[0].cack_psn, Psn{333});
  EXPECT_EQ(answers[0].req, AckRequestCode::None);
  EXPECT_EQ(log.size(), 2U);  // nothing else is sent
}

TEST_F(Sequences, S2_Guaranteed) {
  open_up_to(332);
  b->client.respond = [](const Delivered&) { return guaranteed_response(); };
  send(1);
  run_for(milliseconds(5));
  ASSERT_EQ(log.size(), 3U);
  const auto answer = log[1].second.ack();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->ack_psn(), Psn{333});
  EXPECT_EQ(answer->cack_psn, Psn{332});
  EXPECT_EQ(answer->req, AckRequestCode::Clear);
  const auto clear = log[2].second.control();
  ASSERT_TRUE(clear);
  EXPECT_EQ(clear->ctl_type, CpType::Clear);
  EXPECT_EQ(clear->payload, 333U);
  // The target's CACK is 333 now, which the next ACK shows.
  b->client.respond = nullptr;
  send(1);
  run_for(milliseconds(5));
  EXPECT_EQ(sent_by(*b, acks).back().cack_psn, Psn{334});
}

TEST_F(Sequences, S3_FourGuaranteedThenTwoPlain) {
  open_up_to(332);
  b->client.respond = [](const Delivered& packet) {
    return packet.psn <= Psn{336} ? guaranteed_response() : default_response();
  };
  TestMessage& message = send(6);
  message.block_at = 4;
  run_for(milliseconds(1));
  auto answers = sent_by(*b, acks);
  ASSERT_EQ(answers.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answers[i].ack_psn(), Psn{333 + i});
    EXPECT_EQ(answers[i].req, AckRequestCode::Clear);
  }
  EXPECT_EQ(sent_by(*a, controls).back().payload, 336U);  // CLEAR 336 arrived in time
  message.block_at = 0;
  a->manager->kick(message.pdc);
  run_for(milliseconds(1));
  answers = sent_by(*b, acks);
  ASSERT_EQ(answers.size(), 5U);
  EXPECT_EQ(answers[4].ack_psn(), Psn{338});
  EXPECT_EQ(answers[4].cack_psn, Psn{338});
  EXPECT_EQ(answers[4].req, AckRequestCode::None);
}

// PDS-194 to PDS-197: three read requests, three packets of data in the return direction's own
// PSNs.
TEST_F(Sequences, S4_ReadOfThreePackets) {
  Parameters parameters = test_parameters();
  parameters.start_psn = 48;
  build(parameters, target_parameters());
  send(285);  // up to 332
  run_for(milliseconds(5));
  ASSERT_EQ(b->client.delivered.back().psn, Psn{332});
  log.clear();
  b->client.respond = [&](const Delivered& packet) {
    if (packet.psn == Psn{335}) {
      EXPECT_TRUE(b->manager->send_on(packet.pdc, b->message(3), now).ok());
    }
    return default_response();  // RC_OK, not guaranteed (PDS-195)
  };
  send(3);
  run_for(microseconds(100));  // the data are on their way, or just there
  send(1);
  run_for(milliseconds(5));
  const auto accepted = sent_by(*b, acks);
  ASSERT_GE(accepted.size(), 2U);
  for (const wire::AckHeader& ack : accepted) EXPECT_EQ(ack.req, AckRequestCode::None);
  EXPECT_EQ(accepted[0].cack_psn, Psn{335});
  const auto data = sent_by(*b, requests);
  EXPECT_EQ(psns(data), (std::vector<std::uint32_t>{48, 49, 50}));
  EXPECT_EQ(data.at(2).clear_psn_offset, -3);  // 48 and 49 are not acknowledged yet
  EXPECT_FALSE(data[0].syn);
  const auto of_data = sent_by(*a, acks);
  ASSERT_EQ(of_data.size(), 1U);
  EXPECT_EQ(of_data[0].cack_psn, Psn{50});
  EXPECT_EQ(of_data[0].req, AckRequestCode::None);
  const auto write = sent_by(*a, requests).back();
  EXPECT_EQ(write.psn, Psn{336});
  EXPECT_EQ(write.clear_psn_offset, -1);
}

// Also test idea 1: the target builds the PDC from the second packet.
TEST_F(Sequences, S5_OpenWithLoss) {
  lose(*a, 1, request_with(70000));
  TestMessage& message = send(5);
  run_for(milliseconds(50));
  const auto first = sent_by(*a, requests);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(first.at(i).psn, Psn{70000 + i});
    EXPECT_TRUE(first[i].syn);
    EXPECT_EQ(first[i].psn_offset, i);
  }
  ASSERT_EQ(first.size(), 6U);
  EXPECT_EQ(first[5].psn, Psn{70000});
  EXPECT_FALSE(first[5].syn);
  EXPECT_TRUE(first[5].retx);
  EXPECT_TRUE(first[5].ar);
  EXPECT_EQ(delivered_at(*b), (std::vector<std::uint32_t>{70001, 70002, 70003, 70004, 70000}));
  const auto answers = sent_by(*b, acks);
  ASSERT_GE(answers.size(), 2U);
  EXPECT_EQ(answers.front().cack_psn, Psn{69999});
  EXPECT_NE(answers.front().sack_bitmap, 0U);
  EXPECT_EQ(answers.back().cack_psn, Psn{70004});
  EXPECT_TRUE(Node::answered_once(message));
  fate = nullptr;
  expect_clean_close();
}

TEST_F(Sequences, S6_DuplicatedSyn) {
  fate = [](const Node&, const Sent& packet) {
    return Fate{.copies = request_with(70002)(packet) ? 2 : 1};
  };
  TestMessage& message = send(5);
  run_for(milliseconds(50));
  EXPECT_EQ(delivered_at(*b), (std::vector<std::uint32_t>{70000, 70001, 70002, 70003, 70004}));
  EXPECT_EQ(b->manager->counters().duplicates_dropped, 1U);
  EXPECT_EQ(b->manager->open_pdcs(), 1U);
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(Sequences, S7_Close) {
  send(5);
  run_for(milliseconds(1));
  log.clear();
  a->manager->begin_close_all(now);
  run_for(milliseconds(1));
  ASSERT_EQ(log.size(), 2U);
  const auto close = log[0].second.control();
  ASSERT_TRUE(close);
  EXPECT_EQ(close->ctl_type, CpType::Close);
  EXPECT_EQ(close->psn, Psn{70005});
  EXPECT_TRUE(close->ar);
  const auto answer = log[1].second.ack();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->ack_psn(), Psn{70005});
  EXPECT_EQ(answer->cack_psn, Psn{70005});
  EXPECT_EQ(a->manager->open_pdcs() + b->manager->open_pdcs(), 0U);
}

TEST_F(Sequences, S8_Pds164_RodReorderBuffer_ResendsOnlyGap) {
  Parameters parameters = test_parameters();
  parameters.start_psn = 1;
  build(parameters, target_parameters());
  lose(*a, 1, request_with(3));
  TestMessage& message = send(6, DeliveryMode::Rod);
  run_for(milliseconds(10));
  EXPECT_EQ(delivered_at(*b), (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(psns_sent(*a), (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 3}));
  EXPECT_TRUE(sent_by(*a, requests).back().retx);
  const auto refused = sent_by(*b, nacks);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].nack_code, NackCode::RodOoo);
  EXPECT_TRUE(Node::answered_once(message));
}

// ---- section 22 ---------------------------------------------------------------------------------

TEST_F(Sequences, Idea2_Pds112_ThreeLostAcks_AnsweredOnce) {
  open_up_to(332);
  b->client.respond = [](const Delivered&) { return guaranteed_response(0x77); };
  lose(*b, 3, [](const Sent& packet) { return packet.ack().has_value(); });
  TestMessage& message = send(1);
  run_for(seconds(1));
  EXPECT_EQ(b->client.delivered.size(), 1U);
  EXPECT_TRUE(Node::answered_once(message));
  ASSERT_EQ(a->client.answered.size(), 1U);
  EXPECT_EQ(a->client.answered[0].next_hdr, NextHdr::Response);
  EXPECT_EQ(a->client.answered[0].bytes, std::vector(12, std::byte{0x77}));
}

TEST_F(Sequences, Idea3_Pds118_LostClear_RepairedByRequest) {
  open_up_to(332);
  b->client.respond = [](const Delivered& packet) {
    return packet.psn == Psn{333} ? guaranteed_response() : default_response();
  };
  lose(*a, 1, control_of(CpType::Clear));
  send(1);
  run_for(milliseconds(5));
  EXPECT_EQ(sent_by(*b, acks).back().cack_psn, Psn{332});
  send(1);
  run_for(milliseconds(5));
  EXPECT_EQ(sent_by(*a, requests).back().clear_psn_offset, -1);
  EXPECT_EQ(sent_by(*b, acks).back().cack_psn, Psn{334});
}

// Every NACK is lost: the time-out alone brings the refused packets back.
TEST_F(Sequences, Pds123_LostNacksAreCoveredByTheTimeOut) {
  open_up_to(332);
  int refusals = 3;
  b->client.respond = [&](const Delivered&) {
    return refusals-- > 0 ? refusal(NackCode::NoResource) : default_response();
  };
  lose(*b, 1000, [](const Sent& packet) { return packet.nack().has_value(); });
  TestMessage& message = send(3);
  EXPECT_TRUE(run_while_not([&] { return message.responses == 3; }, milliseconds(500)));
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(b->client.delivered.size(), 3U);
  EXPECT_GE(a->manager->counters().rto_retransmissions, 3U);
  EXPECT_EQ(a->manager->counters().nack_retransmissions, 0U);
}

// A guaranteed response holds CACK (PDS-86), and the target hears of no CLEAR: what is behind it
// needs nothing but the ACKs that the target sends when it is asked for one.
TEST_F(Sequences, Pds86_Pds93_BehindHeldResponse_AcksOfTheirOwn) {
  for (const bool last_too : {false, true}) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(::testing::Message() << last_too << swapped);
      build(test_parameters(), target_parameters());
      open_up_to(332);
      b->client.respond = [last_too](const Delivered& packet) {
        const bool held = packet.psn == Psn{335} || (last_too && packet.psn == Psn{338});
        return held ? guaranteed_response() : default_response();
      };
      int left = 6;  // the target hears these, 336 and 338 perhaps in the wrong order
      fate = [&](const Node& from, const Sent& packet) {
        if (&from != a.get()) return Fate{};
        const bool heard = packet.request() && left-- > 0;
        const bool late = swapped && packet.request() && packet.request()->psn == Psn{336};
        return Fate{.copies = heard ? 1 : 0, .delay = late ? milliseconds(1) : Duration{}};
      };
      TestMessage& first = send(3);
      TestMessage& second = send(3);
      run_for(milliseconds(10));
      EXPECT_TRUE(Node::answered_once(first));
      EXPECT_TRUE(Node::answered_once(second));
      EXPECT_TRUE(second.errors.empty());
      EXPECT_EQ(sent_by(*b, acks).back().cack_psn, Psn{334});
      fate = nullptr;
      expect_clean_close();
    }
  }
}

// Guaranteed responses hold the window; CLEARs and ACKs are lost all the time.
TEST_F(Sequences, Pds48_Pds86_GuaranteedResponses_NoDeadlock) {
  for (const std::uint8_t mpr : {1, 8}) {
    Parameters for_a = test_parameters();
    Parameters for_b = target_parameters();
    for_a.default_mpr = for_b.default_mpr = mpr;
    build(for_a, for_b);
    b->client.respond = [](const Delivered&) { return guaranteed_response(); };
    Rng rng(7);
    fate = [&](const Node& from, const Sent& packet) {
      const bool clear = control_of(CpType::Clear)(packet);
      return Fate{.copies = rng.chance(clear || &from == b.get() ? 0.4 : 0.0) ? 0 : 1};
    };
    TestMessage& message = send(2000);
    EXPECT_TRUE(run_while_not([&] { return message.responses == 2000; })) << message.responses;
    EXPECT_TRUE(Node::answered_once(message));
    EXPECT_EQ(b->client.delivered.size(), 2000U);
    fate = nullptr;
    expect_clean_close();
  }
}

TEST_F(Sequences, Idea4_Pds52_4096PsnsBeforeEstablishment) {
  Parameters for_a = test_parameters();
  Parameters for_b = target_parameters();
  for_a.default_mpr = for_b.default_mpr = 32;
  build(for_a, for_b, 16384);
  bool silent = true;
  fate = [&](const Node& from, const Sent&) {
    return Fate{.copies = silent && &from == b.get() ? 0 : 1};
  };
  TestMessage& message = send(5000);
  run_for(milliseconds(10));
  EXPECT_EQ(message.made, 4096U);
  EXPECT_EQ(b->client.delivered.size(), 4096U);
  silent = false;
  EXPECT_TRUE(run_while_not([&] { return message.responses == 5000; }));
  EXPECT_TRUE(Node::answered_once(message));
  EXPECT_EQ(b->client.delivered.size(), 5000U);
  expect_clean_close();
}

// Test idea 6 of the reference, with a second peer in traffic class 1 of the same one.
TEST_F(Sequences, Idea6_Pds134_Pds137_DeadPeerFailsItsPdcInTime) {
  Parameters parameters = test_parameters();
  parameters.max_rto_retransmissions = 5;
  build(parameters, target_parameters());
  TestMessage& other = a->send(to_b(DeliveryMode::Rud, 1), 50, now);
  const PdcId alive = other.pdc;
  fate = [&](const Node&, const Sent& packet) {
    const auto header = packet.request();
    return Fate{.copies = !header || header->spdcid == alive ? 1 : 0};
  };
  TestMessage& message = send(50);
  const Time begun = now;
  EXPECT_TRUE(run_while_not([&] { return !message.errors.empty(); }));
  EXPECT_GE(now - begun, time_to_failure(parameters));
  EXPECT_LE(now - begun, time_to_failure(parameters) + milliseconds(1));
  EXPECT_EQ(message.errors, std::vector(50, PdsError::RtoExhausted));
  EXPECT_TRUE(Node::answered_once(other));
  EXPECT_TRUE(other.errors.empty());
  EXPECT_EQ(a->packets.in_use(), 0U);
}

// Test idea 8 of the reference.
TEST_F(Sequences, Idea8_PsnsWrapInBothDirections) {
  for (const DeliveryMode mode : {DeliveryMode::Rud, DeliveryMode::Rod}) {
    Parameters parameters = test_parameters();
    parameters.start_psn = 0xFFFFFFFFU - 9;  // 2^32 - 10
    build(parameters, target_parameters());
    b->client.respond = [](const Delivered& packet) {
      return packet.number % 3 == 0 ? guaranteed_response() : default_response();
    };
    Rng rng(11);
    fate = [&](const Node&, const Sent&) { return Fate{.copies = rng.chance(0.1) ? 0 : 1}; };
    TestMessage& forward = send(40, mode);
    ASSERT_TRUE(run_while_not([&] { return b->manager->open_pdcs() == 1; }));
    TestMessage& back = b->message(40);
    ASSERT_TRUE(b->manager->send_on(only_pdc(*b)->id(), back, now).ok());
    EXPECT_TRUE(run_while_not([&] { return forward.responses + back.responses == 80; }));
    EXPECT_TRUE(Node::answered_once(forward));
    EXPECT_TRUE(Node::answered_once(back));
    EXPECT_EQ(b->client.delivered.size(), 40U);
    EXPECT_EQ(a->client.delivered.size(), 40U);
    const auto all = psns_sent(*b);
    EXPECT_NE(std::ranges::find(all, 0U), all.end());
    fate = nullptr;
    expect_clean_close();
  }
}

// A million messages (in a release build) over one PDC whose PSNs wrap on the way, each answered
// once; every 50th response is guaranteed.
TEST_F(Sequences, MillionMessagesOverOnePdc) {
#if defined(NDEBUG) && !defined(UET_PDS_FEW_MESSAGES)
  constexpr std::uint32_t kMessages = 1'000'000;
#else
  constexpr std::uint32_t kMessages = 50'000;  // without optimisation a million take too long
#endif
  constexpr std::uint32_t kBatch = 500;
  Parameters parameters = test_parameters();
  parameters.start_psn = 0U - kMessages / 2;
  build(parameters, target_parameters());
  keep_log = false;
  b->client.respond = [](const Delivered& packet) {
    return packet.psn.value % 50 == 0 ? guaranteed_response() : default_response();
  };
  Psn next{*parameters.start_psn};
  for (std::uint32_t done = 0; done < kMessages; done += kBatch) {
    for (std::uint32_t i = 0; i < kBatch; ++i) send(1);
    ASSERT_TRUE(run_while_not([&] {
      return std::ranges::all_of(a->messages, [](const auto& m) { return m.responses == 1; });
    })) << done;
    ASSERT_TRUE(std::ranges::all_of(a->messages, Node::answered_once));
    ASSERT_EQ(b->client.delivered.size(), kBatch);
    for (const Delivered& packet : b->client.delivered) {
      ASSERT_EQ(packet.psn, next);
      ++next;
    }
    a->messages.clear();
    a->client.answered.clear();
    b->client.delivered.clear();
  }
  EXPECT_EQ(next.value, kMessages / 2);
  EXPECT_EQ(a->manager->counters().pdcs_opened, 1U);
  expect_clean_close();
}

TEST_F(Sequences, Idea10_Pds162_RodWithOneLossInTen) {
  open_up_to(0x1000, DeliveryMode::Rod);
  lose(*a, 1, request_with(0x1000 + 4));
  TestMessage& message = send(10, DeliveryMode::Rod);
  run_for(milliseconds(100));
  std::vector<std::uint32_t> numbers;
  for (const Delivered& packet : b->client.delivered) numbers.push_back(packet.number);
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(Sequences, Idea12_Pds175_CloseWithALostClosingAck) {
  send(3);
  run_for(milliseconds(1));
  lose(*b, 2, [](const Sent& packet) { return packet.ack().has_value(); });
  a->manager->begin_close_all(now);
  run_for(seconds(1));
  EXPECT_EQ(a->manager->open_pdcs() + b->manager->open_pdcs(), 0U);
  ASSERT_EQ(a->client.closed.size(), 1U);
  EXPECT_FALSE(a->client.closed[0].error.has_value());
  ASSERT_EQ(b->client.closed.size(), 1U);
  EXPECT_EQ(a->packets.in_use() + b->packets.in_use(), 0U);
}

TEST_F(Sequences, Idea12_Pds171_AckAndTombstoneLost_ClosesOk) {
  Parameters for_b = target_parameters();
  for_b.tombstone_time = Duration{};
  build(test_parameters(), for_b);
  send(3);
  run_for(milliseconds(1));
  lose(*b, 1, [](const Sent& packet) { return packet.ack().has_value(); });
  a->manager->begin_close_all(now);
  run_for(seconds(1));
  EXPECT_EQ(a->manager->open_pdcs(), 0U);
  ASSERT_EQ(a->client.closed.size(), 1U);
  EXPECT_FALSE(a->client.closed[0].error.has_value());
}

// Test idea 14 of the reference: each side has two PDCs for itself and needs eight.
TEST_F(Sequences, Idea14_Pds182_BothOutOfPdcs_AllAreAnswered) {
  Parameters for_a = test_parameters();
  Parameters for_b = target_parameters();
  for_a.pdc_count = for_b.pdc_count = 4;
  build(for_a, for_b);
  std::vector<std::pair<Node*, TestMessage*>> waiting;
  std::vector<TestMessage*> all;
  for (Node* node : {a.get(), b.get()}) {
    for (std::uint8_t i = 0; i < 8; ++i) {
      TestMessage& message = node->message(20);
      waiting.emplace_back(node, &message);
      all.push_back(&message);
    }
  }
  for (int i = 0; i < 20'000 && !waiting.empty(); ++i) {
    std::erase_if(waiting, [&](const auto& entry) {
      const auto& [node, message] = entry;
      const auto traffic_class = static_cast<std::uint8_t>(message->id);
      const Destination destination = node == a.get() ? to_b(DeliveryMode::Rud, traffic_class)
                                                      : to_a(DeliveryMode::Rud, traffic_class);
      return node->manager->send(*message, destination, now).ok();
    });
    run_for(microseconds(200));
  }
  EXPECT_TRUE(waiting.empty());
  EXPECT_TRUE(run_while_not([&] {
    return std::ranges::all_of(all, [](const TestMessage* m) { return m->responses == 20; });
  }));
  for (const TestMessage* message : all) EXPECT_TRUE(Node::answered_once(*message));
  expect_clean_close();
}

// ---- everything at once -------------------------------------------------------------------------

class LossyWire : public Sequences, public ::testing::WithParamInterface<DeliveryMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, LossyWire, ::testing::Values(DeliveryMode::Rud, DeliveryMode::Rod));

// PDS-119: the time-out alone suffices, whatever else is lost.
TEST_P(LossyWire, Pds119_LossCopiesReordering_ArrivesOnce) {
  Rng rng(99);
  b->client.respond = [](const Delivered& packet) {
    return packet.number % 7 == 0 ? guaranteed_response() : default_response();
  };
  fate = [&](const Node&, const Sent&) {
    return Fate{.copies = rng.chance(0.08)   ? 0
                          : rng.chance(0.05) ? 2
                                             : 1,
                .delay = microseconds(rng.chance(0.1) ? rng.below(300) : 0)};
  };
  std::vector<TestMessage*> messages;
  for (int i = 0; i < 20; ++i) messages.push_back(&send(50, GetParam()));
  EXPECT_TRUE(run_while_not([&] {
    return std::ranges::all_of(messages, [](const TestMessage* m) { return m->responses == 50; });
  }));
  for (const TestMessage* message : messages) EXPECT_TRUE(Node::answered_once(*message));
  ASSERT_EQ(b->client.delivered.size(), 1000U);
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (std::size_t i = 0; i < 1000; ++i) {
    const Delivered& packet = b->client.delivered[i];
    EXPECT_TRUE(seen.emplace(packet.message, packet.number).second);
    if (GetParam() == DeliveryMode::Rod) {
      ASSERT_EQ(packet.message, 1 + i / 50);
      ASSERT_EQ(packet.number, i % 50);
    }
  }
  fate = nullptr;
  expect_clean_close();
}

TEST_P(LossyWire, Pds211_ClientRefuses_RetriedUntilAccepted) {
  Rng rng(5);
  b->client.respond = [&](const Delivered&) {
    if (rng.chance(0.3)) return refusal(NackCode::NoSesMsgAvail);
    return rng.chance(0.2) ? guaranteed_response() : default_response();
  };
  fate = [&](const Node&, const Sent&) {
    return Fate{.copies = rng.chance(0.05) ? 0 : 1,
                .delay = microseconds(rng.chance(0.1) ? rng.below(200) : 0)};
  };
  TestMessage& message = send(300, GetParam());
  EXPECT_TRUE(run_while_not([&] { return message.responses == 300; })) << message.responses;
  EXPECT_TRUE(Node::answered_once(message));
  ASSERT_EQ(b->client.delivered.size(), 300U);
  if (GetParam() == DeliveryMode::Rod) {
    for (std::uint32_t i = 0; i < 300; ++i) ASSERT_EQ(b->client.delivered[i].number, i);
  }
  fate = nullptr;
  expect_clean_close();
}

}  // namespace
}  // namespace uet::pds::testing
