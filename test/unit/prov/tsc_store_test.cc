// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/tsc_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tss/sd_table.h"
#include "uet/wire/pds.h"

namespace uet::prov {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr FabricAddress kSelf{{10, 0, 0, 7}};
constexpr std::uint64_t kBlock = TscStore::kBlock;

class TscStoreTest : public testing::Test {
 protected:
  TscStoreTest() {
    char pattern[] = "/tmp/uet_tsc_store_XXXXXX";
    directory_ = mkdtemp(pattern);
  }
  ~TscStoreTest() override { std::filesystem::remove_all(directory_); }

  static tss::TscRequest request() {
    tss::TscRequest request;
    request.key.fill(std::byte{0xAB});
    return request;
  }
  // The block of a process that begins now; nullopt if it is refused.
  std::optional<tss::TscRange> block(const tss::TscRequest& request = TscStoreTest::request(),
                                     const FabricAddress& self = kSelf) {
    TscStore store(directory_, self);
    const auto block = store.next_block(request);
    EXPECT_EQ(block.has_value(), store.problem().empty());
    return block;
  }
  std::string problem_of(const tss::TscRequest& request, const std::string& directory,
                         std::optional<Duration> written = {}) {
    TscStore store(directory, kSelf);
    store.keys_written(written);
    EXPECT_FALSE(store.next_block(request).has_value());
    return store.problem();
  }
  std::filesystem::path only_file() const {
    return std::filesystem::directory_iterator(directory_ + "/uet-tss")->path();
  }

  std::string directory_;
};

TEST_F(TscStoreTest, Tss37_GoesOnWhereTheLastProcessMayHaveBeen) {
  EXPECT_EQ(block(), (tss::TscRange{1, kBlock}));
  EXPECT_EQ(block(), (tss::TscRange{kBlock, 2 * kBlock}));
  tss::TscRequest later = request();
  later.left.first = 5 * kBlock + 3;  // the key file knows of more
  EXPECT_EQ(block(later), (tss::TscRange{5 * kBlock + 3, 6 * kBlock}));
  EXPECT_EQ(block(), (tss::TscRange{6 * kBlock, 7 * kBlock}));
}

TEST_F(TscStoreTest, Tss34_EachKeyEpochAndIdentityHasItsOwnTscs) {
  const tss::TscRange first{1, kBlock};
  EXPECT_EQ(block(), first);
  tss::TscRequest other = request();
  other.key[15] = std::byte{1};
  EXPECT_EQ(block(other), first);
  other = request();
  other.epoch = 1;
  EXPECT_EQ(block(other), first);
  other = request();
  other.ssi = 5;
  EXPECT_EQ(block(other), first);
  EXPECT_EQ(block(other, {{10, 0, 0, 8}}), (tss::TscRange{kBlock, 2 * kBlock}));  // the SSI counts
  EXPECT_EQ(block(request(), {{10, 0, 0, 8}}), first);
}

TEST_F(TscStoreTest, Tss37_RefusesWithoutADirectoryOfTheUserAlone) {
  EXPECT_THAT(problem_of(request(), ""), HasSubstr("XDG_RUNTIME_DIR is not set"));
  EXPECT_THAT(problem_of(request(), directory_ + "/none"), HasSubstr("No such file"));
  ASSERT_EQ(chmod(directory_.c_str(), 0770), 0);
  EXPECT_THAT(problem_of(request(), directory_), HasSubstr("mode 0700"));
}

TEST_F(TscStoreTest, Tss37_RefusesAKeyThatIsOlderThanAllTraces) {
  EXPECT_THAT(problem_of(request(), directory_, std::chrono::hours(24)), HasSubstr("raise the"));
  tss::TscRequest told = request();
  told.history_told = true;
  TscStore store(directory_, kSelf);
  store.keys_written(std::chrono::hours(24));
  EXPECT_TRUE(store.next_block(told).has_value());
  EXPECT_TRUE(store.next_block(request()).has_value());  // there is a trace now
  tss::TscRequest newer = request();
  newer.epoch = 1;
  EXPECT_FALSE(store.next_block(newer).has_value());
  store.keys_written(std::chrono::system_clock::now().time_since_epoch());
  EXPECT_TRUE(store.next_block(newer).has_value());
}

TEST_F(TscStoreTest, Tss36_RefusesAtTheEndOfTheRange) {
  tss::TscRequest small = request();
  small.left = {1, 10};
  EXPECT_EQ(block(small), (tss::TscRange{1, 10}));
  EXPECT_THAT(problem_of(small, directory_), HasSubstr("rotate"));
}

TEST_F(TscStoreTest, Tss37_RefusesAFileThatHoldsNoTsc) {
  ASSERT_TRUE(block().has_value());
  std::ofstream(only_file()) << "17\n";
  EXPECT_THAT(problem_of(request(), directory_), HasSubstr("does not hold a TSC"));
  std::ofstream(only_file()) << std::string(20, 'x') << "\n";
  EXPECT_THAT(problem_of(request(), directory_), HasSubstr("does not hold a TSC"));
}

// Consecutive TSCs that a sender has put into packets, from the first to behind the last.
std::vector<tss::TscRange> seal_packets(const std::string& directory, std::size_t packets) {
  TscStore store(directory, kSelf);
  tss::SdTable table({.tscs = &store});
  tss::DomainConfig config;
  config.sdi = 1;
  std::vector<tss::TscRange> taken;
  if (!table.add(config).ok()) return taken;
  tss::SecureDomain& domain = *table.find(1);
  if (!domain.install(false, tss::Key{}, {}).ok() || !domain.activate(false, Time{}).ok()) {
    return taken;
  }
  const tss::OuterFields outer = tss::udp_fields({kSelf, 4793}, {{{10, 0, 0, 9}}, 4793});
  std::array<std::byte, 64> sealed;
  for (std::size_t i = 0; i < packets; ++i) {
    const auto result = table.seal(1, outer, {}, sealed);
    wire::SecurityHeader header;
    if (result.verdict != tss::SealVerdict::Sealed ||
        !wire::SecurityHeader::decode(sealed, header)) {
      return {};
    }
    if (taken.empty() || taken.back().end != header.counter) {
      taken.push_back({header.counter, header.counter});
    }
    ++taken.back().end;
  }
  return taken;
}

// All that the threads of this process have sealed goes to `out`.
void seal_in_threads(const std::string& directory, std::size_t packets, int out) {
  std::array<std::vector<tss::TscRange>, 4> taken;
  std::vector<std::thread> threads;
  for (auto& mine : taken) {
    threads.emplace_back([&] { mine = seal_packets(directory, packets); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& ranges : taken) {
    const std::size_t bytes = ranges.size() * sizeof(tss::TscRange);
    if (write(out, ranges.data(), bytes) != static_cast<ssize_t>(bytes)) _exit(1);
  }
}

TEST_F(TscStoreTest, Tss33And34_MillionPackets_TscsAreUnique) {
  constexpr std::size_t kProcesses = 4;
  constexpr std::size_t kPackets = 62'500;  // of each of 16 threads
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  for (std::size_t i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child > 0) continue;
    seal_in_threads(directory_, kPackets, pipe_ends[1]);
    _exit(0);
  }
  close(pipe_ends[1]);
  std::vector<tss::TscRange> all;
  tss::TscRange range;
  while (read(pipe_ends[0], &range, sizeof range) == static_cast<ssize_t>(sizeof range)) {
    all.push_back(range);
  }
  close(pipe_ends[0]);
  for (std::size_t i = 0; i < kProcesses; ++i) {
    int status = -1;
    EXPECT_GT(wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  std::ranges::sort(all, {}, &tss::TscRange::first);
  std::uint64_t packets = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    packets += all[i].end - all[i].first;
    if (i > 0) {
      EXPECT_LE(all[i - 1].end, all[i].first);
    }
  }
  EXPECT_EQ(packets, 16 * kPackets);
}

}  // namespace
}  // namespace uet::prov
