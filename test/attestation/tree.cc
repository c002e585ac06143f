// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files of the source tree, for attestation.h.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "attestation/attestation.h"

namespace uet::attestation {
namespace {

namespace fs = std::filesystem;

// An unreadable file counts as empty, which check() complains about.
std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Matrix read_matrix(const std::string& source) {
  return parse_matrix(text_of(fs::path(source) / "test/attestation/matrix.txt"));
}

Tree read_tree(const std::string& source) {
  Tree tree;
  const fs::path root(source);
  for (const auto& entry : fs::recursive_directory_iterator(root / "test")) {
    if (entry.path().extension() == ".cc") add_tests(text_of(entry.path()), tree);
  }
  add_parameters(text_of(root / "src/fep/tunables.cc"), tree);
  // The rows that only a host knows may be in any file of the provider.
  for (const auto& entry : fs::recursive_directory_iterator(root / "prov/uet")) {
    if (entry.path().extension() == ".cc") add_parameters(text_of(entry.path()), tree);
    if (entry.path().filename() == "fi_uet.7") tree.manual += text_of(entry.path());
  }
  return tree;
}

}  // namespace uet::attestation
