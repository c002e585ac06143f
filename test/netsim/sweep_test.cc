// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sweeps by the program uet-sim: the table, a sweep that is interrupted, cases that fail.
#include "netsim/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

namespace uet::netsim {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kProgram = UET_SIM_PROGRAM;

class SweepTest : public testing::Test {
 protected:
  SweepTest() {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    setup_.file = testing::TempDir() + "sweep-" + name + "-" + std::to_string(::getpid());
    setup_.quiet = true;
  }
  ~SweepTest() override {
    std::filesystem::remove(setup_.file);
    std::filesystem::remove(journal());
  }

  std::string journal() const { return setup_.file + ".done"; }
  void write(const std::string& text) const { std::ofstream(setup_.file) << text; }
  // Status, and the table in table_.
  int run(unsigned jobs = 2) {
    setup_.jobs = jobs;
    std::ostringstream out;
    testing::internal::CaptureStderr();
    const int status = run_sweep(setup_, kProgram, out);
    errors_ = testing::internal::GetCapturedStderr();
    table_ = out.str();
    return status;
  }
  std::size_t finished() const {
    std::ifstream file(journal());
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }

  SweepSetup setup_;
  std::string table_, errors_;
};

constexpr const char* kSmall =
    "all: --hosts 16 --size 50000\n"
    "perm: --permutation --cc {nscc,swift} --seed {1..3}\n"
    "in: --incast {2,4}\n";

TEST_F(SweepTest, OneAndManyProcessesGiveTheSameTable) {
  write(kSmall);
  ASSERT_EQ(run(1), 0) << errors_;
  const std::string one = table_;
  std::filesystem::remove(journal());
  ASSERT_EQ(run(4), 0) << errors_;
  EXPECT_EQ(table_, one);
  EXPECT_THAT(table_, StartsWith("case,options,status,message,flows,finished,fct_us.min,"));
  EXPECT_THAT(table_, HasSubstr("\nperm/swift/3,--hosts 16 --size 50000 --permutation --cc swift"));
  EXPECT_EQ(std::count(table_.begin(), table_.end(), '\n'), 9);
  setup_.json = true;
  ASSERT_EQ(run(), 0);
  const auto json = nlohmann::json::parse(table_);
  ASSERT_EQ(json.size(), 8U);
  EXPECT_EQ(json[7]["case"], "in/4");
  EXPECT_EQ(json[7]["finished"], 4);
  EXPECT_GT(json[7]["fct_us"]["worst"], 0);
}

TEST_F(SweepTest, FinishedCasesAreNotRunAgain) {
  write(kSmall);
  ASSERT_EQ(run(), 0) << errors_;
  ASSERT_EQ(finished(), 8U);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(finished(), 8U);
  write(std::string(kSmall) + "more: --incast 3\n");
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(finished(), 9U);
}

TEST_F(SweepTest, ChangedOptionsAndFilesAreRunAgain) {
  const std::string matrix = setup_.file + ".cm";
  std::ofstream(matrix) << "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 10000\n";
  write("a: --matrix " + matrix + "\nb: --incast 2 --size 10000\n");
  ASSERT_EQ(run(), 0) << errors_;
  std::ofstream(matrix) << "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 20000\n";
  ASSERT_EQ(run(), 0) << errors_;
  EXPECT_EQ(finished(), 3U);
  write("a: --matrix " + matrix + "\nb: --incast 2 --size 20000\n");
  ASSERT_EQ(run(), 0) << errors_;
  EXPECT_EQ(finished(), 4U);
  std::filesystem::remove(matrix);
}

// The program is killed while it runs cases; a part of a line is in the journal, too.
TEST_F(SweepTest, KilledSweepGoesOn) {
  write("all: --hosts 64 --size 300000\nperm: --permutation --seed {1..12}\n");
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ::execl(kProgram, "uet-sim", "--quiet", "--sweep", setup_.file.c_str(), "--jobs", "2", nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 3000 && finished() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(pid, SIGKILL);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  const std::size_t before = finished();
  ASSERT_GE(before, 2U);
  std::ofstream(journal(), std::ios::app) << R"({"case": "perm/12", "pri)";
  ASSERT_EQ(run(), 0) << errors_;
  EXPECT_EQ(finished(), 12U);  // as many lines: none was run twice
  const std::string resumed = table_;
  std::filesystem::remove(journal());
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(table_, resumed);
}

TEST_F(SweepTest, FailingCaseIsARowAndTheStatus) {
  write("bad: --incast 2 --loss 1 --limit-us 300\ngood: --incast 2 --size 10000\n");
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(table_, HasSubstr("bad,--incast 2 --loss 1 --limit-us 300,1,"));
  EXPECT_THAT(table_, HasSubstr("flows were not done after"));
  EXPECT_THAT(table_, HasSubstr("\ngood,--incast 2 --size 10000,0,,2,2,"));
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(finished(), 2U);
}

// It may have been killed for memory that others took.
TEST_F(SweepTest, CaseThatIsKilledIsRunAgain) {
  write("a: --incast 2 --size 10000\n");
  std::ostringstream out;
  EXPECT_EQ(run_sweep(setup_, "/bin/false", out), 1);
  EXPECT_EQ(finished(), 1U);
  ASSERT_EQ(run(), 0) << errors_;
  EXPECT_EQ(finished(), 2U);
}

TEST_F(SweepTest, WrongOptionNamesItsLineAndNothingIsRun) {
  write("good: --incast 2 --size 10000\nbad: --incast 2 --cc {nscc,magic}\n");
  EXPECT_EQ(run(), 2);
  EXPECT_THAT(errors_,
              HasSubstr(setup_.file + ": line 2: bad/magic: --cc: 'magic' is none of both,"));
  EXPECT_EQ(finished(), 0U);
  for (const char* option :
       {"--csv", "--trace x", "--report x", "--sweep x", "--write-matrix x", "--help"}) {
    write(std::string("a: --incast 2 ") + option + "\n");
    EXPECT_EQ(run(), 2) << option;
    EXPECT_THAT(errors_, HasSubstr("line 1: a: ")) << option;
    EXPECT_FALSE(std::filesystem::exists("x")) << option;
  }
}

TEST_F(SweepTest, RefusesAJournalInUseOrOfAnotherKind) {
  write("a: --incast 2 --size 10000\n");
  std::ofstream(journal()) << "not a journal\n";
  EXPECT_EQ(run(), 2);
  EXPECT_THAT(errors_, HasSubstr("line 1: not written by uet-sim --sweep; remove the file"));
  setup_.journal = "/nonexistent/journal";
  EXPECT_EQ(run(), 2);
  EXPECT_THAT(errors_, HasSubstr("name a file for it with --sweep-journal"));
  setup_.file = "/nonexistent/cases";
  EXPECT_EQ(run(), 2);
  EXPECT_THAT(errors_, HasSubstr("name a file of cases"));
}

}  // namespace
}  // namespace uet::netsim
