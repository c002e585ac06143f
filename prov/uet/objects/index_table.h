// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which resource indices of a domain are in use. A PIDonFEP has 4,096 of them (WIRE 4.2), so that a
// domain with more endpoints goes on under further ones (av::pid_of_step).
#pragma once

#include <bitset>
#include <cstddef>
#include <functional>
#include <optional>

#include "av/address.h"
#include "ri/mr_table.h"
#include "uet/base/result.h"
#include "uet/base/types.h"

namespace uet::prov {

class IndexTable {
 public:
  static constexpr std::size_t kBlocks = av::kPidsOfFep;
  // Without index 0 of each, which only an address can ask for.
  static constexpr std::size_t kMost = kBlocks * kMaxResourceIndex;

  // `own`: the PIDonFEP that the port of the domain stands for.
  void set_own_pid(PidOnFep own) { own_ = own; }

  // The first of `count` free indices in a row under one PIDonFEP: `wanted`, or, without it, the
  // lowest for which can_begin() is true. AddressInUse, or NoMemory if there are none.
  Result<ri::ContextName> take(std::optional<ri::ContextName> wanted, std::size_t count,
                               const std::function<bool(const ri::ContextName&)>& can_begin);
  void give_back(const ri::ContextName& first, std::size_t count);

 private:
  static constexpr std::size_t kSlots = std::size_t{kMaxResourceIndex} + 1;  // of a block
  std::size_t slot_of(const ri::ContextName& name) const;
  ri::ContextName name_of(std::size_t slot) const;
  bool are_free(std::size_t first, std::size_t count) const;
  void mark(std::size_t first, std::size_t count);

  PidOnFep own_;
  std::size_t lowest_ = 1;  // no slot before this one is free
  std::bitset<kBlocks * kSlots> used_;
};

}  // namespace uet::prov
