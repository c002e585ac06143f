// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The live page of a domain, as another program of the same user reads it (docs/live-page.md).
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "harness.h"
#include "live/page_reader.h"
#include "stream.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kMessages = 50;
constexpr std::size_t kBytes = 100;

std::uint64_t counter(const live::Snapshot& page, const std::string& name) {
  for (const live::Counter& one : page.counters) {
    if (one.name == name) return one.value;
  }
  fail("no counter " + name);
}

// The only page of a process, when it is about to show `messages` in the counter `name`.
live::Snapshot page_with(pid_t pid, const std::string& name, std::uint64_t messages,
                         const std::function<void()>& meanwhile) {
  const Clock::time_point start = Clock::now();
  for (;;) {
    const std::vector<std::string> files = live::find_pages(pid);
    require(files.size() == 1, std::to_string(files.size()) + " pages of one domain");
    std::string why;
    const std::optional<live::Snapshot> page = live::read_page(files[0], why);
    require(page.has_value(), why);
    if (counter(*page, name) == messages) return *page;
    require(Clock::now() - start < kDeadline, name + " is not shown");
    meanwhile();
  }
}

TEST(Live, PageShowsCountersAndPeersWithinItsPeriod) {
  ChannelPair pair;
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    stream(node, peer, true, kMessages, kBytes);
    const live::Snapshot page =
        page_with(::getpid(), "ses_messages_sent", kMessages, [&] { node.keep_events(); });
    require(page.owner == live::Owner::Running && !page.torn, "the page does not live");
    require(page.peers.size() == 1 && page.moment.peers_known == 1, "not one peer");
    require(page.peers[0].packets_sent >= kMessages, "packets_sent of the peer is wrong");
    require(page.peers[0].bytes_sent > kMessages * kBytes, "bytes_sent of the peer is wrong");
    require(page.peers[0].acks_received > 0, "no ACK came from the peer");
    require(page.peers[0].pdcs >= 1, "the peer has no PDC");
    require(page.nic() == "udp", "the back end is " + page.nic());
    pair.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.right);
    stream(node, peer, false, kMessages, kBytes);
    const live::Snapshot page =
        page_with(::getpid(), "ses_messages_received", kMessages, [&] { node.keep_events(); });
    require(page.peers.size() == 1, "not one peer");
    require(page.peers[0].packets_received >= kMessages, "packets_received of the peer is wrong");
    pair.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

// A domain with a thread of its own sleeps after the exchange; nothing but the page wakes it.
TEST(Live, SleepingDomainHasShownItsLastChange) {
  NodeOptions options;
  options.threading = FI_THREAD_SAFE;
  options.progress = FI_PROGRESS_AUTO;
  ChannelPair pair;
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  Process sender("sender", {}, [&] {
    Node node(options);
    const fi_addr_t peer = node.connect(pair.left);
    stream(node, peer, true, kMessages, kBytes);
    page_with(::getpid(), "ses_messages_sent", kMessages, wait);
    pair.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node(options);
    const fi_addr_t peer = node.connect(pair.right);
    stream(node, peer, false, kMessages, kBytes);
    page_with(::getpid(), "ses_messages_received", kMessages, wait);
    pair.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(Live, PageGoesWithTheDomainAndWithTheProcess) {
  Process process("process", {}, [&] {
    {
      const Node first;
      const Node second;
      require(live::find_pages(::getpid()).size() == 2, "two domains have not two pages");
    }
    require(live::find_pages(::getpid()).empty(), "a closed domain has a page");
  });
  EXPECT_EQ(process.wait(), "");
  // Not in a Process: those leave without running destructors.
  const pid_t child = ::fork();
  if (child == 0) {
    new Node;
    if (live::find_pages(::getpid()).size() != 1) ::_exit(1);
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(live::find_pages(child).empty());
}

#ifdef UET_STATS
std::string stats_of(const std::string& options) {
  const Output output = run_program(std::string(UET_STATS) + " " + options, {});
  require(WIFEXITED(output.status) && WEXITSTATUS(output.status) == 0, output.text);
  return output.text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Live, UetStatsShowsTheRunningProcess) {
  ChannelPair pair;
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    const std::string pid = std::to_string(::getpid());
    const std::string before = "stats_before." + pid;
    stats_of("--json " + pid + " > " + before);
    stream(node, peer, true, kMessages, kBytes);
    page_with(::getpid(), "ses_messages_sent", kMessages, [&] { node.keep_events(); });
    const std::string text = stats_of(pid);
    require(has(text, pid + ", domain ") && has(text, "ses_messages_sent"), text);
    require(has(stats_of("--json " + pid), "\"ses_messages_sent\": 50,"), "not in the JSON");
    const std::string change = stats_of("--diff " + before + " " + pid);
    ::unlink(before.c_str());
    require(has(change, "ses_messages_sent") && has(change, "+50"), change);
    require(stats_of("--watch --interval 0.01 --count 2 " + pid).empty(), "a change at rest");
    pair.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.right);
    stream(node, peer, false, kMessages, kBytes);
    pair.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(Live, UetStatsSaysThatThereIsNoPage) {
  const Output output = run_program(std::string(UET_STATS) + " 1999999999 2>&1", {});
  EXPECT_EQ(WEXITSTATUS(output.status), 1);
  EXPECT_TRUE(has(output.text, "no live page of process 1999999999")) << output.text;
  EXPECT_EQ(WEXITSTATUS(run_program(std::string(UET_STATS) + " --apples 2>&1", {}).status), 2);
}
#endif

#ifdef UET_TOP
// The keys are typed before the program starts: peers, the numbers of the first one, and the end.
TEST(Live, UetTopShowsPeersOnATerminal) {
  ChannelPair pair;
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    stream(node, peer, true, kMessages, kBytes);
    page_with(::getpid(), "ses_messages_sent", kMessages, [&] { node.keep_events(); });
    const std::string top = std::string(UET_TOP) + " " + std::to_string(::getpid());
    const Output once = run_program(top + " --once --interval 0.05 --by peers", {});
    require(WEXITSTATUS(once.status) == 0 && has(once.text, "sent_B/s"), once.text);
    const Output json = run_program(top + " --json --interval 0.05 --sort pid", {});
    require(has(json.text, "\"pid\": " + std::to_string(::getpid())), json.text);
    require(WEXITSTATUS(run_program(top + " --sort apples 2>&1", {}).status) == 2, "took apples");
    const Output screen =
        run_program("sh -c \"printf '3\\nq' | TERM=xterm script -qec 'stty rows 40 cols 150; " +
                        top + "' /dev/null\"",
                    {});
    require(WEXITSTATUS(screen.status) == 0, screen.text);
    require(has(screen.text, "again/s") && has(screen.text, "nacks_received_trimmed"), screen.text);
    pair.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.right);
    stream(node, peer, false, kMessages, kBytes);
    pair.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}
#endif

#ifdef UET_EXPORTER
// A file of all counters and of a peer, named "uet.PID.prom".
std::string write_textfile() {
  std::string file = "uet." + std::to_string(::getpid()) + ".prom";
  const Output output = run_program(std::string(UET_EXPORTER) + " --textfile " + file, {});
  require(WEXITSTATUS(output.status) == 0, output.text);
  return file;
}

TEST(Live, UetExporterWritesAFile) {
  Process process("process", {}, [&] {
    const Node node;
    const std::string file = write_textfile();
    const Output text = run_program("cat " + file, {});
    ::unlink(file.c_str());
    require(has(text.text, "uet_pds_acks_sent_total{pid=\"" + std::to_string(::getpid())),
            text.text);
  });
  EXPECT_EQ(process.wait(), "");
}

TEST(Live, PromtoolFindsNoFaultInUetExporter) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "promtool is not installed (Debian: apt-get install prometheus)";
  }
  ChannelPair pair;
  Process sender("sender", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    stream(node, peer, true, kMessages, kBytes);
    page_with(::getpid(), "ses_messages_sent", kMessages, [&] { node.keep_events(); });
    const std::string file = write_textfile();
    const Output peers = run_program("grep -c uet_peer_ " + file, {});
    const Output lint = run_program("sh -c 'promtool check metrics < " + file + "' 2>&1", {});
    ::unlink(file.c_str());
    require(WEXITSTATUS(peers.status) == 0, "the file has no peer");
    require(WEXITSTATUS(lint.status) == 0 && lint.text.empty(), lint.text);
    pair.left.meet(&node);
  });
  Process receiver("receiver", {}, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.right);
    stream(node, peer, false, kMessages, kBytes);
    pair.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}
#endif

TEST(Live, NoPageWhereItIsSwitchedOff) {
  Process process("process", {{"FI_UET_TUNING", "live_statistics=no"}}, [&] {
    const Node node;
    require(live::find_pages(::getpid()).empty(), "there is a page");
  });
  EXPECT_EQ(process.wait(), "");
}

TEST(Live, DomainOpensWhereNoPageCanBeMade) {
  Process process("process", {}, [&] {
    const rlimit small{.rlim_cur = 4096, .rlim_max = 4096};
    require(::setrlimit(RLIMIT_FSIZE, &small) == 0, "setrlimit");
    const Node node;
    require(live::find_pages(::getpid()).empty(), "there is a page");
  });
  EXPECT_EQ(process.wait(), "");
}

}  // namespace
}  // namespace uet::e2e
