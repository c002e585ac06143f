// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "live/dead_pages.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "live/page_reader.h"
#include "live/place.h"

namespace uet::live {

namespace {

// The youngest dead pages of one directory. A page that has no place among them is removed.
class Youngest {
 public:
  explicit Youngest(int directory) : directory_(directory) {}

  void add(std::string_view name, std::uint64_t updated_ns) {
    Entry entry;
    std::copy_n(name.begin(), std::min(name.size(), entry.name.size() - 1), entry.name.begin());
    entry.updated_ns = updated_ns;
    if (used_ < entries_.size()) {
      entries_[used_++] = entry;
      return;
    }
    const auto oldest = std::min_element(
        entries_.begin(), entries_.end(),
        [](const Entry& a, const Entry& b) { return a.updated_ns < b.updated_ns; });
    if (oldest->updated_ns < entry.updated_ns) std::swap(*oldest, entry);
    ::unlinkat(directory_, entry.name.data(), 0);
  }

 private:
  struct Entry {
    std::array<char, 64> name{};  // names of pages have at most 42 characters
    std::uint64_t updated_ns = 0;
  };

  int directory_;
  std::size_t used_ = 0;
  std::array<Entry, kMaxDeadPages> entries_{};
};

bool is_older(std::uint64_t time_ns, std::uint64_t now_ns, std::chrono::nanoseconds age) {
  return now_ns > time_ns && now_ns - time_ns > static_cast<std::uint64_t>(age.count());
}

// The process was killed while it made the page.
bool is_abandoned(int directory, const char* file, pid_t pid, std::uint64_t now_ns) {
  const std::optional<std::uint64_t> since = incomplete_since(directory, file);
  return since && is_older(*since, now_ns, kMakePage) && !start_time_of(pid);
}

}  // namespace

void remove_dead_pages(const std::string& directory) noexcept {
  DIR* const listing = ::opendir(directory.c_str());
  if (listing == nullptr) return;
  const std::uint64_t now = realtime_ns();
  const uid_t user = ::geteuid();
  const int fd = ::dirfd(listing);
  Youngest kept(fd);
  while (const dirent* const entry = ::readdir(listing)) {
    const std::optional<FileName> name = parse_file_name(entry->d_name);
    if (!name || name->uid != user) continue;
    const std::optional<LastUpdate> page = read_last_update(fd, entry->d_name);
    if (!page && is_abandoned(fd, entry->d_name, name->pid, now)) {
      ::unlinkat(fd, entry->d_name, 0);
    }
    if (!page || page->owner != Owner::Gone) continue;
    if (is_older(page->time_ns, now, kKeepDeadPages)) {
      ::unlinkat(fd, entry->d_name, 0);
    } else {
      kept.add(entry->d_name, page->time_ns);
    }
  }
  ::closedir(listing);
}

}  // namespace uet::live
