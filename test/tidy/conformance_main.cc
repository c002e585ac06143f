// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes the page that says which test checks which rule. Use: uet_conformance [--check] FILE
// Exit status: 0; 1 if FILE cannot be written, or with --check if a rule, reason or citation is
// wrong (stderr says which; FILE is written all the same); 2 on wrong use.
#include <cstdio>
#include <fstream>
#include <string_view>

#include "tidy/source_tree.h"

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != (check ? 3 : 2)) {
    std::fprintf(stderr, "use: uet_conformance [--check] FILE\n");
    return 2;
  }
  const char* const file = argv[argc - 1];
  const std::filesystem::path source = UET_SOURCE_DIR;
  const uet::tidy::Conformance tree = uet::tidy::read_conformance(source);
  std::ofstream page(file, std::ios::binary | std::ios::trunc);
  page << uet::tidy::page_of(tree, source);
  page.close();
  if (!page) {
    std::fprintf(stderr, "cannot write %s\n", file);
    return 1;
  }
  if (!check) return 0;
  auto complaints = uet::tidy::check_conformance(tree.rules, tree.citations, tree.exceptions);
  for (std::string& complaint : uet::tidy::check_uses(tree.rules, uet::tidy::read_uses(source))) {
    complaints.push_back(std::move(complaint));
  }
  for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
  return complaints.empty() ? 0 : 1;
}
