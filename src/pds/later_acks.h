// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The PDCs whose ACK waits for the application's reply (AckScheduler, reason 12). The ACKs leave
// behind the packets of a post, or when the next pass begins: so an ACK that its peer does not wait
// for costs the reply no time, and waits for no clock.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "uet/base/types.h"

namespace uet::pds {

class LaterAcks {
 public:
  bool empty() const { return count_ == 0; }
  // False: too many wait, and this one must not.
  [[nodiscard]] bool add(PdcId id) {
    if (count_ == kMost) return false;
    ids_[count_++] = id;
    return true;
  }
  // Calls release(PdcId) for each, which waits no more. A PDC may be gone.
  template <class Release>
  void release(Release&& release) {
    const std::size_t count = std::exchange(count_, 0);
    for (std::size_t i = 0; i < count; ++i) release(ids_[i]);
  }

 private:
  static constexpr std::size_t kMost = 32;

  std::array<PdcId, kMost> ids_{};
  std::size_t count_ = 0;
};

}  // namespace uet::pds
