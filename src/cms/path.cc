// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `single` and `oblivious` path choice (CMS section 5): no feedback is used.
#include "uet/cms/path.h"

#include <algorithm>

namespace uet::cms {

PathSelector::PathSelector(const Parameters& parameters, bool single, Rng& rng)
    : base_(static_cast<std::uint16_t>(rng.below(kEntropyValues))),
      stride_(static_cast<std::uint16_t>(rng.below(kEntropyValues) | 1)),
      count_(single || parameters.paths == PathPolicy::Single
                 ? std::uint16_t{1}
                 : std::clamp(parameters.path_count, std::uint16_t{1}, kMaxPaths)) {}

std::uint16_t PathSelector::next(Rng& rng) {
  if (count_ > 1 && taken_ == 0) start_ = static_cast<std::uint16_t>(rng.below(count_));
  const std::uint32_t index = (std::uint32_t{start_} + taken_) % count_;
  taken_ = static_cast<std::uint16_t>((taken_ + 1) % count_);
  return static_cast<std::uint16_t>(kFirstEntropy + (base_ + index * stride_) % kEntropyValues);
}

}  // namespace uet::cms
