// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peers that are slow, peers that are dead, and packets that never arrive at a peer that lives
// (PDS-121, PDS-125, PDS-137).
#include <algorithm>
#include <map>

#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

TEST(Rto, Pds121_UnansweredResends_PauseGrows) {
  Parameters parameters;
  parameters.rto_init = milliseconds(20);
  parameters.rto_cap = milliseconds(1000);
  EXPECT_EQ(retransmission_pause(parameters, 0), Duration{});
  EXPECT_EQ(retransmission_pause(parameters, 3), Duration{});
  EXPECT_EQ(retransmission_pause(parameters, 4), milliseconds(20));
  EXPECT_EQ(retransmission_pause(parameters, 6), milliseconds(80));
  EXPECT_EQ(retransmission_pause(parameters, 60), milliseconds(1000));
}

TEST(Rto, Pds121_SlowAnswersExtendTheSilenceByAThird) {
  Parameters parameters;
  const Duration usual = time_to_failure(parameters);
  EXPECT_EQ(silence_limit(parameters, {}), usual);
  EXPECT_EQ(silence_limit(parameters, usual + seconds(2)), usual + seconds(2));
  EXPECT_EQ(silence_limit(parameters, seconds(60)), usual + usual / 3);
  EXPECT_LT(silence_limit(parameters, seconds(60)), seconds(15));
  parameters.max_rto_retransmissions = kUnlimited;
  EXPECT_EQ(silence_limit(parameters, seconds(60)), Duration::max());
}

// ---- a peer that lives and does not get some packets --------------------------------------------

enum class Recovery { None, Nscc, Rccc, Both };
struct NeverArrives {
  Recovery recovery;
  DeliveryMode mode;
};

class PacketNeverArrives : public Pair, public ::testing::WithParamInterface<NeverArrives> {
 protected:
  static constexpr std::uint32_t kLarge = 1024;
  PacketNeverArrives() {
    cms::Parameters cms;
    cms.mtu_bytes = 1200;
    cms.base_rtt = 2 * kLatency;
    cms.paths = cms::PathPolicy::RoundRobin;
    cms.path_count = 64;
    switch (GetParam().recovery) {
      case Recovery::None:
        cms = open_window();
        break;
      case Recovery::Nscc:
        cms.algorithm = cms::Algorithm::Nscc;
        break;
      case Recovery::Rccc:
        cms.algorithm = cms::Algorithm::Rccc;
        break;
      case Recovery::Both:
        cms.algorithm = cms::Algorithm::Both;
        break;
    }
    Parameters shipped = test_parameters();
    shipped.max_rto_retransmissions = Parameters{}.max_rto_retransmissions;
    build(shipped, shipped, 8192, cms, cms);
    lose_large();
  }
  void lose_large() {
    fate = [this](const Node& from, const Sent& packet) {
      const auto request = packet.request();
      const bool large = &from == a.get() && request && packet.bytes.size() > kLarge;
      if (large) ++sent_[request->psn.value];
      return Fate{.copies = large ? 0 : 1};
    };
  }
  std::uint32_t most_transmissions() const {
    std::uint32_t most = 0;
    for (const auto& [psn, count] : sent_) most = std::max(most, count);
    return most;
  }
  std::map<std::uint32_t, std::uint32_t> sent_;  // transmissions of large packets, by PSN
};

TEST_P(PacketNeverArrives, Pds121_OperationEndsInBoundedTime) {
  keep_log = false;
  send(1, GetParam().mode);  // the PDC is open, the peer lives
  run_for(milliseconds(5));
  TestMessage& large = a->send(to_b(GetParam().mode), 20, now, kLarge);
  const Time begun = now;
  // Small messages beside it: the peer answers all the time.
  while (large.errors.empty() && !large.failed && now < begun + seconds(60)) {
    if (a->manager->open_pdcs() > 0 && a->messages.size() < 2000) send(1, GetParam().mode);
    run_for(milliseconds(20));
  }
  ASSERT_FALSE(large.errors.empty());
  EXPECT_EQ(large.errors[0], PdsError::RtoExhausted);
  EXPECT_LE(now - begun, silence_limit(test_parameters(), seconds(60)) + seconds(2));
  EXPECT_GE(now - begun, seconds(3)) << "a congested path is no dead one";
  EXPECT_LE(most_transmissions(), 2 * Parameters{}.max_rto_retransmissions + 2);
}

TEST_P(PacketNeverArrives, Pds121_AFewLossesAreRepairedAtOnce) {
  int lost = 0;
  fate = [&](const Node& from, const Sent& packet) {
    const auto request = packet.request();
    const bool chosen = &from == a.get() && request && request->psn.value == 70002 && lost < 3;
    lost += chosen ? 1 : 0;
    return Fate{.copies = chosen ? 0 : 1};
  };
  TestMessage& message = a->send(to_b(GetParam().mode), 40, now, kLarge);
  ASSERT_TRUE(run_while_not([&] { return Node::answered_once(message); }, seconds(1)));
  EXPECT_EQ(lost, 3);
}

INSTANTIATE_TEST_SUITE_P(Modes, PacketNeverArrives,
                         ::testing::Values(NeverArrives{Recovery::None, DeliveryMode::Rud},
                                           NeverArrives{Recovery::None, DeliveryMode::Rod},
                                           NeverArrives{Recovery::Nscc, DeliveryMode::Rud},
                                           NeverArrives{Recovery::Nscc, DeliveryMode::Rod},
                                           NeverArrives{Recovery::Rccc, DeliveryMode::Rud},
                                           NeverArrives{Recovery::Both, DeliveryMode::Rud}));

class TrimmedForEver : public Bench {};

// The header comes through each time, the payload never.
TEST_F(TrimmedForEver, Pds121_Pds122_TransmissionsAreBounded) {
  TestMessage& message = outstanding(1);
  const Time begun = now;
  std::uint32_t transmissions = 1;
  now += microseconds(100);
  receive(nack(NackCode::Trimmed, 70001));
  while (message.errors.empty() && now < begun + seconds(60)) {
    const std::size_t sent = requests(turn()).size();
    transmissions += static_cast<std::uint32_t>(sent);
    now += microseconds(100);
    if (sent > 0) receive(nack(NackCode::Trimmed, 70001));
  }
  EXPECT_EQ(message.errors, std::vector{PdsError::RtoExhausted});
  EXPECT_EQ(transmissions,
            test_parameters().max_rto_retransmissions + kQuickRetransmissions + kQuickTrims + 1);
}

// Full queues trim a packet many times, and its peer answers each time.
TEST_F(TrimmedForEver, Pds122_LeavesAtOnceForAWhile) {
  outstanding(1);
  for (std::uint32_t i = 0; i < kQuickTrims; ++i) {
    now += microseconds(100);
    receive(nack(i % 2 == 0 ? NackCode::Trimmed : NackCode::TrimmedLastHop, 70001));
    ASSERT_EQ(requests(turn()).size(), 1U) << i;
  }
  for (std::uint32_t i = 0; i < kQuickRetransmissions; ++i) {
    now += microseconds(100);
    receive(nack(NackCode::Trimmed, 70001));
    ASSERT_EQ(requests(turn()).size(), 1U) << i;
  }
  now += microseconds(100);
  receive(nack(NackCode::Trimmed, 70001));
  EXPECT_TRUE(requests(turn()).empty());
}

// ---- silence ------------------------------------------------------------------------------------

class Silence : public Bench {
 protected:
  Silence() {
    parameters.rto_init = Parameters{}.rto_init;
    parameters.rto_cap = Parameters{}.rto_cap;
    parameters.max_rto_retransmissions = Parameters{}.max_rto_retransmissions;
    limit = time_to_failure(parameters);
    build(parameters);
  }
  // Turns at each deadline and returns the number of requests that left meanwhile.
  std::size_t requests_during(Duration time) {
    const Time end = now + time;
    std::size_t count = 0;
    while (now < end) {
      now = std::clamp(node->manager->next_deadline(), now + TimerWheel::kTick, end);
      count += requests(turn()).size();
    }
    return count;
  }
  Parameters parameters = test_parameters();
  Duration limit{};
};

TEST_F(Silence, Pds120_Silence_OnlyOldestPacketRepeated) {
  TestMessage& message = outstanding(100);
  EXPECT_LE(requests_during(seconds(7)), 100U + 15);
  EXPECT_TRUE(message.errors.empty());
  now += microseconds(10);
  receive(ack(70100, 70100));
  EXPECT_TRUE(Node::answered_once(message));
}

// The peer takes up one packet after the other when it comes back.
TEST_F(Silence, Pds120_FirstAnswer_TriggersNoResend) {
  outstanding(100);
  requests_during(seconds(3));
  now += microseconds(10);
  EXPECT_TRUE(requests(answer_to(ack(70001, 70001))).empty());
  EXPECT_TRUE(requests(after(milliseconds(10))).empty());
  EXPECT_EQ(requests_during(milliseconds(100)), 99U) << "what is lost comes again soon";
}

TEST_F(Silence, Pds120_ItsLengthIsLearned) {
  open();
  for (std::uint32_t psn = 70001; psn <= 70006; ++psn) {
    TestMessage& message = send(1);
    turn();
    const std::size_t repeated = requests_during(seconds(7));
    EXPECT_LE(repeated, psn == 70001 ? 12U : 1U) << psn;
    receive(ack(psn, psn));  // of the first transmission: RETX is clear
    EXPECT_TRUE(Node::answered_once(message)) << psn;
  }
}

TEST_F(Silence, Pds120_AnswerOfUnknownSend_TeachesNothing) {
  open();
  send(1);
  turn();
  requests_during(seconds(7));
  wire::AckHeader again = ack(70001, 70001);
  again.retx = true;
  receive(again);
  send(1);
  turn();
  EXPECT_EQ(requests_during(milliseconds(25)), 1U);
}

TEST_F(Silence, Pds125_AnyPacketOfThePeerIsASignOfLife) {
  TestMessage& message = outstanding(3);
  const auto expect_alive_for = [&](auto header) {
    requests_during(limit - milliseconds(100));
    ASSERT_TRUE(message.errors.empty());
    receive(header);
    turn();
    requests_during(limit - milliseconds(100));
    EXPECT_TRUE(message.errors.empty());
    receive(header);
    turn();
  };
  expect_alive_for(control(CpType::ClearRequest, 0));
  expect_alive_for(control(CpType::Clear, 0));
  expect_alive_for(ack(70000, 70000));
  expect_alive_for(nack(NackCode::NoResource, 70001));
  requests_during(limit + seconds(1));
  EXPECT_EQ(message.errors.size(), 3U) << "a dead one is given up";
}

// Its time-out may come while the packet waits for the pause after unanswered retransmissions.
TEST_F(Silence, Pds121_RarelySpeakingPeer_StillTimesOut) {
  parameters.rto_cap = milliseconds(50);
  build(parameters);
  TestMessage& message = outstanding(1);
  const Time begun = now;
  for (int sent = 0; message.errors.empty() && now < begun + seconds(300);) {
    sent += static_cast<int>(requests_during(milliseconds(1)));
    if (sent < 3) continue;
    sent = 0;
    now += microseconds(50);
    receive(control(CpType::ClearRequest, 0));
    turn();
  }
  EXPECT_EQ(message.errors, std::vector{PdsError::RtoExhausted});
}

// Packets of the peer come all the time; its answer may wait behind them in its NIC.
TEST_F(Silence, Pds121_LivingPeerHasTheTimeOfASilentOne) {
  parameters.rto_init = microseconds(500);
  parameters.rto_cap = milliseconds(50);
  parameters.max_rto_retransmissions = 10;
  build(parameters);
  TestMessage& message = outstanding(1);
  const Time begun = now;
  std::size_t sent = 0;
  while (message.errors.empty() && now < begun + seconds(60)) {
    sent += requests_during(milliseconds(1));
    receive(control(CpType::ClearRequest, 0));
    turn();
  }
  EXPECT_GE(now - begun, time_to_failure(parameters));
  EXPECT_LE(now - begun, 2 * time_to_failure(parameters));
  const std::size_t before_it_spoke = 1;
  EXPECT_LE(sent, parameters.max_rto_retransmissions + kQuickRetransmissions + before_it_spoke);
}

TEST_F(Silence, Pds137_SlowAnswers_SilenceBelow15Seconds) {
  open();
  for (std::uint32_t psn = 70001; psn <= 70006; ++psn) {
    send(1);
    turn();
    requests_during(seconds(9));
    receive(ack(psn, psn));
  }
  TestMessage& message = send(1);
  turn();
  const Time begun = now;
  while (message.errors.empty() && now < begun + seconds(60)) requests_during(milliseconds(10));
  EXPECT_LT(now - begun, seconds(15));
  EXPECT_GT(now - begun, seconds(10));
}

}  // namespace
}  // namespace uet::pds::testing
