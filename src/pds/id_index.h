// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A number for each PDC id that has one. Few ids are in use, so that the table over all of them is
// sparse.
#pragma once

#include <cstdint>

#include "base/sparse_array.h"
#include "uet/base/types.h"

namespace uet::pds {

class IdIndex {
 public:
  // The result for an id without a number.
  static constexpr std::uint16_t kNone = 0xFFFF;

  bool has(PdcId id) const { return plus_one_[id.value] != 0; }
  std::uint16_t operator[](PdcId id) const {
    return static_cast<std::uint16_t>(plus_one_[id.value] - 1);
  }
  // `number`: below kNone.
  void set(PdcId id, std::uint16_t number) {
    plus_one_.at(id.value) = static_cast<std::uint16_t>(number + 1);
  }
  // Takes the memory for its number, so that set() cannot fail. May throw bad_alloc, as set() may.
  void prepare(PdcId id) { plus_one_.at(id.value); }
  void remove(PdcId id) {
    if (has(id)) plus_one_.at(id.value) = 0;
  }

 private:
  SparseArray<std::uint16_t, 65536, 256> plus_one_;
};

}  // namespace uet::pds
