// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See frames.h.
#include "call_path/frames.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace uet::call_path {
namespace {

// "src/pds/pdc.cc" of "/tree/src/pds/pdc.cc:12 (discriminator 3)"; empty for another tree. A
// compiler launcher may have made "/tree/build/../src/pds/pdc.cc" of it.
std::string file_of(std::string_view place, std::string_view source) {
  const std::filesystem::path named = place.substr(0, place.find(':'));
  const std::string file = named.lexically_normal().lexically_relative(source).string();
  for (const char* folder : {"include/", "src/", "prov/"}) {
    if (file.starts_with(folder)) return file;
  }
  return {};
}

// Without the parts between `open` and `close`.
std::string without(std::string_view text, char open, char close) {
  std::string result;
  int depth = 0;
  for (const char c : text) {
    if (c == open) ++depth;
    if (depth == 0) result += c;
    if (c == close && depth > 0) --depth;
  }
  return result;
}

// The body of a lambda. One that is inlined has no name.
bool is_lambda(std::string_view demangled) {
  const std::string name = without(demangled, '<', '>');
  return name == "operator()" || name.find("}::operator()") != std::string::npos ||
         name.find("::$_") != std::string::npos;
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream stream(row.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    const auto begin = cell.find_first_not_of(" `");
    const auto end = cell.find_last_not_of(" `");
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

// The part of the stack that the rows above do not hold: both are equal down to some function.
Frames continued(const Frames& stack, const std::vector<Frames>& above) {
  std::size_t same = 0;
  for (const Frames& other : above) {
    const auto [a, b] = std::ranges::mismatch(stack, other);
    same = std::max(same, static_cast<std::size_t>(a - stack.begin()));
  }
  return {stack.begin() + static_cast<std::ptrdiff_t>(same), stack.end()};
}

bool is_same(const Frame& row, const Frame& entered) {
  const bool member = entered.function.find("::") == std::string::npos &&
                      row.function.ends_with("::" + entered.function);
  return row.file == entered.file && (row.function == entered.function || member);
}

std::string rows_of(const Frames& frames) {
  std::string text;
  for (const auto& [function, file] : frames) text += "| `" + function + "` | `" + file + "` |\n";
  return text;
}

std::string names_of(const std::vector<Frames>& entries) {
  std::string text;
  for (const Frames& stack : entries) {
    text += std::string(2 * stack.size(), ' ') + stack.back().function + "\n";
  }
  return text;
}

}  // namespace

std::string short_name(std::string_view demangled) {
  std::string text(demangled);
  for (std::string_view drop : {"(anonymous namespace)::", "[abi:cxx11]"}) {
    for (auto at = text.find(drop); at != std::string::npos; at = text.find(drop)) {
      text.erase(at, drop.size());
    }
  }
  text = without(text, '<', '>');
  text.resize(std::min(text.size(), text.find('(')));
  const auto blank = text.rfind(' ');
  if (blank != std::string::npos) text.erase(0, blank + 1);
  auto colons = text.rfind("::");
  if (colons == std::string::npos || colons == 0) return text;
  colons = text.rfind("::", colons - 1);
  if (colons != std::string::npos) text.erase(0, colons + 2);
  // A namespace that is left is in lower case.
  return text[0] >= 'a' && text[0] <= 'z' ? text.substr(text.rfind(':') + 1) : text;
}

std::map<std::uint64_t, Frames> parse_symbols(std::string_view lines, std::string_view source) {
  std::map<std::uint64_t, Frames> symbols;
  std::istringstream stream{std::string(lines)};
  Frames* frames = nullptr;
  for (std::string line, place; std::getline(stream, line);) {
    if (line.starts_with("0x")) {
      std::uint64_t address = 0;
      std::from_chars(line.data() + 2, line.data() + line.size(), address, 16);
      frames = &symbols[address];
      continue;
    }
    if (!std::getline(stream, place) || frames == nullptr) break;
    const std::string file = file_of(place, source);
    if (!file.empty() && !is_lambda(line))
      frames->insert(frames->begin(), {short_name(line), file});
  }
  return symbols;
}

std::map<std::uint64_t, Frames> find_symbols(const std::string& module,
                                             std::span<const std::uint64_t> addresses,
                                             std::string_view source) {
  std::string list = "/tmp/uet_call_path_XXXXXX";
  const int fd = ::mkstemp(list.data());
  if (fd < 0) return {};
  ::close(fd);
  std::ofstream stream(list);
  for (const std::uint64_t address : addresses) stream << std::hex << address << "\n";
  stream.close();
  const std::string command = "addr2line -afiC -e '" + module + "' < " + list;
  std::string lines;
  if (FILE* pipe = ::popen(command.c_str(), "r"); pipe != nullptr) {
    std::array<char, 65536> block;
    for (std::size_t n; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
      lines.append(block.data(), n);
    }
    ::pclose(pipe);
  }
  std::remove(list.c_str());
  return parse_symbols(lines, source);
}

std::vector<Frames> first_entries(std::span<const Step> steps, std::uint64_t base,
                                  const std::map<std::uint64_t, Frames>& symbols) {
  std::vector<Frames> entries;
  std::set<std::string> entered;
  CallStack calls;
  Frames stack;
  const auto add = [&](std::uint64_t address) {
    const auto found = symbols.find(address - base);
    if (found == symbols.end()) return;
    for (const Frame& frame : found->second) {
      if (stack.empty() || stack.back().function != frame.function) stack.push_back(frame);
      if (entered.insert(frame.function).second) entries.push_back(stack);
    }
  };
  for (const Step& step : steps) {
    calls.advance(step);
    if (!symbols.contains(step.at - base)) continue;
    stack.clear();
    for (const std::uint64_t site : calls.call_sites()) add(site);
    add(step.at);
  }
  return entries;
}

std::vector<Frames> parse_tables(std::string_view markdown, std::string_view heading) {
  std::vector<Frames> tables;
  std::istringstream stream{std::string(markdown)};
  bool here = false;
  bool in_table = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("#")) here = line == heading;
    if (!here || !line.starts_with("|")) {
      in_table = false;
      continue;
    }
    if (line.starts_with("| ---")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() >= 2 && cells[0] == "function" && cells[1] == "file") {
      tables.emplace_back();
      in_table = true;
    } else if (in_table && cells.size() >= 2) {
      tables.back().push_back({cells[0], cells[1]});
    }
  }
  return tables;
}

std::string compare(const std::vector<Frames>& tables, const std::vector<Frames>& entries) {
  std::string text;
  std::vector<Frames> above;
  for (const Frames& table : tables) {
    if (table.empty()) {
      text += "a table has no rows\n";
      continue;
    }
    const auto entry = std::ranges::find_if(entries, [&](const Frames& stack) {
      return is_same({table.back().function, stack.back().file}, stack.back());
    });
    if (entry == entries.end()) {
      text += table.back().function + " is not entered. Entered are:\n" + names_of(entries);
      continue;
    }
    const Frames rows = continued(*entry, above);
    if (!std::ranges::equal(table, rows, is_same))
      text += "the table should have these rows:\n" + rows_of(rows);
    above.push_back(*entry);
  }
  return text;
}

}  // namespace uet::call_path
