// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "netsim/sweep_file.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>

namespace uet::netsim {
namespace {

constexpr std::size_t kMostCases = 100'000;
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Words between blanks; blanks within "..." belong to the word. False: a quote is not closed.
bool split(std::string_view text, std::vector<std::string>& words) {
  bool quoted = false, within = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
      if (!within) words.emplace_back();
      within = true;
    } else if (!quoted && kBlanks.find(c) != std::string_view::npos) {
      within = false;
    } else {
      if (!within) words.emplace_back();
      within = true;
      words.back() += c;
    }
  }
  return !quoted;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> pieces(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> all;
  for (;;) {
    const std::size_t at = text.find(separator);
    all.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return all;
    text.remove_prefix(at + separator.size());
  }
}

// The elements of the text between braces: A,B,C or FIRST..LAST or FIRST..LAST..STEP. Empty: it is
// neither.
std::vector<std::string> elements(std::string_view list) {
  std::vector<std::string> values;
  if (const auto range = pieces(list, ".."); range.size() == 2 || range.size() == 3) {
    const auto first = number(range[0]), last = number(range[1]);
    const auto step = range.size() == 3 ? number(range[2]) : 1;
    if (!first || !last || !step || *step < 1 || *last < *first) return {};
    for (std::int64_t value = *first; value <= *last && values.size() <= kMostCases; value += *step)
      values.push_back(std::to_string(value));
    return values;
  }
  for (const std::string_view value : pieces(list, ",")) {
    if (value.empty()) return {};
    values.emplace_back(value);
  }
  return values;
}

// Text with the places of its lists: the pieces around them and the elements of each.
struct Pattern {
  std::vector<std::string> texts;  // of every word, one more than it has lists
  std::vector<std::vector<std::string>> lists;
  std::string complaint;
};

Pattern pattern_of(std::string_view word) {
  Pattern pattern;
  for (;;) {
    const std::size_t open = word.find('{');
    const std::size_t close = word.find('}');
    if (close < open) return {{}, {}, "} without {"};
    pattern.texts.emplace_back(word.substr(0, open));
    if (open == std::string_view::npos) return pattern;
    if (close == std::string_view::npos)
      return {{}, {}, "{ without }; write a list without blanks, as {1,2,3}"};
    const std::string_view list = word.substr(open + 1, close - open - 1);
    pattern.lists.push_back(elements(list));
    if (pattern.lists.back().empty()) {
      return {
          {}, {}, "{" + std::string(list) + "} is no list; write {A,B,C}, {1..5} or {0..100..10}"};
    }
    word.remove_prefix(close + 1);
  }
}

class Reader {
 public:
  explicit Reader(SweepFile& file) : file_(file) {}

  // One line without comment. Returns what is wrong.
  std::string take(std::string_view line, std::size_t number);

 private:
  std::string expand(const std::string& name, const std::vector<std::string>& words);

  SweepFile& file_;
  std::vector<std::string> common_;  // of the last line `all:`
  std::set<std::string> names_;
  std::size_t number_ = 0;
};

std::string Reader::take(std::string_view line, std::size_t number) {
  number_ = number;
  const std::size_t colon = line.find(':');
  const std::string name(trimmed(line.substr(0, colon)));
  if (colon == std::string_view::npos || name.empty() || name.starts_with('-'))
    return "no name; write NAME: OPTIONS";
  if (name.find_first_of(" \t{}\",/") != std::string::npos)
    return "name '" + name + "': has a blank or one of {}\",/; leave it out";
  std::vector<std::string> words;
  if (!split(line.substr(colon + 1), words)) return "a \" is not closed; write another one";
  if (name == "all") {
    common_ = std::move(words);
    return {};
  }
  words.insert(words.begin(), common_.begin(), common_.end());
  return expand(name, words);
}

std::string Reader::expand(const std::string& name, const std::vector<std::string>& words) {
  std::vector<Pattern> patterns;
  std::size_t count = 1;
  for (const std::string& word : words) {
    patterns.push_back(pattern_of(word));
    if (!patterns.back().complaint.empty()) return word + ": " + patterns.back().complaint;
    for (const auto& list : patterns.back().lists) {
      count *= list.size();
      if (file_.cases.size() + count > kMostCases) {
        return "more than " + std::to_string(kMostCases) +
               " cases; shorten the lists or divide the file";
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    SweepCase one{.name = name, .line = number_, .options = {}};
    std::size_t left = i, below = count;
    for (const Pattern& pattern : patterns) {
      std::string word = pattern.texts[0];
      for (std::size_t list = 0; list < pattern.lists.size(); ++list) {
        below /= pattern.lists[list].size();
        const std::string& value = pattern.lists[list][left / below];
        left %= below;
        word += value + pattern.texts[list + 1];
        one.name += "/" + value;
      }
      one.options.push_back(std::move(word));
    }
    if (!names_.insert(one.name).second)
      return "name '" + one.name + "': a case has it already; choose another";
    file_.cases.push_back(std::move(one));
  }
  return {};
}

}  // namespace

SweepFile read_sweep(std::istream& in) {
  SweepFile file;
  Reader reader(file);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string_view text = trimmed(line);
    if (text.empty() || text.starts_with('#')) continue;
    if (std::string complaint = reader.take(text, number); !complaint.empty()) {
      file.complaint = "line " + std::to_string(number) + ": " + complaint;
      return file;
    }
  }
  if (file.cases.empty()) file.complaint = "no case; write lines NAME: OPTIONS";
  return file;
}

}  // namespace uet::netsim
