// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file of a live page: how it is made so that no other user can interfere, and the sequence
// lock of its numbers.
#include "live/page_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <system_error>
#include <utility>

#include "live/dead_pages.h"
#include "live/page_reader.h"
#include "live/place.h"

namespace uet::live {

namespace {

constexpr unsigned kMostAttempts = 64;  // numbers that processes of other name spaces have taken
std::atomic<unsigned> next_number{0};

std::string error_text(const std::string& file, int error) {
  return file + ": " + std::generic_category().message(error);
}

template <std::size_t Size>
void put_text(std::array<char, Size>& to, std::string_view text) {
  const std::size_t length = std::min(text.size(), Size - 1);
  std::copy_n(text.data(), length, to.data());
  to[length] = '\0';
}

// Once a minute and process: a process may open domains by the thousand.
bool may_remove_dead_pages() {
  static std::atomic<std::int64_t> next_s{0};
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::int64_t second = now.tv_sec;
  if (second < next_s.load(std::memory_order_relaxed)) return false;
  next_s.store(second + 60, std::memory_order_relaxed);
  return true;
}

// A file of this name is there although this process has not made it: left by another program that
// this process ran (exec), or by a process that had the same PID. In a directory that several PID
// name spaces share it may be in use.
bool is_left_over(const std::string& file) {
  const std::optional<LastUpdate> page = read_last_update(AT_FDCWD, file.c_str());
  return page && page->owner != Owner::Unknown;
}

int make_file(const std::string& directory, std::string& file, std::string& why) {
  for (unsigned attempt = 0; attempt < kMostAttempts; ++attempt) {
    file = directory + "/" + file_name(::geteuid(), ::getpid(), next_number.fetch_add(1));
    constexpr int kHow = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = ::open(file.c_str(), kHow, S_IRUSR | S_IWUSR);
    if (fd < 0 && errno == EEXIST && is_left_over(file) && ::unlink(file.c_str()) == 0) {
      fd = ::open(file.c_str(), kHow, S_IRUSR | S_IWUSR);
    }
    if (fd >= 0) return fd;
    why = error_text(file, errno);
    if (errno != EEXIST) break;
  }
  return -1;
}

// The whole file has its memory now: a later write could only end in SIGBUS. It is zero, as an
// empty Page is, and each part of it becomes this process's when it is written for the first time.
Page* map_file(int fd, const std::string& file, std::string& why) {
  int error = ::fchmod(fd, S_IRUSR | S_IWUSR) == 0 ? 0 : errno;
  if (error == 0) error = ::posix_fallocate(fd, 0, sizeof(Page));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = memory == MAP_FAILED ? errno : 0;
  }
  if (error != 0) {
    why = error_text(file, error);
    return nullptr;
  }
  return static_cast<Page*>(memory);
}

template <class Element>
Area area_of(const Page& page, const Element* first, std::size_t elements) {
  const auto at =
      reinterpret_cast<const std::byte*>(first) - reinterpret_cast<const std::byte*>(&page);
  return {static_cast<std::uint32_t>(at), sizeof(Element), static_cast<std::uint32_t>(elements), 0};
}

void fill_in(Page& page, const Identity& identity, std::span<const CounterText> counters) {
  std::size_t used = 0;
  std::size_t named = 0;
  const auto put = [&](std::string_view text) {
    std::copy(text.begin(), text.end(), page.text.begin() + static_cast<std::ptrdiff_t>(used));
    used += text.size() + 1;
  };
  for (const CounterText& counter : counters) {
    const std::size_t needed = counter.name.size() + counter.meaning.size() + 2;
    if (named == kMaxCounters || used + needed > kMaxText) break;
    put(counter.name);
    put(counter.meaning);
    page.gauges[named] = counter.gauge ? 1 : 0;
    ++named;
  }
  Head& head = page.head;
  head.version = kPageVersion;
  head.page_bytes = sizeof(Page);
  head.pid = ::getpid();
  head.uid = ::geteuid();
  head.start_time = start_time_of(::getpid()).value_or(0);
  head.pid_namespace = pid_namespace();
  head.opened_ns = realtime_ns();
  head.moment = area_of(page, &page.moment, 1);
  head.counters = area_of(page, page.counters.data(), named);
  head.peers = area_of(page, page.peers.data(), kMaxPeers);
  head.text = area_of(page, page.text.data(), used);
  head.gauges = area_of(page, page.gauges.data(), named);
  head.trace = area_of(page, page.trace.records.data(), trace::kRecords);
  head.pdcs = area_of(page, page.pdcs.data(), kMaxPdcs);
  head.operations = area_of(page, page.operations.data(), kMaxOperations);
  put_text(head.program, ::program_invocation_short_name);
  put_text(head.interface, identity.interface);
  put_text(head.nic, identity.nic);
  put_text(head.address, identity.address);
  // Last: a page without it is not complete.
  std::atomic_ref(head.magic).store(kPageMagic, std::memory_order_release);
}

// Word by word, so that a reader in this process sees no torn word.
void copy_words(std::uint64_t* to, const void* from, std::size_t words) {
  const auto* source = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < words; ++i, source += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, source, sizeof word);
    std::atomic_ref(to[i]).store(word, std::memory_order_relaxed);
  }
}

// Returns how many records are shown.
template <class Record, std::size_t Most>
std::uint64_t show(std::array<Record, Most>& to, std::span<const Record> from) {
  const std::size_t shown = std::min(from.size(), Most);
  copy_words(reinterpret_cast<std::uint64_t*>(to.data()), from.data(),
             shown * sizeof(Record) / sizeof(std::uint64_t));
  return shown;
}

}  // namespace

PageWriter::PageWriter(Page* page, std::string file, pid_t owner)
    : page_(page), file_(std::move(file)), owner_(owner) {}

std::unique_ptr<PageWriter> PageWriter::create(const Identity& identity,
                                               std::span<const CounterText> counters,
                                               std::string& why) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(Page)) {
    why = "files may not be that large (ulimit -f)";
    return nullptr;
  }
  const bool removes_dead_pages = may_remove_dead_pages();
  for (const std::string& directory : directories()) {
    if (removes_dead_pages) remove_dead_pages(directory);
    std::string file;
    const int fd = make_file(directory, file, why);
    if (fd < 0) continue;
    Page* const page = map_file(fd, file, why);
    ::close(fd);
    if (page == nullptr) {
      ::unlink(file.c_str());
      continue;
    }
    std::unique_ptr<PageWriter> writer(new PageWriter(page, file, ::getpid()));
    fill_in(*page, identity, counters);
    return writer;
  }
  return nullptr;
}

void PageWriter::update(std::span<const std::uint64_t> counters, std::span<const PeerRecord> peers,
                        std::uint64_t known, Time now, const Waiting& waiting) noexcept {
  Moment& moment = page_->moment;
  const std::uint64_t sequence = moment.sequence;
  std::atomic_ref(moment.sequence).store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  copy_words(page_->counters.data(), counters.data(),
             std::min<std::size_t>(counters.size(), page_->head.counters.elements));
  const std::uint64_t words[] = {realtime_ns(),
                                 static_cast<std::uint64_t>(to_ns(now)),
                                 show(page_->peers, peers),
                                 known,
                                 show(page_->pdcs, waiting.pdcs),
                                 show(page_->operations, waiting.operations),
                                 waiting.operations_known};
  copy_words(&moment.updated_ns, words, std::size(words));
  std::atomic_ref(moment.sequence).store(sequence + 2, std::memory_order_release);
}

void PageWriter::remove_file() noexcept {
  if (::getpid() == owner_ && !file_.empty()) ::unlink(file_.c_str());
  owner_ = 0;
}

PageWriter::~PageWriter() {
  remove_file();
  ::munmap(page_, sizeof(Page));
}

}  // namespace uet::live
