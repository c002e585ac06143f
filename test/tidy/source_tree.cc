// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See source_tree.h.
#include "tidy/source_tree.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

namespace uet::tidy {

namespace fs = std::filesystem;

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream.good()) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> files_under(const fs::path& source, const std::string& directory) {
  std::vector<std::string> files;
  if (!fs::exists(source / directory)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(source / directory)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), source).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_cpp(std::string_view path) { return path.ends_with(".cc") || path.ends_with(".h"); }

namespace {

// What judges every run of the simulator. Other files without tests only set the stage.
constexpr std::array<std::string_view, 4> kJudges = {"test/sim/atomics.cc", "test/sim/oracles.cc",
                                                     "test/sim/receives.cc",
                                                     "test/sim/wire_monitor.cc"};

bool has_tests(std::string_view text) {
  return text.find("\nTEST") != std::string_view::npos ||
         text.find("\nTYPED_TEST") != std::string_view::npos;
}

}  // namespace

Conformance read_conformance(const fs::path& source) {
  const auto text = [&](const char* file) { return read_file(source / file).value_or(""); };
  Conformance tree;
  for (const char* file : {"docs/spec/wire.md", "docs/spec/pds.md", "docs/spec/ses.md",
                           "docs/spec/cms.md", "docs/spec/tss.md", "docs/spec/cm.md"}) {
    add_spec(file, text(file), tree.rules);
  }
  tree.exceptions = parse_exceptions(text("test/tidy/rules_without_test.txt"));
  for (const std::string& file : files_under(source, "test")) {
    // The checks of the tree quote rules as examples; a header declares, its source checks.
    if (!file.ends_with(".cc") || file.starts_with("test/tidy/")) continue;
    const std::string source_text = text(file.c_str());
    const bool judge = std::find(kJudges.begin(), kJudges.end(), file) != kJudges.end();
    if (judge || has_tests(source_text)) add_citations(file, source_text, tree.citations);
  }
  for (const char* file :
       {"test/vectors/uet-wire-vectors.json", "test/vectors/uet-frame-vectors.json"}) {
    for (std::string& name : vector_names(text(file))) tree.vectors.push_back(std::move(name));
  }
  return tree;
}

std::string page_of(const Conformance& tree, const fs::path& source) {
  return conformance_page(tree.rules, tree.citations, tree.exceptions, tree.vectors,
                          (source / "docs/spec").string());
}

std::vector<Use> read_uses(const fs::path& source) {
  std::vector<std::string> files = {"README.md", "CHANGELOG.md", "CMakeLists.txt", ".ci/run"};
  for (const char* directory : {"cmake", "docs", "examples", "fabtests", "include", "netsim",
                                "prov", "scripts", "src", "test", "tools"}) {
    for (std::string& file : files_under(source, directory)) {
      if (!file.starts_with("test/tidy/")) files.push_back(std::move(file));
    }
  }
  std::vector<Use> uses;
  for (const std::string& file : files) {
    add_uses(file, read_file(source / file).value_or(""), uses);
  }
  return uses;
}

}  // namespace uet::tidy
