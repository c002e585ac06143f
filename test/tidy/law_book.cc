// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See law_book.h.
#include "tidy/law_book.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <sstream>

namespace uet::tidy {
namespace {

constexpr std::array<std::string_view, 6> kFamilies = {"WIRE", "PDS", "SES", "CMS", "TSS", "CM"};

constexpr std::array<std::string_view, 9> kTags = {"required",
                                                   "reference provider",
                                                   "reference simulator",
                                                   "other implementations",
                                                   "other simulators",
                                                   "published paper",
                                                   "derived",
                                                   "verified",
                                                   "our choice"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// "*required (UET 3.5.4), our choice*" without the stars; what is in brackets says more of a tag.
bool are_tags(const std::string& line) {
  if (line.size() < 3 || line.front() != '*' || line.back() != '*') return false;
  static const std::regex brackets(R"( \([^)]*\))");
  std::istringstream names(
      std::regex_replace(line.substr(1, line.size() - 2), brackets, std::string()));
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    if (std::find(kTags.begin(), kTags.end(), name) == kTags.end()) return false;
  }
  return true;
}

// What a heading of docs/spec defines: '## <a id="pds-section-6"></a>PDS 6: Establishment',
// '#### <a id="pds-53"></a>PDS-53: choice of Start_PSN'.
struct Definition {
  std::string name;
  std::string title;
  std::string anchor;
  bool chapter;
  bool rule;
};

bool parse_heading(const std::string& line, Definition& to) {
  static const std::regex heading(
      R"re(^(##|###|####) <a id="([^"]*)"></a>([A-Z]+[- ][0-9.]+): (\S.*)$)re");
  std::smatch match;
  if (!std::regex_match(line, match, heading)) return false;
  to = {match[3], match[4], match[2], match[1] == "##", match[1] == "####"};
  return true;
}

// Looks like a heading of a rule or section, well formed or not.
bool defines_something(const std::string& line) {
  if (!line.starts_with("#")) return false;
  const std::string title = line.substr(std::min(line.find_first_not_of("# "), line.size()));
  return line.find("<a id=") != std::string::npos ||
         std::any_of(kFamilies.begin(), kFamilies.end(), [&](std::string_view family) {
           const std::size_t number = family.size() + 1;
           return title.starts_with(family) && title.size() > number && is_digit(title[number]);
         });
}

std::string anchor_of(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return lower(name);
  return lower(name.substr(0, space)) + "-section-" + name.substr(space + 1);
}

// Digits at `at`, with one dot between digits if `dotted`; empty if there are none, or if more of a
// word follows ("TSS 0-RTT").
std::string number_at(std::string_view text, std::size_t at, bool dotted) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == at) return {};
  if (dotted && end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
    ++end;
    while (end < text.size() && is_digit(text[end])) ++end;
  }
  if (end < text.size() && (is_word(text[end]) || (dotted && text[end] == '-'))) return {};
  return std::string(text.substr(at, end - at));
}

// The numbers that follow `at` in a list or range: " to 67", ", 94", " and 96". They count only if
// the list ends in punctuation or with the line: "CMS-406, 675 and 677 without" goes on with
// quantities.
std::vector<std::string> more_numbers(std::string_view text, std::size_t at, bool sections,
                                      bool needs_dot) {
  std::vector<std::string> numbers;
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view join : {" to ", ", ", " and "}) {
      if (text.substr(at, join.size()) != join) continue;
      const std::string number = number_at(text, at + join.size(), sections);
      if (number.empty() || (needs_dot && number.find('.') == std::string::npos)) continue;
      numbers.push_back(number);
      at += join.size() + number.size();
      more = true;
      break;
    }
  }
  constexpr std::string_view kEnds = ").,;:|/";
  const std::string_view rest = text.substr(at);
  const bool ends = rest.empty() || kEnds.find(rest[0]) != std::string_view::npos ||
                    rest.starts_with(" |") || rest.starts_with(" (");
  if (!ends) numbers.clear();
  return numbers;
}

// The citations that begin with the family's name at `at` of the line.
void uses_at(std::string_view line, std::size_t at, std::string_view family,
             std::vector<std::string>& names) {
  std::size_t next = at + family.size();
  if (next >= line.size()) return;
  const bool rule = line[next] == '-';
  bool plural = false;
  if (!rule) {
    if (line[next] != ' ') return;
    for (const std::string_view word : {" sections", " section"}) {
      if (line.substr(next, word.size()) == word) {
        next += word.size();
        plural = word.ends_with('s');
        break;
      }
    }
    if (next >= line.size() || line[next] != ' ') return;
  }
  const std::string first = number_at(line, next + 1, !rule);
  if (first.empty()) return;
  const std::string prefix = std::string(family) + (rule ? "-" : " ");
  names.push_back(prefix + first);
  for (const std::string& number :
       more_numbers(line, next + 1 + first.size(), !rule, !rule && !plural)) {
    names.push_back(prefix + number);
  }
}

}  // namespace

void add_spec(std::string_view file, std::string_view text, LawBook& to) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  const std::string name(file.substr(file.rfind('/') + 1));
  std::string chapter;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Definition found;
    if (!parse_heading(lines[i], found)) {
      if (defines_something(lines[i])) {
        to.complaints.push_back(name + ": no heading of a rule or section: " + lines[i]);
      }
      continue;
    }
    if (found.anchor != anchor_of(found.name)) {
      to.complaints.push_back(found.name + ": its anchor is " + found.anchor);
    }
    if (!to.citable.insert(found.name).second) {
      to.complaints.push_back(found.name + ": defined twice");
    }
    if (found.chapter) chapter = found.title;
    const bool section_is_rule =
        found.name.starts_with("WIRE ") && found.name.find('.') != std::string::npos;
    if (!found.rule && !section_is_rule) continue;
    to.rules.push_back({found.name, found.title, chapter, name + "#" + found.anchor});
    if (!found.rule) continue;
    const auto line = [&](std::size_t at) { return at < lines.size() ? lines[at] : ""; };
    if (!are_tags(line(i + 1))) to.complaints.push_back(found.name + ": no known tags below it");
    if (line(i + 3).empty() || line(i + 3)[0] == '#') {
      to.complaints.push_back(found.name + ": no sentence below its tags");
    }
  }
}

void add_uses(std::string_view file, std::string_view text, std::vector<Use>& to) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    std::vector<std::string> names;
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (at > 0 && is_word(line[at - 1])) continue;
      for (const std::string_view family : kFamilies) {
        if (line.substr(at, family.size()) == family) uses_at(line, at, family, names);
      }
    }
    for (const std::string& name : names) {
      to.push_back({name, std::string(file) + ":" + std::to_string(number)});
    }
  }
}

Complaints check_uses(const LawBook& book, const std::vector<Use>& uses) {
  Complaints complaints;
  for (const Use& use : uses) {
    if (!book.citable.contains(use.name)) {
      complaints.push_back(use.where + " cites " + use.name + ", which docs/spec does not define");
    }
  }
  return complaints;
}

}  // namespace uet::tidy
