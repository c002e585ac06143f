// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the source tree for the checks: the files, and what conformance.h needs of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/conformance.h"

namespace uet::tidy {

// The bytes of a file; nothing if it cannot be read.
std::optional<std::string> read_file(const std::filesystem::path& path);

// Regular files under `source`/`directory`, relative to `source`, in order.
std::vector<std::string> files_under(const std::filesystem::path& source,
                                     const std::string& directory);

bool is_cpp(std::string_view path);

// The rules, the tests under test/ that name them and the exceptions of a source tree. A file that
// cannot be read counts as empty, which check_conformance complains about.
struct Conformance {
  LawBook rules;
  Citations citations;
  Exceptions exceptions;
  std::vector<std::string> vectors;
};
Conformance read_conformance(const std::filesystem::path& source);

// The page build/<preset>/conformance.md of the tree at `source`.
std::string page_of(const Conformance& tree, const std::filesystem::path& source);

// The citations in all sources, scripts and documents of a source tree; the checks of the tree, in
// test/tidy, cite examples and are left out.
std::vector<Use> read_uses(const std::filesystem::path& source);

}  // namespace uet::tidy
