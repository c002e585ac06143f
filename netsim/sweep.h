// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sweep: every case of a file (sweep_file.h) as a process of its own, several at a time, and one
// table of their results. A journal beside the file keeps what has finished, so that a sweep that
// was interrupted goes on where it stopped.
#pragma once

#include <iosfwd>
#include <string>

namespace uet::netsim {

struct SweepSetup {
  std::string file;     // empty: no sweep
  std::string journal;  // empty: `file` with .done behind it
  unsigned jobs = 0;    // processes at a time; 0: the processors that this process may use
  bool json = false;    // the table: JSON instead of CSV
  bool quiet = false;   // no line on standard error for each case
};

// `program`: the executable of uet-sim. Writes the table to `out`, in the order of the file. Status
// 0: each case ended with 0; 1: not so; 2: the file or the journal cannot be used, nothing was run.
int run_sweep(const SweepSetup& setup, const std::string& program, std::ostream& out);

}  // namespace uet::netsim
