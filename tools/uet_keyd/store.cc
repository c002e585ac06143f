// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "store.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "nic/socket.h"
#include "settings/key_source.h"

namespace uet::keyd {
namespace {

[[noreturn]] void throw_errno(const std::string& name) {
  throw std::runtime_error(name + ": " + std::strerror(errno));
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Changes the owner only if it is another user.
bool give_to(int fd, uid_t owner) {
  return owner == geteuid() || fchown(fd, owner, static_cast<gid_t>(-1)) == 0;
}

// The content is on the disk when this returns. `since`: time of the file, since 1970.
void write_new(const std::string& name, std::string_view text, uid_t owner,
               std::optional<std::chrono::seconds> since = {}) {
  const nic::FileDescriptor fd(
      open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!fd.valid()) throw_errno(name);
  const timespec stamp{since ? static_cast<time_t>(since->count()) : 0, since ? 0 : UTIME_NOW};
  const timespec stamps[] = {stamp, stamp};
  if (write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      futimens(fd.get(), stamps) == 0 && give_to(fd.get(), owner) && fsync(fd.get()) == 0) {
    return;
  }
  const int error = errno;
  unlink(name.c_str());
  errno = error;
  throw_errno(name);
}

// A reader finds the old file or the new one, whole; after this, the new one, even if the host
// fails.
void replace(const std::string& name, std::string_view text, uid_t owner,
             std::optional<std::chrono::seconds> since = {}) {
  const std::string next = name + ".new";
  unlink(next.c_str());  // of an agent that was interrupted
  write_new(next, text, owner, since);
  if (rename(next.c_str(), name.c_str()) != 0) throw_errno(name);
  const std::string directory = name.substr(0, name.rfind('/'));
  const nic::FileDescriptor opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || fsync(opened.get()) != 0) throw_errno(directory);
}

void make_directory(const std::string& name, mode_t mode) {
  if (mkdir(name.c_str(), mode) != 0 && errno != EEXIST) throw_errno(name);
  struct stat info {};
  if (lstat(name.c_str(), &info) != 0) throw_errno(name);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw std::runtime_error(name + ": must be a directory of this user, no other may write to it");
  }
  // The umask may have taken bits away.
  if ((info.st_mode & 0777) != mode && chmod(name.c_str(), mode) != 0) throw_errno(name);
}

}  // namespace

void make_secret(const std::string& file) {
  tss::Key key;
  const auto bytes = key.writable();
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw_errno("random numbers");
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size() + 1);
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  text += '\n';
  write_new(file, text, geteuid());
  explicit_bzero(text.data(), text.size());
}

tss::Key read_secret(const std::string& file) {
  const prov::KeySource source(file);
  if (!source.problem().empty()) throw std::runtime_error(source.problem());
  const std::string_view text = source.text();
  tss::Key key;
  const auto bytes = key.writable();
  bool good = text.size() == 2 * bytes.size() + 1 && text.back() == '\n';
  for (std::size_t i = 0; good && i < bytes.size(); ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  if (!good) throw std::runtime_error(file + ": expected 64 hexadecimal digits and a line end");
  return key;
}

Store::Store(std::string run_directory, std::string state_directory)
    : run_directory_(std::move(run_directory)), state_directory_(std::move(state_directory)) {
  make_directory(run_directory_, 0711);
  make_directory(state_directory_, 0700);
  std::ifstream lines(run_directory_ + "/jobs");
  Job job;
  std::uint16_t epoch = 0;
  std::int64_t begun = 0;
  while (lines >> job.number >> job.user >> epoch >> begun) {
    jobs_[job] = {epoch, std::chrono::seconds(begun)};
  }
}

void Store::write_jobs() const {
  std::string text;
  for (const auto& [job, state] : jobs_) {
    text += std::to_string(job.number) + " " + std::to_string(job.user) + " " +
            std::to_string(state.epoch) + " " + std::to_string(state.begun.count()) + "\n";
  }
  replace(run_directory_ + "/jobs", text, geteuid());
}

// The counter of one user, so that no user makes the epochs of another come again.
std::uint16_t Store::next_epoch(uid_t user) const {
  const std::string name = state_directory_ + "/epoch-" + std::to_string(user);
  std::uint16_t epoch = 0;
  std::ifstream file(name);
  if (!(file >> epoch) && access(name.c_str(), F_OK) == 0) {
    throw std::runtime_error(name + ": holds no number; change the secret, then remove the file");
  }
  replace(name, std::to_string(++epoch) + "\n", geteuid());
  return epoch;
}

void Store::add(const Job& job) {
  const std::uint16_t epoch = next_epoch(job.user);
  const std::string directory = directory_of(job);
  std::filesystem::remove_all(directory);
  if (mkdir(directory.c_str(), S_IRWXU) != 0) throw_errno(directory);
  const nic::FileDescriptor opened(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!opened.valid() || !give_to(opened.get(), job.user) || fstat(opened.get(), &info) != 0) {
    throw_errno(directory);
  }
  jobs_[job] = {epoch, std::chrono::seconds(info.st_ctim.tv_sec + 1)};
  write_jobs();
}

void Store::remove(const Job& job) {
  jobs_.erase(job);
  unlink(key_file_of(job).c_str());
  write_jobs();
  std::filesystem::remove_all(directory_of(job));
}

std::string Store::directory_of(const Job& job) const {
  return run_directory_ + "/" + std::to_string(job.user) + "-" + std::to_string(job.number);
}

std::string Store::key_file_of(const Job& job) const { return directory_of(job) + ".keys"; }

void Store::write_keys(const Job& job, std::string_view text, std::chrono::seconds since) const {
  replace(key_file_of(job), text, job.user, since);
}

}  // namespace uet::keyd
