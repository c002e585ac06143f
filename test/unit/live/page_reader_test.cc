// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A reader sees what a writer has shown, and refuses all else.
#include "live/page_reader.h"

#include <atomic>
#include <thread>

#include "unit/live/live_harness.h"

namespace uet::live {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using PageReaderTest = LiveTest;
constexpr Time kNow = time_from_ns(5'000);

TEST_F(PageReaderTest, NumbersAndTextsArriveAsTheyWereWritten) {
  const auto page = make_page();
  const std::uint64_t values[] = {3, 4};
  PeerRecord peer;
  peer.rtt_ns = 77;
  peer.nacks_received[1] = 9;
  page->update(values, {&peer, 1}, 12, kNow);
  std::string why;
  const auto read = read_page(page->file(), why);
  ASSERT_TRUE(read) << why;
  EXPECT_EQ(read->interface(), "eth0");
  EXPECT_EQ(read->nic(), "udp");
  EXPECT_EQ(read->address(), "10.0.0.1:4793");
  EXPECT_FALSE(read->program().empty());
  EXPECT_EQ(read->owner, Owner::Running);
  EXPECT_FALSE(read->torn);
  EXPECT_EQ(read->moment.monotonic_ns, 5'000U);
  EXPECT_EQ(read->moment.peers_known, 12U);
  ASSERT_THAT(read->counters, SizeIs(2));
  EXPECT_EQ(read->counters[1].name, "nic_pears");
  EXPECT_EQ(read->counters[1].meaning, "pears sent");
  EXPECT_EQ(read->counters[1].value, 4U);
  EXPECT_TRUE(read->counters[0].gauge);
  EXPECT_FALSE(read->counters[1].gauge);
  ASSERT_THAT(read->peers, SizeIs(1));
  EXPECT_EQ(read->peers[0].rtt_ns, 77U);
  EXPECT_EQ(read->peers[0].nacks_received[1], 9U);
}

TEST_F(PageReaderTest, WaitingPdcsAndOperationsArrive) {
  const auto page = make_page();
  PdcRecord pdcs[2];
  pdcs[1].oldest_psn = 0x4021;
  pdcs[1].inflight_bytes = 8;
  OperationRecord operation;
  operation.packets_answered = 5;
  page->update({}, {}, 0, kNow,
               {.pdcs = pdcs, .operations = {&operation, 1}, .operations_known = 9});
  std::string why;
  const auto read = read_page(page->file(), why);
  ASSERT_TRUE(read) << why;
  ASSERT_THAT(read->pdcs, SizeIs(2));
  EXPECT_EQ(read->pdcs[1].oldest_psn, 0x4021U);
  EXPECT_EQ(read->pdcs[1].inflight_bytes, 8U);
  ASSERT_THAT(read->operations, SizeIs(1));
  EXPECT_EQ(read->operations[0].packets_answered, 5U);
  EXPECT_EQ(read->moment.operations_known, 9U);
}

TEST_F(PageReaderTest, TraceArrivesOldestFirst) {
  const auto page = make_page();
  trace::Trace trace;
  const Time now = time_from_ns(5'000);
  trace.keep_in(&page->trace(), &now);
  std::string why;
  EXPECT_THAT(read_trace(page->file(), why)->records, SizeIs(0));
  page->trace().last_pass_ns = 5'000;
  for (std::uint64_t i = 0; i < trace::kRecords + 5; ++i) {
    trace.write(trace::Kind::Sent, 0, PdcId{1}, Psn{2}, i);
  }
  page->trace().sleeping_since_ns = 6'000;
  const auto read = read_trace(page->file(), why);
  ASSERT_TRUE(read) << why;
  EXPECT_EQ(read->written, trace::kRecords + 5);
  EXPECT_EQ(read->last_pass_ns, 5'000);
  EXPECT_EQ(read->sleeping_since_ns, 6'000);
  // The oldest is left out: the process may just replace it.
  ASSERT_THAT(read->records, SizeIs(trace::kRecords - 1));
  EXPECT_EQ(read->records.front().a, 6U);
  EXPECT_EQ(read->records.back().a, trace::kRecords + 4);
}

// A page of an earlier version of this library.
TEST_F(PageReaderTest, PageWithoutTraceIsRead) {
  const auto page = make_page();
  for (const std::size_t at :
       {offsetof(Head, trace), offsetof(Head, pdcs), offsetof(Head, operations)}) {
    spoil(page->file(), at, Area{});
  }
  std::string why;
  EXPECT_TRUE(read_page(page->file(), why)) << why;
  EXPECT_FALSE(read_trace(page->file(), why));
  EXPECT_THAT(why, HasSubstr("no trace"));
}

TEST_F(PageReaderTest, TraceBeyondTheFileIsRefused) {
  const auto page = make_page();
  Area area = {0, sizeof(trace::Record), 0xFFFFFFFF, 0};
  spoil(page->file(), offsetof(Head, trace), area);
  std::string why;
  EXPECT_FALSE(read_trace(page->file(), why));
  EXPECT_THAT(why, HasSubstr("damaged"));
  area = {8, sizeof(trace::Record), 2, 0};  // no space for the head of a ring
  spoil(page->file(), offsetof(Head, trace), area);
  EXPECT_FALSE(read_trace(page->file(), why));
}

TEST_F(PageReaderTest, NoMixtureOfTwoMoments) {
  const auto page = make_page();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop; ++i) {
      std::vector<PeerRecord> peers(kMaxPeers);
      for (PeerRecord& peer : peers) peer.rtt_ns = peer.bytes_received = i;
      const std::uint64_t values[] = {i, i};
      page->update(values, peers, kMaxPeers, kNow);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 50; ++i) {
    std::string why;
    const auto read = read_page(page->file(), why);
    ASSERT_TRUE(read) << why;
    if (read->torn || read->peers.empty()) continue;  // not rested once within 200 ms
    const std::uint64_t moment = read->counters[0].value;
    EXPECT_EQ(read->counters[1].value, moment);
    for (const PeerRecord& peer : read->peers) {
      ASSERT_EQ(peer.rtt_ns, moment);
      ASSERT_EQ(peer.bytes_received, moment);
    }
  }
  stop = true;
  writer.join();
}

TEST_F(PageReaderTest, WriterThatEndedWithinAnUpdateIsReported) {
  const auto page = make_page();
  spoil(page->file(), offsetof(Page, moment), std::uint64_t{7});
  std::string why;
  const auto read = read_page(page->file(), why);
  ASSERT_TRUE(read) << why;
  EXPECT_TRUE(read->torn);
}

TEST_F(PageReaderTest, EndedProcessAndOtherNameSpaceAreReported) {
  const auto page = make_page();
  spoil(page->file(), offsetof(Head, start_time), std::uint64_t{1});  // the PID is in use again
  std::string why;
  EXPECT_EQ(read_page(page->file(), why)->owner, Owner::Gone);
  spoil(page->file(), offsetof(Head, pid_namespace), std::uint64_t{1});
  EXPECT_EQ(read_page(page->file(), why)->owner, Owner::Unknown);
}

TEST_F(PageReaderTest, PageOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const auto page = make_page();
  ASSERT_EQ(::chown(page->file().c_str(), 1, 1), 0);
  EXPECT_EQ(reason(page->file()), "belongs to another user");
}

TEST_F(PageReaderTest, BrokenPagesAreRefusedWithAReason) {
  const auto page = make_page();
  const std::string& file = page->file();
  EXPECT_THAT(reason(directory_ + "/none"), HasSubstr("No such file"));
  const std::string link = directory_ + "/link";
  ASSERT_EQ(::symlink(file.c_str(), link.c_str()), 0);
  EXPECT_NE(reason(link), "");
  std::filesystem::copy_file(file, link + "2");
  std::filesystem::resize_file(link + "2", sizeof(Head));
  EXPECT_EQ(reason(link + "2"), "is damaged");
  for (const std::size_t at :
       {offsetof(Head, moment), offsetof(Head, counters), offsetof(Head, peers),
        offsetof(Head, text), offsetof(Head, gauges)}) {
    const auto other = make_page();
    spoil(other->file(), at, Area{0xfffffff0, 0xfffffff0, 0xfffffff0, 0});
    EXPECT_EQ(reason(other->file()), "is damaged") << at;
  }
  spoil(file, offsetof(Head, version), std::uint32_t{2});
  EXPECT_THAT(reason(file), HasSubstr("has another version of the layout"));
  spoil(file, 0, std::uint64_t{0});
  EXPECT_THAT(reason(file), HasSubstr("no live page"));
}

}  // namespace
}  // namespace uet::live
