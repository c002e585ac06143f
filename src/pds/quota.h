// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How many of a bounded number of things (PDCs, congestion contexts) each kind of use may take, so
// that none can keep another from going on (PDS-182). Counts only; the things are its owner's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace uet::pds {

// Which end of a PDC this FEP is.
enum class Role : std::uint8_t { Initiator, Target };

// The purpose that an entry of a table is taken for.
struct Use {
  Role role = Role::Initiator;
  bool reserved_pool = false;  // Destination::reserved_pool

  friend constexpr bool operator==(const Use&, const Use&) = default;
};

class Quota {
 public:
  // Of `count` things, `for_targets` (at most half) are kept for Role::Target and up to
  // `for_pool` (at most an eighth, but one) in each role for the reserved pool.
  Quota(std::size_t count, std::size_t for_targets, std::size_t for_pool)
      : count_(count),
        for_targets_(std::min(count / 2, for_targets)),
        for_pool_(std::min(std::max<std::size_t>(count / 8, 1), for_pool)) {}

  // May one more be taken? Ordinary uses leave the pool's share in both roles alone, those of the
  // pool the other role's.
  bool available(Use use) const {
    const Role other = use.role == Role::Initiator ? Role::Target : Role::Initiator;
    const std::size_t kept_here = use.reserved_pool ? 0 : pool_left(use.role);
    if (count_ - in_use_ <= pool_left(other) + kept_here) return false;
    return use.role == Role::Target || initiators_ + for_targets_ + kept_here < count_;
  }
  void take(Use use) {
    ++in_use_;
    if (use.role == Role::Initiator) ++initiators_;
    if (use.reserved_pool) ++pool_in_use_[static_cast<std::size_t>(use.role)];
  }
  void give_back(Use use) {
    --in_use_;
    if (use.role == Role::Initiator) --initiators_;
    if (use.reserved_pool) --pool_in_use_[static_cast<std::size_t>(use.role)];
  }

  std::size_t in_use() const { return in_use_; }
  std::size_t initiators() const { return initiators_; }  // of them, those of Role::Initiator

 private:
  // How many more the reserved pool may still take.
  std::size_t pool_left(Role role) const {
    return for_pool_ - std::min(for_pool_, pool_in_use_[static_cast<std::size_t>(role)]);
  }

  std::size_t count_;
  std::size_t for_targets_;
  std::size_t for_pool_;
  std::size_t in_use_ = 0;
  std::size_t initiators_ = 0;
  std::array<std::size_t, 2> pool_in_use_{};
};

}  // namespace uet::pds
