// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// REPS: entropy values whose packets arrived unmarked, each to be used once more (CMS-413,
// CMS-414). Knows neither the set of values nor time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace uet::cms {

class RecycledPaths {
 public:
  static constexpr std::size_t kSlots = 8;  // CMS-413

  // `slots`: 1 or more.
  explicit RecycledPaths(std::size_t slots = kSlots) : ring_(slots), slots_(slots) {}

  // A value that proved good takes the place of the oldest one.
  void push(std::uint16_t entropy) {
    ring_[newest_end_] = {entropy, true};
    newest_end_ = (newest_end_ + 1) % slots_;
    if (written_ < slots_) ++written_;
  }
  // The oldest value not used since it was pushed that usable(value) holds for; empty if there is
  // none.
  template <class Usable>
  std::optional<std::uint16_t> take(Usable&& usable) {
    for (std::size_t age = 0; age < written_; ++age) {
      Slot& slot = ring_[(oldest() + age) % slots_];
      if (!slot.valid || !usable(slot.entropy)) continue;
      slot.valid = false;
      return slot.entropy;
    }
    return std::nullopt;
  }
  std::optional<std::uint16_t> take() {
    return take([](std::uint16_t) { return true; });
  }
  // In turn, from the oldest on, whether used or not; empty if nothing was ever pushed.
  std::optional<std::uint16_t> cycle() {
    if (written_ == 0) return std::nullopt;
    return ring_[(oldest() + turn_++) % written_].entropy;
  }
  void restart_cycle() { turn_ = 0; }

 private:
  struct Slot {
    std::uint16_t entropy = 0;
    bool valid = false;
  };
  std::size_t oldest() const { return written_ < slots_ ? 0 : newest_end_; }

  std::vector<Slot> ring_;
  std::size_t slots_;
  std::size_t newest_end_ = 0;  // where the next one goes
  std::size_t written_ = 0;     // slots in use
  std::size_t turn_ = 0;        // of cycle()
};

}  // namespace uet::cms
