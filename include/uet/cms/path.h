// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which path (entropy value) a packet takes. ROD always keeps one (PDS-161, CMS-401).
//
// Entropy values come from the dynamic ports 49152 to 65535 (CMS-404) and are therefore never 0.
#pragma once

#include <cstdint>

#include "uet/base/rng.h"
#include "uet/cms/ccc.h"

namespace uet::cms {

class PathSelector {
 public:
  static constexpr std::uint16_t kFirstEntropy = 49152;
  static constexpr std::uint16_t kEntropyValues = 16384;  // a power of two
  static constexpr std::uint16_t kMaxPaths = 1024;        // CMS-404

  // `single` forces one value whatever the policy says (CMS-416). Parameters::path_count is taken
  // within 1 to kMaxPaths.
  PathSelector(const Parameters& parameters, bool single, Rng& rng);
  // The entropy value of the next packet. `oblivious` (CMS-410) uses each of its values once, in
  // turn, from a start drawn anew for every round.
  std::uint16_t next(Rng& rng);
  std::uint16_t path_count() const { return count_; }

 private:
  std::uint16_t base_;       // where the values begin, 0 to kEntropyValues - 1
  std::uint16_t stride_;     // from one value to the next; odd, so that no value comes twice
  std::uint16_t count_;      // values in use; 1 = single path
  std::uint16_t start_ = 0;  // of this round
  std::uint16_t taken_ = 0;  // values used in this round
};

}  // namespace uet::cms
