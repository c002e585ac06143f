// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=thread: what only an engine in a thread of its own does. Two domains in one
// process, on loopback; all other tests of the data path run with this setting, too (label engine).
#include <dirent.h>
#include <gtest/gtest.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"
#include "objects.h"

namespace uet::e2e {
namespace {

// The line "name:\tvalue" of each thread of this process with that name.
std::vector<std::string> status_of_threads(const std::string& thread, const std::string& line) {
  std::vector<std::string> found;
  DIR* const tasks = ::opendir("/proc/self/task");
  while (const dirent* entry = ::readdir(tasks)) {
    const std::string directory = std::string("/proc/self/task/") + entry->d_name;
    std::string name;
    std::ifstream comm(directory + "/comm");
    if (!std::getline(comm, name) || name != thread) continue;
    std::ifstream status(directory + "/status");
    for (std::string text; std::getline(status, text);) {
      if (text.starts_with(line + ":\t")) found.push_back(text.substr(line.size() + 2));
    }
  }
  ::closedir(tasks);
  return found;
}

class EngineThread : public testing::Test {
 protected:
  static constexpr std::uint64_t kCaps = FI_MSG | FI_RMA | FI_TAGGED;

  void wait_until(const std::function<bool()>& done, const char* what) {
    const Clock::time_point start = Clock::now();
    while (!done()) {
      ASSERT_LT(Clock::now() - start, kDeadline) << what;
      ::usleep(100);
    }
  }

  Variable engine_{"FI_UET_ENGINE", "thread"};
  static void ask_order(fi_info& hints) {
    hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAS;
  }
  Side a_{{.capabilities = kCaps, .hints = ask_order}};
  Side b_{{.capabilities = kCaps, .hints = ask_order}};
  Owned<fid_ep> ep_ = a_.open_endpoint(0);
  Owned<fid_ep> target_ = b_.open_endpoint(0);
  fi_addr_t to_ = a_.insert(*target_);
};

struct LittleMemory {
  Variable memory{"FI_UET_UNEXPECTED_BYTES", "65536"};  // a few hundred messages without receive
};
struct FullEngineThread : LittleMemory, EngineThread {};

// The target calls nothing between its registration and the end of the write.
TEST_F(EngineThread, ServesAPeerThatComputes) {
  std::vector<char> from(1 << 20, 'x');
  std::vector<char> into(from.size());
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(b_.domain.get(), into.data(), into.size(), FI_REMOTE_WRITE, 0, 7, 0, &region,
                      nullptr),
            0);
  ASSERT_EQ(fi_write(ep_.get(), from.data(), from.size(), nullptr, to_, 0, 7, nullptr), 0);
  std::optional<Event> written;
  wait_until([&] { return (written = a_.poll()).has_value(); }, "the target serves nothing");
  EXPECT_EQ(written->error, 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(into, from);
}

// More posts than a ring has commands, none of which the peer can take yet.
TEST_F(FullEngineThread, AFullRingIsAgainAndLosesNothing) {
  std::size_t posted = 0;
  ssize_t result = 0;
  for (; posted < 100'000; ++posted) {
    result = fi_tsend(ep_.get(), "x", 1, nullptr, to_, posted, nullptr);
    if (result != 0) break;
  }
  ASSERT_EQ(result, -FI_EAGAIN) << posted;
  EXPECT_GE(posted, a_.info->tx_attr->size);
  for (std::size_t tag = 0; tag < posted; ++tag) {
    char room = 0;
    while ((result = fi_trecv(target_.get(), &room, 1, nullptr, FI_ADDR_UNSPEC, tag, 0, nullptr)) ==
           -FI_EAGAIN) {
    }
    ASSERT_EQ(result, 0);
    ASSERT_EQ(b_.next(a_).error, 0) << tag;
    ASSERT_EQ(room, 'x');
  }
  for (std::size_t i = 0; i < posted; ++i) ASSERT_EQ(a_.next(b_).error, 0);
}

// fi_cancel(3): also of what lies in the ring behind operations that cannot end.
TEST_F(FullEngineThread, CancelFindsWhatLiesInTheRing) {
  std::size_t posted = 0;
  std::vector<char> contexts(100'000);
  while (fi_tsend(ep_.get(), "x", 1, nullptr, to_, 1, &contexts[posted]) == 0) ++posted;
  void* const last = &contexts[posted - 1];
  ASSERT_EQ(fi_cancel(&ep_->fid, last), 0);
  EXPECT_EQ(fi_cancel(&ep_->fid, &contexts[posted]), -FI_ENOENT);
  char room[1];
  std::size_t ended = 0;
  bool cancelled = false;
  for (std::size_t i = 0; i + 1 < posted; ++i) {
    ssize_t result = 0;
    while ((result = fi_trecv(target_.get(), room, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr)) ==
           -FI_EAGAIN) {
    }
    ASSERT_EQ(result, 0);
    ASSERT_EQ(b_.next(a_).error, 0);
  }
  while (ended < posted) {
    const Event event = a_.next(b_);
    ++ended;
    if (event.context != last) {
      ASSERT_EQ(event.error, 0);
      continue;
    }
    cancelled = event.error == FI_ECANCELED;
  }
  EXPECT_TRUE(cancelled);
}

// FI_THREAD_SAFE: four threads submit to one ring.
TEST_F(EngineThread, FourThreadsPostToOneEndpoint) {
  constexpr int kEach = 2000;
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (std::uint64_t tag = 0; tag < 4; ++tag) {
    threads.emplace_back([&, tag] {
      for (std::uint32_t i = 0; i < kEach;) {
        const ssize_t result = fi_tinject(ep_.get(), &i, sizeof i, to_, tag);
        if (result == 0) ++i;
        if (result != 0 && result != -FI_EAGAIN) failed = static_cast<int>(result);
      }
    });
  }
  for (std::uint32_t i = 0; i < kEach; ++i) {
    for (std::uint64_t tag = 0; tag < 4; ++tag) {
      std::uint32_t in = 0;
      ASSERT_EQ(fi_trecv(target_.get(), &in, sizeof in, nullptr, FI_ADDR_UNSPEC, tag, 0, nullptr),
                0);
      ASSERT_EQ(b_.next(a_).error, 0);
      ASSERT_EQ(in, i) << "of thread " << tag;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

// The operation that a call has accepted ends in a completion even if it cannot be posted.
TEST_F(EngineThread, WrongArgumentsAreRefusedAtOnce) {
  char bytes[8] = "";
  EXPECT_EQ(fi_send(ep_.get(), bytes, 1, nullptr, to_ + 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_send(ep_.get(), nullptr, 8, nullptr, to_, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_recv(target_.get(), nullptr, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0)
      << "a receive without a buffer takes an empty message";
  EXPECT_EQ(fi_cancel(&target_->fid, nullptr), 0);
}

TEST(EngineCpus, AreWhereTheThreadRuns) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  int first = 0;
  while (!CPU_ISSET(first, &mine)) ++first;
  const Variable engine("FI_UET_ENGINE", "thread");
  const Variable cpus("FI_UET_ENGINE_CPUS", std::to_string(first).c_str());
  const Side side({.capabilities = FI_MSG});
  std::vector<std::string> allowed;
  const Clock::time_point start = Clock::now();
  while (allowed != std::vector{std::to_string(first)}) {
    ASSERT_LT(Clock::now() - start, kDeadline) << "the thread is not on its processor";
    allowed = status_of_threads("uet-engine", "Cpus_allowed_list");
  }
}

// Sleeps in poll until something comes: it is switched to a few times, not all the time.
TEST(EngineIdle, TheThreadSleeps) {
  const Variable engine("FI_UET_ENGINE", "thread");
  const Side side({.capabilities = FI_MSG});
  const Clock::time_point start = Clock::now();
  while (status_of_threads("uet-engine", "State") != std::vector<std::string>{"S (sleeping)"}) {
    ASSERT_LT(Clock::now() - start, kDeadline) << "the thread never sleeps";
    ::usleep(1000);
  }
}

}  // namespace
}  // namespace uet::e2e
