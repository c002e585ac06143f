// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace uet::keyd {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class KeydStore : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/uet_keyd_store_XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string run() const { return directory_ + "/run"; }
  std::string state() const { return directory_ + "/state"; }
  Store open() const { return Store(run(), state()); }
  static struct stat info_of(const std::string& name) {
    struct stat info {};
    EXPECT_EQ(::lstat(name.c_str(), &info), 0) << name;
    return info;
  }

  const Job job_{5, ::geteuid()};
  std::string directory_;
};

TEST_F(KeydStore, SecretIsReadAsItWasMade) {
  const std::string file = directory_ + "/secret";
  make_secret(file);
  EXPECT_EQ(info_of(file).st_mode & 0777, 0600U);
  const tss::Key key = read_secret(file);
  EXPECT_TRUE(tss::equal_secrets(key.bytes(), read_secret(file).bytes()));
  EXPECT_FALSE(tss::equal_secrets(key.bytes(), tss::Key().bytes()));
  EXPECT_THROW(make_secret(file), std::runtime_error);
  ::chmod(file.c_str(), 0640);
  EXPECT_THROW(read_secret(file), std::runtime_error);
  ::chmod(file.c_str(), 0600);
  std::ofstream(file) << "abc\n";
  EXPECT_THROW(read_secret(file), std::runtime_error);
}

TEST_F(KeydStore, KeyFileIsOfItsUserAlone) {
  Store store = open();
  store.add(job_);
  store.write_keys(job_, "text", seconds(77));
  const struct stat info = info_of(store.key_file_of(job_));
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(info.st_mtime, 77);
  EXPECT_EQ(info_of(store.directory_of(job_)).st_mode & 0777, 0700U);
  EXPECT_EQ(info_of(run()).st_mode & 0777, 0711U);
  EXPECT_EQ(info_of(state()).st_mode & 0777, 0700U);
}

// The run directory ends with the host, the epochs do not: TSCs of before are lost with it.
TEST_F(KeydStore, Tss37_NoEpochComesTwice) {
  std::uint16_t first = 0;
  {
    Store store = open();
    store.add(job_);
    first = store.jobs().at(job_).epoch;
    const std::string trace = store.directory_of(job_) + "/trace";
    std::ofstream(trace) << "TSCs";
    store.remove(job_);
    EXPECT_FALSE(std::filesystem::exists(trace));
    store.add(job_);
    EXPECT_EQ(store.jobs().at(job_).epoch, first + 1);
  }
  EXPECT_EQ(open().jobs().at(job_).epoch, first + 1) << "an agent that comes back knows its jobs";
  std::filesystem::remove_all(run());
  Store after_boot = open();
  EXPECT_TRUE(after_boot.jobs().empty());
  after_boot.add(job_);
  EXPECT_EQ(after_boot.jobs().at(job_).epoch, first + 2);
}

TEST_F(KeydStore, Tss37_DamagedCounterIsRefused) {
  Store store = open();
  store.add(job_);
  std::ofstream(state() + "/epoch-" + std::to_string(job_.user), std::ios::trunc) << "";
  EXPECT_THROW(store.add({6, job_.user}), std::runtime_error);
}

// Providers refuse keys that are older than the directory (TSS-37).
TEST_F(KeydStore, JobIsNotOlderThanItsDirectory) {
  Store store = open();
  store.add(job_);
  const struct stat info = info_of(store.directory_of(job_));
  EXPECT_GE(store.jobs().at(job_).begun, seconds(info.st_ctim.tv_sec + 1));
  EXPECT_LE(store.jobs().at(job_).begun, seconds(info.st_ctim.tv_sec + 2));
  EXPECT_EQ(open().jobs().at(job_).begun, store.jobs().at(job_).begun);
}

TEST_F(KeydStore, DirectoriesThatOthersWriteAreRefused) {
  ::mkdir(run().c_str(), 0755);
  ::chmod(run().c_str(), 0777);
  EXPECT_THROW(open(), std::runtime_error);
  ::rmdir(run().c_str());
  std::filesystem::create_directory_symlink("/tmp", run());
  EXPECT_THROW(open(), std::runtime_error);
}

}  // namespace
}  // namespace uet::keyd
