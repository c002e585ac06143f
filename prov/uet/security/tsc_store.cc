// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/tsc_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace uet::prov {
namespace {

constexpr const char* kFolder = "uet-tss";
constexpr std::size_t kNumberBytes = 20;  // decimal, blanks in front, and a line end

template <class Bytes>
std::string hex_of(const Bytes& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const auto byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

// A file that holds nothing yet reads as 0. False: it cannot be read, or holds something else.
bool read_number(int fd, std::uint64_t& number) {
  char text[kNumberBytes + 1];
  const ssize_t count = pread(fd, text, sizeof text, 0);
  number = 0;
  if (count == 0) return true;
  if (count != static_cast<ssize_t>(sizeof text)) return false;
  const char* const begin =
      std::find_if(text, text + kNumberBytes, [](char c) { return c != ' '; });
  const auto [end, error] = std::from_chars(begin, text + kNumberBytes, number);
  return error == std::errc{} && end == text + kNumberBytes && text[kNumberBytes] == '\n';
}

bool write_number(int fd, std::uint64_t number) {
  char text[kNumberBytes + 2];
  std::snprintf(text, sizeof text, "%20llu\n", static_cast<unsigned long long>(number));
  return pwrite(fd, text, kNumberBytes + 1, 0) == static_cast<ssize_t>(kNumberBytes + 1) &&
         fdatasync(fd) == 0;
}

Duration since_1970(std::int64_t seconds, std::int64_t ns) {
  return std::chrono::seconds(seconds) + std::chrono::nanoseconds(ns);
}

// When the directory came to be; when the host was started, where the file system does not say.
Duration birth_of(int directory) {
  struct statx info {};
  if (statx(directory, "", AT_EMPTY_PATH, STATX_BTIME, &info) == 0 &&
      (info.stx_mask & STATX_BTIME) != 0) {
    return since_1970(info.stx_btime.tv_sec, info.stx_btime.tv_nsec);
  }
  timespec now{};
  timespec up{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &up);
  return since_1970(now.tv_sec - up.tv_sec, now.tv_nsec - up.tv_nsec);
}

}  // namespace

std::string TscStore::run_time_directory() {
  const char* const directory = secure_getenv("XDG_RUNTIME_DIR");
  return directory != nullptr ? directory : "";
}

std::string TscStore::file_of(const tss::TscRequest& request) const {
  char rest[32];
  std::snprintf(rest, sizeof rest, "-epoch-%u", request.epoch);
  const std::uint32_t ssi = request.ssi.value_or(0);
  const std::uint8_t number[] = {
      static_cast<std::uint8_t>(ssi >> 24), static_cast<std::uint8_t>(ssi >> 16),
      static_cast<std::uint8_t>(ssi >> 8), static_cast<std::uint8_t>(ssi)};
  const std::string identity =
      request.ssi ? "-ssi-" + hex_of(number) : "-address-" + hex_of(address_.bytes);
  return hex_of(request.key) + identity + rest;
}

nic::FileDescriptor TscStore::open_directory() {
  constexpr int kHow = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  if (directory_.empty()) {
    problem_ =
        "XDG_RUNTIME_DIR is not set: it must name a directory of this user alone (mode 0700) that "
        "outlives the processes of this host, because TSCs are handed out there (TSS-37)";
    return nic::FileDescriptor();
  }
  const nic::FileDescriptor above(open(directory_.c_str(), kHow));
  struct stat info {};
  if (!above.valid() || fstat(above.get(), &info) != 0) {
    problem_ = "XDG_RUNTIME_DIR=" + directory_ + ": " + std::strerror(errno);
    return nic::FileDescriptor();
  }
  if (info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    problem_ = "XDG_RUNTIME_DIR=" + directory_ +
               " is not a directory of this user alone; it must have mode 0700";
    return nic::FileDescriptor();
  }
  directory_made_ = birth_of(above.get());
  if (mkdirat(above.get(), kFolder, S_IRWXU) != 0 && errno != EEXIST) {
    problem_ = "XDG_RUNTIME_DIR=" + directory_ + ": " + std::strerror(errno);
    return nic::FileDescriptor();
  }
  nic::FileDescriptor folder(openat(above.get(), kFolder, kHow | O_NOFOLLOW));
  if (!folder.valid()) problem_ = directory_ + "/" + kFolder + ": " + std::strerror(errno);
  return folder;
}

// Nothing is known of earlier processes: has there been none?
bool TscStore::may_be_first(const tss::TscRequest& request) {
  if (request.history_told || !keys_written_ || *keys_written_ >= directory_made_) return true;
  problem_ =
      "the keys are older than the directory " + directory_ +
      ", so that processes may have used the key before and left no trace (TSS-37): raise the "
      "epoch in the key file, or rotate the key with uet_keys";
  return false;
}

nic::FileDescriptor TscStore::open_file(int directory, const std::string& name,
                                        const tss::TscRequest& request) {
  constexpr int kHow = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  nic::FileDescriptor file(openat(directory, name.c_str(), kHow));
  if (!file.valid() && errno == ENOENT) {
    if (!may_be_first(request)) return nic::FileDescriptor();
    file = nic::FileDescriptor(openat(directory, name.c_str(), kHow | O_CREAT, S_IRUSR | S_IWUSR));
  }
  int locked = -1;
  while (file.valid() && (locked = flock(file.get(), LOCK_EX)) != 0 && errno == EINTR) {
  }
  if (locked == 0) return file;
  problem_ = directory_ + "/" + kFolder + "/" + name + ": " + std::strerror(errno);
  return nic::FileDescriptor();
}

std::optional<tss::TscRange> TscStore::next_block(const tss::TscRequest& request) {
  problem_.clear();
  const nic::NoCancel no_cancel;
  const std::string name = file_of(request);
  const nic::FileDescriptor directory = open_directory();
  if (!directory.valid()) return {};
  const nic::FileDescriptor file = open_file(directory.get(), name, request);
  if (!file.valid()) return {};
  std::uint64_t next = 0;
  if (!read_number(file.get(), next)) {
    problem_ = directory_ + "/" + kFolder + "/" + name +
               " does not hold a TSC: rotate the key with uet_keys, then remove the file";
    return {};
  }
  tss::TscRange block;
  block.first = std::max(next, request.left.first);
  block.end = std::min((block.first / kBlock + 1) * kBlock, request.left.end);
  if (block.first >= block.end) {
    problem_ = "the TSCs of this key are used up (TSS-36): rotate the key with uet_keys";
    return {};
  }
  if (!write_number(file.get(), block.end)) {
    problem_ = directory_ + "/" + kFolder + "/" + name + ": " + std::strerror(errno);
    return {};
  }
  return block;
}

}  // namespace uet::prov
