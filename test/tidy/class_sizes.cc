// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A reader of declarations: it knows where a declaration ends, what its parentheses and braces are,
// and nothing of types.
#include "tidy/class_sizes.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <sstream>

namespace uet::tidy {
namespace {

using Tokens = std::vector<std::string>;

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_word(std::string_view token) { return !token.empty() && is_word_character(token.front()); }

bool is_one_of(std::string_view token, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), token) != list.end();
}

// The text without lines of the preprocessor, and their continuations.
std::string without_directives(std::string_view text) {
  std::string kept;
  std::istringstream lines{std::string(text)};
  bool directive = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    directive = directive || (first != std::string::npos && line[first] == '#');
    if (!directive) kept += line + '\n';
    directive = directive && line.ends_with('\\');
  }
  return kept;
}

// Words, "::", "->" and single characters.
Tokens tokens_of(std::string_view text) {
  Tokens tokens;
  for (std::size_t at = 0; at < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
      continue;
    }
    std::size_t length = 1;
    if (is_word_character(text[at])) {
      while (at + length < text.size() && is_word_character(text[at + length])) ++length;
    } else if (text.substr(at, 2) == "::" || text.substr(at, 2) == "->") {
      length = 2;
    }
    tokens.emplace_back(text.substr(at, length));
    at += length;
  }
  return tokens;
}

std::string joined(std::span<const std::string> tokens) {
  std::string text;
  for (const std::string& token : tokens) {
    if (!text.empty() && is_word(token) && is_word_character(text.back())) text += ' ';
    text += token;
  }
  return text;
}

// One declaration, as far as it has been read. Groups in parentheses stand as "()", in braces as
// "{}"; template arguments and array bounds are left out.
struct Declaration {
  Tokens head;
  std::string method;  // of a function: name and parameters
  std::string name;    // and the name alone
  bool assigned = false;
  bool initializes = false;  // the member initializers of a constructor have begun
  std::size_t declarators = 1;

  bool is_function() const { return !name.empty(); }
  bool has(std::string_view token) const {
    return std::find(head.begin(), head.end(), token) != head.end();
  }
  bool begins_with(std::initializer_list<std::string_view> list) const {
    return !head.empty() && is_one_of(head.front(), list);
  }
  std::string last() const { return head.empty() ? std::string() : head.back(); }

  // The name of the class whose body begins here; empty: this is none.
  std::string class_name() const {
    if (is_function() || assigned || has("enum")) return {};
    const auto key = std::find_if(head.begin(), head.end(), [](const std::string& token) {
      return is_one_of(token, {"class", "struct", "union"});
    });
    if (key == head.end()) return {};
    std::string found;
    for (auto at = key + 1; at != head.end() && !is_one_of(*at, {":", "final"}); ++at) {
      if (is_word(*at) && !found.empty() && is_word_character(found.back())) return {};
      found += *at;
    }
    return found.empty() ? "(anonymous)" : found;
  }

  // Data members that it declares.
  std::size_t members() const {
    if (head.empty() || is_function() || has("static")) return 0;
    if (begins_with({"using", "friend", "typedef", "static_assert", "enum"})) return 0;
    const bool elaborated = begins_with({"class", "struct", "union"});
    return elaborated && head.size() < 3 ? 0 : declarators;  // less is a forward declaration
  }
};

class Reader {
 public:
  explicit Reader(Tokens tokens) : tokens_(std::move(tokens)) {}

  ClassSizes read() {
    read_scope("", kNone);
    if (at_ < tokens_.size()) found_.balanced = false;
    return std::move(found_);
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  bool more() const { return at_ < tokens_.size(); }
  const std::string& peek() const { return tokens_[at_]; }

  // Behind the counterpart of the bracket at the current token; returns what lies between them.
  std::span<const std::string> skip_group(std::string_view open, std::string_view close) {
    const std::size_t begin = at_ + 1;
    std::size_t depth = 0;
    for (; more(); ++at_) {
      if (peek() == open) ++depth;
      if (peek() == close && --depth == 0) {
        ++at_;
        return {tokens_.data() + begin, at_ - 1 - begin};
      }
    }
    found_.balanced = false;
    return {};
  }

  // Declarations up to the end of the scope, whose brace stays. `owner`: the class, or kNone.
  void read_scope(const std::string& prefix, std::size_t owner) {
    while (more() && peek() != "}") read_declaration(prefix, owner);
  }

  // Behind the opening brace of a namespace or class, to behind its closing one.
  void read_body(const std::string& prefix, std::size_t owner) {
    ++at_;
    read_scope(prefix, owner);
    if (!more()) found_.balanced = false;
    ++at_;
  }

  void read_declaration(const std::string& prefix, std::size_t owner) {
    Declaration declaration;
    while (more() && peek() != "}") {
      if (peek() == ";") {
        ++at_;
        break;
      }
      if (peek() == "{") {
        if (read_braces(prefix, declaration)) break;
      } else {
        read_token(declaration);
      }
    }
    if (owner != kNone) count(declaration, found_.classes[owner]);
  }

  // True: the declaration has ended.
  bool read_braces(const std::string& prefix, Declaration& declaration) {
    const auto within = [&](const std::string& name) {
      return prefix.empty() || name.empty() ? prefix + name : prefix + "::" + name;
    };
    if (declaration.has("namespace") || joined(declaration.head) == "extern") {
      const auto key = std::find(declaration.head.begin(), declaration.head.end(), "namespace");
      const bool named = key != declaration.head.end();
      read_body(within(named ? joined({key + 1, declaration.head.end()}) : ""), kNone);
      declaration = {};
      return true;
    }
    const std::string name = declaration.class_name();
    if (!name.empty()) {
      found_.classes.push_back({.name = within(name), .methods = {}});
      read_body(within(name), found_.classes.size() - 1);
      declaration = {};
      return false;
    }
    const bool initializer =
        !declaration.is_function() ||
        (declaration.initializes && (is_word(declaration.last()) || declaration.last() == ">"));
    const bool enumeration = declaration.has("enum");
    skip_group("{", "}");
    declaration.head.emplace_back("{}");
    if (enumeration) declaration = {};
    if (!enumeration && !declaration.is_function()) declaration.assigned = true;
    return !initializer;
  }

  void read_token(Declaration& declaration) {
    const std::string token = peek();
    if (token == "(") return read_parentheses(declaration);
    if (token == "[") return static_cast<void>(skip_group("[", "]"));
    if (token == "operator") return read_operator(declaration);
    if (token == "<" && !declaration.assigned) {
      skip_template_arguments();
      if (declaration.last() == "template") declaration.head.pop_back();
      if (declaration.is_function()) declaration.head.emplace_back(">");
      return;
    }
    ++at_;
    if (token == "=") declaration.assigned = true;
    if (token == ",") ++declaration.declarators;
    if (token == ":" && declaration.is_function()) declaration.initializes = true;
    const bool access = declaration.begins_with({"public", "private", "protected"});
    if (token == ":" && access && declaration.head.size() == 1) {
      declaration = {};
      return;
    }
    declaration.head.push_back(token);
  }

  void skip_template_arguments() {
    std::size_t depth = 0;
    for (; more(); ++at_) {
      if (peek() == "(") {
        skip_group("(", ")");
        --at_;
      }
      if (peek() == "<") ++depth;
      if (peek() == ">" && --depth == 0) {
        ++at_;
        return;
      }
    }
  }

  // The whole name of an operator is one token.
  void read_operator(Declaration& declaration) {
    std::string name = tokens_[at_++];
    if (more() && peek() == "(") {
      skip_group("(", ")");
      name += "()";
    }
    const std::size_t begin = at_;
    while (more() && peek() != "(") ++at_;
    const std::string type = joined({tokens_.data() + begin, at_ - begin});
    declaration.head.push_back(is_word(type) ? name + ' ' + type : name + type);
  }

  void read_parentheses(Declaration& declaration) {
    const std::span<const std::string> group = skip_group("(", ")");
    const std::string before = declaration.last();
    if (is_one_of(before, {"alignas", "decltype", "explicit", "__attribute__", "requires"})) {
      declaration.head.pop_back();
      if (before == "decltype") declaration.head.emplace_back("auto");
      return;
    }
    const bool pointer = !group.empty() && is_one_of(group.front(), {"*", "&"});
    if (!declaration.is_function() && !declaration.assigned && !pointer && is_word(before)) {
      const std::size_t words = declaration.head.size();
      const bool destructor = words > 1 && declaration.head[words - 2] == "~";
      declaration.name = destructor ? "~" + before : before;
      declaration.method = declaration.name + "(" + joined(group) + ")";
    }
    declaration.head.emplace_back("()");
  }

  static void count(const Declaration& declaration, ClassSize& owner) {
    owner.members += declaration.members();
    if (!declaration.is_function()) return;
    if (declaration.begins_with({"using", "friend", "typedef", "static_assert"})) return;
    owner.methods.insert(declaration.method);
    const std::size_t colon = owner.name.rfind(':');
    const std::string own = owner.name.substr(colon == std::string::npos ? 0 : colon + 1);
    const bool plain = declaration.name == own || declaration.name.front() == '~' ||
                       declaration.name.starts_with("operator");
    if (!plain) owner.is_plain = false;
  }

  Tokens tokens_;
  std::size_t at_ = 0;
  ClassSizes found_;
};

}  // namespace

ClassSizes class_sizes(std::string_view text) {
  return Reader(tokens_of(without_directives(without_comments_and_strings(text)))).read();
}

Complaints check_classes(std::string_view path, std::string_view text, const LargeClasses& known,
                         std::set<std::string>& seen) {
  const ClassSizes sizes = class_sizes(text);
  Complaints complaints;
  if (!sizes.balanced) complaints.push_back(std::string(path) + ": braces without counterparts");
  for (const ClassSize& found : sizes.classes) {
    const std::size_t methods = found.methods.size();
    const std::size_t members = found.is_plain ? 0 : found.members;
    const std::string what = std::string(path) + ": " + found.name + " has " +
                             std::to_string(methods) + " methods and " + std::to_string(members) +
                             " members";
    const auto listed = known.find(found.name);
    if (listed != known.end()) seen.insert(found.name);
    const bool large = methods > kMostMethods || members > kMostMembers;
    if (listed == known.end()) {
      if (large) {
        complaints.push_back(what + ", at most " + std::to_string(kMostMethods) + " and " +
                             std::to_string(kMostMembers) + " are allowed; split it by subject");
      }
    } else if (!large) {
      complaints.push_back(what + ": take it off the list of large classes");
    } else if (methods > listed->second.methods || members > listed->second.members) {
      complaints.push_back(what + ", more than its entry in the list of large classes allows");
    }
  }
  return complaints;
}

}  // namespace uet::tidy
