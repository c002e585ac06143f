// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the live pages of this user and reads them, for programs that show them. Reads with pread,
// so that no page, however broken, can end the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "live/page.h"
#include "live/place.h"

namespace uet::live {

struct Counter {
  std::string name;
  std::string meaning;
  bool gauge = false;  // shows a state; else counts, and only grows
  std::uint64_t value = 0;
};

// A page at one moment.
struct Snapshot {
  std::string file;
  Head head;
  Owner owner = Owner::Unknown;
  Moment moment;
  std::vector<Counter> counters;
  std::vector<PeerRecord> peers;
  std::vector<PdcRecord> pdcs;
  std::vector<OperationRecord> operations;
  // The process ended, or hangs, while it wrote: the numbers may be of two moments.
  bool torn = false;

  // Texts of the head.
  std::string program() const { return head.program.data(); }
  std::string interface() const { return head.interface.data(); }
  std::string nic() const { return head.nic.data(); }
  std::string address() const { return head.address.data(); }
};

// The files of all pages of this user, by PID and number; of one process if `pid` is not 0.
std::vector<std::string> find_pages(pid_t pid = 0);

// Empty, and `why` says the reason: the file is no page of this user, or of another version.
std::optional<Snapshot> read_page(const std::string& file, std::string& why);

// The trace of a page.
struct TraceCopy {
  std::vector<trace::Record> records;  // oldest first
  std::uint64_t written = 0;           // all records so far, of which the newest are in `records`
  std::int64_t last_pass_ns = 0;       // as in trace::Ring
  std::int64_t sleeping_since_ns = 0;
};
// As read_page. Records that the process has replaced meanwhile are left out.
std::optional<TraceCopy> read_trace(const std::string& file, std::string& why);

// The owner of a page and when the page was updated for the last time, or made.
struct LastUpdate {
  Owner owner = Owner::Unknown;
  std::uint64_t time_ns = 0;  // CLOCK_REALTIME
};
// `name`: a file in the open directory `directory`. Empty: no page of this user and version.
// Allocates no memory.
std::optional<LastUpdate> read_last_update(int directory, const char* name) noexcept;
// When a file of this user that has no head yet was written for the last time (CLOCK_REALTIME, in
// nanoseconds): a page is being made, or its process was killed meanwhile. Empty: any other file.
// Allocates no memory.
std::optional<std::uint64_t> incomplete_since(int directory, const char* name) noexcept;

}  // namespace uet::live
