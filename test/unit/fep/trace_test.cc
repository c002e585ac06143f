// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the parts of a FEP write to its trace (base/trace.h).
#include "base/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "pds/pdc_state.h"
#include "unit/fep/fep_harness.h"

namespace uet::fep {
namespace {

using trace::Kind;
using trace::Record;

class FepTrace : public FepPair {
 protected:
  FepTrace() {
    a.fep->keep_trace_in(ring_a.get());
    b.fep->keep_trace_in(ring_b.get());
  }
  static std::vector<Record> all(const trace::Ring& ring, Kind kind) {
    std::vector<Record> found;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(ring.written, trace::kRecords); ++i) {
      if (ring.records[i].kind == kind) found.push_back(ring.records[i]);
    }
    return found;
  }
  std::vector<Record> of_a(Kind kind) const { return all(*ring_a, kind); }
  std::vector<Record> of_b(Kind kind) const { return all(*ring_b, kind); }

  void write(std::size_t bytes, bool until_done = true) {
    memory.resize(bytes);
    source = pattern(bytes);
    key = expose(memory);
    slice = {source.data(), source.size()};
    ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&slice, 1}, key), now).ok());
    if (until_done) {
      ASSERT_TRUE(run_while_not([&] { return !a.sink.all.empty(); }));
    }
  }

  std::unique_ptr<trace::Ring> ring_a = std::make_unique<trace::Ring>();
  std::unique_ptr<trace::Ring> ring_b = std::make_unique<trace::Ring>();
  std::vector<std::byte> memory, source;
  Rkey key;
  ses::IoSlice slice;
};

TEST_F(FepTrace, Write_IsToldFromPostToEnd) {
  write(3 * kPayload);
  const auto posted = of_a(Kind::Posted);
  ASSERT_EQ(posted.size(), 1U);
  EXPECT_EQ(posted[0].detail, static_cast<std::uint8_t>(ses::Kind::Write));
  EXPECT_EQ(posted[0].a, 3 * kPayload);
  const auto ended = of_a(Kind::Ended);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].psn, posted[0].psn);
  EXPECT_EQ(ended[0].detail, static_cast<std::uint8_t>(ses::Status::Ok));

  const auto sent = of_a(Kind::Sent);
  const auto received = of_b(Kind::Received);
  ASSERT_EQ(sent.size(), 1U);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(sent[0].psn, received[0].psn);
  EXPECT_EQ(sent[0].detail, 0);                     // the first transmission, with data
  EXPECT_EQ(sent[0].a >> 32, 3U);                   // packets
  EXPECT_GT(sent[0].a & 0xFFFFFFFF, 3 * kPayload);  // nominal bytes
  EXPECT_EQ(sent[0].b & 0xFFFF, posted[0].psn);     // the message
  EXPECT_EQ(sent[0].b >> 16 & 0xFFFF, 1U);          // transmissions
  EXPECT_EQ(received[0].a, sent[0].a);
  const auto acks = of_a(Kind::AckReceived);
  ASSERT_FALSE(acks.empty());
  EXPECT_EQ(acks.back().psn, sent[0].psn + 2);
  ASSERT_FALSE(of_b(Kind::AckSent).empty());
  EXPECT_EQ(of_b(Kind::AckSent).back().psn, sent[0].psn + 2);
}

TEST_F(FepTrace, Pdc_NamesPeerAndEachState) {
  write(8);
  const auto opened = of_a(Kind::PdcOpened);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].detail, 0);  // initiator, RUD, IPv4
  EXPECT_EQ(opened[0].psn, kUetUdpPort);
  EXPECT_EQ(opened[0].a, trace::words_of(b.nic.local_address().ip)[0]);
  ASSERT_EQ(of_b(Kind::PdcOpened).size(), 1U);
  EXPECT_EQ(of_b(Kind::PdcOpened)[0].detail, 1);  // target
  expect_clean_close();
  std::vector<pds::PdcState> states;
  for (const Record& record : of_a(Kind::PdcState)) {
    EXPECT_EQ(record.pdc, opened[0].pdc);
    states.push_back(static_cast<pds::PdcState>(record.detail));
  }
  using enum pds::PdcState;
  EXPECT_EQ(states, (std::vector{Established, Quiesce, AckWait, CloseAckWait, Closed}));
}

TEST_F(FepTrace, Silence_IsToldAsTimeOutsUntilThePeerIsGivenUp) {
  a.nic.lose = [] { return true; };
  write(8, false);
  ASSERT_TRUE(run_while_not([&] { return !a.sink.all.empty(); }, seconds(60)));
  const auto lost = of_a(Kind::Lost);
  ASSERT_GE(lost.size(), 3U);
  EXPECT_EQ(lost.front().detail, static_cast<std::uint8_t>(trace::Loss::TimeOut));
  EXPECT_EQ(lost.front().b & 0xFFFF, 1U);  // it had been sent once
  EXPECT_GT(lost.front().a, 0U);
  EXPECT_EQ(lost.back().detail, static_cast<std::uint8_t>(trace::Loss::GivenUp));
  const auto sent = of_a(Kind::Sent);
  EXPECT_EQ(sent.back().detail & 1, 1);  // again
  EXPECT_EQ(sent.back().b >> 16 & 0xFFFF, lost.back().b & 0xFFFF);
  const auto states = of_a(Kind::PdcState);
  ASSERT_FALSE(states.empty());
  EXPECT_EQ(states.back().b, static_cast<std::uint64_t>(pds::PdsError::RtoExhausted));
  EXPECT_EQ(of_a(Kind::Ended).back().detail, static_cast<std::uint8_t>(ses::Status::PdsError));
  EXPECT_FALSE(of_a(Kind::Window).empty());
}

TEST_F(FepTrace, Waits_AreListedWhileTheyLastAndToldAfterwards) {
  a.nic.accept = 0;
  write(3 * kPayload, false);
  for (int i = 0; i < 10; ++i) step();
  std::vector<pds::WaitingPdc> waiting;
  a.fep->list_waiting(waiting);
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].wait, trace::Wait::Nic);
  EXPECT_EQ(waiting[0].wait_since, kStart);
  EXPECT_EQ(waiting[0].peer, b.nic.local_address());
  EXPECT_EQ(waiting[0].packets_outstanding, 3U);
  EXPECT_EQ(waiting[0].oldest_transmissions, 1);
  EXPECT_EQ(waiting[0].oldest_message, of_a(Kind::Posted)[0].psn);
  a.nic.accept = SIZE_MAX;
  ASSERT_TRUE(run_while_not([&] { return !a.sink.all.empty(); }));
  ASSERT_EQ(of_a(Kind::Waited).size(), 1U);
  EXPECT_EQ(of_a(Kind::Waited)[0].detail, static_cast<std::uint8_t>(trace::Wait::Nic));
  EXPECT_GE(of_a(Kind::Waited)[0].a, 10U * 16'000);
  a.fep->list_waiting(waiting);
  EXPECT_TRUE(waiting.empty());
}

TEST_F(FepTrace, Waits_WindowIsNamed) {
  write(2 << 20, false);  // more than the fixed window
  for (int i = 0; i < 20; ++i) a.fep->progress(now);
  std::vector<pds::WaitingPdc> waiting;
  a.fep->list_waiting(waiting);
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].wait, trace::Wait::Window);
  EXPECT_EQ(waiting[0].messages_queued, 1U);
  EXPECT_GT(waiting[0].inflight_bytes, 500'000);
  std::vector<ses::WaitingOperation> operations;
  EXPECT_EQ(a.fep->ses().list_waiting(operations, 8), 1U);
  ASSERT_EQ(operations.size(), 1U);
  EXPECT_EQ(operations[0].bytes, 2U << 20);
  EXPECT_EQ(operations[0].waits, ses::OperationWait::Packets);
  EXPECT_EQ(operations[0].posted, kStart);
  EXPECT_EQ(operations[0].pdc, waiting[0].id);
  EXPECT_EQ(a.fep->ses().list_waiting(operations, 0), 1U);
  EXPECT_TRUE(operations.empty());
  ASSERT_TRUE(run_while_not([&] { return a.sink.all.size() == 1; }));
}

TEST_F(FepTrace, NotPolled_OnlyIfPacketsWaitedAndNotAsleep) {
  write(8);
  const auto absent = [&] {
    ASSERT_TRUE(a.fep->ses().initiator().post(*a.context, rma({&slice, 1}, key), now).ok());
    a.fep->progress(now);
    now += milliseconds(25);
    b.fep->progress(now);
  };
  ring_b->sleeping_since_ns = to_ns(now);
  absent();
  EXPECT_TRUE(of_b(Kind::NotPolled).empty());
  ring_b->sleeping_since_ns = 0;
  absent();
  const auto found = of_b(Kind::NotPolled);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_GE(found[0].a, 25'000'000U);
  EXPECT_GE(found[0].b, 1U);
}

TEST_F(FepTrace, WithoutRing_NothingIsKept) {
  a.fep->keep_trace_in(nullptr);
  const std::uint64_t before = ring_a->written;
  write(8);
  EXPECT_EQ(ring_a->written, before);
  EXPECT_GT(ring_b->written, 0U);
}

}  // namespace
}  // namespace uet::fep
