// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/trace.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

namespace uet::trace {
namespace {

TEST(Trace, WithoutRing_KeepsNothing) {
  Trace trace;
  trace.write(Kind::Sent, 0, PdcId{1}, Psn{2});
  trace.waited(Wait::Window, PdcId{1}, std::chrono::seconds(1));
  EXPECT_EQ(trace.ring(), nullptr);
  EXPECT_FALSE(trace.slept());
}

TEST(Trace, Record_HasTimeOfLastCallAndItsNumbers) {
  Time now{};
  const auto ring = std::make_unique<Ring>();
  Trace trace;
  trace.keep_in(ring.get(), &now);
  now = time_from_ns(1234);
  trace.write(Kind::NackReceived, 9, PdcId{0xABCD}, Psn{0xFFFFFFF0}, 7, ~std::uint64_t{0});
  ASSERT_EQ(ring->written, 1U);
  const Record& record = ring->records[0];
  EXPECT_EQ(record.time_ns, 1234);
  EXPECT_EQ(record.kind, Kind::NackReceived);
  EXPECT_EQ(record.detail, 9);
  EXPECT_EQ(record.pdc, 0xABCD);
  EXPECT_EQ(record.psn, 0xFFFFFFF0);
  EXPECT_EQ(record.a, 7U);
  EXPECT_EQ(record.b, ~std::uint64_t{0});
  trace.write_at(time_from_ns(99), Kind::Posted, 0, {}, {});
  EXPECT_EQ(ring->records[1].time_ns, 99);
}

// Two parts of a FEP with one ring: the newest records stay, in the order of writing.
TEST(Trace, FullRing_KeepsNewest) {
  Time now{};
  const auto ring = std::make_unique<Ring>();
  Trace one, other;
  one.keep_in(ring.get(), &now);
  other.keep_in(ring.get(), &now);
  for (std::uint64_t i = 0; i < kRecords + 3; ++i) {
    (i % 2 == 0 ? one : other).write(Kind::Sent, 0, PdcId{1}, Psn{1}, i);
  }
  EXPECT_EQ(ring->written, kRecords + 3);
  EXPECT_EQ(ring->records[2].a, kRecords + 2);
  EXPECT_EQ(ring->records[3].a, 3U);
}

TEST(Trace, Received_ConsecutivePackets_ShareARecord) {
  Time now{};
  const auto ring = std::make_unique<Ring>();
  const char owners[3] = {};  // of PDCs 1 and 2
  Trace trace;
  trace.received(owners + 1, PdcId{1}, Psn{6}, 100, 9);  // nowhere
  trace.keep_in(ring.get(), &now);
  now = time_from_ns(10);
  trace.received(owners + 1, PdcId{1}, Psn{0xFFFFFFFF}, 100, 9);
  trace.write(Kind::AckSent, 0, PdcId{1}, Psn{3});
  trace.received(owners + 1, PdcId{1}, Psn{0}, 50, 8);  // joins although another came between
  ASSERT_EQ(ring->written, 2U);
  EXPECT_EQ(ring->records[0].psn, 0xFFFFFFFF);
  EXPECT_EQ(ring->records[0].a, std::uint64_t{2} << 32 | 150);
  EXPECT_EQ(ring->records[0].b, std::uint64_t{9} << 32);
  trace.received(owners + 1, PdcId{1}, Psn{2}, 1, 0);  // a PSN is left out
  trace.received(owners + 2, PdcId{2}, Psn{3}, 1, 0);  // another PDC
  now = time_from_ns(11);
  trace.burst_begins();
  trace.received(owners + 2, PdcId{2}, Psn{4}, 1, 0);  // another call
  EXPECT_EQ(ring->written, 5U);
  EXPECT_EQ(ring->records[4].time_ns, 11);
}

TEST(Trace, Waited_OnlyIfLong) {
  Time now{};
  const auto ring = std::make_unique<Ring>();
  Trace trace;
  trace.keep_in(ring.get(), &now);
  trace.waited(Wait::Credit, PdcId{1}, std::chrono::microseconds(99));
  EXPECT_EQ(ring->written, 0U);
  trace.waited(Wait::Credit, PdcId{1}, std::chrono::microseconds(100));
  ASSERT_EQ(ring->written, 1U);
  EXPECT_EQ(ring->records[0].kind, Kind::Waited);
  EXPECT_EQ(ring->records[0].detail, 2);
  EXPECT_EQ(ring->records[0].a, 100'000U);
}

TEST(Trace, Slept_UntilTheNextCall) {
  const auto ring = std::make_unique<Ring>();
  const Time now{};
  Trace trace;
  trace.keep_in(ring.get(), &now);
  EXPECT_FALSE(trace.slept());  // an owner that does not say when it sleeps
  ring->last_pass_ns = 10;
  EXPECT_FALSE(trace.slept());
  ring->sleeping_since_ns = 11;
  EXPECT_TRUE(trace.slept());
  ring->last_pass_ns = 20;
  EXPECT_FALSE(trace.slept());
}

// docs/live-page.md: other programs read the bytes.
TEST(Trace, Layout_IsThatOfTheDocument) {
  EXPECT_EQ(offsetof(Record, time_ns), 0U);
  EXPECT_EQ(offsetof(Record, kind), 8U);
  EXPECT_EQ(offsetof(Record, detail), 9U);
  EXPECT_EQ(offsetof(Record, pdc), 10U);
  EXPECT_EQ(offsetof(Record, psn), 12U);
  EXPECT_EQ(offsetof(Record, a), 16U);
  EXPECT_EQ(offsetof(Record, b), 24U);
  EXPECT_EQ(offsetof(Ring, records), 64U);
}

}  // namespace
}  // namespace uet::trace
