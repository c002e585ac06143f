// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints the self-attestation of this source tree. Ends with 1, and says why, where it names what
// is not there.
#include <cstdio>

#include "attestation/attestation.h"

int main() {
  const auto matrix = uet::attestation::read_matrix(UET_SOURCE_DIR);
  const auto complaints =
      uet::attestation::check(matrix, uet::attestation::read_tree(UET_SOURCE_DIR));
  for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
  if (!complaints.empty()) return 1;
  std::fputs(uet::attestation::page_of(matrix).c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
