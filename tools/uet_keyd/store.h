// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files of a key agent: its secret; below the run directory, which ends with the host, the
// jobs, a key file and a directory for TSCs of each; below the state directory, which outlives a
// start of the host, the epochs given. Knows no socket and no schedule. Problems are
// std::runtime_error.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "schedule.h"
#include "tss/secret.h"

namespace uet::keyd {

// Makes a file with a new random secret, mode 0600; it must not exist.
void make_secret(const std::string& file);
// The file must belong to this user alone.
tss::Key read_secret(const std::string& file);

struct JobState {
  std::uint16_t epoch = 0;
  std::chrono::seconds begun{};  // since 1970; not before its directory came to be
};

class Store {
 public:
  // Makes both directories if they are not there: mode 0711 (users reach the files of their jobs)
  // and 0700. They must belong to this user, and no other user may write there.
  Store(std::string run_directory, std::string state_directory);

  // Also jobs that an earlier agent served.
  const std::map<Job, JobState>& jobs() const { return jobs_; }
  // Begins a job: takes an epoch that its user has not had on this host, on the disk before it is
  // used (TSS-37), and makes an empty directory for TSCs.
  void add(const Job& job);
  // Removes the files of the job. Processes that have read the keys go on with them.
  void remove(const Job& job);

  // The key file of a job, and the directory of its processes (XDG_RUNTIME_DIR).
  std::string key_file_of(const Job& job) const;
  std::string directory_of(const Job& job) const;
  // Replaces the key file as a whole: mode 0600, owned by the user of the job. `since`: no process
  // has sealed with the active key and epoch before; it becomes the time of the file, to which
  // providers compare the age of their directory.
  void write_keys(const Job& job, std::string_view text, std::chrono::seconds since) const;

 private:
  std::uint16_t next_epoch(uid_t user) const;
  void write_jobs() const;

  std::string run_directory_;
  std::string state_directory_;
  std::map<Job, JobState> jobs_;
};

}  // namespace uet::keyd
