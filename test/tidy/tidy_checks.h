// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks behind tidy_test.cc: text in, complaints out. They read no files, so that each of them
// can be shown to complain about a bad example.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace uet::tidy {

using Complaints = std::vector<std::string>;

// The text without comments, string literals and character literals; line breaks are kept.
std::string without_comments_and_strings(std::string_view text);

// The module a path belongs to: "pds" for src/pds/x.cc and include/uet/pds/x.h, "prov" for
// prov/uet; empty for everything else.
std::string module_of(std::string_view path);
bool is_core_module(std::string_view module);

// What a file of include/, src/ or prov/ includes: only modules that its module may use
// (docs/architecture.md section 3), <rdma/...> in prov only, no sockets, threads, clocks or streams
// in the core and in the NIC interface.
Complaints check_includes(std::string_view path, std::string_view text);

// Symbols that core archives leave undefined and that are neither defined in another core archive
// nor on the list of what a pure core may use. `undefined` and `defined` are outputs of nm -C.
// `sanitized` admits the sanitizers' run time.
Complaints check_core_symbols(std::string_view undefined, std::string_view defined, bool sanitized);

// Calls that a library inside somebody else's process must not make: output, exit, abort.
Complaints check_calls(std::string_view path, std::string_view text);

// At most kMaxLines lines.
inline constexpr std::size_t kMaxLines = 800;
Complaints check_length(std::string_view path, std::string_view text);

// The licence line: first line of C++ files, one of the first three lines elsewhere.
Complaints check_spdx(std::string_view path, std::string_view text);

// Notes to self that belong in an issue.
Complaints check_leftovers(std::string_view path, std::string_view text);

// `output` of nm -D --defined-only names fi_prov_ini and nothing else.
Complaints check_exports(std::string_view output);

// `output` of readelf -d needs only libraries that docs/dependencies.md allows at run time.
Complaints check_needed(std::string_view output, bool sanitized);

// `output` of nm -D --undefined-only: nothing registers a destructor for the end of the process
// (__cxa_atexit, atexit), because threads, and the writing of statistics, may come after it.
Complaints check_destructors(std::string_view output);

}  // namespace uet::tidy
