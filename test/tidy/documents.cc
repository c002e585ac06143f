// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See documents.h.
#include "tidy/documents.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <regex>
#include <sstream>

namespace uet::tidy {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") + 1 - first));
}

// UTF-8: bytes that continue a character do not count.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string at(std::string_view path, std::size_t line) {
  return std::string(path) + ":" + std::to_string(line) + ": ";
}

bool begins_code(std::string_view line) { return trimmed(line).starts_with("```"); }

std::vector<std::string> cells_of(std::string_view row) {
  std::vector<std::string> cells;
  std::string cell;
  const std::string text = trimmed(row);
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '|' && text[i - 1] != '\\') {
      cells.push_back(trimmed(cell));
      cell.clear();
    } else {
      cell += text[i];
    }
  }
  return cells;
}

// A word, or a mark that ends a sentence or a part of one.
struct Token {
  std::string text;
  std::size_t line = 0;
  bool is_word() const { return std::isalnum(static_cast<unsigned char>(text[0])) != 0; }
  bool ends_sentence() const { return text == "." || text == "?" || text == "!" || text == ":"; }
};

constexpr std::string_view kCode = "CODE";  // stands for what is code

void add_words(std::string_view line, std::size_t number, std::vector<Token>& tokens) {
  for (std::size_t i = 0; i < line.size();) {
    const auto is_part = [&](std::size_t at) {
      const auto c = static_cast<unsigned char>(line[at]);
      const bool joins = (c == '\'' || c == '-' || c == '_') && at > i && at + 1 < line.size() &&
                         std::isalnum(static_cast<unsigned char>(line[at + 1])) != 0;
      return std::isalnum(c) != 0 || c >= 0x80 || joins;
    };
    std::size_t end = i;
    while (end < line.size() && is_part(end)) ++end;
    if (end > i) {
      tokens.push_back({std::string(line.substr(i, end - i)), number});
      i = end;
      continue;
    }
    if (std::string_view(".?!:;,)|").find(line[i]) != std::string_view::npos) {
      tokens.push_back({line[i] == '|' ? "." : std::string(1, line[i]), number});
    }
    ++i;
  }
}

// Without `code` and the addresses of [links](address).
std::string without_code(std::string_view line) {
  std::string result;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '`') {
      const auto end = line.find('`', i + 1);
      if (end == std::string_view::npos) break;
      result += kCode;
      i = end;
    } else if (line[i] == ']' && i + 1 < line.size() && line[i + 1] == '(') {
      const auto end = line.find(')', i);
      if (end == std::string_view::npos) break;
      i = end;
    } else {
      result += line[i];
    }
  }
  return result;
}

std::vector<Token> tokens_of_markdown(std::string_view text) {
  std::vector<Token> tokens;
  bool code = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    if (begins_code(line)) code = !code;
    if (code || begins_code(line)) continue;
    const std::string shown = trimmed(line);
    const bool block =
        shown.empty() || std::string_view("#-*|>").find(shown[0]) != std::string_view::npos;
    if (block) tokens.push_back({".", number});
    add_words(without_code(shown), number, tokens);
    if (shown.starts_with('#')) tokens.push_back({".", number});
  }
  return tokens;
}

std::vector<Token> tokens_of_manual(std::string_view text) {
  std::vector<Token> tokens;
  bool code = false;
  std::size_t number = 0;
  for (std::string line : lines_of(text)) {
    ++number;
    if (line.starts_with(".nf") || line.starts_with(".EX")) code = true;
    if (line.starts_with(".fi") || line.starts_with(".EE")) code = false;
    if (code || line.starts_with("'") || line.starts_with(".\\\"")) continue;
    if (line.starts_with(".")) {
      const bool within = line.starts_with(".B") || line.starts_with(".I ") ||
                          line.starts_with(".IR") || line.starts_with(".RB");
      tokens.push_back({within ? std::string(kCode) : ".", number});
      const char last = line.back();  // .BR name .
      if (within && (last == '.' || last == ',' || last == ':')) {
        tokens.push_back({std::string(1, last), number});
      }
      continue;
    }
    std::replace(line.begin(), line.end(), '\\', ' ');
    const auto column = line.find('|');  // a row of a table: name, meaning
    if (column != std::string::npos) tokens.push_back({".", number});
    add_words(column == std::string::npos ? line : line.substr(column), number, tokens);
    if (column != std::string::npos) tokens.push_back({".", number});
  }
  return tokens;
}

// A line of C++ in two: code, whose string literals are empty then, and its comment.
struct CppLine {
  std::string code;
  std::string comment;
  std::vector<std::string> literals;
};

CppLine split_cpp(std::string_view line) {
  CppLine parts;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' || line[i] == '\'') {
      const char quote = line[i];
      std::string literal;
      for (++i; i < line.size() && line[i] != quote; ++i) {
        if (line[i] == '\\') ++i;
        if (i < line.size()) literal += line[i] == 'n' && line[i - 1] == '\\' ? ' ' : line[i];
      }
      if (quote == '"') parts.literals.push_back(std::move(literal));
      parts.code += "\"\"";
    } else if (line.substr(i).starts_with("//")) {
      parts.comment = line.substr(i + 2);
      break;
    } else {
      parts.code += line[i];
    }
  }
  return parts;
}

// The words of a name in CamelCase, with a blank between them; empty if the code names no test.
std::string name_of_test(std::string_view code) {
  const auto comma = code.find(", ");
  const auto end = code.find(')');
  if (!code.starts_with("TEST") || comma == std::string_view::npos || end < comma) return {};
  std::string words;
  for (const char c : code.substr(comma + 2, end - comma - 2)) {
    const bool begins = std::isupper(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (begins && !words.empty()) words += ' ';
    if (c != '_') words += c;
  }
  return words;
}

std::vector<Token> tokens_of_cpp(std::string_view text) {
  std::vector<Token> tokens;
  std::size_t number = 0;
  const auto add = [&](std::string_view words) { add_words(without_code(words), number, tokens); };
  for (const std::string& line : lines_of(text)) {
    ++number;
    const CppLine parts = split_cpp(trimmed(line));
    if (!parts.code.starts_with("\"\"") && !parts.code.empty()) tokens.push_back({".", number});
    const std::string code = trimmed(parts.code);
    if (parts.comment.empty() && parts.literals.empty()) tokens.push_back({".", number});
    add(name_of_test(parts.code));
    for (const std::string& literal : parts.literals) {
      if (literal.find(' ') != std::string::npos) add(literal);
    }
    if (!code.empty() && !code.ends_with("\"\"")) tokens.push_back({".", number});
    add(parts.comment);
  }
  return tokens;
}

// A line of a script prints or describes something: its literals are read by users.
bool shows_text(std::string_view line) {
  static constexpr std::array<std::string_view, 8> kShow = {
      "echo ", "printf ", "print(", "option(", " CACHE ", "note ", "say ", "fail "};
  return std::any_of(kShow.begin(), kShow.end(), [&](std::string_view word) {
    return line.find(word) != std::string_view::npos;
  });
}

std::vector<Token> tokens_of_script(std::string_view text) {
  std::vector<Token> tokens;
  std::size_t number = 0;
  bool in_comment = false;
  for (const std::string& line : lines_of(text)) {
    ++number;
    const std::string shown = trimmed(line);
    const auto hash = shown.starts_with('#') ? 0 : shown.find(" # ");
    const bool begins = shown.starts_with('#');
    if (!begins || !in_comment || shown == "#") tokens.push_back({".", number});
    if (shows_text(shown) && !begins) {
      for (const std::string& literal : split_cpp(shown.substr(0, hash)).literals) {
        if (literal.find(' ') != std::string::npos)
          add_words(without_code(literal), number, tokens);
        tokens.push_back({".", number});
      }
    }
    if (hash != std::string::npos && !shown.starts_with("#!")) {
      add_words(without_code(shown.substr(hash)), number, tokens);
    }
    in_comment = begins;
  }
  return tokens;
}

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() == 1) return a == b;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

bool begins_phrase(const std::vector<Token>& tokens, std::size_t at,
                   const std::vector<std::string>& phrase) {
  if (at + phrase.size() > tokens.size()) return false;
  for (std::size_t i = 0; i < phrase.size(); ++i) {
    if (!same_word(phrase[i], tokens[at + i].text)) return false;
  }
  return true;
}

// "What ...", "Who ..." or "Those ..." at the start of a sentence that is no question.
bool begins_vaguely(const std::vector<Token>& tokens, std::size_t at) {
  static constexpr std::array<std::string_view, 3> kVague = {"What", "Who", "Those"};
  if (std::find(kVague.begin(), kVague.end(), tokens[at].text) == kVague.end()) return false;
  if (at > 0 && !tokens[at - 1].ends_sentence()) return false;
  for (std::size_t i = at + 1; i < tokens.size(); ++i) {
    if (tokens[i].ends_sentence()) return tokens[i].text != "?";
  }
  return true;
}

// "of the kernel's," where no noun follows.
bool is_double_genitive(const std::vector<Token>& tokens, std::size_t at) {
  constexpr std::size_t kMostWords = 3;
  if (!same_word("of", tokens[at].text)) return false;
  for (std::size_t i = at + 1; i < tokens.size() && i <= at + kMostWords; ++i) {
    if (!tokens[i].is_word()) return false;
    if (!tokens[i].text.ends_with("'s")) continue;
    return i + 1 == tokens.size() || !tokens[i + 1].is_word();
  }
  return false;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

Findings check_cells(std::string_view path, std::string_view markdown) {
  Findings findings;
  bool code = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(markdown)) {
    ++number;
    if (begins_code(line)) code = !code;
    if (code || !trimmed(line).starts_with('|')) continue;
    for (const std::string& cell : cells_of(line)) {
      const std::size_t length = characters(cell);
      if (length <= kMaxCell) continue;
      findings.push_back(at(path, number) + "a table cell has " + std::to_string(length) +
                         " characters, " + std::to_string(kMaxCell) +
                         " are allowed: " + cell.substr(0, 40) + "...");
    }
  }
  return findings;
}

Findings check_links(std::string_view path, std::string_view markdown,
                     const std::function<bool(const std::string& path)>& exists) {
  Findings findings;
  const auto slash = path.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : path.substr(0, slash + 1));
  bool code = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(markdown)) {
    ++number;
    if (begins_code(line)) code = !code;
    if (code) continue;
    for (std::size_t from = line.find("]("); from != std::string::npos;
         from = line.find("](", from + 2)) {
      const auto end = line.find(')', from);
      if (end == std::string::npos) break;
      std::string target = line.substr(from + 2, end - from - 2);
      if (target.starts_with('#') || target.find("://") != std::string::npos) continue;
      target.resize(std::min(target.size(), target.find('#')));
      if (!exists(folder + target)) findings.push_back(at(path, number) + "no file " + target);
    }
  }
  return findings;
}

Phrases words_to_avoid(std::string_view glossary) {
  Phrases phrases;
  bool here = false;
  for (const std::string& line : lines_of(glossary)) {
    if (line.starts_with("## ")) here = line == "## Words to avoid";
    if (!here || !line.starts_with("|") || line.starts_with("| ---")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.empty() || cells[0] == "avoid") continue;
    std::istringstream list(cells[0]);
    for (std::string phrase; std::getline(list, phrase, ',');) {
      std::istringstream stream(phrase);
      std::vector<std::string> words;
      for (std::string word; stream >> word;) words.push_back(word);
      if (!words.empty()) phrases.push_back(std::move(words));
    }
  }
  return phrases;
}

Findings check_words(std::string_view path, std::string_view text, Markup markup,
                     const Phrases& phrases) {
  const std::vector<Token> tokens = markup == Markup::Manual   ? tokens_of_manual(text)
                                    : markup == Markup::Cpp    ? tokens_of_cpp(text)
                                    : markup == Markup::Script ? tokens_of_script(text)
                                                               : tokens_of_markdown(text);
  Findings findings;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto found = std::find_if(phrases.begin(), phrases.end(), [&](const auto& phrase) {
      return begins_phrase(tokens, i, phrase);
    });
    if (found != phrases.end()) {
      findings.push_back(at(path, tokens[i].line) + "'" + joined(*found) +
                         "' is a word to avoid (docs/glossary.md)");
    }
    if (begins_vaguely(tokens, i)) {
      findings.push_back(at(path, tokens[i].line) + "a statement begins with '" + tokens[i].text +
                         "': name the actor");
    }
    if (is_double_genitive(tokens, i)) {
      findings.push_back(at(path, tokens[i].line) + "double genitive: 'of " + tokens[i + 1].text +
                         " ...'s'");
    }
  }
  return findings;
}

Findings check_first_words(std::string_view path, std::string_view text, Markup markup) {
  static const std::regex leans(
      R"((it|its|they|their|the same|of these|also|and|or)(?![A-Za-z0-9_-]).*)", std::regex::icase);
  Findings findings;
  bool code = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    if (begins_code(line)) code = !code;
    const bool row = markup == Markup::Manual ? !line.starts_with('.') : line.starts_with('|');
    if (code || !row) continue;
    const std::string whole = markup == Markup::Manual ? "|" + line + "|" : line;
    if (markup == Markup::Manual && line.find('|') == std::string::npos) continue;
    for (const std::string& cell : cells_of(whole)) {
      if (!std::regex_match(cell, leans)) continue;
      findings.push_back(at(path, number) + "a table cell begins with a word that needs another " +
                         "row: '" + cell.substr(0, 40) + "'");
    }
  }
  return findings;
}

Findings check_refusals(std::string_view path, std::string_view cpp) {
  static const std::regex message(R"(fi_\w+(, fi_\w+)*: [^;]+: [^;]+; .+)");
  const std::string_view begin = "refuse_";
  Findings findings;
  for (auto from = cpp.find(begin); from != std::string_view::npos; from = cpp.find(begin, from)) {
    const std::string_view statement = cpp.substr(from, cpp.find(";\n", from) - from);
    const auto line =
        std::count(cpp.begin(), cpp.begin() + static_cast<std::ptrdiff_t>(from), '\n');
    from += begin.size();
    if (statement.find("{\n") != std::string_view::npos) continue;  // a definition or a condition
    std::string text;
    const auto finish = [&] {
      const bool whole = !text.empty() && !text.ends_with(": ");
      if (whole && !std::regex_match(text, message)) {
        findings.push_back(at(path, static_cast<std::size_t>(line) + 1) + "'" + text +
                           "' is not 'fi_call: object: problem; remedy'");
      }
      text.clear();
    };
    for (std::size_t i = 0; i < statement.size(); ++i) {
      const auto end = statement[i] == '"' ? statement.find('"', i + 1) : std::string_view::npos;
      if (end != std::string_view::npos) {
        text += statement.substr(i + 1, end - i - 1);
        i = end;
      } else if (std::isspace(static_cast<unsigned char>(statement[i])) == 0) {
        finish();
      }
    }
    finish();
  }
  return findings;
}

Findings check_test_names(std::string_view path, std::string_view cpp) {
  static const std::regex test(R"(^(?:TYPED_)?TEST(?:_[FP])?\(\s*\w+\s*,\s*(\w+)\s*\).*)");
  static const std::regex rule(R"((?:Pds|Ses|Cms|Tss|Cm|Wire)[0-9]+(?:And[0-9]+)*_)");
  const std::vector<std::string> lines = lines_of(cpp);
  Findings findings;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("TEST") && !lines[i].starts_with("TYPED_TEST")) continue;
    const std::string text = lines[i] + (i + 1 < lines.size() ? lines[i + 1] : "");
    std::smatch match;
    if (!std::regex_match(text, match, test)) continue;
    const std::string name = match[1];
    std::size_t length = name.size();
    std::sregex_iterator further(name.begin(), name.end(), rule);
    const std::sregex_iterator end;
    if (further != end) ++further;
    for (; further != end; ++further) length -= further->str().size();
    if (length <= kMaxTestName) continue;
    findings.push_back(at(path, i + 1) + "the name " + name + " has " + std::to_string(length) +
                       " characters (rules after the first not counted), at most " +
                       std::to_string(kMaxTestName) + " are allowed");
  }
  return findings;
}

std::map<std::string, std::size_t> names_in(std::string_view text, std::string_view prefix) {
  const bool upper = std::isupper(static_cast<unsigned char>(prefix[0])) != 0;
  const auto belongs = [&](char character) {
    const auto c = static_cast<unsigned char>(character);
    const bool letter = upper ? std::isupper(c) != 0 : std::islower(c) != 0;
    return letter || std::isdigit(c) != 0 || c == '_';
  };
  std::map<std::string, std::size_t> names;
  for (auto from = text.find(prefix); from != std::string_view::npos;) {
    auto end = from + prefix.size();
    while (end < text.size() && belongs(text[end])) ++end;
    const bool whole = from == 0 || !belongs(text[from - 1]);
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(from), '\n');
    if (whole && end > from + prefix.size()) {
      names.emplace(text.substr(from, end - from), static_cast<std::size_t>(line) + 1);
    }
    from = text.find(prefix, end);
  }
  return names;
}

Findings check_names(std::string_view path, std::string_view document, std::string_view prefix,
                     std::string_view manual) {
  const std::map<std::string, std::size_t> known = names_in(manual, prefix);
  Findings findings;
  for (const auto& [name, line] : names_in(document, prefix)) {
    const auto found = known.lower_bound(name);
    const bool is_known =
        found != known.end() &&
        (name.back() == '_' ? found->first.starts_with(name) : found->first == name);
    if (!is_known) findings.push_back(at(path, line) + name + " is not in the manual page");
  }
  return findings;
}

Backlog parse_backlog(std::string_view text) {
  Backlog backlog;
  for (const std::string& line : lines_of(text)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream stream(line);
    std::size_t count = 0;
    std::string path;
    if (!(stream >> count >> path) || count == 0 || !backlog.counts.emplace(path, count).second) {
      backlog.complaints.push_back("not COUNT PATH, or a path that is there twice: " + line);
    }
  }
  return backlog;
}

std::string compare_with_backlog(const std::string& path, std::size_t found, std::size_t allowed) {
  if (found == allowed) return {};
  if (found > allowed) {
    return path + ": " + std::to_string(found) + " findings, " + std::to_string(allowed) +
           " are allowed (test/tidy/plain_words.txt)";
  }
  return path + ": only " + std::to_string(found) + " findings are left: put \"" +
         std::to_string(found) + " " + path + "\" into test/tidy/plain_words.txt" +
         (found == 0 ? ", or rather take the line out" : "");
}

}  // namespace uet::tidy
