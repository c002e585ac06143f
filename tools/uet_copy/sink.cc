// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "crc32c.h"

namespace uet::copy {
namespace {

constexpr std::size_t kMostLongFiles = 64;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

[[noreturn]] void bad(const std::string& what) {
  throw Failure(Status::BadPeer, "the peer broke the protocol: " + what);
}

[[noreturn]] void mismatch(const std::string& path) {
  throw Failure(Status::Mismatch,
                path + ": the received bytes differ from the bytes that the sender read");
}

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }  // NOLINT
};

// The CRC of `bytes` bytes at `offset`; false: they cannot be read.
bool sum_of(int fd, std::span<std::byte> buffer, std::uint64_t offset, std::uint64_t bytes,
            std::uint32_t& sum) {
  sum = 0;
  while (bytes > 0) {
    const std::size_t part = std::min<std::uint64_t>(buffer.size(), bytes);
    const ssize_t got = ::pread(fd, buffer.data(), part, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(part)) return false;
    sum = crc32c(buffer.first(part), sum);
    offset += part;
    bytes -= part;
  }
  return true;
}

}  // namespace

bool Ranges::add(std::uint64_t begin, std::uint64_t end) {
  auto after = ranges_.upper_bound(begin);
  if (after != ranges_.end() && after->first < end) return false;
  auto before = after == ranges_.begin() ? ranges_.end() : std::prev(after);
  if (before != ranges_.end() && before->second > begin) return false;
  bytes_ += end - begin;
  if (after != ranges_.end() && after->first == end) {
    end = after->second;
    ranges_.erase(after);
  }
  if (before != ranges_.end() && before->second == begin) {
    before->second = end;
  } else {
    ranges_.emplace(begin, end);
  }
  return true;
}

class Sink::LongFile {
 public:
  explicit LongFile(PartFile file) : part(std::move(file)) {}
  ~LongFile() {
    // A transfer that ended early is continued by the next of the same file.
    if (keep) part.keep();
  }
  LongFile(const LongFile&) = delete;
  LongFile& operator=(const LongFile&) = delete;

  PartFile part;
  std::uint64_t part_bytes = 0;  // per sum
  std::uint64_t parts = 0;       // with a sum
  bool keep = true;
  std::mutex mutex;
  Ranges claimed;
  std::uint64_t done_bytes = 0;
};

Sink::Sink(Tally& tally, Directory directory, const std::string& path, const std::string& name,
           Options options)
    : tally_(tally), options_(std::move(options)), base_(path), directory_(std::move(directory)) {
  if (options_.tree) {
    directory_.make(base_);
    return;
  }
  const std::optional<struct stat> found = directory_.look(base_);
  if (!found || !S_ISDIR(found->st_mode)) return;
  const std::string base = clean_path(name);
  if (base.empty() || base.find('/') != std::string::npos) bad("the name of the file");
  base_ = base_.empty() ? base : base_ + '/' + base;
}

Sink::~Sink() {
  // A full disk is not left full.
  if (tally_.outcome().status != Status::NoSpace) return;
  for (auto& [id, file] : long_files_) file->keep = false;
}

std::string Sink::target_of(const std::string& path, bool directory) const {
  const std::string below = clean_path(path);
  if (!options_.tree && (directory || !below.empty())) bad("a file that was not asked for");
  if (!directory && options_.tree && below.empty()) {
    throw Failure(Status::Failed, "the source is a file; copy it without -r");
  }
  if (base_.empty() || below.empty()) return base_ + below;
  return base_ + '/' + below;
}

void Sink::take_entries(std::span<const std::byte> slot, const SlotHead& head) {
  Unpacker entries(slot, head);
  while (const std::optional<Entry> entry = entries.next()) {
    const std::string path = target_of(entry->path, entry->directory);
    if (entry->directory) {
      const std::lock_guard lock(mutex_);
      directory_.make(path);
      made_.push_back({path, entry->mode, entry->mtime_ns});
    } else {
      write_entry(*entry, path);
    }
  }
}

void Sink::write_entry(const Entry& entry, const std::string& path) {
  if (options_.verify && crc32c(entry.data) != entry.sum) mismatch(path);
  PartFile::Target target;
  std::string unique;
  {
    const std::lock_guard lock(mutex_);
    target.parent = directory_.parent_of(path);
    unique = options_.unique + '-' + std::to_string(++last_unique_);
  }
  target.base = path.substr(path.rfind('/') + 1);
  target.path = path;
  target.size = entry.data.size();
  target.mode = entry.mode;
  target.mtime_ns = entry.mtime_ns;
  PartFile file = PartFile::create(std::move(target), unique);
  std::span<const std::byte> rest = entry.data;
  while (!rest.empty()) {
    const ssize_t done = ::write(file.fd(), rest.data(), rest.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_file(errno, path);
    rest = rest.subspan(static_cast<std::size_t>(done));
  }
  file.commit(options_.sync);
  tally_.bytes += entry.data.size();
  ++tally_.files;
}

Message Sink::open(const Message& message) {
  const std::string path = target_of(message.path, false);
  if (message.size == 0) bad("a long file without bytes");
  PartFile::Target target;
  {
    const std::lock_guard lock(mutex_);
    if (long_files_.contains(message.id)) bad("a file with the number of another");
    if (long_files_.size() >= kMostLongFiles) bad("too many open files");
    target.parent = directory_.parent_of(path);
  }
  target.base = path.substr(path.rfind('/') + 1);
  target.path = path;
  target.size = message.size;
  target.mode = message.mode;
  target.mtime_ns = message.mtime_ns;
  std::string why_not;
  auto file =
      std::make_shared<LongFile>(PartFile::resume(std::move(target), options_.direct, why_not));
  if (!why_not.empty()) tally_.note_disk(why_not);

  Message answer{.kind = Kind::Opened, .id = message.id};
  const std::uint64_t pieces = (message.size + options_.piece_bytes - 1) / options_.piece_bytes;
  const std::uint64_t per_part = (pieces + kMostPartSums - 1) / kMostPartSums;
  file->part_bytes = per_part * options_.piece_bytes;
  answer.size = file->part_bytes;
  const std::uint64_t parts = std::min(file->part.found(), message.size) / file->part_bytes;
  const std::unique_ptr<std::byte, FreeMemory> buffer(
      static_cast<std::byte*>(std::aligned_alloc(kPage, kMiB)));
  for (std::uint64_t i = 0; i < parts && answer.sums.size() < kMostPartSums; ++i) {
    std::uint32_t sum = 0;
    if (!sum_of(file->part.fd(), {buffer.get(), kMiB}, i * file->part_bytes, file->part_bytes,
                sum)) {
      break;
    }
    answer.sums.push_back(sum);
  }
  file->parts = answer.sums.size();
  const std::lock_guard lock(mutex_);
  if (!long_files_.emplace(message.id, file).second) bad("a file with the number of another");
  return answer;
}

std::shared_ptr<Sink::LongFile> Sink::find(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = long_files_.find(id);
  if (found == long_files_.end()) bad("a piece of a file that is not open");
  return found->second;
}

void Sink::have(const Message& message) {
  const std::shared_ptr<LongFile> file = find(message.id);
  const std::uint64_t end = message.offset + message.size;
  if (message.size == 0 || end > file->parts * file->part_bytes) bad("a range that has no sum");
  {
    const std::lock_guard lock(file->mutex);
    if (!file->claimed.add(message.offset, end)) bad("a range that has come already");
  }
  tally_.resumed += message.size;
  count(file, message.size);
}

Sink::Place Sink::claim(std::span<const std::byte> slot, const SlotHead& head) {
  Place place;
  place.file = find(head.id);
  const std::uint64_t size = place.file->part.target().size;
  if (head.offset >= size || head.offset % options_.piece_bytes != 0 ||
      head.length != std::min<std::uint64_t>(options_.piece_bytes, size - head.offset)) {
    bad("a piece that does not fit its file");
  }
  {
    const std::lock_guard lock(place.file->mutex);
    if (!place.file->claimed.add(head.offset, head.offset + head.length)) {
      bad("a piece that has come already");
    }
  }
  place.fd = place.file->part.fd();
  place.offset = head.offset;
  place.bytes = head.length;
  place.padded = place.bytes;
  if (place.file->part.direct()) place.padded = (place.bytes + kPage - 1) / kPage * kPage;
  if (options_.verify && crc32c(slot.subspan(kPage, place.bytes)) != head.sum) {
    place.file->keep = false;
    mismatch(place.file->part.target().path);
  }
  return place;
}

std::string Sink::name_of(const Place& place) { return place.file->part.target().path; }

void Sink::written(const Place& place) {
  tally_.bytes += place.bytes;
  count(place.file, place.bytes);
}

void Sink::count(const std::shared_ptr<LongFile>& file, std::uint64_t bytes) {
  {
    const std::lock_guard lock(file->mutex);
    file->done_bytes += bytes;
    if (file->done_bytes != file->part.target().size) return;
    file->part.commit(options_.sync);
    ++tally_.files;
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(long_files_, [&](const auto& one) { return one.second == file; });
}

void Sink::stream_done() {
  const std::lock_guard lock(mutex_);
  if (++streams_done_ < options_.streams) return;
  if (!long_files_.empty()) bad("the end came before all bytes");
  // The innermost first: a directory without the right to write is closed last.
  for (auto one = made_.rbegin(); one != made_.rend(); ++one) {
    const SharedFd fd = directory_.make(one->path);
    std::int64_t seconds = one->mtime_ns / kNsPerSecond;
    std::int64_t rest = one->mtime_ns % kNsPerSecond;
    if (rest < 0) {
      --seconds;
      rest += kNsPerSecond;
    }
    const std::array<timespec, 2> times{{{0, UTIME_OMIT}, {seconds, rest}}};
    if (::fchmod(fd->get(), one->mode & 0777) != 0 || ::futimens(fd->get(), times.data()) != 0) {
      fail_file(errno, one->path);
    }
    if (options_.sync && ::fsync(fd->get()) != 0) fail_file(errno, one->path);
  }
}

}  // namespace uet::copy
