// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The life of a page's file.
#include "live/page_writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "unit/live/live_harness.h"

namespace uet::live {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using PageWriterTest = LiveTest;

TEST_F(PageWriterTest, FileIsPrivateAndGoesWithTheWriter) {
  auto page = make_page();
  EXPECT_THAT(page->file(), StartsWith(directory_ + "/uet-stats."));
  struct stat info {};
  ASSERT_EQ(::stat(page->file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_THAT(find_pages(::getpid()), ElementsAre(page->file()));
  page.reset();
  EXPECT_THAT(find_pages(::getpid()), IsEmpty());
}

// The writer leaves the zeros of a new file as they are.
TEST_F(PageWriterTest, EmptyPageConsistsOfZeros) {
  std::vector<std::byte> bytes(sizeof(Page) + alignof(Page));
  void* at = bytes.data();
  std::size_t room = bytes.size();
  ASSERT_NE(std::align(alignof(Page), sizeof(Page), at, room), nullptr);
  new (at) Page;
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{0}),
            static_cast<std::ptrdiff_t>(bytes.size()));
}

// Memory of the file that no one has written to does not count as the process's.
TEST_F(PageWriterTest, NewPageTakesFewPagesOfMemory) {
  const auto page = make_page();
  constexpr std::size_t kPageBytes = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(page->bytes().data());
  std::vector<std::uint64_t> entries(sizeof(Page) / kPageBytes);
  const std::size_t bytes = entries.size() * sizeof(std::uint64_t);
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const ssize_t read = ::pread(map, entries.data(), bytes,
                               static_cast<off_t>(begin / kPageBytes * sizeof(std::uint64_t)));
  ::close(map);
  ASSERT_EQ(read, static_cast<ssize_t>(bytes));
  const auto present = std::count_if(entries.begin(), entries.end(),
                                     [](std::uint64_t entry) { return (entry >> 63) != 0; });
  EXPECT_GT(present, 0);
  EXPECT_LT(present, static_cast<std::ptrdiff_t>(entries.size() / 2));
}

TEST_F(PageWriterTest, EachDomainHasAFile) {
  const auto first = make_page();
  const auto second = make_page();
  EXPECT_THAT(find_pages(::getpid()), ElementsAre(first->file(), second->file()));
}

TEST_F(PageWriterTest, ForkedChildLeavesTheFile) {
  auto page = make_page();
  const pid_t child = ::fork();
  if (child == 0) {
    page.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(find_pages(::getpid()), ElementsAre(page->file()));
}

// After exec a page of this very process is there that no program writes any more.
TEST_F(PageWriterTest, PageOfAnEarlierProgramOfTheProcessIsReplaced) {
  std::string next;
  {
    const auto page = make_page();
    const auto name = parse_file_name(page->file().substr(directory_.size() + 1));
    next = directory_ + "/" + file_name(::geteuid(), ::getpid(), name->number + 1);
    std::filesystem::copy_file(page->file(), next);
  }
  const auto page = make_page();
  EXPECT_EQ(page->file(), next);
}

TEST_F(PageWriterTest, FileOfUnknownContentIsLeftAlone) {
  std::string next;
  {
    const auto page = make_page();
    const auto name = parse_file_name(page->file().substr(directory_.size() + 1));
    next = directory_ + "/" + file_name(::geteuid(), ::getpid(), name->number + 1);
  }
  ASSERT_EQ(::symlink("/etc/passwd", next.c_str()), 0);
  const auto page = make_page();
  EXPECT_NE(page->file(), next);
  EXPECT_TRUE(std::filesystem::is_symlink(next));
}

TEST_F(PageWriterTest, FileSizeLimitIsAReasonNotASignal) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string why;
  EXPECT_EQ(PageWriter::create({}, {}, why), nullptr);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(why, HasSubstr("ulimit -f"));
}

TEST_F(PageWriterTest, LongTextsAreCut) {
  const std::string longer(300, 'x');
  std::string why;
  const auto page = PageWriter::create({longer, longer, longer}, {}, why);
  const auto read = read_page(page->file(), why);
  ASSERT_TRUE(read) << why;
  EXPECT_EQ(read->interface(), longer.substr(0, 31));
  EXPECT_EQ(read->address(), longer.substr(0, 79));
}

}  // namespace
}  // namespace uet::live
