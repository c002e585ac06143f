// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "directory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>

#include "failure.h"

namespace uet::copy {
namespace {

constexpr std::size_t kMostKnown = 256;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// FNV-1a: names of part files need no more.
std::string digits_of(std::initializer_list<std::string> parts) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& part : parts) {
    for (const char c : part + '\0') {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

bool lacks_direct(int error) { return error == EINVAL || error == EOPNOTSUPP; }

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Directory::Directory(const std::string& path)
    : root_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), name_(path) {
  if (!root_) fail_file(errno, path);
}

int Directory::open_beneath(const std::string& path, int flags) const {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0;; ++tries) {
    const long fd =
        ::syscall(SYS_openat2, root_.get(), path.empty() ? "." : path.c_str(), &how, sizeof how);
    // EAGAIN: something was renamed meanwhile, so that the kernel cannot tell.
    if (fd >= 0 || errno != EAGAIN || tries == 100) return static_cast<int>(fd);
  }
}

Fd Directory::open(const std::string& path, bool directory) const {
  // A FIFO is not waited for.
  Fd fd(open_beneath(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | (directory ? O_DIRECTORY : 0)));
  const std::string shown = path.empty() ? name_ : path;
  if (!fd) fail_file(errno, shown);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_file(errno, shown);
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    throw Failure(Status::Failed, shown + ": neither a file nor a directory");
  }
  return fd;
}

std::optional<struct stat> Directory::look(const std::string& path) const {
  const Fd fd(open_beneath(path, O_PATH));
  struct stat status {};
  if (!fd) {
    if (errno == ENOENT) return {};
    fail_file(errno, path);
  }
  if (::fstat(fd.get(), &status) != 0) fail_file(errno, path);
  return status;
}

SharedFd Directory::make(const std::string& path) {
  if (const auto found = known_.find(path); found != known_.end()) return found->second;
  int fd = open_beneath(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0 && errno == ENOENT && !path.empty()) {
    const SharedFd parent = parent_of(path);
    const std::string base = path.substr(path.rfind('/') + 1);
    if (::mkdirat(parent->get(), base.c_str(), 0777) != 0 && errno != EEXIST) {
      fail_file(errno, path);
    }
    fd = open_beneath(path, O_RDONLY | O_DIRECTORY);
  }
  if (fd < 0) fail_file(errno, path.empty() ? name_ : path);
  if (known_.size() >= kMostKnown) known_.clear();
  return known_[path] = std::make_shared<Fd>(fd);
}

SharedFd Directory::parent_of(const std::string& path) { return make(directory_of(path)); }

PartFile PartFile::create(Target target, const std::string& unique) {
  PartFile file(std::move(target), std::string(kPartPrefix) + unique);
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  file.fd_ =
      Fd(::openat(file.target_.parent->get(), file.part_.c_str(), flags, file.target_.mode & 0777));
  if (!file.fd_) fail_file(errno, file.target_.path);
  return file;
}

PartFile PartFile::resume(Target target, bool direct, std::string& why_not) {
  const std::string digits =
      digits_of({target.base, std::to_string(target.size), std::to_string(target.mtime_ns)});
  PartFile file(std::move(target), std::string(kPartPrefix) + digits);
  const Target& its = file.target_;
  const int parent = its.parent->get();
  for (;;) {
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (direct ? O_DIRECT : 0);
    Fd fd(::openat(parent, file.part_.c_str(), flags, 0600));
    if (!fd && direct && lacks_direct(errno)) {
      why_not = "the file system of " + its.path + " has no O_DIRECT";
      direct = false;
      continue;
    }
    if (!fd) fail_file(errno, its.path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      throw Failure(Status::Failed, its.path + ": another transfer writes this file");
    }
    // The other transfer may have finished, and given the file its name, since the name was opened.
    struct stat opened {};
    struct stat named {};
    if (::fstat(fd.get(), &opened) != 0) fail_file(errno, its.path);
    if (::fstatat(parent, file.part_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
        named.st_ino != opened.st_ino) {
      continue;
    }
    file.fd_ = std::move(fd);
    file.found_ = static_cast<std::uint64_t>(opened.st_size);
    file.direct_ = direct;
    break;
  }
  // Says that the disk is too small before the first byte. Not all file systems can tell.
  if (::fallocate(file.fd(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(its.size)) != 0 &&
      errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
    const int error = errno == EFBIG ? ENOSPC : errno;
    fail_file(error, its.path);
  }
  return file;
}

PartFile::~PartFile() {
  if (fd_ && !keep_) ::unlinkat(target_.parent->get(), part_.c_str(), 0);
}

void PartFile::commit(bool sync) {
  const auto check = [&](int result) {
    if (result != 0) fail_file(errno, target_.path);
  };
  if (direct_ || found_ > target_.size) {
    check(::ftruncate(fd_.get(), static_cast<off_t>(target_.size)));
  }
  struct stat status {};
  check(::fstat(fd_.get(), &status));
  if ((status.st_mode & 0777) != (target_.mode & 0777)) {
    check(::fchmod(fd_.get(), target_.mode & 0777));
  }
  std::int64_t seconds = target_.mtime_ns / kNsPerSecond;
  std::int64_t rest = target_.mtime_ns % kNsPerSecond;
  if (rest < 0) {
    --seconds;
    rest += kNsPerSecond;
  }
  const std::array<timespec, 2> times{{{0, UTIME_OMIT}, {seconds, rest}}};
  check(::futimens(fd_.get(), times.data()));
  if (sync) check(::fdatasync(fd_.get()));
  const int parent = target_.parent->get();
  check(::renameat(parent, part_.c_str(), parent, target_.base.c_str()));
  keep_ = true;  // under its own name
  if (sync) check(::fsync(parent));
}

int open_source(int parent, const char* name, bool direct, std::string& why_not) {
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int fd = ::openat(parent, name, flags | (direct ? O_DIRECT : 0));
  if (fd < 0 && direct && lacks_direct(errno)) {
    why_not = std::string("the file system of ") + name + " has no O_DIRECT";
    fd = ::openat(parent, name, flags);
  }
  return fd;
}

}  // namespace uet::copy
