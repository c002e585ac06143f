// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of congestion control algorithms: one row each, with the name by which
// FI_UET_CC_ALGORITHM and `uet-sim --cc` choose it. docs/research.md says how to add one. An
// algorithm is one file; others know its row and the interface Ccc only (ccc.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "uet/base/time.h"

namespace uet::cms {

class Ccc;
class SharedParameters;

// In the order of kAlgorithms.
enum class Algorithm : std::uint8_t { None, Nscc, Rccc, Both, Swift, Sird };

// The origin of a new context. `ccc_id`: its name in credit requests (CMS-204), if it has one.
// `base_rtt`: what an earlier context learnt (CMS-141).
struct NewContext {
  const SharedParameters& parameters;
  Time now;
  std::optional<std::uint8_t> ccc_id;
  std::optional<Duration> base_rtt;
};
using MakeContext = std::unique_ptr<Ccc> (*)(const NewContext&);

// Each is defined in the file of its algorithm.
std::unique_ptr<Ccc> make_fixed_window(const NewContext& context);
std::unique_ptr<Ccc> make_nscc(const NewContext& context);
std::unique_ptr<Ccc> make_rccc(const NewContext& context);  // Rccc and Both
std::unique_ptr<Ccc> make_swift(const NewContext& context);
std::unique_ptr<Ccc> make_sird(const NewContext& context);

// Does sending need the receiver's credit: not, it alone, or together with a window?
enum class Credit : std::uint8_t { No, Alone, AndWindow };

struct AlgorithmRow {
  Algorithm algorithm;
  std::string_view name;
  std::string_view summary;  // follows the name in help texts
  Credit credit;             // not No: `make` makes an Rccc
  MakeContext make;
};

inline constexpr AlgorithmRow kAlgorithms[] = {
    {Algorithm::None, "none", "uses a fixed window", Credit::No, make_fixed_window},
    {Algorithm::Nscc, "nscc", "adapts a window to ECN marks and queueing delay", Credit::No,
     make_nscc},
    {Algorithm::Rccc, "rccc", "waits for credit of the receiver, set it at both ends",
     Credit::Alone, make_rccc},
    {Algorithm::Both, "both", "needs the consent of nscc and of rccc", Credit::AndWindow,
     make_rccc},
    {Algorithm::Swift, "swift", "adapts a window to the round-trip time alone", Credit::No,
     make_swift},
    {Algorithm::Sird, "sird", "is rccc with a bound for unused credit", Credit::Alone, make_sird},
};

constexpr const AlgorithmRow& row_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)];
}

constexpr bool algorithms_are_in_order() {
  std::size_t place = 0;
  for (const AlgorithmRow& row : kAlgorithms) {
    if (static_cast<std::size_t>(row.algorithm) != place++) return false;
  }
  return true;
}
static_assert(algorithms_are_in_order());

// Does sending need the receiver's credit?
constexpr bool uses_credit(Algorithm algorithm) { return row_of(algorithm).credit != Credit::No; }
// Is credit all that it needs?
constexpr bool needs_credit_alone(Algorithm algorithm) {
  return row_of(algorithm).credit == Credit::Alone;
}

// The algorithm of this name.
constexpr std::optional<Algorithm> algorithm_named(std::string_view name) {
  for (const AlgorithmRow& row : kAlgorithms) {
    if (row.name == name) return row.algorithm;
  }
  return std::nullopt;
}

// A text of help that is made while compiling; ends with a 0.
struct AlgorithmText {
  std::array<char, 640> text{};
  std::size_t length = 0;

  constexpr void add(std::string_view more) {
    for (const char c : more) text.at(length++) = c;
    text.at(length) = 0;
  }
};

// "none, nscc, rccc or both", then `behind`.
constexpr AlgorithmText algorithm_names(std::string_view behind) {
  AlgorithmText names;
  const std::size_t count = std::size(kAlgorithms);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) names.add(i + 1 < count ? ", " : " or ");
    names.add(kAlgorithms[i].name);
  }
  names.add(behind);
  return names;
}

// `before`, then "none uses a fixed window; nscc adapts ...", then `behind`.
constexpr AlgorithmText algorithm_summaries(std::string_view before, std::string_view behind) {
  AlgorithmText all;
  all.add(before);
  for (const AlgorithmRow& row : kAlgorithms) {
    if (&row != kAlgorithms) all.add("; ");
    all.add(row.name);
    all.add(" ");
    all.add(row.summary);
  }
  all.add(behind);
  return all;
}

}  // namespace uet::cms
