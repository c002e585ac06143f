// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The self-attestation: UEC's transport matrix, filled in from test/attestation/matrix.txt and held
// against the tree. Text in, complaints and a page out; reads no files.
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace uet::attestation {

using Complaints = std::vector<std::string>;

enum class Wanted { Must, Optional, No, Open };

// Whether one profile asks for a feature, and whether uet has it there.
struct Cell {
  Wanted wanted = Wanted::No;
  bool have = false;
};

struct Feature {
  std::string heading;  // of the section that begins with it; mostly empty
  std::string name;
  std::array<Cell, 3> profiles;    // AI Base, AI Full, HPC
  std::vector<std::string> tests;  // "Suite.Name"; empty: no profile has it
  std::string setting;             // or why it is not there
};

struct Matrix {
  std::vector<Feature> features;  // in the order of the file
  Complaints complaints;
};
Matrix parse_matrix(std::string_view text);

// Contents of the tree: tests "Suite.Name", parameters "FI_UET_NAME", and the text of fi_uet(7).
struct Tree {
  std::set<std::string> tests;
  std::set<std::string> parameters;
  std::string manual;
};
void add_tests(std::string_view source, Tree& tree);
void add_parameters(std::string_view params_source, Tree& tree);

// Each test and setting that the matrix names exists, and a test shows each feature that a profile
// has. A feature that no profile has must have no parameter of its name, and a reason that is no
// plan.
Complaints check(const Matrix& matrix, const Tree& tree);

std::string page_of(const Matrix& matrix);

// Reads the files of a source tree for all that.
Matrix read_matrix(const std::string& source);
Tree read_tree(const std::string& source);

}  // namespace uet::attestation
