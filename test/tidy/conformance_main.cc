// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes docs/conformance.md of this source tree and says what a test would complain about.
#include <cstdio>
#include <fstream>

#include "tidy/source_tree.h"

int main() {
  const std::filesystem::path source = UET_SOURCE_DIR;
  const uet::tidy::Conformance tree = uet::tidy::read_conformance(source);
  std::ofstream page(source / "docs/conformance.md", std::ios::binary | std::ios::trunc);
  page << uet::tidy::page_of(tree);
  page.close();
  if (!page) {
    std::fprintf(stderr, "cannot write %s\n", (source / "docs/conformance.md").c_str());
    return 1;
  }
  const auto complaints = uet::tidy::check_conformance(tree.rules, tree.citations, tree.exceptions);
  for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
  return complaints.empty() ? 0 : 1;
}
