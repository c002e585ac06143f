// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file of a sweep: one line for each case, or for each family of cases.
//
//   # a comment
//   all: --hosts 128 --size 1000000             put in front of the options of every later case
//   perm: --permutation --cc {nscc,swift} --seed {1..3}
//   worst: --incast 32 --loss 0.01
//
// A list in braces gives one case for each of its elements; several lists multiply out, the last
// one changing fastest. The chosen elements follow the name: perm/nscc/1, perm/nscc/2, ...
#pragma once

#include <cstddef>
#include <istream>
#include <string>
#include <vector>

namespace uet::netsim {

struct SweepCase {
  std::string name;  // unique in the file
  std::size_t line = 0;
  std::vector<std::string> options;
};

struct SweepFile {
  std::vector<SweepCase> cases;
  std::string complaint;  // "line 3: ..."; empty: none
};

// Knows nothing of the options of uet-sim.
SweepFile read_sweep(std::istream& in);

}  // namespace uet::netsim
