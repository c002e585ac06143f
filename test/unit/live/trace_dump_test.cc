// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A dump as text is the same dump when it is read again.
#include "live/trace_dump.h"

#include "unit/live/live_harness.h"

namespace uet::live {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TraceDump example() {
  TraceDump dump;
  dump.pid = 4711;
  dump.program = "solver";
  dump.address = "10.0.0.1:4793";
  dump.why = "SIGUSR2";
  dump.realtime_ns = 5'000'000'000;
  dump.monotonic_ns = 7'000;
  dump.last_pass_ns = 6'000;
  dump.operations_known = 3;
  dump.written = 9;
  PdcRecord pdc;
  pdc.ip = {10, 0, 0, 2};
  pdc.port = 4793;
  pdc.pdc = 0x4A21;
  pdc.oldest_psn = 0xFFFFFFFF;
  pdc.inflight_bytes = 77;
  dump.pdcs.push_back(pdc);
  OperationRecord operation;
  operation.ip = {0x20, 1, 0xD, 0xB8};
  operation.ip[15] = 1;
  operation.is_ipv6 = 1;
  operation.port = 5000;
  operation.message_id = 17;
  operation.packets_answered = 4;
  dump.operations.push_back(operation);
  dump.records.push_back({.time_ns = 1,
                          .kind = trace::Kind::Sent,
                          .detail = 5,
                          .pdc = 2,
                          .psn = 0x4021,
                          .a = ~std::uint64_t{0},
                          .b = 17});
  dump.records.push_back({.time_ns = 2, .kind = trace::Kind::Lost, .detail = 1});
  return dump;
}

TEST(TraceDump, Text_GivesTheSameDump) {
  const TraceDump dump = example();
  const auto read = dumps_of_text("pds_acks_sent 4\n" + to_text(dump) + "other\n" + to_text(dump));
  ASSERT_THAT(read, SizeIs(2));
  EXPECT_EQ(to_text(read[1]), to_text(dump));
  EXPECT_EQ(read[0].pid, 4711);
  EXPECT_EQ(read[0].program, "solver");
  EXPECT_EQ(read[0].address, "10.0.0.1:4793");
  EXPECT_EQ(read[0].why, "SIGUSR2");
  EXPECT_EQ(read[0].operations.at(0).ip, dump.operations[0].ip);
  EXPECT_EQ(read[0].operations.at(0).port, 5000);
  EXPECT_EQ(read[0].pdcs.at(0).inflight_bytes, 77U);
  EXPECT_EQ(read[0].records.at(0).a, ~std::uint64_t{0});
}

TEST(TraceDump, BrokenText_IsIgnored) {
  std::string text = to_text(example());
  EXPECT_THAT(dumps_of_text(text.substr(0, text.size() - 3)), IsEmpty());
  EXPECT_THAT(dumps_of_text(""), IsEmpty());
  text = kDumpBegins;
  text += "\npdc peer=x id=\nevent\nevent fly a=1\noperation\nclock written=zz\n";
  text += kDumpEnds;
  text += '\n';
  const auto read = dumps_of_text(text);
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_THAT(read[0].pdcs, IsEmpty());
  EXPECT_THAT(read[0].records, IsEmpty());
  EXPECT_THAT(read[0].operations, IsEmpty());
}

TEST(TraceDump, Names_EveryKindHasOne) {
  for (unsigned kind = 0; kind <= static_cast<unsigned>(trace::Kind::PeerLost); ++kind) {
    EXPECT_STRNE(name_of(static_cast<trace::Kind>(kind)), "unknown") << kind;
  }
  EXPECT_STREQ(name_of(static_cast<trace::Kind>(200)), "unknown");
  EXPECT_STREQ(name_of(trace::Kind::PeerLost), "peer_lost");
  EXPECT_STREQ(name_of(trace::Kind::Posted), "posted");
  EXPECT_STREQ(name_of(trace::Wait::Nic), "nic");
  EXPECT_STREQ(name_of(trace::Loss::GivenUp), "given_up");
}

using TracePageTest = LiveTest;

TEST_F(TracePageTest, Page_GivesItsDump) {
  const auto page = make_page();
  trace::Trace trace;
  const Time now = time_from_ns(5);
  trace.keep_in(&page->trace(), &now);
  page->trace().last_pass_ns = 900;
  trace.write(trace::Kind::PdcOpened, 0, PdcId{3}, Psn{4793});
  OperationRecord operation;
  operation.message_id = 5;
  page->update({}, {}, 0, time_from_ns(1'000),
               {.pdcs = {}, .operations = {&operation, 1}, .operations_known = 1});
  std::string why;
  const auto dump = dump_of_page(page->file(), why);
  ASSERT_TRUE(dump) << why;
  EXPECT_EQ(dump->pid, ::getpid());
  EXPECT_EQ(dump->owner, Owner::Running);
  EXPECT_EQ(dump->address, "10.0.0.1:4793");
  EXPECT_EQ(dump->updated_ns, 1'000);
  EXPECT_EQ(dump->last_pass_ns, 900);
  EXPECT_GT(dump->monotonic_ns, 1'000);  // now
  ASSERT_THAT(dump->records, SizeIs(1));
  EXPECT_EQ(dump->records[0].pdc, 3);
  ASSERT_THAT(dump->operations, SizeIs(1));
  EXPECT_EQ(records_of(page->trace()).size(), 1U);
}

}  // namespace
}  // namespace uet::live
