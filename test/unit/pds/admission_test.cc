// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which PDCs may open and which one ends first. stranger_test.cc and give_way_test.cc show the same
// rules with packets.
#include "pds/admission.h"

#include <vector>

#include "unit/pds/own_pdcs.h"

namespace uet::pds::testing {
namespace {

constexpr Use kInitiator{Role::Initiator, false};
constexpr Use kTarget{Role::Target, false};

class AdmissionTest : public OwnPdcs {
 protected:
  void with(const Parameters& parameters) {
    own(parameters);
    admission.emplace(env(), *table);
    admission->prepare(env().parameters.pdc_count);
  }
  void with(std::size_t count) {
    Parameters parameters = test_parameters();
    parameters.pdc_count = count;
    with(parameters);
  }
  // How many PDCs of this use may open.
  std::size_t enter_all(Use use) {
    std::size_t count = 0;
    for (; !admission->refusal(use); ++count) admission->enter(use);
    return count;
  }
  // A PDC that a stranger has opened.
  Pdc& stranger() {
    const bool paced = admission->is_paced();
    Pdc& pdc = unproved();
    admission->enter(kTarget);
    admission->enter_unproved(pdc, paced, now);
    return pdc;
  }
  // The PDC delivers a request whose response is guaranteed and waits for its CLEAR.
  void store_response(Pdc& pdc, std::uint32_t psn = 333) {
    node->client.respond = [](const Delivered&) { return guaranteed_response(); };
    const std::vector<std::byte> bytes(72);
    Incoming request;
    request.meta.psn = Psn{psn};
    request.meta.arrived = now;
    request.view.next_hdr = NextHdr::RequestStd;
    request.view.bytes = bytes;
    pdc.on_request(request, now);
    EXPECT_GT(pdc.receive_side().waits_for_clear(now + seconds(1)), Duration{});
  }

  std::optional<Admission> admission;
};

// ---- numbers kept for each use ------------------------------------------------------------------

TEST_F(AdmissionTest, Pds182_InitiatorsLeavePdcsToTargets) {
  with(8);
  EXPECT_EQ(enter_all(kInitiator), 4U);
  EXPECT_EQ(admission->refusal(kInitiator), NackCode::NoPdcAvail);
  EXPECT_EQ(enter_all(kTarget), 4U);
  EXPECT_EQ(admission->open_pdcs(), 8U);
}

TEST_F(AdmissionTest, Pds66_FewerWindowsThanPdcs_NoBitmap) {
  Parameters parameters = test_parameters();
  parameters.bitmap_count = 2;
  with(parameters);
  EXPECT_EQ(enter_all(kTarget), 2U);
  EXPECT_EQ(admission->refusal(kTarget), NackCode::NoBitmap);
}

TEST_F(AdmissionTest, Pds182_PdcThatLeavesMakesSpace) {
  with(8);
  Pdc& pdc = target();
  EXPECT_EQ(enter_all(kTarget), 8U);
  admission->leave(pdc);
  EXPECT_EQ(enter_all(kTarget), 1U);
}

// ---- attackers: PDCs ----------------------------------------------------------------------------

TEST_F(AdmissionTest, Pds66_UnprovedPdcsHaveHalf) {
  with(32);
  while (!admission->is_full_of_unproved()) stranger();
  EXPECT_EQ(admission->open_pdcs(), 16U);
}

// Above a quarter of the table one may enter every 10 ms.
TEST_F(AdmissionTest, Pds66_FloodOfSynsEntersAtAPace) {
  with(128);
  std::size_t entered = 0;
  for (int i = 0; i < 100; ++i) {
    if (!admission->allows_unproved(now)) continue;
    stranger();
    ++entered;
  }
  EXPECT_EQ(entered, 33U);
  now += milliseconds(9);
  EXPECT_FALSE(admission->allows_unproved(now));
  now += milliseconds(1);
  EXPECT_TRUE(admission->allows_unproved(now));
}

// A guard of the NIC hears of so many at once, and of the pace of the test before.
TEST_F(AdmissionTest, Pds236_ShareIsHalfAndThePace) {
  with(64);
  EXPECT_EQ(admission->share().at_once, 32U);
  EXPECT_EQ(admission->share().pace, milliseconds(10));
  with(1024);
  EXPECT_EQ(admission->share().at_once, 512U);
  EXPECT_EQ(admission->share().pace, std::chrono::nanoseconds(seconds(2)) / 256);
}

TEST_F(AdmissionTest, Pds66_OldestUnprovedGoesAfterTwoSeconds) {
  with(8);
  Pdc& proved = stranger();
  Pdc& oldest = stranger();
  now += milliseconds(1);
  stranger();
  proved.note_proved();
  EXPECT_EQ(admission->droppable_unproved(now), nullptr);
  now += milliseconds(1998);
  EXPECT_EQ(admission->droppable_unproved(now), nullptr);
  now += milliseconds(1);
  EXPECT_EQ(admission->droppable_unproved(now), &oldest);
  admission->leave(oldest);
  EXPECT_EQ(admission->droppable_unproved(now), nullptr) << "the next one is younger";
}

// Established PDCs close for a 16th of the table, and once a millisecond.
TEST_F(AdmissionTest, Pds174_SynsClosePdcsForFewStrangers) {
  with(32);
  EXPECT_TRUE(admission->may_close_for_syn(now));
  EXPECT_FALSE(admission->may_close_for_syn(now));
  now += milliseconds(1);
  stranger();
  EXPECT_TRUE(admission->may_close_for_syn(now));
  now += milliseconds(1);
  stranger();
  EXPECT_FALSE(admission->may_close_for_syn(now));
}

// ---- attackers: stored responses ----------------------------------------------------------------

TEST_F(AdmissionTest, Pds113_LongestWithoutClearEndsFirst) {
  with(8);
  Pdc& oldest = target(3);
  store_response(oldest);
  now += seconds(1);
  Pdc& second = target(4);
  store_response(second);
  now += seconds(29) - milliseconds(1);
  admission->end_uncleared(oldest.host(), now);
  EXPECT_FALSE(oldest.finished()) << "not before 30 s";
  now += seconds(2);
  admission->end_uncleared(oldest.host(), now);
  EXPECT_TRUE(oldest.finished());
  admission->end_uncleared(second.host(), now);
  EXPECT_FALSE(second.finished()) << "one every 100 ms";
  now += milliseconds(100);
  admission->end_uncleared(second.host(), now);
  EXPECT_TRUE(second.finished());
  EXPECT_EQ(counters().pdcs_uncleared_closed, 2U);
}

// A host that stores much does not end the PDC of a host that stores less.
TEST_F(AdmissionTest, Pds113_HostThatHoldsLessKeepsItsPdc) {
  with(8);
  Pdc& small = target(3);
  store_response(small);
  Pdc& greedy = target(4);
  store_response(greedy);
  store_response(greedy, 334);
  now += seconds(31);
  greedy.receive_side().on_clear_command(Psn{333}, now);
  store_response(greedy, 335);
  admission->end_uncleared(greedy.host(), now);
  EXPECT_FALSE(small.finished());
  EXPECT_FALSE(greedy.finished()) << "it makes progress";
}

// ---- shortage -----------------------------------------------------------------------------------

TEST_F(AdmissionTest, Pds174_LongestIdlePdcCloses) {
  with(8);
  unproved();
  Pdc& busy = target();
  busy.lock();
  Pdc& watched = target();
  watched.watch();
  now += milliseconds(1);
  Pdc& oldest = target();
  now += milliseconds(1);
  Pdc& youngest = target();
  now += milliseconds(1);
  admission->close_idle(now);
  EXPECT_FALSE(oldest.takes_messages());
  EXPECT_TRUE(youngest.takes_messages());
  admission->close_idle(now);
  EXPECT_FALSE(youngest.takes_messages());
  EXPECT_TRUE(busy.takes_messages());
  EXPECT_TRUE(watched.takes_messages());
}

// While a PDC closes, a watched one stays for Pend_Timeout: few of them close at a time.
TEST_F(AdmissionTest, Pds174_WatchedPdcClosesIfNoneIsIdle) {
  with(8);
  Pdc& first = target();
  first.watch();
  Pdc& second = target();
  second.watch();
  admission->close_idle(now);
  EXPECT_FALSE(first.takes_messages());
  admission->close_idle(now);
  EXPECT_TRUE(second.takes_messages());
  now += env().parameters.pending_timeout;
  admission->close_idle(now);
  EXPECT_FALSE(second.takes_messages());
}

TEST_F(AdmissionTest, Pds181_OldestPdcMakesWayForAMessage) {
  with(8);
  Pdc& of_peer = target();
  now += milliseconds(1);
  Pdc& oldest = initiator();
  oldest.lock();
  now += milliseconds(1);
  Pdc& youngest = initiator();
  youngest.lock();
  const Duration patience = env().parameters.pending_timeout;
  admission->note_message_waits(now);
  now += patience - milliseconds(1);
  admission->note_message_waits(now);
  EXPECT_TRUE(oldest.takes_messages());
  now += milliseconds(1);
  admission->note_message_waits(now);
  EXPECT_FALSE(oldest.takes_messages());
  EXPECT_TRUE(youngest.takes_messages());
  EXPECT_TRUE(of_peer.takes_messages());
}

TEST_F(AdmissionTest, Pds181_ServedMessageEndsTheWait) {
  with(8);
  Pdc& only = initiator();
  only.lock();
  admission->note_message_waits(now);
  admission->note_message_served();
  now += env().parameters.pending_timeout;
  admission->note_message_waits(now);
  EXPECT_TRUE(only.takes_messages());
}

}  // namespace
}  // namespace uet::pds::testing
