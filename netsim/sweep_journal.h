// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The cases of a sweep that have finished, in a file of one JSON object a line. A line is written
// with one call when a case ends; a last line that an interruption cut off is dropped.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "netsim/sweep_file.h"

namespace uet::netsim {

// The outcome of a case.
struct CaseResult {
  int status = 0;       // of its uet-sim: 0, 1; 128 and the number of the signal that ended it
  std::string results;  // the JSON object that it printed; empty: none
  std::string message;  // its lines on standard error
};

// A number for all that a result depends on: the program, the options, and the contents of files
// that options name. `program_print`: file_print() of the program. Changes with any of these.
std::string case_print(const SweepCase& one, const std::string& program_print);
// Of the contents; empty: no regular file that can be read.
std::string file_print(const std::string& path);

class SweepJournal {
 public:
  // Opens or makes the file, locks it and reads it. complaint(): why it cannot be used.
  explicit SweepJournal(const std::string& path);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  const std::string& complaint() const { return complaint_; }
  // nullptr: the case has not finished, or had another print then. A case that ended without
  // results in an earlier sweep has not finished.
  const CaseResult* find(const std::string& name, const std::string& print) const;
  // False: could not be written.
  bool add(const std::string& name, const std::string& print, const CaseResult& result);

 private:
  struct Entry {
    std::string print;
    CaseResult result;
  };

  void read();

  std::string path_;
  int file_ = -1;
  std::string complaint_;
  std::map<std::string, Entry> entries_;  // by name
};

}  // namespace uet::netsim
