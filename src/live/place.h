// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where live pages lie, how they are called, and whether the process of a page still runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "live/page.h"

namespace uet::live {

// The directories for pages of this user, the preferred one first: $XDG_RUNTIME_DIR and
// /run/user/UID, each only if it belongs to this user and no other user may write there, and
// /dev/shm. A program with more rights than its user (AT_SECURE) ignores the variable.
std::vector<std::string> directories();

// "uet-stats.UID.PID.NUMBER"; `number` distinguishes the domains of a process.
std::string file_name(uid_t uid, pid_t pid, unsigned number);
// The parts of a name; empty if it is no name of a page.
struct FileName {
  uid_t uid = 0;
  pid_t pid = 0;
  unsigned number = 0;
};
std::optional<FileName> parse_file_name(std::string_view name);

// The kernel's record of a process (/proc/PID/stat).
struct ProcessStat {
  char state = 0;                // 'Z' or 'X': it has ended
  pid_t parent = 0;              // 0: none in this PID name space
  std::uint64_t start_time = 0;  // in clock ticks since the host was started
};
// Empty if there is no such process. Allocates no memory.
std::optional<ProcessStat> process_stat(pid_t pid);
// ProcessStat::start_time; empty if there is no such process, or if it has ended. Allocates
// no memory.
std::optional<std::uint64_t> start_time_of(pid_t pid);
// CLOCK_REALTIME, in nanoseconds.
std::uint64_t realtime_ns();
// The inode of this process' PID name space; 0 if the kernel does not say.
std::uint64_t pid_namespace();

enum class Owner : std::uint8_t {
  Running,
  Gone,
  Unknown,  // of another PID name space, a container for example
};
Owner owner_of(const Head& head);

}  // namespace uet::live
