// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Test ideas of PDS section 22: losses at the worst moment, dead peers, wrapping PSNs, shortage.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "pds/retransmit.h"
#include "ses/initiator.h"
#include "sim/stage.h"

namespace uet::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::CpType;

template <class Header>
std::function<bool(const Sighting&)> from_node(int node,
                                               std::function<bool(const Header&)> wanted) {
  return [=](const Sighting& s) {
    const auto* header = s.header<Header>();
    return s.from == node && header != nullptr && wanted(*header);
  };
}

// Idea 1; PDS-58, PDS-60.
TEST(Failure, Idea1_FirstSynLost_AllFiveArriveOnce) {
  Stage stage{StageConfig()};
  stage.world().filter = drop_first(
      1, from_node<wire::RequestHeader>(0, [](const auto& r) { return r.psn_offset == 0; }));
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(stage.write(0, 1, i * 64, 64, i, i + 1).ok());
  ASSERT_TRUE(stage.completes(0, 5));
  ASSERT_TRUE(stage.completes(1, 5));
  stage.world().run_for(milliseconds(200));
  std::vector<std::uint64_t> data;
  for (const auto& completion : stage.actor(1).sink.completions) data.push_back(completion.data);
  std::sort(data.begin(), data.end());
  EXPECT_EQ(data, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(stage.actor(0).sink.completions.size(), 5u);
  EXPECT_EQ(stage.counters(1).pdcs_accepted, 1u);
  EXPECT_EQ(stage.counters(1).requests_delivered, 5u);
}

// Idea 2; PDS-112, PDS-203.
TEST(Failure, Idea2_AckOfGuaranteedResponseLostThreeTimes) {
  Stage stage{StageConfig()};
  stage.world().filter =
      drop_first(3, from_node<wire::AckHeader>(1, [](const auto&) { return true; }));
  ASSERT_TRUE(stage.send(0, 1, 0, 100).ok());
  ASSERT_TRUE(stage.completes(0, 1));
  EXPECT_EQ(stage.actor(0).sink.completions[0].status, ses::Status::Ok);
  stage.world().run_for(milliseconds(200));
  EXPECT_EQ(stage.actor(0).sink.completions.size(), 1u);
  EXPECT_EQ(stage.counters(1).requests_delivered, 1u);
  EXPECT_EQ(stage.counters(1).duplicates_acked, 3u);
  const auto acks = stage.acks(1);
  ASSERT_GE(acks.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {  // exactly the stored response
    EXPECT_EQ(acks[i].ack->next_hdr, wire::NextHdr::Response);
    EXPECT_TRUE(std::ranges::equal(acks[i].rest(), acks[0].rest()));
  }
  ASSERT_TRUE(stage.receive(1, 8192, 100).ok());
  EXPECT_TRUE(stage.completes(1, 1));
}

// Idea 3; PDS-34, PDS-86, PDS-118.
TEST(Failure, Idea3_LostClearIsRepairedByTheNextRequest) {
  Stage stage{StageConfig()};
  stage.world().filter =
      from_node<wire::ControlHeader>(0, [](const auto& c) { return c.ctl_type == CpType::Clear; });
  ASSERT_TRUE(stage.send(0, 1, 0, 100).ok());
  ASSERT_TRUE(stage.completes(0, 1));
  stage.world().run_for(milliseconds(2));
  EXPECT_EQ(stage.acks(1).back().ack->cack_psn.value, 69999u);
  ASSERT_TRUE(stage.write(0, 1, 0, 100).ok());
  ASSERT_TRUE(stage.completes(0, 2));
  EXPECT_EQ(stage.requests(0).back().request->clear_psn_offset, -1);
  EXPECT_EQ(stage.acks(1).back().ack->cack_psn.value, 70001u);
  ASSERT_TRUE(stage.receive(1, 8192, 100).ok());
  EXPECT_TRUE(stage.completes(1, 1));
}

// Idea 4; PDS-40, PDS-52.
TEST(Failure, Idea4_BeforeEstablished_AtMost4096Psns) {
  StageConfig config;
  config.memory_bytes = 6 << 20;
  config.fep.pds.default_mpr = 32;
  config.fep.pds.rto_init = seconds(1);
  config.link.queue_bytes = 64 << 20;
  Stage stage(config);
  stage.world().filter = [](const Sighting& s) { return s.from == 1; };
  const std::size_t length = 5000 * 1024;
  ASSERT_TRUE(stage.write(0, 1, 0, length).ok());
  stage.world().run_for(milliseconds(500));
  const auto silent = stage.requests(0);
  ASSERT_EQ(silent.size(), 4096u);
  EXPECT_EQ(silent.back().request->psn_offset, 4095);
  stage.world().filter = nullptr;
  ASSERT_TRUE(stage.completes(0, 1));
  EXPECT_EQ(stage.actor(0).sink.completions[0].status, ses::Status::Ok);
  for (const Seen& seen : stage.requests(0)) {
    const bool later = seen.request->psn.value > 70000 + 4095;
    EXPECT_FALSE(later && seen.request->syn);
  }
}

// Idea 5; PDS-175.
TEST(Failure, Idea5_SynReplayedAfterCloseDeliversNothing) {
  StageConfig config;
  config.fep.pds.initiator_idle_time = config.fep.pds.keepalive_time = milliseconds(2);
  Stage stage(config);
  ASSERT_TRUE(stage.write(0, 1, 0, 64, 9).ok());
  ASSERT_TRUE(stage.completes(1, 1));
  const SimPacket syn = stage.requests(0)[0].packet;
  stage.world().run_for(milliseconds(100));
  ASSERT_EQ(stage.counters(1).pdcs_closed, 1u);
  stage.world().inject(syn, 1, milliseconds(1));
  stage.world().run_for(milliseconds(100));
  EXPECT_EQ(stage.actor(1).sink.completions.size(), 1u);
  EXPECT_EQ(stage.counters(1).pdcs_accepted, 1u);
  EXPECT_EQ(stage.counters(1).requests_delivered, 1u);
}

// Idea 6; PDS-20, PDS-121, PDS-134, PDS-137, PDS-139. With the default parameters, as the
// application sees it: within 15 s.
TEST(Failure, Idea6_KilledPeer_FailsOnlyItsOperations) {
  StageConfig config;
  config.nodes = 3;
  Stage stage(config);
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(stage.write(0, 1, i * 65536, 65536, std::nullopt, 100 + i).ok());
    ASSERT_TRUE(stage.write(0, 2, i * 65536, 65536, std::nullopt, 200 + i).ok());
  }
  stage.world().after(std::chrono::microseconds(150), [&] { stage.world().kill(1); });
  for (int i = 0; i < 40; ++i) {  // traffic with the second peer goes on
    stage.world().after(milliseconds(250 * i),
                        [&stage] { (void)stage.write(0, 2, 0, 5000, std::nullopt, 300); });
  }
  const Duration limit = pds::time_to_failure(config.fep.pds) + milliseconds(500);
  EXPECT_LT(limit, seconds(15));
  const auto& done = stage.actor(0).sink.completions;
  ASSERT_TRUE(stage.world().run_until([&] { return done.size() == 48; }, limit));
  int failed = 0;
  for (const auto& completion : done) {
    const auto number = reinterpret_cast<std::uintptr_t>(completion.context);
    if (number >= 200) {
      EXPECT_EQ(completion.status, ses::Status::Ok);
    } else {
      EXPECT_EQ(completion.status, ses::Status::PdsError);
      EXPECT_EQ(completion.pds_error, pds::PdsError::RtoExhausted);
      ++failed;
    }
  }
  EXPECT_EQ(failed, 4);
  stage.world().run_for(seconds(1));
  EXPECT_EQ(done.size(), 48u);
  EXPECT_EQ(stage.counters(0).pdcs_failed, 1u);
}

// A new process at the address of a dead one knows none of its PDCs: it refuses what still comes
// for them, so that the sender need not wait for its time-outs to run out.
TEST(Failure, SuccessorOfDeadPeer_RefusesOldPackets) {
  StageConfig config;
  Stage stage(config);
  ASSERT_TRUE(stage.write(0, 1, 0, 524288, std::nullopt, 100).ok());
  stage.world().after(std::chrono::microseconds(150), [&] { stage.world().kill(1); });
  stage.world().after(milliseconds(1), [&] {
    NodeConfig successor;
    successor.fep = config.fep;
    successor.fep.seed = 99;
    successor.nic.address = stage.world().nic(1).local_address();
    successor.nic.caps = stage.world().nic(1).caps();
    EXPECT_EQ(stage.world().add_node(successor), 2);
  });
  const auto& done = stage.actor(0).sink.completions;
  ASSERT_TRUE(stage.world().run_until([&] { return !done.empty(); }, seconds(1)));
  EXPECT_EQ(done[0].status, ses::Status::PdsError);
  EXPECT_GT(stage.counters(2).nacks_sent[static_cast<std::uint8_t>(wire::NackCode::InvDpdcid)], 0U);
  EXPECT_EQ(stage.counters(2).requests_delivered, 0U);
  EXPECT_TRUE(stage.fep(2).quiescent());
}

// SES-122: a receiver has nothing outstanding towards a sender that died in mid-message, and a
// reader nothing but acknowledged requests; both notice all the same.
TEST(Failure, PeerKilledInMidMessageEndsReceivesAndReads) {
  StageConfig config;
  Stage stage(config);
  // Three packets with data get through, then only answers, and after a millisecond nothing.
  const Time start = stage.world().now();
  stage.world().filter = [&stage, start, data = 0](const Sighting& sighting) mutable {
    if (stage.world().now() > start + milliseconds(1)) return true;
    return sighting.from == 0 && remember(sighting).request && ++data > 3;
  };
  ASSERT_TRUE(stage.receive(1, 524288, 65536, 7).ok());
  ASSERT_TRUE(stage.send(0, 1, 0, 65536, std::nullopt, 1).ok());
  ASSERT_TRUE(stage.read(1, 0, 0, 65536, 8).ok());
  const Duration limit = pds::time_to_failure(config.fep.pds) + seconds(2);
  EXPECT_LT(limit, seconds(15));
  const auto& done = stage.actor(1).sink.completions;
  EXPECT_TRUE(stage.world().run_until([&] { return done.size() == 2; }, limit));
  for (const auto& completion : done) {
    const bool receive = reinterpret_cast<std::uintptr_t>(completion.context) == 7;
    EXPECT_EQ(completion.status, receive ? ses::Status::PeerLost : ses::Status::PdsError);
  }
}

// PDS-86, PDS-93, SES-105: an application that has all its messages may make no more progress.
// These messages are unexpected, so a response that holds CACK reports the end of each.
TEST(Failure, ReceiverHearsNoMore_BothUnexpectedComplete) {
  StageConfig config;
  Stage stage(config);
  stage.world().filter = [heard = 0](const Sighting& sighting) mutable {
    return sighting.from == 0 && (!remember(sighting).request || ++heard > 6);
  };
  ASSERT_TRUE(stage.send(0, 1, 0, 3000, std::nullopt, 1).ok());
  ASSERT_TRUE(stage.send(0, 1, 4096, 3000, std::nullopt, 2).ok());
  const auto& sent = stage.actor(0).sink.completions;
  EXPECT_TRUE(stage.world().run_until([&] { return sent.size() == 2; }, milliseconds(15)));
  for (const auto& completion : sent) EXPECT_EQ(completion.status, ses::Status::Ok);
  ASSERT_TRUE(stage.receive(1, 8192, 4096, 3).ok());
  ASSERT_TRUE(stage.receive(1, 16384, 4096, 4).ok());
  EXPECT_TRUE(stage.completes(1, 2));
}

// PDS-9: with a second PDC a short message overtakes the long ones that were posted before it.
TEST(Failure, Pds9_ShortMessage_OvertakesOnItsOwnPdc) {
  for (const std::size_t pdcs : {1U, 2U, 4U}) {
    StageConfig config;
    config.memory_bytes = 16 << 20;
    config.fep.pds.pdcs_per_destination = pdcs;
    config.link.queue_bytes = 64 << 20;
    Stage stage(config);
    constexpr std::size_t kLong = 4 << 20;
    for (std::uintptr_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(stage.write(0, 1, i * kLong, kLong, std::nullopt, 1 + i).ok());
    }
    ASSERT_TRUE(stage.write(0, 1, 15 << 20, 64, std::nullopt, 9).ok());
    ASSERT_TRUE(stage.completes(0, 4));
    const auto& done = stage.actor(0).sink.completions;
    const std::size_t first = pdcs == 1 ? 3 : 0;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(done[first].context), 9u) << pdcs;
    EXPECT_LE(stage.counters(0).pdcs_opened, pdcs);
  }
}

// PDS-142: a target that heard nothing for long enough has freed its PDC (PDS-173, PDS-177). The
// initiator does not know, and its next operation goes to a new PDC.
class ForgetfulPeer : public testing::TestWithParam<DeliveryMode> {
 protected:
  ForgetfulPeer() : stage_(config()) {}
  static StageConfig config() {
    StageConfig config;
    config.mode = GetParam();
    config.configure = [](int node, fep::Config& fep) {
      if (node == 0) return;
      fep.pds.target_idle_time = fep.pds.keepalive_time = milliseconds(5);
      fep.pds.close_request_time = fep.pds.tombstone_time = milliseconds(20);
      fep.pds.max_rto_retransmissions = 1;
    };
    return config;
  }
  // The first write opens the PDC, then node 1 hears nothing and gives it up.
  void SetUp() override {
    ASSERT_TRUE(stage_.write(0, 1, 0, 64, 1).ok());
    ASSERT_TRUE(stage_.completes(1, 1));
    stage_.world().filter = [](const Sighting&) { return true; };
    stage_.world().run_for(milliseconds(100));
    stage_.world().filter = nullptr;
    ASSERT_EQ(stage_.counters(1).pdcs_failed, 1u);
    ASSERT_EQ(stage_.counters(0).pdcs_failed, 0u);
  }
  Stage stage_;
};

TEST_P(ForgetfulPeer, Pds142_WhatItRefusesGoesToANewPdc) {
  ASSERT_TRUE(stage_.write(0, 1, 64, 64, 2, 2).ok());
  ASSERT_TRUE(stage_.read(0, 1, 0, 128, 3).ok());
  ASSERT_TRUE(stage_.completes(0, 3));
  stage_.world().run_for(milliseconds(100));
  const auto refused = stage_.nacks(1);
  ASSERT_GE(refused.size(), 1u);
  EXPECT_EQ(refused[0].nack->nack_code, wire::NackCode::Closing);
  for (const auto& completion : stage_.actor(0).sink.completions) {
    EXPECT_EQ(completion.status, ses::Status::Ok);
  }
  EXPECT_EQ(stage_.counters(0).pdcs_opened, 2u);
  EXPECT_EQ(stage_.counters(1).pdcs_accepted, 2u);
  EXPECT_EQ(stage_.actor(1).sink.completions.size(), 2u) << "each write once";
  EXPECT_TRUE(std::ranges::equal(std::span(stage_.actor(0).memory).subspan(64, 64),
                                 std::span(stage_.actor(1).memory).subspan(64, 64)));
}

// The first NACK says of all that was sent behind its packet that it met no PDC either.
TEST_P(ForgetfulPeer, Pds142_MessageOfSeveralPacketsIsSentAgain) {
  ASSERT_TRUE(stage_.write(0, 1, 0, 3000, 2, 2).ok());
  ASSERT_TRUE(stage_.completes(0, 2));
  EXPECT_EQ(stage_.actor(0).sink.completions[1].status, ses::Status::Ok);
  ASSERT_TRUE(stage_.write(0, 1, 0, 3000, 3, 3).ok());
  ASSERT_TRUE(stage_.completes(0, 3));
  EXPECT_EQ(stage_.actor(0).sink.completions[2].status, ses::Status::Ok);
  EXPECT_EQ(stage_.actor(1).sink.completions.size(), 3u) << "each write once";
}

// The sender of a rendezvous has freed the PDC on which its target reads.
TEST(Failure, Pds142_ReadsOfARendezvousGoToANewPdcToo) {
  StageConfig config;
  config.configure = [](int node, fep::Config& fep) {
    fep.ses.rendezvous_threshold_bytes = 0;
    fep.ses.eager_bytes = 0;
    if (node == 1) return;
    fep.pds.target_idle_time = fep.pds.keepalive_time = milliseconds(5);
    fep.pds.close_request_time = fep.pds.tombstone_time = milliseconds(20);
    fep.pds.max_rto_retransmissions = 1;
  };
  Stage stage(config);
  stage.actor(1).peer.hpc = true;
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(stage.send(0, 1, 2048 * i, 1000).ok());
    stage.world().run_for(milliseconds(2));
    ASSERT_TRUE(stage.receive(1, 8192 + 2048 * i, 1000).ok());
    ASSERT_TRUE(stage.completes(1, i + 1));
    ASSERT_TRUE(stage.completes(0, i + 1));
    ASSERT_EQ(stage.counters(0).pdcs_accepted, i + 1) << "what was sent has been read";
    if (i > 0) break;
    stage.world().filter = [](const Sighting&) { return true; };
    stage.world().run_for(milliseconds(100));
    stage.world().filter = nullptr;
    ASSERT_EQ(stage.counters(0).close_in_error, 1u);
    ASSERT_EQ(stage.counters(1).pdcs_failed, 0u);
  }
  const auto refused = stage.nacks(0);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].nack->nack_code, wire::NackCode::Closing);
  for (const int node : {0, 1}) {
    for (const auto& completion : stage.actor(node).sink.completions) {
      EXPECT_EQ(completion.status, ses::Status::Ok) << node;
    }
  }
  const std::span<std::byte> out(stage.actor(0).memory), in(stage.actor(1).memory);
  EXPECT_TRUE(std::ranges::equal(out.subspan(2048, 1000), in.subspan(8192 + 2048, 1000)));
}

INSTANTIATE_TEST_SUITE_P(Modes, ForgetfulPeer,
                         testing::Values(DeliveryMode::Rud, DeliveryMode::Rod),
                         [](const auto& info) {
                           return info.param == DeliveryMode::Rud ? "Rud" : "Rod";
                         });

class PsnWrap : public testing::TestWithParam<DeliveryMode> {};

// Idea 8: both directions wrap, with losses.
TEST_P(PsnWrap, Idea8_StartTenBeforeTheWrap) {
  StageConfig config;
  config.mode = GetParam();
  config.fep.pds.start_psn = static_cast<std::uint32_t>(0) - 10;
  Stage stage(config);
  Rng rng(5);
  stage.world().filter = [&](const Sighting&) { return rng.chance(0.1); };
  ASSERT_TRUE(stage.write(0, 1, 0, 40 * 1024).ok());
  ASSERT_TRUE(stage.read(0, 1, 128 * 1024, 40 * 1024).ok());
  ASSERT_TRUE(stage.completes(0, 2));
  for (const auto& completion : stage.actor(0).sink.completions) {
    EXPECT_EQ(completion.status, ses::Status::Ok);
  }
  const auto wrapped = [](const Seen& seen) { return seen.request->psn.value < 100; };
  const auto forward = stage.requests(0), backward = stage.requests(1);
  EXPECT_TRUE(std::ranges::any_of(forward, wrapped));
  EXPECT_TRUE(std::ranges::any_of(backward, wrapped));
  const auto& a = stage.actor(0).memory;
  const auto& b = stage.actor(1).memory;
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 40 * 1024, b.begin()));
  EXPECT_TRUE(std::equal(a.begin() + 128 * 1024, a.begin() + 168 * 1024, b.begin() + 128 * 1024));
}

INSTANTIATE_TEST_SUITE_P(Modes, PsnWrap, testing::Values(DeliveryMode::Rud, DeliveryMode::Rod),
                         [](const auto& info) {
                           return info.param == DeliveryMode::Rud ? "Rud" : "Rod";
                         });

// A target that looks at its packets once in so many seconds, for an hour: it is not given up, and
// gets each packet at most twice once the source has learned how long its answers take.
class SeldomTarget : public testing::TestWithParam<int> {
 protected:
  // Writes of `length` bytes one after the other. Returns how often each packet behind the first
  // write was sent.
  std::map<std::uint32_t, int> transmissions_of(std::size_t length) {
    StageConfig config;
    config.target_interval = seconds(GetParam());
    Stage stage(config);
    std::size_t writes = 0;
    std::size_t learned = 0;  // of `sent`: behind the first write
    const Time end = stage.world().now() + std::chrono::hours(1);
    while (stage.world().now() < end) {
      EXPECT_TRUE(stage.write(0, 1, 0, length).ok());
      if (!stage.completes(0, ++writes)) break;
      if (writes == 1) learned = stage.sent.size();
    }
    for (const auto& completion : stage.actor(0).sink.completions) {
      EXPECT_EQ(completion.status, ses::Status::Ok);
    }
    EXPECT_GE(writes, 3000u / static_cast<unsigned>(GetParam()));
    EXPECT_EQ(stage.counters(0).pdcs_failed, 0u);
    std::map<std::uint32_t, int> transmissions;
    for (std::size_t i = learned; i < stage.sent.size(); ++i) {
      const auto& request = stage.sent[i].request;
      if (stage.sent[i].from == 0 && request) ++transmissions[request->psn.value];
    }
    return transmissions;
  }
};

TEST_P(SeldomTarget, Pds120_Pds121_Pds204_IsServedForAnHour) {
  for (const auto& [psn, count] : transmissions_of(8 * 1024)) EXPECT_LE(count, 2) << psn;
}

// No other packet of the message shows how long answers take.
TEST_P(SeldomTarget, Pds204_GetsASinglePacketTwiceAtMost) {
  for (const auto& [psn, count] : transmissions_of(8)) EXPECT_LE(count, 2) << psn;
}

INSTANTIATE_TEST_SUITE_P(Gaps, SeldomTarget, testing::Values(1, 3, 7),
                         [](const auto& gap) { return std::to_string(gap.param) + "s"; });

// Idea 12; PDS-171, PDS-175.
TEST(Failure, Idea12_LostClosingAckEndsWithoutErrorOrLeak) {
  StageConfig config;
  config.fep.pds.initiator_idle_time = config.fep.pds.keepalive_time = milliseconds(2);
  config.fep.pds.tombstone_time = milliseconds(100);
  Stage stage(config);
  stage.world().filter = drop_first(
      2, from_node<wire::AckHeader>(1, [](const auto& a) { return a.ack_psn().value == 70001; }));
  ASSERT_TRUE(stage.write(0, 1, 0, 64).ok());
  ASSERT_TRUE(stage.completes(0, 1));
  stage.world().run_for(seconds(2));
  EXPECT_GE(stage.controls(0, CpType::Close).size(), 3u);
  for (int node = 0; node < 2; ++node) {
    EXPECT_EQ(stage.counters(node).pdcs_closed, 1u);
    EXPECT_EQ(stage.counters(node).pdcs_failed, 0u);
    EXPECT_TRUE(stage.fep(node).quiescent());
    stage.fep(node).begin_close(stage.world().now());
    EXPECT_TRUE(stage.fep(node).closed());
  }
  EXPECT_EQ(stage.actor(0).sink.completions[0].status, ses::Status::Ok);
}

// Idea 14; PDS-180, PDS-182. Each traffic class needs a PDC of its own; there are more classes
// than PDCs, in both directions.
TEST(Failure, Idea14_BothFepsExhaustTheirPdcs) {
  constexpr int kClasses = 10;
  StageConfig config;
  config.fep.pds.pdc_count = 4;
  config.fep.pds.reserved_target_pdcs = 2;
  config.fep.pds.initiator_idle_time = config.fep.pds.keepalive_time = milliseconds(1);
  config.fep.pds.tombstone_time = milliseconds(10);
  Stage stage(config);
  std::vector<std::pair<int, ses::Context*>> contexts;
  RecordingSink sink;
  for (int i = 0; i < 2 * kClasses; ++i) {
    ses::ContextConfig context;
    context.job = JobId{7};
    context.pid_on_fep = PidOnFep{static_cast<std::uint16_t>(i % 2)};
    context.resource_index = ResourceIndex{static_cast<std::uint16_t>(10 + i)};
    context.traffic_class = static_cast<std::uint8_t>(i / 2);
    contexts.emplace_back(i % 2, stage.fep(i % 2).ses().open_context(context, sink).value());
  }
  std::function<void(std::size_t)> post = [&](std::size_t i) {
    const auto [from, context] = contexts[i];
    const ses::IoSlice slice{stage.actor(from).memory.data() + 4096 * i, 3000};
    ses::RmaOp op;
    op.peer = &stage.actor(1 - from).peer;
    op.local = {&slice, 1};
    op.key = stage.actor(1 - from).key;
    op.remote_offset = 4096 * i;
    const auto result = stage.fep(from).ses().initiator().post(*context, op, stage.world().now());
    stage.world().posted(from);
    if (result.ok()) return;
    ASSERT_EQ(result.error(), Error::Again);
    stage.world().after(std::chrono::microseconds(50), [&post, i] { post(i); });
  };
  for (std::size_t i = 0; i < contexts.size(); ++i) post(i);
  EXPECT_TRUE(stage.world().run_until([&] { return sink.completions.size() == contexts.size(); },
                                      seconds(30)));
  for (const auto& completion : sink.completions) EXPECT_EQ(completion.status, ses::Status::Ok);
  for (const auto& [node, context] : contexts) {
    stage.fep(node).ses().close_context(*context, stage.world().now());
  }
}

}  // namespace
}  // namespace uet::sim
