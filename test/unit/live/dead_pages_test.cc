// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Pages of killed processes: how long and how many of them stay.
#include "live/dead_pages.h"

#include <chrono>
#include <cstddef>
#include <fstream>

#include "unit/live/live_harness.h"

namespace uet::live {
namespace {

constexpr pid_t kNobody = 0x7ffffff0;
constexpr std::uint64_t kMinute = 60'000'000'000;

class DeadPages : public LiveTest {
 protected:
  DeadPages() : page_(make_page()) {
    std::string why;
    now_ns_ = read_page(page_->file(), why)->head.opened_ns;
  }

  // A page of process `pid` that was updated for the last time `age_ns` ago.
  std::string add_page(unsigned number, pid_t pid, std::uint64_t age_ns) {
    const std::string file = directory_ + "/" + file_name(::geteuid(), 1, number);
    std::filesystem::copy_file(page_->file(), file);
    spoil(file, offsetof(Head, pid), pid);
    spoil(file, offsetof(Head, opened_ns), now_ns_ - age_ns);
    return file;
  }

  static void set_age(const std::string& file, std::chrono::seconds age) {
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - age);
  }
  // A file that process `pid` has made and not filled.
  std::string add_empty(unsigned number, pid_t pid, std::chrono::seconds age) {
    const std::string file = directory_ + "/" + file_name(::geteuid(), pid, number);
    std::ofstream(file).close();
    set_age(file, age);
    return file;
  }

  std::unique_ptr<PageWriter> page_;
  std::uint64_t now_ns_ = 0;
};

TEST_F(DeadPages, GoAfterAnHour) {
  const std::string recent = add_page(1, kNobody, 59 * kMinute);
  const std::string old = add_page(2, kNobody, 61 * kMinute);
  const std::string running = add_page(3, ::getpid(), 61 * kMinute);
  remove_dead_pages(directory_);
  EXPECT_TRUE(std::filesystem::exists(recent));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(running));
}

// A user whose programs are killed by the hundred keeps neither their memory nor the time to read
// all of them.
TEST_F(DeadPages, TheYoungestStay) {
  std::vector<std::string> files;
  constexpr unsigned kPages = 3 * kMaxDeadPages;
  for (unsigned i = 0; i < kPages; ++i) {
    files.push_back(add_page(i, kNobody, (1 + i * 7 % kPages) * kMinute));
  }
  remove_dead_pages(directory_);
  for (unsigned i = 0; i < kPages; ++i) {
    EXPECT_EQ(std::filesystem::exists(files[i]), i * 7 % kPages < kMaxDeadPages) << i;
  }
  EXPECT_TRUE(std::filesystem::exists(page_->file()));
}

// Their processes were killed while they made the page.
TEST_F(DeadPages, FilesWithoutAHeadGoAfterAMinute) {
  const std::string empty = add_empty(1, kNobody, std::chrono::seconds(61));
  const std::string recent = add_empty(2, kNobody, std::chrono::seconds(58));
  const std::string running = add_empty(3, ::getpid(), std::chrono::seconds(61));
  const std::string zeros = add_empty(4, kNobody, std::chrono::seconds(0));
  std::filesystem::resize_file(zeros, sizeof(Page));
  set_age(zeros, std::chrono::seconds(61));
  const std::string other = add_empty(5, kNobody, std::chrono::seconds(0));
  std::filesystem::resize_file(other, sizeof(Page));
  spoil(other, offsetof(Head, magic), std::uint64_t{1});
  set_age(other, std::chrono::seconds(61));
  remove_dead_pages(directory_);
  EXPECT_FALSE(std::filesystem::exists(empty));
  EXPECT_TRUE(std::filesystem::exists(recent));
  EXPECT_TRUE(std::filesystem::exists(running));
  EXPECT_FALSE(std::filesystem::exists(zeros));
  EXPECT_TRUE(std::filesystem::exists(other));
}

TEST_F(DeadPages, OtherFilesAreLeftAlone) {
  const std::string name = directory_ + "/" + file_name(::geteuid(), kNobody, 1);
  ASSERT_EQ(::symlink("/etc/passwd", name.c_str()), 0);
  const std::string other_namespace = add_page(2, kNobody, 61 * kMinute);
  spoil(other_namespace, offsetof(Head, pid_namespace), std::uint64_t{1});
  remove_dead_pages(directory_);
  EXPECT_TRUE(std::filesystem::is_symlink(name));
  EXPECT_TRUE(std::filesystem::exists(other_namespace));
}

TEST_F(DeadPages, ADirectoryThatIsNotThereIsNoError) { remove_dead_pages(directory_ + "/none"); }

}  // namespace
}  // namespace uet::live
