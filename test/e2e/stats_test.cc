// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of a domain from outside: fi_open_ops, and FI_UET_STATS at the end and by signal.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/providers/fi_prov.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "harness.h"
#include "live/page_reader.h"
#include "stream.h"
#include "uet/fi_ext_uet.h"

namespace uet::e2e {
namespace {

using Counters = std::map<std::string, std::uint64_t>;

fi_uet_stats_ops& open_stats(Node& node) {
  fi_uet_stats_ops* stats = nullptr;
  check(fi_open_ops(&node.domain->fid, FI_UET_STATS_OPS, 0, reinterpret_cast<void**>(&stats),
                    nullptr),
        "fi_open_ops");
  require(stats->size >= sizeof(fi_uet_stats_ops), "an older table than the header's");
  return *stats;
}

Counters read_counters(Node& node) {
  fi_uet_stats_ops& stats = open_stats(node);
  std::vector<std::uint64_t> values(stats.count(node.domain.get()));
  require(stats.read(node.domain.get(), values.data(), values.size()) ==
              static_cast<ssize_t>(values.size()),
          "not all counters were read");
  Counters counters;
  for (std::size_t i = 0; i < values.size(); ++i) {
    fi_uet_counter counter{};
    check(stats.describe(node.domain.get(), i, &counter), "describe");
    require(counter.meaning[0] != '\0', std::string(counter.name) + " has no meaning");
    require(counters.emplace(counter.name, values[i]).second,
            std::string(counter.name) + " is there twice");
  }
  return counters;
}

// Parses the output of FI_UET_STATS; the first line is a heading.
Counters parse_dump(const std::string& text) {
  std::istringstream lines(text);
  std::string heading;
  std::getline(lines, heading);
  EXPECT_EQ(heading.find("uet statistics: process "), 0U) << heading;
  Counters counters;
  std::string name;
  std::uint64_t value = 0;
  while (lines >> name >> value) {
    EXPECT_TRUE(counters.emplace(name, value).second) << name << " is there twice";
  }
  return counters;
}

std::string contents(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string scratch_file(const char* name) {
  return testing::TempDir() + "uet_stats_" + std::to_string(::getpid()) + "_" + name;
}

constexpr std::uint64_t kMessages = 300;
constexpr std::size_t kBytes = 6000;

// ---- fi_open_ops -------------------------------------------------------------------------------

TEST(Stats, OperationsShowTrafficAndRetransmissions) {
  ChannelPair pair;
  const Environment faults{{"FI_UET_FAULTS", "loss=5%,seed=3"}};
  Process sender("sender", faults, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.left);
    require(read_counters(node).at("pds_requests_sent") == 0, "counted before anything was sent");
    stream(node, peer, true, kMessages, kBytes);
    const Counters counters = read_counters(node);
    require(counters.at("ses_messages_sent") == kMessages, "messages_sent is wrong");
    require(counters.at("pds_requests_sent") >= kMessages, "requests_sent is wrong");
    const std::uint64_t again = counters.at("pds_rto_retransmissions") +
                                counters.at("pds_inferred_loss_retransmissions") +
                                counters.at("pds_nack_retransmissions");
    require(again > 0, "no retransmission was counted although packets were lost");
    require(counters.at("nic_packets_sent") >= counters.at("pds_requests_sent") + again,
            "the NIC sent fewer packets than PDS");
    pair.left.meet(&node);
  });
  Process receiver("receiver", faults, [&] {
    Node node;
    const fi_addr_t peer = node.connect(pair.right);
    stream(node, peer, false, kMessages, kBytes);
    pair.right.meet(&node);
    const Counters counters = read_counters(node);
    require(counters.at("ses_messages_received") == kMessages, "messages_received is wrong");
    require(counters.at("pds_requests_delivered") >= kMessages, "requests_delivered is wrong");
    require(counters.at("pds_acks_sent") > 0, "no ACK was counted");
    for (const char* direction : {"sent", "received"}) {
      for (const char* code : {"trimmed", "no_pdc_avail", "inv_dpdcid", "exp_fatal", "other"}) {
        require(counters.contains(std::string("pds_nacks_") + direction + "_" + code),
                std::string("no counter for NACKs ") + direction + ", " + code);
      }
    }
  });
  EXPECT_EQ(wait_for_all({&sender, &receiver}), "");
}

TEST(Stats, WrongCallsAreRefused) {
  Process process("process", {}, [&] {
    Node node;
    void* ops = nullptr;
    require(fi_open_ops(&node.domain->fid, "no such thing", 0, &ops, nullptr) == -FI_ENOSYS,
            "an unknown name was taken");
    require(fi_open_ops(&node.domain->fid, FI_UET_STATS_OPS, 1, &ops, nullptr) == -FI_EINVAL,
            "unknown flags were taken");
    fi_uet_stats_ops& stats = open_stats(node);
    fid_domain* domain = node.domain.get();
    fi_uet_counter counter{};
    require(stats.describe(domain, stats.count(domain), &counter) == -FI_EINVAL,
            "a counter behind the last was described");
    std::uint64_t values[2] = {7, 7};
    require(stats.read(domain, values, 1) == 1 && values[1] == 7, "more was written than asked");
    require(stats.read(domain, nullptr, 0) == 0, "nothing cannot be read");
    std::vector<std::uint64_t> room(stats.count(domain) + 10);
    require(
        stats.read(domain, room.data(), room.size()) == static_cast<ssize_t>(stats.count(domain)),
        "more counters were read than there are");
  });
  EXPECT_EQ(process.wait(), "");
}

// ---- FI_UET_STATS ------------------------------------------------------------------------------

TEST(Stats, ExitWritesAllCountersOfAClosedDomain) {
  const std::string file = scratch_file("closed");
  std::remove(file.c_str());
  Process process("process", {{"FI_UET_STATS", "exit:" + file}}, [&] {
    Node node;
    const Counters counters = read_counters(node);
    node.ep.reset();
    std::ofstream(file + ".names") << counters.size();
  });
  EXPECT_EQ(process.wait(), "");
  const Counters dumped = parse_dump(contents(file));
  EXPECT_EQ(dumped.size(), std::stoul(contents(file + ".names")));
  EXPECT_TRUE(dumped.contains("pds_rto_retransmissions"));
  std::remove(file.c_str());
  std::remove((file + ".names").c_str());
}

// One page, which outlives its domain, in a directory that the provider has made.
void expect_copied_page(const std::string& directory) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    ++files;
    std::string why;
    const auto page = live::read_page(entry.path().string(), why);
    ASSERT_TRUE(page) << why;
    EXPECT_GT(page->counters.size(), 50U);
    EXPECT_EQ(page->nic(), "udp");
    EXPECT_NE(page->moment.updated_ns, 0U);
  }
  EXPECT_EQ(files, 1U);
  std::filesystem::remove_all(directory);
}

TEST(Stats, PagesAreCopiedWhenTheDomainCloses) {
  const std::string directory = scratch_file("pages");
  std::filesystem::remove_all(directory);
  Process process("process", {{"FI_UET_STATS", "pages:" + directory}}, [&] {
    Node node;
    node.ep.reset();
  });
  EXPECT_EQ(process.wait(), "");
  expect_copied_page(directory);
}

// Ends as a program does that exits with an open domain.
void exit_with_open_domain(const std::string& stats) {
  // Not in a Process: those leave without running destructors.
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("FI_UET_STATS", stats.c_str(), 1);
    new Node;
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Stats, PagesAreCopiedWhenTheProcessEnds) {
  const std::string directory = scratch_file("pages_at_exit");
  std::filesystem::remove_all(directory);
  exit_with_open_domain("pages:" + directory);
  ASSERT_TRUE(std::filesystem::exists(directory));
  expect_copied_page(directory);
}

TEST(Stats, ExitWritesAFileForEachProcess) {
  if (built_with_sanitizer()) {
    GTEST_SKIP() << "fi_pingpong is not built with the sanitizer that the plug-in needs";
  }
  const std::string file = scratch_file("%p");
  const std::string files = scratch_file("*");
  const std::string program = UET_LIBFABRIC_BIN "/fi_pingpong -e rdm -I 50 -S 64 -p " + provider();
  const Output output = run_program("sh -c '" + program + " & sleep 0.5; " + program +
                                        " 127.0.0.1; wait $!; cat " + files + "; rm " + files + "'",
                                    {{"FI_UET_STATS", "exit:" + file}});
  EXPECT_EQ(output.status, 0) << output.text;
  std::size_t headings = 0;
  for (std::size_t at = 0; (at = output.text.find("uet statistics:", at)) != std::string::npos;) {
    ++at;
    ++headings;
  }
  EXPECT_EQ(headings, 2U) << output.text;
}

TEST(Stats, ExitWritesWhenTheProcessEndsWithAnOpenDomain) {
  const std::string file = scratch_file("open");
  std::remove(file.c_str());
  exit_with_open_domain("exit:" + file);
  EXPECT_GT(parse_dump(contents(file)).size(), 50U);
  std::remove(file.c_str());
}

// A domain that is closed and one that is open at the end: each writes its table.
TEST(Stats, ExitWritesWhatAClosedAndAnOpenDomainCounted) {
  const std::string file = scratch_file("both");
  std::remove(file.c_str());
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("FI_UET_STATS", ("exit:" + file).c_str(), 1);
    { const Node closed; }
    new Node;
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const std::string text = contents(file);
  const std::size_t second = text.find("uet statistics:", 1);
  ASSERT_NE(second, std::string::npos) << text;
  EXPECT_GT(parse_dump(text.substr(0, second)).size(), 50U);
  EXPECT_GT(parse_dump(text.substr(second)).size(), 50U);
  std::remove(file.c_str());
}

// libfabric itself frees its list of providers at exit: the plug-in is called without it.
TEST(Stats, ThreadsAskingForInfo_SurviveTheExit) {
  if (std::getenv("FI_PROVIDER_PATH") == nullptr) GTEST_SKIP() << "needs the plug-in's place";
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("FI_UET_STATS", "exit:/dev/null", 1);
      const std::string plug_in = std::string(std::getenv("FI_PROVIDER_PATH")) + "/libuet-fi.so";
      void* const library = ::dlopen(plug_in.c_str(), RTLD_NOW);
      if (library == nullptr) std::_Exit(2);
      const auto entry = reinterpret_cast<fi_provider* (*)()>(::dlsym(library, "fi_prov_ini"));
      const fi_provider* const uet = entry();
      new Node;
      std::atomic<int> asked{0};
      for (int i = 0; i < 3; ++i) {
        std::thread([&asked, uet] {
          for (;;) {
            fi_info* found = nullptr;
            if (uet->getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &found) == 0) {
              fi_freeinfo(found);
            }
            asked.fetch_add(1);
          }
        }).detach();
      }
      while (asked.load() < 3 + round) std::this_thread::yield();
      std::exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "round " << round;
  }
}

// ---- a program with other rights ---------------------------------------------------------------

// Runs a copy of this program as another user, with variables that name two files `files`*; returns
// how many of them it writes, nothing if it does not end well.
std::optional<int> files_written_by(const std::string& program, const std::string& files) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    ::setenv("FI_UET_PCAP", (files + ".pcapng").c_str(), 1);
    ::setenv("FI_UET_STATS", ("exit:" + files + ".stats").c_str(), 1);
    if (::setresuid(kNobody, kNobody, kNobody) != 0) std::_Exit(3);
    ::execl(program.c_str(), program.c_str(), "--gtest_filter=Stats.WrongCallsAreRefused", nullptr);
    std::_Exit(4);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) return {};
  return static_cast<int>(std::filesystem::exists(files + ".pcapng")) +
         static_cast<int>(std::filesystem::exists(files + ".stats"));
}

// It opens no file that its user names.
TEST(Stats, ProgramWithOtherRightsWritesNoFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, who can set the set-uid bit";
  const std::string directory = scratch_file("other_rights");
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  ::chmod(directory.c_str(), 0777);
  const std::string program = directory + "/program";
  std::filesystem::copy_file("/proc/self/exe", program);
  ::chmod(program.c_str(), 0755);
  const std::optional<int> with_own = files_written_by(program, directory + "/own");
  ::chmod(program.c_str(), 04755);
  const std::optional<int> with_other = files_written_by(program, directory + "/other");
  struct statvfs place {};
  const bool bit_counts = ::statvfs(directory.c_str(), &place) == 0 &&
                          (place.f_flag & ST_NOSUID) == 0 &&
                          ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
  std::filesystem::remove_all(directory);
  if (!with_own) GTEST_SKIP() << "another user cannot run a program of this tree";
  if (!bit_counts) GTEST_SKIP() << "the set-uid bit means nothing here";
  EXPECT_EQ(with_own, 2);
  EXPECT_EQ(with_other, 0);
}

void expect_dumps(const NodeOptions& options, bool progress) {
  const std::string file = scratch_file("signal");
  std::remove(file.c_str());
  Process process("process", {{"FI_UET_STATS", "signal:" + file}}, [&] {
    Node node(options);
    for (int round = 1; round <= 2; ++round) {
      ::kill(::getpid(), SIGUSR2);
      const Clock::time_point start = Clock::now();
      const auto headings = [&] {
        const std::string text = contents(file);
        int count = 0;
        for (std::size_t at = 0; (at = text.find("uet statistics:", at)) != std::string::npos;
             ++at) {
          ++count;
        }
        return count;
      };
      while (headings() < round) {
        if (progress) node.keep_events();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        require(Clock::now() - start < kDeadline, "no counters came");
      }
      require(headings() == round, "one signal wrote more than one table");
    }
  });
  EXPECT_EQ(process.wait(), "");
  std::remove(file.c_str());
}

TEST(Stats, SignalWritesAtTheNextProgress) { expect_dumps({}, true); }

TEST(Stats, SignalWakesTheProgressThread) {
  NodeOptions options;
  options.threading = FI_THREAD_SAFE;
  options.progress = FI_PROGRESS_AUTO;
  expect_dumps(options, false);
}

std::atomic<int> caught{0};

TEST(Stats, TheProgramsOwnHandlerIsLeftAlone) {
  const std::string file = scratch_file("own");
  std::remove(file.c_str());
  Process process("process", {{"FI_UET_STATS", "signal:" + file}}, [&] {
    ::signal(SIGUSR2, [](int) { caught.fetch_add(1); });
    Node node;
    ::kill(::getpid(), SIGUSR2);
    node.keep_events();
    require(caught.load() == 1, "the program's handler did not run");
  });
  EXPECT_EQ(process.wait(), "");
  EXPECT_EQ(contents(file), "");
  std::remove(file.c_str());
}

TEST(Stats, ASignalAfterTheLastCloseIsHarmless) {
  Process process("process", {{"FI_UET_STATS", "signal:/dev/null"}}, [&] {
    { const Node node; }
    ::kill(::getpid(), SIGUSR2);
  });
  EXPECT_EQ(process.wait(), "");
}

// The child shares the descriptors; its signals are its own.
TEST(Stats, ASignalToAForkedChildWritesNothing) {
  const std::string file = scratch_file("child");
  std::remove(file.c_str());
  Process process("process", {{"FI_UET_STATS", "signal:" + file}}, [&] {
    Node node;
    const pid_t child = ::fork();
    if (child == 0) {
      ::kill(::getpid(), SIGUSR2);
      ::_exit(0);
    }
    int status = 0;
    require(::waitpid(child, &status, 0) == child && status == 0, "the signal ended the child");
    for (int i = 0; i < 100; ++i) node.keep_events();
  });
  EXPECT_EQ(process.wait(), "");
  EXPECT_EQ(contents(file), "");
}

}  // namespace
}  // namespace uet::e2e
