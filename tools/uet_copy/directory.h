// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The directory that a transfer reads or writes, and never leaves: neither by "..", nor by absolute
// names, nor by symbolic links (the kernel resolves paths beneath it, openat2). Files come into
// being under another name and get theirs when they are whole.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace uet::copy {

// Owner of a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd();
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};
using SharedFd = std::shared_ptr<Fd>;

// The beginning of the names of files that are not whole.
inline constexpr std::string_view kPartPrefix = ".uet-part.";

class Directory {
 public:
  // `path` must be a directory. Throws Failure, as all functions here.
  explicit Directory(const std::string& path);

  // The file or directory `path` (as clean_path returns it) for reading; refuses what is neither.
  Fd open(const std::string& path, bool directory) const;
  // As fstatat says; empty if it is not there. Follows symbolic links that stay within.
  std::optional<struct stat> look(const std::string& path) const;

  // The directory that holds `path`, made with those above it if it is not there.
  SharedFd parent_of(const std::string& path);
  // Makes the directory `path`; it may be there.
  SharedFd make(const std::string& path);

 private:
  int open_beneath(const std::string& path, int flags) const;

  Fd root_;
  std::string name_;
  std::map<std::string, SharedFd> known_;  // directories that were used last
};

// A file that is not whole yet. Destroyed before commit(), it is removed unless it may be
// continued.
class PartFile {
 public:
  struct Target {
    SharedFd parent;
    std::string base;  // the final name there
    std::string path;  // for messages
    std::uint64_t size = 0;
    std::uint32_t mode = 0;
    std::int64_t mtime_ns = 0;
  };

  // A file that is written at once; `unique` is a name that no other transfer has.
  static PartFile create(Target target, const std::string& unique);
  // A long file, which continues what is there of an earlier transfer of the same size and time.
  // `direct`: past the page cache if the file system can; why_not then says if it cannot.
  static PartFile resume(Target target, bool direct, std::string& why_not);

  ~PartFile();
  PartFile(PartFile&&) = default;
  PartFile& operator=(PartFile&&) = delete;

  int fd() const { return fd_.get(); }
  // Bytes of an earlier transfer, whole or not.
  std::uint64_t found() const { return found_; }
  const Target& target() const { return target_; }
  // A page-aligned write may end behind the file's end: commit() cuts it.
  bool direct() const { return direct_; }
  // Gives the file its size, mode, time and name. `sync`: data and name are on the disk then.
  void commit(bool sync);
  // A destroyed file stays, so that a later transfer continues it.
  void keep() { keep_ = true; }

 private:
  PartFile(Target target, std::string part) : target_(std::move(target)), part_(std::move(part)) {}

  Target target_;
  std::string part_;
  Fd fd_;
  std::uint64_t found_ = 0;
  bool direct_ = false;
  bool keep_ = false;
};

// Opens `name` in `parent` for reading, past the page cache if asked and possible; never waits and
// never follows a symbolic link. -1 and errno if it cannot.
int open_source(int parent, const char* name, bool direct, std::string& why_not);

}  // namespace uet::copy
