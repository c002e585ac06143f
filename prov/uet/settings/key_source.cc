// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "settings/key_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace uet::prov {
namespace {

constexpr const char* kDescriptor = "fd:";

Duration since_1970(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::optional<FileMark> mark_of(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return {};
  return FileMark{info.st_dev, info.st_ino, info.st_size, since_1970(info.st_mtim),
                  since_1970(info.st_ctim)};
}
std::optional<FileMark> mark_of(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return {};
  return mark_of(info);
}

// The number behind "fd:", or -1.
int descriptor_of(const std::string& name) {
  int fd = -1;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + 3, end, fd);
  return error == std::errc{} && at == end && fd >= 0 ? fd : -1;
}

// Why keys must not be read from this open file, or nullptr.
const char* reason_against(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return "is not a regular file";
  if (info.st_uid != geteuid()) return "belongs to another user; keys must belong to this user";
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return "may be read or written by other users; run: chmod 600";
  }
  return nullptr;
}

}  // namespace

KeySource::KeySource(const std::string& name) : absent_(name.empty()) {
  if (!name.starts_with(kDescriptor)) {
    read_file(name);
    if (!problem_.empty()) problem_ = name + ": " + problem_;
    return;
  }
  const int fd = descriptor_of(name);
  if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    problem_ = name + ": no such open descriptor";
    return;
  }
  mark_ = mark_of(fd);
  (void)lseek(fd, 0, SEEK_SET);  // a pipe has no begin
  read_all(fd);
}

void KeySource::read_file(const std::string& name) {
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    absent_ = errno == ENOENT;
    problem_ = errno == ELOOP ? "is a symbolic link; name the file" : std::strerror(errno);
    return;
  }
  if (const char* const reason = reason_against(fd)) {
    problem_ = reason;
  } else {
    mark_ = mark_of(fd);
    read_all(fd);
  }
  close(fd);
}

std::optional<FileMark> KeySource::look(const std::string& name) {
  if (name.starts_with(kDescriptor)) return mark_of(descriptor_of(name));
  struct stat info {};
  if (lstat(name.c_str(), &info) != 0) return {};
  return mark_of(info);
}

void KeySource::read_all(int fd) {
  text_ = SecretText(kMostBytes + 1);
  if (text_.capacity() == 0) problem_ = "no memory";
  const std::span<char> space = text_.space();
  std::size_t used = 0;
  while (used < space.size()) {
    const ssize_t count = read(fd, space.data() + used, space.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) problem_ = std::strerror(errno);
    if (count <= 0) break;
    used += static_cast<std::size_t>(count);
  }
  if (used > kMostBytes) problem_ = "is longer than 256 KiB";
  text_.resize(problem_.empty() ? used : 0);
}

}  // namespace uet::prov
