// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file system and /proc as live pages need them.
#include "live/place.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace uet::live {

namespace {

constexpr std::string_view kPrefix = "uet-stats.";

// Only this user can put files there.
bool is_private(const std::string& directory) {
  struct stat info {};
  return ::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_dot(std::string_view& text) {
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::vector<std::string> directories() {
  std::vector<std::string> found;
  const auto add = [&](std::string directory) {
    for (const std::string& known : found) {
      if (known == directory) return;
    }
    if (is_private(directory)) found.push_back(std::move(directory));
  };
  const char* const chosen = ::secure_getenv("XDG_RUNTIME_DIR");
  if (chosen != nullptr && chosen[0] == '/') add(chosen);
  add("/run/user/" + std::to_string(::geteuid()));
  found.emplace_back("/dev/shm");
  return found;
}

std::string file_name(uid_t uid, pid_t pid, unsigned number) {
  return std::string(kPrefix) + std::to_string(uid) + "." + std::to_string(pid) + "." +
         std::to_string(number);
}

std::optional<FileName> parse_file_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  FileName parsed;
  if (!take_number(name, parsed.uid) || !take_dot(name) || !take_number(name, parsed.pid) ||
      !take_dot(name) || !take_number(name, parsed.number) || !name.empty()) {
    return {};
  }
  return parsed;
}

std::optional<ProcessStat> process_stat(pid_t pid) {
  char file[32];
  std::snprintf(file, sizeof file, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[1024];
  const ssize_t length = ::read(fd, text, sizeof text);
  ::close(fd);
  if (length <= 0) return {};
  std::string_view rest(text, static_cast<std::size_t>(length));
  const std::size_t name_end = rest.rfind(')');  // the name may hold spaces and parentheses
  if (name_end == std::string_view::npos) return {};
  rest.remove_prefix(name_end + 1);
  ProcessStat stat;
  for (int field = 3; field <= 22; ++field) {
    if (!rest.starts_with(' ') || rest.size() < 2) return {};
    rest.remove_prefix(1);
    if (field == 3) stat.state = rest.front();
    if (field == 4 && !take_number(rest, stat.parent)) return {};
    if (field == 22 && !take_number(rest, stat.start_time)) return {};
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  return stat;
}

std::optional<std::uint64_t> start_time_of(pid_t pid) {
  const std::optional<ProcessStat> stat = process_stat(pid);
  // A process that has ended and is not waited for has ended.
  if (!stat || stat->state == 'Z' || stat->state == 'X') return {};
  return stat->start_time;
}

std::uint64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t pid_namespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

Owner owner_of(const Head& head) {
  if (head.pid_namespace != pid_namespace()) return Owner::Unknown;
  return start_time_of(head.pid) == head.start_time ? Owner::Running : Owner::Gone;
}

}  // namespace uet::live
