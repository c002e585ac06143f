// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Losses inferred from later packets on the same path, and the guards (CMS-420, CMS-421).
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "pds/pdc.h"
#include "pds/retransmit.h"
#include "unit/pds/pds_harness.h"

namespace uet::pds::testing {
namespace {

using wire::CpType;

// A quarter of the base RTT, of 100 us here, and until the timer notices.
constexpr Duration kWait = microseconds(25) + TimerWheel::kTick;

class PathInference : public Bench {
 protected:
  void build_with(std::uint16_t path_count) {
    cms::Parameters cms = open_window();
    cms.paths = cms::PathPolicy::RoundRobin;
    cms.path_count = path_count;
    build(test_parameters(), cms);
    open();
  }
  // Sends `count` packets; their entropy values by PSN.
  std::map<std::uint32_t, std::uint16_t> send_many(std::uint32_t count) {
    send(count);
    return entropies(turn());
  }
  static std::map<std::uint32_t, std::uint16_t> entropies(const std::vector<Sent>& sent) {
    std::map<std::uint32_t, std::uint16_t> by_psn;
    for (const Sent& packet : sent) {
      if (packet.request()) by_psn[packet.request()->psn.value] = packet.entropy;
    }
    return by_psn;
  }
  // The peer has this one packet, and nothing is known of those before.
  wire::AckHeader only(std::uint32_t psn) const { return ack(70000, psn); }
};

TEST_F(PathInference, Cms420_Pds131_AnyNumberOfPathsIsDistinguished) {
  for (const std::uint16_t paths : {2, 16, 64, 100, 400}) {
    build_with(paths);
    const auto by_psn = send_many(2U * paths);
    ASSERT_EQ(by_psn.size(), 2U * paths);
    std::uint32_t arrived = 70001U + paths;  // its path has gone round once
    ASSERT_EQ(by_psn.at(arrived), by_psn.at(70001));
    receive(only(arrived));
    EXPECT_EQ(psns(requests(after(kWait))), (std::vector<std::uint32_t>{70001})) << paths;
    EXPECT_EQ(counters().inferred_loss_retransmissions, 1U);
  }
}

TEST_F(PathInference, Pds130_WindowAboveThreshold_WindowMeansLost) {
  const auto later_when_sent_again = [this](std::uint32_t window) {
    cms::Parameters cms = open_window();
    cms.fixed_window_bytes = std::uint64_t{window} * cms.mtu_bytes;
    cms.path_inference = false;
    build(test_parameters(), cms);
    open();
    send_many(600);
    std::uint32_t later = 1;
    while (later < 600 && requests(answer_to(only(70001 + later))).empty()) ++later;
    return later;
  };
  EXPECT_EQ(later_when_sent_again(40), 64U);
  EXPECT_EQ(later_when_sent_again(100), 100U);
  EXPECT_EQ(later_when_sent_again(1 << 18), 512U) << "half of the peer's window, MPR 8";
}

TEST_F(PathInference, Cms421_BeforeQuarterOfBaseRtt_NothingIsLost) {
  build_with(2);
  send_many(4);
  receive(only(70003));
  EXPECT_TRUE(requests(turn()).empty());
  EXPECT_TRUE(requests(after(microseconds(24))).empty());
  EXPECT_EQ(requests(after(TimerWheel::kTick + microseconds(1))).size(), 1U);
}

TEST_F(PathInference, Cms421_ANackThatComesMeanwhileTellsMore) {
  build_with(2);
  send_many(4);
  receive(only(70003));
  EXPECT_EQ(psns(requests(answer_to(nack(NackCode::Trimmed, 70001)))),
            (std::vector<std::uint32_t>{70001}));
  EXPECT_TRUE(requests(after(kWait)).empty());
  EXPECT_EQ(counters().inferred_loss_retransmissions, 0U);
}

TEST_F(PathInference, Cms421_APacketThatArrivesMeanwhileWasNotLost) {
  build_with(2);
  send_many(4);
  receive(only(70003));
  receive(ack(70001, 70001));
  EXPECT_TRUE(requests(after(kWait)).empty());
}

TEST_F(PathInference, Cms421_LeftBeforeResend_ProvesNothingOfIt) {
  build_with(1);
  send_many(3);
  receive(only(70002));
  ASSERT_EQ(psns(requests(after(kWait))), (std::vector<std::uint32_t>{70001}));
  receive(ack(70000, 70003));  // left before 70001 did again
  EXPECT_TRUE(requests(after(test_parameters().rto_init - milliseconds(1))).empty());
}

TEST_F(PathInference, Cms421_RouteChanged_ProvesNothingInFlight) {
  cms::Parameters cms = open_window();
  cms.base_rtt = microseconds(100);
  build(test_parameters(), cms);
  open();
  send_many(5);
  receive(only(70003));
  ASSERT_EQ(psns(requests(after(kWait))), (std::vector<std::uint32_t>{70001, 70002}));
  // 70001 was not lost: its answer comes sooner than one to the retransmission can.
  receive(ack(70001, 70001));
  EXPECT_EQ(counters().inferred_losses_spurious, 1U);
  receive(ack(70001, 70005));
  EXPECT_TRUE(requests(after(4 * kWait)).empty()) << "70004 left before the route changed";
  send_many(2);  // 70006, 70007
  receive(ack(70001, 70007));
  EXPECT_TRUE(requests(after(kWait)).empty()) << "the wait is twice as long";
  EXPECT_EQ(psns(requests(after(kWait))), (std::vector<std::uint32_t>{70006}));
}

TEST_F(PathInference, Cms424_RodNeverUsesIt) {
  open(DeliveryMode::Rod);
  send(4, DeliveryMode::Rod);
  turn();
  wire::AckHeader header = ack(70000, 70000);
  header.sack_bitmap = 0b1110;  // all but 70001
  receive(header);
  EXPECT_TRUE(requests(after(4 * kWait)).empty());
}

TEST_F(PathInference, ItCanBeTurnedOff) {
  cms::Parameters cms = open_window();
  cms.path_inference = false;
  build(test_parameters(), cms);
  open();
  send_many(4);
  receive(only(70004));
  EXPECT_TRUE(requests(after(4 * kWait)).empty());
}

// Packets reported above do not prove that a retransmission is lost too: time-outs must.
TEST_F(PathInference, Pds132_APeerThatFallsSilentIsGivenUp) {
  Parameters parameters = test_parameters();
  parameters.out_of_order_threshold = 2;
  parameters.max_rto_retransmissions = 3;
  cms::Parameters narrow = open_window();
  narrow.fixed_window_bytes = 2 * std::uint64_t{narrow.mtu_bytes};
  build(parameters, narrow);
  open();
  TestMessage& message = send(4);
  turn();
  wire::AckHeader header = ack(70000, 70000);
  header.sack_bitmap = 0b1110;  // all but 70001
  receive(header);
  ASSERT_EQ(counters().inferred_loss_retransmissions, 1U);
  for (int i = 0; i < 200 && message.errors.empty(); ++i) {
    now = std::max(now, node->manager->next_deadline());
    turn();
  }
  ASSERT_FALSE(message.errors.empty());
  EXPECT_EQ(message.errors[0], PdsError::RtoExhausted);
  EXPECT_EQ(counters().inferred_loss_retransmissions, 1U);
}

// Answers take long, so that a time-out is later than the next inference: that one must count.
TEST_F(PathInference, Pds121_InferredLossesOfAPacketAreBounded) {
  Parameters parameters = test_parameters();
  parameters.rto_cap = parameters.rto_init;
  parameters.max_rto_retransmissions = 3;
  cms::Parameters cms = open_window();
  cms.paths = cms::PathPolicy::RoundRobin;
  cms.path_count = 1;
  build(parameters, cms);
  open();
  send_many(1);
  after(parameters.rto_init * 3 / 4);
  receive(ack(70001, 70001));
  TestMessage& lost = send(1);  // 70002
  turn();
  int transmissions = 1;
  for (std::uint32_t newer = 70003; newer < 70020 && lost.errors.empty(); ++newer) {
    send(1);
    turn();
    receive(ack(70001, newer));
    for (const auto& request : requests(after(kWait))) transmissions += request.psn.value == 70002;
    for (const auto& request : requests(after(parameters.rto_init + milliseconds(1)))) {
      transmissions += request.psn.value == 70002;
    }
  }
  ASSERT_FALSE(lost.errors.empty()) << transmissions << " transmissions";
  EXPECT_EQ(lost.errors[0], PdsError::RtoExhausted);
  EXPECT_LE(transmissions, 3 + static_cast<int>(kQuickRetransmissions) + 2);
}

// ---- how it is sent again -----------------------------------------------------------------------

class Retransmission : public Bench {
 protected:
  void build_with(std::optional<std::uint8_t> dscp) {
    Parameters parameters = test_parameters();
    parameters.dscp_data = 4;
    parameters.dscp_retransmission = dscp;
    parameters.dscp_no_trim = 1;
    build(parameters);
    open();
    send(1);
    first = turn();
  }
  // The DSCP of what `code` brings back.
  int dscp_after(NackCode code) {
    for (const Sent& sent : answer_to(nack(code, 70001))) {
      if (sent.request()) return sent.dscp;
    }
    return -1;
  }
  std::vector<Sent> first;
};

// CMS-30: the DSCP is configuration.
TEST_F(Retransmission, Cms504_MayHaveADscpOfItsOwn) {
  build_with(8);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].dscp, 4);
  EXPECT_EQ(dscp_after(NackCode::Trimmed), 8);
  build_with({});
  EXPECT_EQ(dscp_after(NackCode::Trimmed), 4);
}

TEST_F(Retransmission, Cms507_TrimmedThreeTimes_GoesUntrimmable) {
  for (const NackCode code : {NackCode::Trimmed, NackCode::TrimmedLastHop}) {
    build_with(8);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(dscp_after(code), 8) << i;
    EXPECT_EQ(dscp_after(code), 1);
    send(1);
    for (const Sent& sent : turn()) EXPECT_EQ(sent.dscp, 4) << "the next one is as any other";
  }
}

TEST_F(Retransmission, Cms507_OtherNacksDoNotCount) {
  build_with(8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(dscp_after(NackCode::RcvrInferLoss), 8) << i;
}

TEST(PathInferenceMemory, APdcIsSmallerThanAKilobyte) { EXPECT_LE(sizeof(Pdc), 1024U); }

// ---- what it does for congestion management (CMS sections 1 to 6)
// ------------------------------------------------------------------------------------------------

class CongestionRules : public Bench {
 protected:
  static cms::Parameters nscc() {
    cms::Parameters cms;
    cms.mtu_bytes = 1024 + 128;
    cms.base_rtt = microseconds(100);
    return cms;
  }
  std::uint64_t window() { return node->manager->find(pdc)->ccc().ccc->window_bytes(); }
};

TEST_F(CongestionRules, Cms402_AnAckTakesTheEntropyOfItsPacket) {
  accept(333);
  turn();
  for (const std::uint16_t entropy : {50123, 61000}) {
    rx_entropy = entropy;
    wire::RequestHeader next = request(334U + (entropy == 61000 ? 1 : 0));
    next.ar = true;
    receive(next);
    const auto sent = turn();
    ASSERT_EQ(acks(sent).size(), 1U);
    EXPECT_EQ(sent[0].entropy, entropy);
  }
}

TEST_F(CongestionRules, Cms503_TrimmedPacket_RefusedAlongItsPath) {
  accept(333);
  turn();
  rx_entropy = 50123;
  rx_ecn = Ecn::Ce;
  rx_trimmed = true;
  receive(request(334));
  receive(retransmission(335));
  const auto sent = turn();
  ASSERT_EQ(nacks(sent).size(), 2U);  // no coalescing
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(nacks(sent)[i].nack_code, NackCode::Trimmed);
    EXPECT_TRUE(nacks(sent)[i].ce);
    EXPECT_EQ(nacks(sent)[i].retx, i == 1);
  }
  for (const Sent& packet : sent) EXPECT_EQ(packet.entropy, 50123);
}

TEST_F(CongestionRules, Cms506_ATrimmedAckIsDroppedWithoutANack) {
  open();
  TestMessage& message = send(1);
  turn();
  rx_trimmed = true;
  EXPECT_TRUE(answer_to(ack(70001, 70001)).empty());
  EXPECT_EQ(message.responses, 0U);
  EXPECT_EQ(counters().trimmed_received, 1U);
}

TEST_F(CongestionRules, Cms131_Cms311_RefusalForLackOfMemoryIsNoCongestion) {
  build(test_parameters(), nscc());
  open();
  send(4, DeliveryMode::Rud, 1024);
  turn();
  const std::uint64_t before = window();
  receive(nack(NackCode::NoPktBuffer, 70001));
  EXPECT_EQ(window(), before);
}

// CMS-504: the packet follows at once; the window has become smaller by it (CMS-130).
TEST_F(CongestionRules, Cms509_TrimmingUnexpected_NackIsHonoured) {
  build(test_parameters(), nscc());
  ASSERT_FALSE(nscc().trimming);
  open();
  send(4, DeliveryMode::Rud, 1024);
  turn();
  const std::uint64_t before = window();
  EXPECT_EQ(psns(requests(answer_to(nack(NackCode::Trimmed, 70002)))),
            (std::vector<std::uint32_t>{70002}));
  EXPECT_LT(window(), before);
}

TEST_F(CongestionRules, Cms224_Cms505_Trim_KeepsCreditAndCountsTarget) {
  cms::Parameters cms = nscc();
  cms.algorithm = cms::Algorithm::Rccc;
  cms.tuning.unsolicited_bdp = 0;
  build(test_parameters(), cms);
  const auto asking = [&](std::uint32_t psn, std::uint32_t target) {
    wire::RequestHeader header = request(psn, psn == 333);
    header.type = wire::PdsType::RudCcReq;
    header.ccc_id = 5;
    header.credit_target = target;
    return header;
  };
  peer_start = 333;
  receive(asking(333, 10));
  pdc = node->client.delivered.back().pdc;
  EXPECT_EQ(acks(turn()).at(0).credit, 10U);
  rx_trimmed = true;
  receive(asking(334, 10));
  EXPECT_TRUE(controls(turn()).empty()) << "what was granted stays granted, and is no more";
  after(microseconds(10));
  receive(asking(335, 15));
  const auto granted = controls(after(microseconds(10)));
  ASSERT_EQ(granted.size(), 1U);
  EXPECT_EQ(granted[0].ctl_type, wire::CpType::Credit);
  EXPECT_EQ(granted[0].payload, 15U);
}

// ---- trains (CMS-700) ---------------------------------------------------------------------------

class PdcTrains : public Bench {
 protected:
  // How many packets in a row take one path each time, of 64 packets of `mtu` bytes sent in one
  // pass with a window of `window` packets.
  std::set<std::size_t> trains(std::uint32_t mtu, std::uint64_t window, std::uint32_t most) {
    cms::Parameters cms = open_window();
    cms.mtu_bytes = mtu;
    cms.fixed_window_bytes = cms.max_window_bytes = window * mtu;
    cms.paths = cms::PathPolicy::RoundRobin;
    cms.path_count = 8;
    cms.train_packets = most;
    build(test_parameters(), cms);
    open();
    now += milliseconds(1);  // another pass than that of the first packet
    send(64);
    std::vector<std::size_t> lengths;
    std::optional<std::uint16_t> last;
    for (const Sent& sent : turn()) {
      if (!sent.request()) continue;
      if (sent.entropy != last) lengths.push_back(0);
      ++lengths.back();
      last = sent.entropy;
    }
    lengths.pop_back();  // the rest
    return {lengths.begin(), lengths.end()};
  }
};

TEST_F(PdcTrains, Cms700_Train_16PacketsQuarterWindowOr64KiB) {
  EXPECT_EQ(trains(1024, 200, 16), std::set<std::size_t>{16});
  EXPECT_EQ(trains(1024, 40, 16), std::set<std::size_t>{10});
  EXPECT_EQ(trains(8192, 400, 16), std::set<std::size_t>{8});
  EXPECT_EQ(trains(1024, 3, 16), std::set<std::size_t>{1});
  EXPECT_EQ(trains(1024, 200, 1), std::set<std::size_t>{1}) << "a NIC that sends one by one";
}

// ---- ACKs shared by messages that need no prompt ACK (PDS-128) ----------------------------------

class SharedAcks : public Bench {
 protected:
  static Parameters parameters() {
    Parameters parameters = test_parameters();
    parameters.rto_init = milliseconds(64);
    return parameters;
  }
  // PDC ids, and the first packet's PSN 70000, are answered.
  void SetUp() override { start(parameters(), open_window()); }
  void start(const Parameters& parameters, const cms::Parameters& cms) {
    build(parameters, cms);
    open();
  }
  void post(bool prompt_ack, std::uint32_t packets = 1, DeliveryMode mode = DeliveryMode::Rud) {
    TestMessage& message = node->message(packets, payload_bytes);
    message.prompt_ack = prompt_ack;
    ASSERT_TRUE(node->manager->send(message, to_peer(mode), now).ok());
  }
  std::vector<wire::RequestHeader> post_unawaited(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) post(false);
    return requests(turn());
  }
  static std::vector<std::uint32_t> asking(const std::vector<wire::RequestHeader>& headers) {
    std::vector<std::uint32_t> found;
    for (const wire::RequestHeader& header : headers) {
      if (header.ar) found.push_back(header.psn.value);
    }
    return found;
  }
  static std::vector<std::uint32_t> ack_requests(const std::vector<Sent>& sent) {
    std::vector<std::uint32_t> found;
    for (const wire::ControlHeader& header : controls(sent)) {
      if (header.ctl_type == CpType::AckRequest) found.push_back(header.psn.value);
    }
    return found;
  }
  static constexpr Duration kTailLossTime = milliseconds(1);
  static constexpr std::uint32_t kLongPayload = 4000;
  std::uint32_t payload_bytes = 64;  // of each packet
  using Psns = std::vector<std::uint32_t>;
};

TEST_F(SharedAcks, Pds128_NoPromptAck_PeerAnswers16_NoneAsks) {
  for (std::uint32_t last = 70016; last < 70200; last += 16) {
    EXPECT_EQ(asking(post_unawaited(16)), Psns{});
    EXPECT_TRUE(ack_requests(answer_to(ack(last, last))).empty());
  }
}

// The peer would send an ACK for 64 KiB of them, and takes longer for it.
TEST_F(SharedAcks, Pds128_LongPackets_EachSixteenthPsnAsks) {
  payload_bytes = 1100;
  EXPECT_EQ(asking(post_unawaited(40)), (Psns{70016, 70032}));
}

// A peer with a larger trigger.
TEST_F(SharedAcks, Pds128_NoneAnswered_Each24thAsks) {
  EXPECT_EQ(asking(post_unawaited(50)), (Psns{70024, 70048}));
  receive(ack(70048, 70048));
  EXPECT_EQ(asking(post_unawaited(21)), Psns{}) << "23 are unanswered";
  EXPECT_EQ(asking(post_unawaited(1)), (Psns{70072}));
}

// A peer that answers none by itself. The time-out of the oldest one is far.
TEST_F(SharedAcks, Pds128_OldestUnanswered_NewestAsks) {
  Parameters sooner = parameters();
  sooner.rto_init = milliseconds(48);
  start(sooner, open_window());
  Psns asked;
  for (int i = 0; i < 40; ++i) {
    for (const std::uint32_t psn : asking(post_unawaited(1))) asked.push_back(psn);
    EXPECT_TRUE(ack_requests(after(kTailLossTime * 7 / 8)).empty()) << i;
  }
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked[0], 70015U) << "12 ms after 70001, a quarter of RTO_Init";
  EXPECT_EQ(counters().rto_retransmissions, 0U);
}

TEST_F(SharedAcks, Pds101_MessageWithPromptAckAsks) {
  post(false);
  post(true);
  post(false, 3);
  post(true, 3);
  EXPECT_EQ(asking(requests(turn())), (Psns{70002, 70008}));
  EXPECT_TRUE(ack_requests(after(3 * kTailLossTime)).empty()) << "the last one asks for all";
}

TEST_F(SharedAcks, Pds128_TheTailIsAskedForOnce) {
  post_unawaited(3);
  EXPECT_TRUE(ack_requests(after(kTailLossTime - TimerWheel::kTick)).empty());
  EXPECT_EQ(ack_requests(after(2 * TimerWheel::kTick)), (Psns{70003}));
  EXPECT_EQ(counters().ack_requests_sent, 1U);
  EXPECT_TRUE(ack_requests(after(10 * kTailLossTime)).empty()) << "the time-out repeats it";
  EXPECT_TRUE(node->messages.back().answers[0] == 0);
  receive(ack(70003, 70003));
  for (const TestMessage& message : node->messages) EXPECT_TRUE(Node::answered_once(message));
}

TEST_F(SharedAcks, Pds128_TheTimeCountsFromTheLastMessage) {
  for (int i = 0; i < 8; ++i) {
    post_unawaited(1);
    EXPECT_TRUE(ack_requests(after(kTailLossTime / 2)).empty());
  }
  EXPECT_EQ(ack_requests(after(kTailLossTime / 2 + 2 * TimerWheel::kTick)), (Psns{70008}));
}

TEST_F(SharedAcks, Pds128_WhatIsAnsweredIsNotAskedFor) {
  post_unawaited(3);
  receive(ack(70003, 70003));
  EXPECT_TRUE(ack_requests(after(3 * kTailLossTime)).empty());
}

TEST_F(SharedAcks, Pds128_WhatIsKnownToHaveArrivedIsNotAskedFor) {
  post_unawaited(3);
  wire::AckHeader header = ack(70000, 70002);
  header.sack_bitmap = 0b110;  // 70002 and 70003
  receive(header);
  EXPECT_TRUE(ack_requests(after(3 * kTailLossTime)).empty());
}

TEST_F(SharedAcks, Pds156_WhatHasNotArrivedComesAgainAtOnce) {
  post_unawaited(1);
  ASSERT_EQ(ack_requests(after(kTailLossTime + TimerWheel::kTick)), (Psns{70001}));
  const auto sent = requests(answer_to(nack(NackCode::PktNotRcvd, 70001)));
  ASSERT_EQ(psns(sent), (Psns{70001}));
  EXPECT_TRUE(sent[0].ar) << "PDS-124";
}

TEST_F(SharedAcks, Pds124_WhatIsSentAgainBeforeHasAsked) {
  post_unawaited(1);
  ASSERT_EQ(asking(requests(answer_to(nack(NackCode::Trimmed, 70001)))), (Psns{70001}));
  EXPECT_TRUE(ack_requests(after(10 * kTailLossTime)).empty());
}

TEST_F(SharedAcks, Pds128_AnswerToRequest_GivesNoRoundTrip) {
  cms::Parameters cms;
  cms.base_rtt = microseconds(100);
  start(parameters(), cms);
  const auto samples = [this] { return node->manager->contexts().counters().rtt_samples; };
  post_unawaited(1);
  ASSERT_EQ(ack_requests(after(kTailLossTime + TimerWheel::kTick)), (Psns{70001}));
  wire::AckHeader header = ack(70001, 70001);
  header.service_time = 1;
  receive(header);
  EXPECT_EQ(samples(), 0U);
  post(true);
  turn();
  now += microseconds(20);
  header = ack(70002, 70002);
  header.service_time = 1;
  receive(header);
  EXPECT_EQ(samples(), 1U);
}

// Under an incast there may be no other packets.
TEST_F(SharedAcks, Cms113_AnswerAfterTrims_GivesTheRoundTrip) {
  cms::Parameters cms;
  cms.base_rtt = microseconds(100);
  start(parameters(), cms);
  const auto samples = [this] { return node->manager->contexts().counters().rtt_samples; };
  post(true);
  turn();
  for (int i = 0; i < 3; ++i) {
    now += microseconds(20);
    ASSERT_EQ(requests(answer_to(nack(NackCode::Trimmed, 70001))).size(), 1U);
  }
  now += microseconds(20);
  wire::AckHeader header = ack(70001, 70001);
  header.service_time = 1;
  header.retx = true;
  receive(header);
  EXPECT_EQ(samples(), 1U);
}

// Else a base RTT of nanoseconds would follow, with a window of one packet.
TEST_F(SharedAcks, Cms113_AnswerToRestartedTimeOut_GivesNone) {
  cms::Parameters cms;
  cms.base_rtt = microseconds(100);
  start(parameters(), cms);
  post(true);
  turn();
  now += microseconds(20);
  receive(nack(NackCode::RcvdSesProcg, 70001));
  now += microseconds(1);
  wire::AckHeader header = ack(70001, 70001);
  header.service_time = 1;
  receive(header);
  EXPECT_EQ(node->manager->contexts().counters().rtt_samples, 0U);
}

// Without trimming, all packets that are outstanding may have been lost twice.
TEST_F(SharedAcks, Cms113_AnswerAfterLosses_GivesTheRoundTrip) {
  cms::Parameters cms;
  cms.base_rtt = microseconds(100);
  start(parameters(), cms);
  const auto samples_after = [this](Psn psn, Duration last) {
    post(true);
    turn();
    for (int i = 0; i < 2; ++i) {
      now += microseconds(20);
      EXPECT_EQ(requests(answer_to(nack(NackCode::PktNotRcvd, psn.value))).size(), 1U);
    }
    now += last;
    wire::AckHeader header = ack(psn.value, psn.value);
    header.service_time = 1;
    header.retx = true;
    receive(header);
    return node->manager->contexts().counters().rtt_samples;
  };
  EXPECT_EQ(samples_after(Psn{70001}, microseconds(20)), 0U) << "the second one was answered";
  EXPECT_EQ(samples_after(Psn{70002}, microseconds(100)), 1U);
}

TEST_F(SharedAcks, Pds128_ThirtyTwoOfItFitIntoTheTimeOut) {
  Parameters parameters = test_parameters();
  parameters.rto_init = milliseconds(16);
  EXPECT_EQ(tail_loss_time(parameters), microseconds(500));
  parameters.tail_loss_time = microseconds(100);
  EXPECT_EQ(tail_loss_time(parameters), microseconds(100));
}

TEST_F(SharedAcks, Pds128_NoneAreSharedWhereItIsDisabled) {
  Parameters disabled = parameters();
  disabled.tail_loss_time = Duration{};
  start(disabled, open_window());
  EXPECT_EQ(asking(post_unawaited(3)).size(), 3U);
  EXPECT_TRUE(ack_requests(after(3 * kTailLossTime)).empty());
}

TEST_F(SharedAcks, Cms200_NoneAreSharedWhereCreditComesWithThem) {
  cms::Parameters cms;
  cms.algorithm = cms::Algorithm::Both;
  start(parameters(), cms);
  wire::ControlHeader credit = control(CpType::Credit, 0);
  credit.ar = false;
  credit.payload = 10'000;
  receive(credit);
  EXPECT_EQ(asking(post_unawaited(3)).size(), 3U);
}

TEST_F(SharedAcks, Pds51_ThePacketsThatOpenAsk) {
  build(parameters());
  EXPECT_EQ(asking(post_unawaited(3)).size(), 3U);
}

TEST_F(SharedAcks, Pds156_APeerThatHasNotAnsweredIsNotAsked) {
  build(parameters());
  TestMessage& message = node->message(3);
  message.block_at = 2;  // in mid-message
  ASSERT_TRUE(node->manager->send(message, to_peer(), now).ok());
  ASSERT_EQ(requests(turn()).size(), 2U);
  ASSERT_TRUE(node->manager->cancel(message));
  node->manager->request_acks_now(PdcId{10});
  EXPECT_TRUE(ack_requests(after(3 * kTailLossTime)).empty());
}

TEST_F(SharedAcks, Pds128_WhoComesToWaitAsksAtOnce) {
  post_unawaited(2);
  post(false);  // still in the backlog
  node->manager->request_acks_now(pdc);
  const auto sent = turn();
  EXPECT_EQ(ack_requests(sent), (Psns{70002}));
  EXPECT_EQ(asking(requests(sent)), (Psns{70003}));
  node->manager->request_acks_now(pdc);
  EXPECT_TRUE(turn().empty());
}

TEST_F(SharedAcks, Pds128_AClosedWindowAsks) {
  cms::Parameters cms = open_window();
  cms.fixed_window_bytes = 2 * cms.mtu_bytes;
  start(parameters(), cms);
  for (int i = 0; i < 100; ++i) post(false);
  const auto sent = turn();
  ASSERT_LT(requests(sent).size(), 100U);
  const auto last = requests(sent).back();
  EXPECT_EQ(ack_requests(sent), last.ar ? Psns{} : (Psns{last.psn.value}));
}

// A window of five packets, of which the two that ask are trimmed. It closes on the three in
// flight, too few for an ACK that nothing has asked for.
TEST_F(SharedAcks, Pds128_WhatAskedIsTrimmed_TheWindowAsks) {
  cms::Parameters cms;
  cms.base_rtt = microseconds(100);
  cms.paths = cms::PathPolicy::RoundRobin;
  cms.mtu_bytes = 4096;
  cms.max_window_bytes = 5 * cms.mtu_bytes;
  start(parameters(), cms);
  payload_bytes = kLongPayload;
  post(true, 5);
  const auto sent = requests(turn());
  ASSERT_EQ(sent.size(), 5U);
  ASSERT_EQ(asking(sent), (Psns{70004, 70005}));
  ASSERT_EQ(controls(after(microseconds(300))).size(), 1U) << "a Probe; the next is far away";
  receive(nack(NackCode::Trimmed, 70004));
  receive(nack(NackCode::Trimmed, 70005));
  ASSERT_TRUE(turn().empty()) << "the window is closed";
  EXPECT_TRUE(controls(after(microseconds(100))).empty()) << "ACKs may be on their way";
  const auto later = after(microseconds(100) + TimerWheel::kTick);
  EXPECT_EQ(ack_requests(later), (Psns{70003}));
  EXPECT_TRUE(requests(later).empty());
  EXPECT_TRUE(turn().empty()) << "once";
  EXPECT_EQ(psns(requests(answer_to(ack(70003, 70003)))), (Psns{70004, 70005}));
}

TEST_F(SharedAcks, Pds169_AClosingPdcAsks) {
  post_unawaited(2);
  node->manager->begin_close_all(now);
  EXPECT_EQ(ack_requests(turn()), (Psns{70002}));
}

TEST_F(SharedAcks, Pds101_NoPacketInMidMessageIsAskedFor) {
  post(true, 2000);  // more than the peer's window takes
  ASSERT_LT(requests(turn()).size(), 2000U);
  EXPECT_TRUE(ack_requests(after(3 * kTailLossTime)).empty());
}

TEST_F(SharedAcks, Cms151_TailAskedFor_ProbeWaits) {
  cms::Parameters cms;
  cms.base_rtt = microseconds(100);
  cms.synthetic_ecn = false;
  start(parameters(), cms);
  post_unawaited(2);
  EXPECT_TRUE(controls(after(kTailLossTime - TimerWheel::kTick)).empty());
  const auto sent = after(2 * TimerWheel::kTick);
  EXPECT_EQ(ack_requests(sent), (Psns{70002}));
  EXPECT_EQ(controls(sent).size(), 1U) << "no Probe with it";
}

}  // namespace
}  // namespace uet::pds::testing
