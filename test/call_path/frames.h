// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From recorded steps to the functions of this tree that were entered, and their comparison with
// the tables of docs/architecture.md.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "call_path/step_recorder.h"

namespace uet::call_path {

struct Frame {
  // "Manager::send"; a lambda counts as the function around it. Debug information has no class for
  // a member template that is given a lambda.
  std::string function;
  std::string file;  // "src/pds/manager.cc"
  bool operator==(const Frame&) const = default;
};
using Frames = std::vector<Frame>;  // outermost first

// "Manager::send" of "void uet::pds::Manager::send<int>(...) const": class and function.
std::string short_name(std::string_view demangled);

// The lines of `addr2line -afiC`, as frames of each address. Functions outside include, src and
// prov of `source` are left out.
std::map<std::uint64_t, Frames> parse_symbols(std::string_view lines, std::string_view source);
// Asks addr2line for addresses of the file `module`, counted from its begin.
std::map<std::uint64_t, Frames> find_symbols(const std::string& module,
                                             std::span<const std::uint64_t> addresses,
                                             std::string_view source);

// The stack of each function when it was first entered, that function last, in the order of entry.
// `symbols` are those of addresses from `base` on.
std::vector<Frames> first_entries(std::span<const Step> steps, std::uint64_t base,
                                  const std::map<std::uint64_t, Frames>& symbols);

// The tables "| function | file | ..." below the heading `heading`, down to the next heading.
std::vector<Frames> parse_tables(std::string_view markdown, std::string_view heading);

// Each table continues the one above it: it ends with a function, and lists the functions of the
// stack of that function which the tables above do not list. A table may name the class where
// `entries` do not. Says how the tables differ from `entries`, with the rows as they should be;
// empty if they do not.
std::string compare(const std::vector<Frames>& tables, const std::vector<Frames>& entries);

}  // namespace uet::call_path
