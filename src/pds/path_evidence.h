// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The newest packet that has arrived on each path (PDS-131, CMS-420). Filled again by each look
// for losses, so that one object serves all PDCs of a FEP and PDCs keep nothing by path.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uet::pds {

class PathEvidence {
 public:
  // `path_count`: the entropy values of a context. cms::PathSelector takes them at odd distances,
  // so that a table of the next power of two has a place for each.
  explicit PathEvidence(std::size_t path_count)
      : places_(std::bit_ceil(std::max<std::size_t>(path_count, 1))) {}
  // Before the first look. May throw bad_alloc.
  void prepare() { newest_.resize(places_); }

  // Forgets everything.
  void begin() { ++look_; }
  // The transmission number `order` (from 1 on) took this path and arrived.
  void note(std::uint16_t entropy, std::uint64_t order) {
    Newest& newest = newest_[entropy & (newest_.size() - 1)];
    if (newest.look != look_ || order > newest.order) newest = {order, look_};
  }
  // The newest that arrived on this path; 0: none.
  std::uint64_t newest(std::uint16_t entropy) const {
    const Newest& newest = newest_[entropy & (newest_.size() - 1)];
    return newest.look == look_ ? newest.order : 0;
  }

 private:
  struct Newest {
    std::uint64_t order = 0;
    std::uint64_t look = 0;
  };
  std::size_t places_;
  std::vector<Newest> newest_;  // none before prepare()
  std::uint64_t look_ = 0;
};

}  // namespace uet::pds
