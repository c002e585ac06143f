// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "settings/key_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace uet::prov {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class KeySourceTest : public testing::Test {
 protected:
  KeySourceTest() {
    char pattern[] = "/tmp/uet_key_source_XXXXXX";
    directory_ = mkdtemp(pattern);
    file_ = directory_ + "/keys";
    write_file("text\n");
  }
  ~KeySourceTest() override { std::filesystem::remove_all(directory_); }
  void write_file(const std::string& text) {
    const int fd = open(file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  static std::string problem_of(const std::string& name) {
    const KeySource source(name);
    EXPECT_THAT(source.text(), IsEmpty());
    return source.problem();
  }

  std::string directory_;
  std::string file_;
};

TEST_F(KeySourceTest, Tss60_FileOfTheUserAlone) {
  const KeySource source(file_);
  EXPECT_EQ(source.text(), "text\n");
  EXPECT_THAT(source.problem(), IsEmpty());
}

TEST_F(KeySourceTest, Tss60_FileThatOthersMayUseIsRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610}) {
    ASSERT_EQ(chmod(file_.c_str(), mode), 0);
    EXPECT_THAT(problem_of(file_), HasSubstr("chmod 600")) << std::oct << mode;
  }
  ASSERT_EQ(chmod(file_.c_str(), 0400), 0);
  EXPECT_THAT(KeySource(file_).problem(), IsEmpty());
}

TEST_F(KeySourceTest, Tss60_FileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  ASSERT_EQ(chown(file_.c_str(), 1, 1), 0);
  EXPECT_THAT(problem_of(file_), HasSubstr("another user"));
}

TEST_F(KeySourceTest, LinksDirectoriesAndLongFilesAreRefused) {
  const std::string link = directory_ + "/link";
  ASSERT_EQ(symlink(file_.c_str(), link.c_str()), 0);
  EXPECT_THAT(problem_of(link), HasSubstr("symbolic link"));
  EXPECT_THAT(problem_of(directory_), HasSubstr("not a regular file"));
  EXPECT_THAT(problem_of(directory_ + "/none"), HasSubstr("No such file"));
  write_file(std::string(KeySource::kMostBytes + 1, 'x'));
  EXPECT_THAT(problem_of(file_), HasSubstr("longer than 256 KiB"));
  write_file(std::string(KeySource::kMostBytes, 'x'));
  EXPECT_EQ(KeySource(file_).text().size(), KeySource::kMostBytes);
}

TEST_F(KeySourceTest, Tss60_InheritedDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "abc", 3), 3);
  close(ends[1]);
  const KeySource source("fd:" + std::to_string(ends[0]));
  EXPECT_EQ(source.text(), "abc");
  EXPECT_EQ(fcntl(ends[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  close(ends[0]);
  for (const char* name : {"fd:", "fd:x", "fd:-1", "fd:99999"}) {
    EXPECT_THAT(problem_of(name), HasSubstr("no such open descriptor")) << name;
  }
}

}  // namespace
}  // namespace uet::prov
