// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See references.h.
#include "tidy/references.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>

namespace uet::tidy {
namespace {

bool is_word_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Calls `use` with "PATH:LINE: " and each text in code type outside code blocks.
template <class Use>
void for_each_code(std::string_view path, std::string_view document, Use use) {
  std::istringstream stream{std::string(document)};
  bool block = false;
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.starts_with("```")) block = !block;
    if (block) continue;
    const std::string at = std::string(path) + ":" + std::to_string(number) + ": ";
    for (auto from = line.find('`'); from != std::string::npos;) {
      const auto end = line.find('`', from + 1);
      if (end == std::string::npos) break;
      use(at, line.substr(from + 1, end - from - 1));
      from = line.find('`', end + 1);
    }
  }
}

template <class Use>
void for_each_match(const std::string& text, const std::regex& pattern, Use use) {
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) use(*it);
}

}  // namespace

std::set<std::string> tests_in(std::string_view source) {
  static const std::regex test(R"(TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\))");
  std::set<std::string> tests;
  for_each_match(std::string(source), test, [&](const std::smatch& match) {
    tests.insert(match.str(1) + "." + match.str(2));
  });
  return tests;
}

void add_words_of(std::string_view source, std::set<std::string, std::less<>>& words) {
  for (std::size_t begin = 0; begin < source.size();) {
    std::size_t end = begin;
    while (end < source.size() && is_word_part(source[end])) ++end;
    const std::string_view word = source.substr(begin, end - begin);
    if (!word.empty() && !words.contains(word)) words.emplace(word);
    begin = std::max(end, begin + 1);
  }
}

Findings check_test_names(std::string_view path, std::string_view document,
                          const std::set<std::string>& tests) {
  static const std::regex name(R"([A-Z]\w+\.[A-Z]\w+)");
  Findings findings;
  for_each_code(path, document, [&](const std::string& at, const std::string& code) {
    if (std::regex_match(code, name) && !tests.contains(code)) {
      findings.push_back(at + "no test is named " + code);
    }
  });
  return findings;
}

Findings check_file_names(std::string_view path, std::string_view document,
                          const std::function<bool(const std::string& file)>& exists) {
  static const std::regex name(R"((^|[^\w./-])([\w./-]*\w)(\.h/)?\.(cc|h)\b)");
  Findings findings;
  for_each_code(path, document, [&](const std::string& at, const std::string& code) {
    for_each_match(code, name, [&](const std::smatch& match) {
      const std::string stem = match.str(2);
      const bool placeholder = std::any_of(stem.begin(), stem.end(),
                                           [](unsigned char c) { return std::isupper(c) != 0; });
      if (placeholder || stem.starts_with("sys/") || stem.starts_with("_")) return;
      const auto look = [&](const std::string& file) {
        if (!exists(file)) findings.push_back(at + "there is no file " + file);
      };
      if (match[3].matched) look(stem + ".h");
      look(stem + "." + match.str(4));
    });
  });
  return findings;
}

Findings check_function_names(std::string_view path, std::string_view document,
                              const std::set<std::string, std::less<>>& words) {
  static const std::regex name(R"(\w+(?:::\w+)+)");
  static const std::regex part(R"(\w+)");
  Findings findings;
  for_each_code(path, document, [&](const std::string& at, const std::string& code) {
    for_each_match(code, name, [&](const std::smatch& match) {
      const std::string whole = match.str();
      bool known = true;
      for_each_match(whole, part,
                     [&](const std::smatch& word) { known = known && words.contains(word.str()); });
      if (!known) findings.push_back(at + "the sources have no " + whole);
    });
  });
  return findings;
}

}  // namespace uet::tidy
