// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Directories and names of pages, and processes that run or have ended.
#include "live/place.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/live/live_harness.h"

namespace uet::live {
namespace {

using testing::Contains;
using testing::Not;

using PlaceTest = LiveTest;

TEST_F(PlaceTest, DirectoryThatOthersMayWriteIsNotUsed) {
  EXPECT_EQ(directories().front(), directory_);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_THAT(directories(), Not(Contains(directory_)));
  ::setenv("XDG_RUNTIME_DIR", "relative", 1);
  EXPECT_THAT(directories(), Not(Contains("relative")));
  EXPECT_EQ(directories().back(), "/dev/shm");
}

TEST(FileName, IsReadAsItIsWritten) {
  const auto name = parse_file_name(file_name(1000, 4711, 3));
  ASSERT_TRUE(name);
  EXPECT_EQ(name->uid, 1000U);
  EXPECT_EQ(name->pid, 4711);
  EXPECT_EQ(name->number, 3U);
  for (const char* wrong : {"", "uet-stats.", "uet-stats.1.2", "uet-stats.1.2.3.4",
                            "uet-stats.1.2.x", "uet-stats.a.2.3", "xuet-stats.1.2.3"}) {
    EXPECT_FALSE(parse_file_name(wrong)) << wrong;
  }
}

TEST(ProcessStat, NamesParentAndStateBehindAnyName) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "a) Z 1 (b");
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOWAIT);
  const auto stat = process_stat(child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'T');
  EXPECT_EQ(stat->parent, ::getpid());
  EXPECT_GE(stat->start_time, process_stat(::getpid())->start_time);
  EXPECT_FALSE(process_stat(child));
}

TEST(StartTime, EndedProcessHasNone) {
  const auto mine = start_time_of(::getpid());
  ASSERT_TRUE(mine);
  EXPECT_GT(*mine, 0U);
  EXPECT_EQ(start_time_of(::getpid()), mine);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(start_time_of(child)) << "a process that is not waited for yet";
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(start_time_of(child));
}

}  // namespace
}  // namespace uet::live
