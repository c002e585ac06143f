// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which test checks which rule of the references: text in, complaints and docs/conformance.md out.
// Reads no files; tidy_test.cc and conformance_main.cc hand them in.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/tidy_checks.h"

namespace uet::tidy {

// A rule: "PDS-53", "SES-115" or a section of the wire reference, "WIRE 2.3".
using RuleName = std::string;

// rules.txt: "PDS-1 subject" a line, "## heading" before the first rule of a section; a line that
// is empty or begins with one # says nothing.
struct Rules {
  struct Rule {
    RuleName name;
    std::string subject;
    std::string heading;  // of the section that begins with this rule; mostly empty
  };
  std::vector<Rule> rules;  // in the order of the file
  Complaints complaints;
};
Rules parse_rules(std::string_view text);

// rules_without_test.txt: "PDS-4 why no test" a line, or "PDS-4 open: what is missing" for a rule
// that is to be built or tested yet; empty lines and those that begin with # say nothing.
struct Exceptions {
  std::map<RuleName, std::string> not_applicable;
  std::map<RuleName, std::string> open;
  Complaints complaints;
};
Exceptions parse_exceptions(std::string_view text);

// The tests that name each rule. A test names a rule by "PDS-53", "SES-115" or "WIRE 2.3" in it or
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

// Every rule is named by a test or has an exception, none has both; what is named or excepted is a
// rule.
Complaints check_conformance(const Rules& rules, const Citations& citations,
                             const Exceptions& exceptions);

// The names in a file of test vectors, in order.
std::vector<std::string> vector_names(std::string_view json);

// docs/conformance.md. `vectors` are the names of the worked examples of the wire reference.
std::string conformance_page(const Rules& rules, const Citations& citations,
                             const Exceptions& exceptions, const std::vector<std::string>& vectors);

}  // namespace uet::tidy
