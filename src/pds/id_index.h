// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A number for each PDC id that has one. A table over all ids: few of them are in use, so that most
// of its memory is never touched.
#pragma once

#include <cstdint>

#include "base/zeroed_array.h"
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
    plus_one_[id.value] = static_cast<std::uint16_t>(number + 1);
  }
  void remove(PdcId id) { plus_one_[id.value] = 0; }

 private:
  ZeroedArray<std::uint16_t> plus_one_{65536};
};

}  // namespace uet::pds
