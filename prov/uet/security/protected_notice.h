// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Logs that protected packets come to a domain in clear, once a minute at most. A peer that
// requires security answers nothing (TSS-39), so that this side may be the only one to tell.
#pragma once

#include <cstdint>

#include "uet/base/time.h"

namespace uet::prov {

class ProtectedNotice {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(60);

  // `count`: Fep::protected_dropped. True if it has logged.
  bool look(std::uint64_t count, Time now) noexcept {
    if (count == told_ || now < silent_until_) return false;
    tell(count, now);
    return true;
  }

 private:
  void tell(std::uint64_t count, Time now) noexcept;

  std::uint64_t told_ = 0;
  Time silent_until_{};
};

}  // namespace uet::prov
