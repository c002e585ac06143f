// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why operations do not end: tools/uet_trace.
#include "uet_trace/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "unit/view/trace_harness.h"

namespace uet::tracing {
namespace {

using testing::HasSubstr;
using testing::Not;
using trace::Kind;

std::string why(const live::TraceDump& dump, std::vector<live::TraceDump> others = {}) {
  return explain(dump, others);
}

TEST(TraceWhy, SilentPeer_NamedWithSendsAndLosses) {
  live::TraceDump dump = hanging_dump();
  dump.records.push_back(
      {.kind = Kind::Lost, .detail = 0, .pdc = 0x4A21, .psn = 0x4021, .a = 5, .b = 1});
  dump.records.push_back(
      {.kind = Kind::Lost, .detail = 1, .pdc = 0x4A21, .psn = 0x4021, .a = 5, .b = 2});
  const std::string text = why(dump);
  EXPECT_THAT(text, HasSubstr("write of 8 bytes, message 17, to 10.0.0.2:4793 waits 2.100 s"));
  EXPECT_THAT(text, HasSubstr("PSN 0x4021 on PDC 0x4a21 was sent 6 times, first 2.100 s ago, "
                              "last 0.500 s ago; lost 2 times (1 time_out, 1 inferred)"));
  EXPECT_THAT(text, HasSubstr("nothing came from that peer since"));
  EXPECT_THAT(text, HasSubstr("(2.200 s)"));
  EXPECT_THAT(text, Not(HasSubstr("This process")));
  dump.pdcs[0].peer_heard_ns = 0;
  EXPECT_THAT(why(dump), HasSubstr("nothing has ever come from that peer"));
}

TEST(TraceWhy, PeerOfThisUser_IsJudgedByItsOwnTrace) {
  const live::TraceDump dump = hanging_dump();
  live::TraceDump peer;
  peer.pid = 815;
  peer.program = "rank3";
  peer.address = "10.0.0.2:4793";
  peer.owner = live::Owner::Running;
  peer.monotonic_ns = 10'000'000'000;
  peer.last_pass_ns = 7'900'000'000;
  EXPECT_THAT(why(dump, {dump, peer}),
              HasSubstr("the peer is process 815 (rank3) of this user: it is alive but has not "
                        "called libfabric for 2.100 s."));
  peer.sleeping_since_ns = 7'900'000'000;
  EXPECT_THAT(why(dump, {peer}), HasSubstr("it sleeps in libfabric until packets come."));
  peer.last_pass_ns = 9'999'000'000;
  EXPECT_THAT(why(dump, {peer}), HasSubstr("it calls libfabric; if"));
  peer.owner = live::Owner::Gone;
  EXPECT_THAT(why(dump, {peer}), HasSubstr("it has ended."));
}

TEST(TraceWhy, OwnAbsence_IsSaidFirst) {
  live::TraceDump dump = hanging_dump();
  dump.last_pass_ns = 6'000'000'000;
  EXPECT_THAT(why(dump), HasSubstr("This process has not called libfabric for 4.000 s."));
}

TEST(TraceWhy, RefusingPeer_IsNamedWithItsCode) {
  live::TraceDump dump = hanging_dump();
  dump.pdcs[0].peer_heard_ns = 9'900'000'000;
  for (std::int64_t i = 1; i <= 3; ++i) {
    dump.records.push_back({.time_ns = 9'600'000'000 + i * 100'000'000,
                            .kind = Kind::NackReceived,
                            .detail = static_cast<std::uint8_t>(wire::NackCode::NoResource),
                            .pdc = 0x4A21,
                            .psn = 0x4021});
  }
  const std::string text = why(dump);
  EXPECT_THAT(text, HasSubstr("refused packets 3 times, last with no_resource 0.100 s ago."));
  EXPECT_THAT(text, HasSubstr("the peer answers other packets"));
}

TEST(TraceWhy, WaitForWindow_IsNamed) {
  live::TraceDump dump = hanging_dump();
  dump.pdcs[0].wait = static_cast<std::uint8_t>(trace::Wait::Credit);
  dump.pdcs[0].wait_since_ns = 9'000'000'000;
  dump.pdcs[0].messages_queued = 4;
  EXPECT_THAT(why(dump), HasSubstr("4 messages wait for credit of the receiver since"));
}

TEST(TraceWhy, EachWaitOfAnOperation_HasItsWords) {
  live::TraceDump dump = hanging_dump();
  const auto with = [&](ses::OperationWait waits) {
    dump.operations[0].waits = static_cast<std::uint8_t>(waits);
    return why(dump);
  };
  EXPECT_THAT(with(ses::OperationWait::Fence), HasSubstr("(fence)"));
  EXPECT_THAT(with(ses::OperationWait::Read), HasSubstr("must read the rest"));
  EXPECT_THAT(with(ses::OperationWait::Deferred), HasSubstr("has put it off"));
  EXPECT_THAT(with(ses::OperationWait::Data), HasSubstr("have not all come"));
  EXPECT_THAT(with(ses::OperationWait::Retry), HasSubstr("refused it for now"));
  dump.operations[0].pdc = 0;
  EXPECT_THAT(why(dump), HasSubstr("it has no PDC yet"));
  EXPECT_THAT(why(dump), HasSubstr("PDC 0x4a21 with 10.0.0.2:4793 has no operation"));
}

TEST(TraceWhy, FailedOperation_IsExplainedFromItsEvents) {
  live::TraceDump dump = hanging_dump();
  dump.operations.clear();
  dump.pdcs.clear();
  dump.records = {
      {.time_ns = 1, .kind = Kind::PdcOpened, .pdc = 0x4A21, .psn = 4793, .a = 0x0200000A},
      {.time_ns = 8'000'000'000,
       .kind = Kind::Sent,
       .detail = 1,
       .pdc = 0x4A21,
       .psn = 0x4021,
       .a = 1,
       .b = 9 << 16 | 17},
      {.time_ns = 9'000'000'000,
       .kind = Kind::Ended,
       .detail = 4,
       .pdc = 0x4A21,
       .psn = 17,
       .a = 1},
      {.time_ns = 9'000'000'000, .kind = Kind::Ended, .detail = 2, .pdc = 0x4A21, .psn = 18}};
  const std::string text = why(dump);
  EXPECT_THAT(text, HasSubstr("message 17 failed 1.000 s ago: ended message 17, transport_error, "
                              "rto_exhausted:"));
  EXPECT_THAT(text, HasSubstr("PSN 0x4021 on PDC 0x4a21 to 10.0.0.2:4793 was sent 9 times, last "
                              "1.000 s before the failure."));
  EXPECT_THAT(text, HasSubstr("no answer of that peer on this PDC"));
  EXPECT_THAT(text, Not(HasSubstr("message 18")));  // cancelled
  dump.records.insert(dump.records.begin() + 1,
                      {.time_ns = 7'500'000'000, .kind = Kind::AckReceived, .pdc = 0x4A21});
  EXPECT_THAT(why(dump), HasSubstr("the last answer of that peer came 1.500 s before"));
}

TEST(TraceWhy, NoOperation_SaysWhatTheProgramMayWaitFor) {
  live::TraceDump dump = hanging_dump();
  dump.operations.clear();
  dump.pdcs.clear();
  EXPECT_THAT(why(dump), HasSubstr("No operation of this domain is outstanding"));
}

}  // namespace
}  // namespace uet::tracing
