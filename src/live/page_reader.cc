// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading live pages: every number of a head is checked before it is used.
#include "live/page_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <span>
#include <string_view>
#include <utility>

namespace uet::live {

namespace {

constexpr unsigned kAttempts = 200;  // to find the numbers at rest, 1 ms apart
constexpr std::uint32_t kMostBytes = 64 * 1024 * 1024;

class File {
 public:
  // `name` is relative to `directory`, unless it begins with '/'.
  explicit File(const char* name, int directory = AT_FDCWD)
      : fd_(::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd_; }

  bool read(void* to, std::size_t bytes, std::size_t at) const {
    auto* out = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(fd_, out, bytes, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      out += got;
      at += static_cast<std::size_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  int fd_;
};

bool fits(const Head& head, const Area& area, std::size_t least_element) {
  return area.element_bytes >= least_element &&
         std::uint64_t{area.at} + std::uint64_t{area.element_bytes} * area.elements <=
             head.page_bytes;
}

// Pages of earlier versions lack the area.
bool fits_if_there(const Head& head, const Area& area, std::size_t least_element) {
  return area.elements == 0 || fits(head, area, least_element);
}

// Checks owner, mode and head. Gives a reason for a refusal, or nullptr. Allocates no memory.
const char* read_head(const File& file, Head& head) {
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return ::strerrordesc_np(errno);
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) return "belongs to another user";
  if (!file.read(&head, sizeof head, 0) || head.magic != kPageMagic) {
    return "is no live page, or not complete yet";
  }
  if (head.version != kPageVersion) {
    return "has another version of the layout than this program reads; take the tools of the "
           "version that the process uses";
  }
  const bool sound = head.page_bytes <= kMostBytes &&
                     head.page_bytes <= static_cast<std::uint64_t>(info.st_size) &&
                     fits(head, head.moment, sizeof(Moment)) && head.moment.elements == 1 &&
                     fits(head, head.counters, sizeof(std::uint64_t)) &&
                     fits(head, head.peers, sizeof(PeerRecord)) && fits(head, head.text, 1) &&
                     fits(head, head.gauges, 1) && head.gauges.elements >= head.counters.elements &&
                     fits_if_there(head, head.pdcs, sizeof(PdcRecord)) &&
                     fits_if_there(head, head.operations, sizeof(OperationRecord)) &&
                     fits_if_there(head, head.trace, sizeof(trace::Record));
  head.program.back() = head.interface.back() = head.nic.back() = head.address.back() = '\0';
  return sound ? nullptr : "is damaged";
}

void wait_a_little() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
  ::nanosleep(&pause, nullptr);
}

// The elements of an area, each cut to `Element`.
template <class Element>
std::vector<Element> cut(const std::vector<char>& bytes, const Area& area, std::size_t elements) {
  std::vector<Element> out(std::min<std::size_t>(elements, area.elements));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::memcpy(&out[i], bytes.data() + i * area.element_bytes, sizeof(Element));
  }
  return out;
}

std::string_view take_text(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return text;
}

// False: the file has become shorter.
bool read_numbers(const File& file, Snapshot& page) {
  const Head& head = page.head;
  std::vector<char> counters(std::size_t{head.counters.element_bytes} * head.counters.elements);
  std::vector<char> peers(std::size_t{head.peers.element_bytes} * head.peers.elements);
  std::vector<char> pdcs(std::size_t{head.pdcs.element_bytes} * head.pdcs.elements);
  std::vector<char> operations(std::size_t{head.operations.element_bytes} *
                               head.operations.elements);
  for (unsigned attempt = 0;; ++attempt) {
    Moment after;
    if (!file.read(&page.moment, sizeof page.moment, head.moment.at)) return false;
    page.torn = page.moment.sequence % 2 != 0;
    const bool last = attempt == kAttempts;
    if (!page.torn || last) {
      if (!file.read(counters.data(), counters.size(), head.counters.at) ||
          !file.read(peers.data(), peers.size(), head.peers.at) ||
          !file.read(pdcs.data(), pdcs.size(), head.pdcs.at) ||
          !file.read(operations.data(), operations.size(), head.operations.at) ||
          !file.read(&after, sizeof after, head.moment.at)) {
        return false;
      }
      page.torn |= after.sequence != page.moment.sequence;
    }
    if (!page.torn || last) break;
    wait_a_little();
  }
  const auto values = cut<std::uint64_t>(counters, head.counters, head.counters.elements);
  for (std::size_t i = 0; i < values.size(); ++i) page.counters[i].value = values[i];
  page.peers = cut<PeerRecord>(peers, head.peers, page.moment.peers_shown);
  page.pdcs = cut<PdcRecord>(pdcs, head.pdcs, page.moment.pdcs_shown);
  page.operations = cut<OperationRecord>(operations, head.operations, page.moment.operations_shown);
  return true;
}

}  // namespace

std::vector<std::string> find_pages(pid_t pid) {
  std::map<std::pair<pid_t, unsigned>, std::vector<std::string>> found;
  for (const std::string& directory : directories()) {
    DIR* const listing = ::opendir(directory.c_str());
    if (listing == nullptr) continue;
    while (const dirent* const entry = ::readdir(listing)) {
      const auto name = parse_file_name(entry->d_name);
      if (!name || name->uid != ::geteuid() || (pid != 0 && name->pid != pid)) continue;
      found[{name->pid, name->number}].push_back(directory + "/" + entry->d_name);
    }
    ::closedir(listing);
  }
  std::vector<std::string> files;
  for (const auto& [key, same_name] : found) {
    files.insert(files.end(), same_name.begin(), same_name.end());
  }
  return files;
}

std::optional<LastUpdate> read_last_update(int directory, const char* name) noexcept {
  const File file(name, directory);
  Head head;
  Moment moment;
  if (read_head(file, head) != nullptr || !file.read(&moment, sizeof moment, head.moment.at)) {
    return {};
  }
  return LastUpdate{owner_of(head), std::max(moment.updated_ns, head.opened_ns)};
}

std::optional<std::uint64_t> incomplete_since(int directory, const char* name) noexcept {
  const File file(name, directory);
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return {};
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) return {};
  std::uint64_t magic = 0;
  if (file.read(&magic, sizeof magic, offsetof(Head, magic)) && magic != 0) return {};
  return static_cast<std::uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(info.st_mtim.tv_nsec);
}

std::optional<TraceCopy> read_trace(const std::string& name, std::string& why) {
  constexpr std::size_t kHeadOfRing = offsetof(trace::Ring, records);
  const File file(name.c_str());
  Head head;
  if (const char* const refused = read_head(file, head); refused != nullptr) {
    why = refused;
    return {};
  }
  const Area& area = head.trace;
  if (area.elements == 0 || area.at < kHeadOfRing) {
    why = "has no trace: the provider of the process is older than this program";
    return {};
  }
  // Before and after the records: `written`, `last_pass_ns`, `sleeping_since_ns`.
  std::uint64_t ring[3] = {};
  std::uint64_t after = 0;
  std::vector<char> bytes(std::size_t{area.element_bytes} * area.elements);
  if (!file.read(ring, sizeof ring, area.at - kHeadOfRing) ||
      !file.read(bytes.data(), bytes.size(), area.at) ||
      !file.read(&after, sizeof after, area.at - kHeadOfRing)) {
    why = "is damaged";
    return {};
  }
  TraceCopy copy{.records = {},
                 .written = ring[0],
                 .last_pass_ns = static_cast<std::int64_t>(ring[1]),
                 .sleeping_since_ns = static_cast<std::int64_t>(ring[2])};
  const auto all = cut<trace::Record>(bytes, area, area.elements);
  // The record behind `after` may be half written.
  const std::uint64_t first = after < all.size() ? 0 : after + 1 - all.size();
  for (std::uint64_t i = first; i < ring[0]; ++i) copy.records.push_back(all[i % all.size()]);
  return copy;
}

std::optional<Snapshot> read_page(const std::string& name, std::string& why) {
  const File file(name.c_str());
  Snapshot page;
  page.file = name;
  if (const char* const refused = read_head(file, page.head); refused != nullptr) {
    why = refused;
    return {};
  }
  std::vector<char> text(std::size_t{page.head.text.element_bytes} * page.head.text.elements);
  std::vector<char> gauges(std::size_t{page.head.gauges.element_bytes} * page.head.gauges.elements);
  page.counters.resize(page.head.counters.elements);
  if (!file.read(text.data(), text.size(), page.head.text.at) ||
      !file.read(gauges.data(), gauges.size(), page.head.gauges.at) || !read_numbers(file, page)) {
    why = "is damaged";
    return {};
  }
  std::string_view rest(text.data(), text.size());
  for (std::size_t i = 0; i < page.counters.size(); ++i) {
    page.counters[i].name = take_text(rest);
    page.counters[i].meaning = take_text(rest);
    page.counters[i].gauge = gauges[i * page.head.gauges.element_bytes] != 0;
  }
  page.owner = owner_of(page.head);
  return page;
}

}  // namespace uet::live
