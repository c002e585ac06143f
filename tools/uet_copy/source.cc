// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace uet::copy {
namespace {

constexpr std::size_t kMostLongFiles = 2;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

Source::Source(Tally& tally, Directory directory, const std::string& path, bool tree, bool direct,
               std::size_t piece_bytes)
    : tally_(tally),
      direct_(direct),
      piece_bytes_(piece_bytes),
      root_(directory.open(path, false)) {
  struct stat status {};
  if (::fstat(root_.get(), &status) != 0) fail_file(errno, path);
  if (S_ISDIR(status.st_mode) && !tree) {
    throw Failure(Status::Failed, (path.empty() ? "." : path) + ": is a directory; use -r");
  }
  if (S_ISREG(status.st_mode)) tally.expected = static_cast<std::uint64_t>(status.st_size);
}

void Source::enter(const SharedFd& fd, const std::string& path) {
  DIR* stream = ::fdopendir(::fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
  if (stream == nullptr) return;
  entered_.push_back({fd, std::unique_ptr<DIR, CloseStream>(stream), path});
}

std::optional<Found> Source::next() {
  const std::lock_guard lock(mutex_);
  if (!root_given_) {
    root_given_ = true;
    ++looking_;
    return Found{};
  }
  while (!entered_.empty()) {
    Entered& inner = entered_.back();
    const dirent* entry = ::readdir(inner.stream.get());
    if (entry == nullptr) {
      entered_.pop_back();
      continue;
    }
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || name.starts_with(kPartPrefix)) continue;
    if (entry->d_type != DT_REG && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) {
      ++tally_.left_out;
      continue;
    }
    ++looking_;
    return Found{inner.fd, name, inner.path.empty() ? name : inner.path + '/' + name};
  }
  return {};
}

Fd Source::open(const Found& found, struct stat& status) {
  std::string ignored;
  Fd fd = found.parent == nullptr
              ? std::move(root_)
              : Fd(open_source(found.parent->get(), found.name.c_str(), false, ignored));
  const int error = !fd || ::fstat(fd.get(), &status) != 0 ? errno : 0;
  const std::lock_guard lock(mutex_);
  --looking_;
  if (error == ELOOP) {  // a link has taken the place of the file
    ++tally_.left_out;
    return {};
  }
  if (error != 0) {
    tally_.problem({status_of(error), found.path + ": " + std::strerror(error)});
    return {};
  }
  if (S_ISDIR(status.st_mode)) {
    const int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
    enter(std::make_shared<Fd>(std::move(fd)), found.path);
    return Fd(copy);
  }
  if (!S_ISREG(status.st_mode)) {
    ++tally_.left_out;
    return {};
  }
  return fd;
}

std::shared_ptr<const LongSource> Source::add(const Found& found, Fd fd,
                                              const struct stat& status) {
  auto file = std::make_shared<LongSource>();
  file->path = found.path;
  file->size = static_cast<std::uint64_t>(status.st_size);
  file->mode = status.st_mode & 0777;
  file->mtime_ns = status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
  // Through the descriptor, so that it is the same file.
  if (direct_) {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    file->direct = ::fcntl(fd.get(), F_SETFL, flags | O_DIRECT) == 0;
    if (!file->direct) {
      tally_.note_disk("the file system of the source has no O_DIRECT");
    }
  }
  file->fd = std::move(fd);
  const std::lock_guard lock(mutex_);
  file->id = ++last_id_;
  sending_.push_back({.file = file});
  return file;
}

std::shared_ptr<const LongSource> Source::announced(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  for (const Sending& one : sending_) {
    if (one.file->id == id && !one.opened) return one.file;
  }
  return nullptr;
}

void Source::opened(std::uint32_t id, std::map<std::uint64_t, std::uint64_t> has) {
  const std::lock_guard lock(mutex_);
  for (Sending& one : sending_) {
    if (one.file->id != id) continue;
    one.opened = true;
    one.has = std::move(has);
    return;
  }
}

std::optional<Piece> Source::next_piece() {
  const std::lock_guard lock(mutex_);
  for (auto one = sending_.begin(); one != sending_.end();) {
    if (!one->opened) {
      ++one;
      continue;
    }
    const auto skip = one->has.find(one->next);
    if (skip != one->has.end()) one->next = skip->second;
    if (one->next >= one->file->size) {
      one = sending_.erase(one);
      continue;
    }
    Piece piece{one->file, one->next, 0};
    piece.bytes = static_cast<std::size_t>(
        std::min<std::uint64_t>(piece_bytes_, one->file->size - one->next));
    one->next += piece.bytes;
    return piece;
  }
  return {};
}

bool Source::finished() const {
  const std::lock_guard lock(mutex_);
  return root_given_ && looking_ == 0 && entered_.empty() && sending_.empty();
}

bool Source::may_look_further() const {
  const std::lock_guard lock(mutex_);
  return sending_.size() < kMostLongFiles;
}

}  // namespace uet::copy
