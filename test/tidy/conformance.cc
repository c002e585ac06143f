// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See conformance.h.
#include "tidy/conformance.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <set>
#include <sstream>

namespace uet::tidy {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "PDS-4 reason", "WIRE 2.3 reason", "TSS-1 to TSS-72 reason".
const std::regex& exception_line() {
  static const std::regex line(
      R"(^((?:PDS|SES|CMS|TSS|CM)-[0-9]+|WIRE [0-9]+\.[0-9]+)(?: to ([A-Z]+-[0-9]+))? (\S.*)$)");
  return line;
}

// "TSS-1" and "TSS-3" to the names of three rules; nothing if it is no range.
std::vector<RuleName> rules_between(const RuleName& first, const RuleName& last) {
  const std::size_t dash = first.find('-');
  if (dash == std::string::npos || last.substr(0, dash + 1) != first.substr(0, dash + 1)) return {};
  std::vector<RuleName> names;
  for (int n = std::stoi(first.substr(dash + 1)); n <= std::stoi(last.substr(dash + 1)); ++n) {
    names.push_back(first.substr(0, dash + 1) + std::to_string(n));
  }
  return names;
}

// The rules that one line names in words.
void named_in(const std::string& line, std::set<RuleName>& named) {
  static const std::regex rule(R"((PDS|SES|CMS|TSS|CM)-([0-9]+)|WIRE ([0-9]+\.[0-9]+))");
  for (std::sregex_iterator it(line.begin(), line.end(), rule), end; it != end; ++it) {
    named.insert(it->str());
  }
}

// The rules in the name of a test: Pds40_Third, Ses117And118, Wire38 for WIRE 3.8. A section of
// another file, Cms8_4, is no rule.
void named_by_test(const std::string& test, std::set<RuleName>& named) {
  static const std::regex rule(
      R"((Pds|Ses|Cms|Tss|Cm)([0-9]{1,3})(?:And([0-9]{1,3}))?(?![0-9]|_[0-9]{1,2}_))");
  for (std::sregex_iterator it(test.begin(), test.end(), rule), end; it != end; ++it) {
    std::string kind = it->str(1) + "-";
    std::transform(kind.begin(), kind.end(), kind.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    named.insert(kind + it->str(2));
    if ((*it)[3].matched) named.insert(kind + it->str(3));
  }
  static const std::regex section(R"(Wire([1-6])([0-9]{1,2})(?![0-9]))");
  for (std::sregex_iterator it(test.begin(), test.end(), section), end; it != end; ++it) {
    named.insert("WIRE " + it->str(1) + "." + it->str(2));
  }
}

// "Suite.Name" if a test begins at line `at`; its name may stand on the next line.
std::string test_at(const std::vector<std::string>& lines, std::size_t at) {
  static const std::regex test(R"(^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\).*)");
  if (!lines[at].starts_with("TEST") && !lines[at].starts_with("TYPED_TEST")) return {};
  const std::string text = lines[at] + (at + 1 < lines.size() ? lines[at + 1] : "");
  std::smatch match;
  return std::regex_match(text, match, test) ? match.str(1) + "." + match.str(2) : std::string();
}

void add(const std::set<RuleName>& named, const Citation& citation, Citations& to) {
  for (const RuleName& rule : named) {
    std::vector<Citation>& known = to[rule];
    if (std::find(known.begin(), known.end(), citation) == known.end()) known.push_back(citation);
  }
}

std::string tests_of(const std::vector<Citation>& citations) {
  std::string text;
  std::string file;
  for (const Citation& citation : citations) {
    if (citation.file != file) {
      file = citation.file;
      text += (text.empty() ? "" : "; ") + file.substr(file.find('/') + 1) + ": ";
    } else {
      text += ", ";
    }
    text += citation.test.empty() ? "every simulated run" : citation.test;
  }
  return text;
}

}  // namespace

Exceptions parse_exceptions(std::string_view text) {
  constexpr std::string_view kOpen = "open: ";
  constexpr std::ptrdiff_t kShortest = 10;  // a reason says something
  Exceptions exceptions;
  for (const std::string& line : lines_of(text)) {
    if (line.empty() || line[0] == '#') continue;
    std::smatch match;
    if (!std::regex_match(line, match, exception_line()) || match.length(3) < kShortest) {
      exceptions.complaints.push_back("not 'PDS-n reason': " + line);
      continue;
    }
    std::vector<RuleName> names = {match[1]};
    if (match[2].matched) names = rules_between(match[1], match[2]);
    if (names.empty()) exceptions.complaints.push_back("no range of rules: " + line);
    const std::string reason = match[3];
    for (const RuleName& rule : names) {
      const bool twice = exceptions.not_applicable.contains(rule) || exceptions.open.contains(rule);
      if (twice) exceptions.complaints.push_back("twice in the table: " + rule);
      if (reason.starts_with(kOpen)) {
        exceptions.open[rule] = reason.substr(kOpen.size());
      } else {
        exceptions.not_applicable[rule] = reason;
      }
    }
  }
  return exceptions;
}

void add_citations(std::string_view file, std::string_view text, Citations& to) {
  const std::vector<std::string> lines = lines_of(text);
  const bool checks = text.find("\nTEST") == std::string_view::npos &&
                      text.find("\nTYPED_TEST") == std::string_view::npos;
  std::set<RuleName> above;  // named in the comment that ends here
  std::string test;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::set<RuleName> named;
    named_in(lines[i], named);
    if (checks) {
      add(named, {std::string(file), ""}, to);
      continue;
    }
    if (const std::string begins = test_at(lines, i); !begins.empty()) {
      test = begins;
      named.merge(above);
      named_by_test(test, named);
    }
    if (!lines[i].starts_with("//")) above.clear();
    if (!test.empty()) {
      add(named, {std::string(file), test}, to);
      const bool one_line = lines[i].starts_with("TEST") && lines[i].ends_with("}");
      if (one_line || lines[i].starts_with("}")) test.clear();
    } else if (lines[i].starts_with("//")) {
      above.merge(named);
    }
  }
}

Complaints check_conformance(const LawBook& rules, const Citations& citations,
                             const Exceptions& exceptions) {
  Complaints complaints = rules.complaints;
  complaints.insert(complaints.end(), exceptions.complaints.begin(), exceptions.complaints.end());
  std::set<RuleName> names;
  for (const LawBook::Rule& rule : rules.rules) {
    names.insert(rule.name);
    const bool excused =
        exceptions.not_applicable.contains(rule.name) || exceptions.open.contains(rule.name);
    const bool tested = citations.contains(rule.name);
    if (!tested && !excused) complaints.push_back(rule.name + " is named by no test");
    if (tested && excused) {
      complaints.push_back(rule.name + " is tested (" + tests_of(citations.at(rule.name)) +
                           "); take it off the table");
    }
  }
  const auto known = [&](const RuleName& rule, const std::string& where) {
    if (!names.contains(rule)) complaints.push_back(rule + " is no rule: " + where);
  };
  for (const auto& [rule, tests] : citations) known(rule, tests_of(tests));
  for (const auto& [rule, reason] : exceptions.not_applicable) known(rule, "the table");
  for (const auto& [rule, reason] : exceptions.open) known(rule, "the table");
  return complaints;
}

std::vector<std::string> vector_names(std::string_view json) {
  static const std::regex name(R"re("name"\s*:\s*"([a-z0-9_]+)")re");
  const std::string text(json);
  std::vector<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

std::string conformance_page(const LawBook& rules, const Citations& citations,
                             const Exceptions& exceptions, const std::vector<std::string>& vectors,
                             const std::string& spec) {
  constexpr std::array<std::string_view, 6> kFamilies = {"WIRE", "PDS", "SES", "CMS", "TSS", "CM"};
  std::ostringstream page;
  page << "<!-- made by uet_conformance; do not edit -->\n# Conformance\n\n"
          "Each rule of `docs/spec` and the tests that name it, or the reason why no test does.\n"
          "`uet_tidy_test` fails on a rule that has neither. `test/tidy/rules_without_test.txt` "
          "holds the reasons.\n\n"
          "| family | rules | tested | not applicable | open |\n| --- | --- | --- | --- | --- |\n";
  for (const std::string_view family : kFamilies) {
    const auto count = [&](const auto& table) {
      return std::count_if(rules.rules.begin(), rules.rules.end(), [&](const LawBook::Rule& rule) {
        return rule.name.starts_with(family) && table(rule.name);
      });
    };
    page << "| " << family << " | " << count([](const RuleName&) { return true; }) << " | "
         << count([&](const RuleName& rule) { return citations.contains(rule); }) << " | "
         << count([&](const RuleName& rule) { return exceptions.not_applicable.contains(rule); })
         << " | " << count([&](const RuleName& rule) { return exceptions.open.contains(rule); })
         << " |\n";
  }
  page << "\n## Deviation\n"
          "WIRE 1.1 wants a UDP checksum of 0 on send, and no check of it on receive. Back ends "
          "that "
          "make whole frames (`packet`, `xdp`, `dpdk`, `verbs`) do so. On the kernel's UDP sockets "
          "the kernel writes a right checksum and drops datagrams with a false one, because a "
          "socket that sends 0 cannot use segmentation offload (fi_uet(7), "
          "`docs/decisions/011`).\n";
  std::string chapter;
  for (const LawBook::Rule& rule : rules.rules) {
    const std::string here =
        rule.name.substr(0, rule.name.find_first_of("- ")) + ": " + rule.chapter;
    if (here != chapter) {
      chapter = here;
      page << "\n## " << chapter << "\n| rule | title | tests |\n| --- | --- | --- |\n";
    }
    page << "| [" << rule.name << "](" << spec << "/" << rule.link << ") | " << rule.title << " | ";
    if (const auto it = citations.find(rule.name); it != citations.end()) {
      page << tests_of(it->second);
    } else if (const auto why = exceptions.not_applicable.find(rule.name);
               why != exceptions.not_applicable.end()) {
      page << "not applicable: " << why->second;
    } else if (const auto what = exceptions.open.find(rule.name); what != exceptions.open.end()) {
      page << "**open**: " << what->second;
    }
    page << " |\n";
  }
  page << "\n## Worked examples\n"
       << vectors.size()
       << " packets and frames, each decoded and encoded (`test/unit/wire/vectors_test.cc`):\n";
  for (const std::string& name : vectors) page << "- " << name << "\n";
  return page.str();
}

}  // namespace uet::tidy
