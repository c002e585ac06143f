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
