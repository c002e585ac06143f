// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events of several traces in words, on one time line, and as JSON: tools/uet_trace.
#include "uet_trace/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "uet_trace/chrome.h"
#include "unit/view/trace_harness.h"

namespace uet::tracing {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using trace::Kind;
using trace::Record;

TEST(TraceEvents, Merge_ByTimeOfOneHost) {
  const auto dumps = two_ends(0);
  EXPECT_EQ(clock_difference(dumps[0], dumps[1]), 0);
  const auto events = merge(dumps);
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_EQ(events[0].record.kind, Kind::Sent);
  EXPECT_EQ(events[1].record.kind, Kind::Received);
  EXPECT_EQ(events[1].dump, 1U);
  EXPECT_EQ(events[2].record.psn, 50U);
  EXPECT_EQ(events[3].dump, 0U);
}

TEST(TraceEvents, Merge_ClocksOfHostsAreAlignedByPsn) {
  const auto dumps = two_ends(5'000'000'000);
  EXPECT_EQ(clock_difference(dumps[0], dumps[1]), -5'000'000'000);
  const auto events = merge(dumps);
  EXPECT_EQ(events[1].dump, 1U);
  EXPECT_EQ(events[1].realtime_ns - events[0].realtime_ns, 1'000);
  EXPECT_EQ(events[3].dump, 0U);
}

TEST(TraceEvents, Line_NamesDomainPdcAndPeer) {
  live::TraceDump dump = hanging_dump();
  const Record sent{.kind = Kind::Sent,
                    .detail = 1,
                    .pdc = 0x4A21,
                    .psn = 0x4021,
                    .a = kOnePacket + 1088,
                    .b = std::uint64_t{0xC001} << 32 | 3 << 16 | 17};
  const std::string line =
      line_of({.realtime_ns = 0, .dump = 0, .record = sent, .packet = nullptr, .note = {}}, dump,
              peers_of(dump));
  EXPECT_THAT(line, HasSubstr(" 4711 10.0.0.1:4793 pdc 0x4a21 to 10.0.0.2:4793 sent psn 0x4021, "
                              "bytes 1088, message 17, again, transmission 3, entropy 0xc001"));
  EXPECT_THAT(line, HasSubstr(".000000000 4711"));
}

TEST(TraceEvents, Describe_EveryKindHasItsWords) {
  const auto text = [](Kind kind, std::uint8_t detail, std::uint64_t a, std::uint64_t b) {
    return describe({.kind = kind, .detail = detail, .psn = 5, .a = a, .b = b});
  };
  EXPECT_EQ(text(Kind::PdcState, 3, 2, 0), "pdc_state established -> quiesce");
  EXPECT_EQ(text(Kind::PdcState, 0, 2, 1), "pdc_state established -> closed, rto_exhausted");
  EXPECT_EQ(text(Kind::Lost, 0, 1'500'000, std::uint64_t{9} << 32 | 2),
            "lost psn 0x5, time_out 1.500 ms after transmission 2, entropy 0x9");
  EXPECT_EQ(text(Kind::Waited, 3, 2'000'000, 0), "waited 2.000 ms for peer_window");
  EXPECT_EQ(text(Kind::NackReceived, 1, 0, 0), "nack_received psn 0x5, trimmed");
  EXPECT_EQ(text(Kind::AckReceived, 1, std::uint64_t{9000} << 32 | 8, 0),
            "ack_received cack 0x5, window 9000, in flight 8, ECN mark");
  EXPECT_EQ(text(Kind::Ended, 4, 1, 0), "ended message 5, transport_error, rto_exhausted");
  EXPECT_EQ(text(Kind::NotPolled, 0, 1'000'000, 3), "not_polled for 1.000 ms, 3 packets waited");
  EXPECT_EQ(text(Kind::Received, 0, 3 * kOnePacket + 30, 0),
            "received psn 0x5 to 0x7, 3 packets, bytes 30, entropy 0x0");
  EXPECT_EQ(text(Kind::PeerLost, 0, 0x0200000A, 0), "peer_lost 10.0.0.2:5");
  EXPECT_EQ(text(Kind::PdcOpened, 3, 0x0200000A, 0), "pdc_opened as target, ROD, peer 10.0.0.2:5");
}

TEST(TraceChrome, Json_HasSpansForOperationsAndWaits) {
  live::TraceDump dump = hanging_dump();
  dump.records = {{.time_ns = 1'000, .kind = Kind::Posted, .detail = 2, .psn = 17},
                  {.time_ns = 9'000, .kind = Kind::Waited, .detail = 1, .pdc = 0x4A21, .a = 3'000},
                  {.time_ns = 9'500, .kind = Kind::Ended, .psn = 17}};
  const std::vector<live::TraceDump> dumps{dump};
  const auto json = nlohmann::json::parse(to_chrome(merge(dumps), dumps));
  const auto& all = json.at("traceEvents");
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].at("args").at("name"), "solver 4711, 10.0.0.1:4793");
  EXPECT_EQ(all[1].at("args").at("name"), "PDC 0x4a21 to 10.0.0.2:4793");
  EXPECT_EQ(all[2].at("ph"), "b");
  EXPECT_EQ(all[4].at("ph"), "e");
  EXPECT_EQ(all[2].at("name"), all[4].at("name"));
  EXPECT_EQ(all[3].at("ph"), "X");
  EXPECT_DOUBLE_EQ(all[3].at("dur"), 3.0);
  EXPECT_DOUBLE_EQ(all[3].at("ts"), 5.0);
}

}  // namespace
}  // namespace uet::tracing
