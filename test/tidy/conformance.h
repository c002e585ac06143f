// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which test checks which rule of docs/spec: text in, complaints and a page out. Reads no files;
// tidy_test.cc and conformance_main.cc hand them in.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/law_book.h"
#include "tidy/tidy_checks.h"

namespace uet::tidy {

// rules_without_test.txt: "PDS-4 why no test" a line, or "PDS-4 open: what is missing" for a rule
// that is to be built or tested yet. "TSS-1 to TSS-72 reason" excepts each rule of a range. Empty
// lines and lines that begin with # are skipped.
struct Exceptions {
  std::map<RuleName, std::string> not_applicable;
  std::map<RuleName, std::string> open;
  Complaints complaints;
};
Exceptions parse_exceptions(std::string_view text);

// The tests that name each rule. A test names a rule by "PDS-53", "CMS-115" or "WIRE 2.3" in it or
// in the comment right above it, or by "Pds53", "Ses117And118", "Wire23" in its name; the comment
// at the head of a file of tests names nothing. In a file of checks without tests of its own, which
// the simulator applies to every run, all lines count.
struct Citation {
  std::string file;  // relative to the source tree
  std::string test;  // "TxWindow.Pds40_Third"; empty for a file of checks
  bool operator==(const Citation&) const = default;
};
using Citations = std::map<RuleName, std::vector<Citation>>;
void add_citations(std::string_view file, std::string_view text, Citations& to);

// Every rule of the law book is named by a test or has an exception, none has both; tests and
// exceptions name rules of the law book only. Includes the complaints of `rules` and `exceptions`.
Complaints check_conformance(const LawBook& rules, const Citations& citations,
                             const Exceptions& exceptions);

// The names in a file of test vectors, in order.
std::vector<std::string> vector_names(std::string_view json);

// The page build/<preset>/conformance.md. `vectors` are the names of the worked examples of WIRE 5;
// `spec` is the path or address of docs/spec that links begin with.
std::string conformance_page(const LawBook& rules, const Citations& citations,
                             const Exceptions& exceptions, const std::vector<std::string>& vectors,
                             const std::string& spec);

}  // namespace uet::tidy
