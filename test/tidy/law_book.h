// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The numbered rules of docs/spec and the places that cite them: text in, rules, citations and
// complaints out. Reads no files; docs/spec/README.md describes the format.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/tidy_checks.h"

namespace uet::tidy {

// A rule: "PDS-53", "SES-115", or a section of docs/spec/wire.md, "WIRE 2.3".
using RuleName = std::string;

// docs/spec: the rules, and the sections that text may cite ("CMS 2.3", "PDS 12.4").
struct LawBook {
  struct Rule {
    RuleName name;
    std::string title;
    std::string chapter;  // title of the "##" section that holds the rule
    std::string link;     // "wire.md#wire-section-2.3", relative to docs/spec
  };
  std::vector<Rule> rules;        // in the order of the files
  std::set<std::string> citable;  // names of all rules and sections
  Complaints complaints;
};

// Adds one file of docs/spec. A complaint is: a number defined twice, an anchor of another name, a
// rule without tags, with an unknown tag or without a sentence.
void add_spec(std::string_view file, std::string_view text, LawBook& to);

// A place in the tree that cites a rule or section.
struct Use {
  std::string name;   // "PDS-53", "CMS 2.3"
  std::string where;  // "src/pds/pdc.cc:315"
};

// Appends the citations in `text`: "PDS-53", "PDS-58 to 67", "PDS-93, 94", "WIRE 2.3",
// "CMS 2.3", "PDS section 6.3", "SES sections 4 and 12.1". Both ends of a range count.
void add_uses(std::string_view file, std::string_view text, std::vector<Use>& to);

// Each citation has a text in the law book.
Complaints check_uses(const LawBook& book, const std::vector<Use>& uses);

}  // namespace uet::tidy
