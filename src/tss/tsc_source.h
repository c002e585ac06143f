// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where a sender's TSCs come from if other processes have the same key and identity, or had them
// before this one (TSS-34, TSS-37). The owner of the table implements it, outside this module.
#pragma once

#include <cstdint>
#include <optional>

#include "tss/sender_state.h"
#include "tss/used_keys.h"

namespace uet::tss {

// A sender that has no TSC left. Key, epoch and identity name the counter; the identity is the SSI,
// or the address of the FEP, which the source knows.
struct TscRequest {
  Fingerprint key{};
  std::uint16_t epoch = 0;
  std::optional<std::uint32_t> ssi{};
  TscRange left;              // what the configuration and the history of the key allow
  bool history_told = false;  // `left` begins above every TSC used before: History::Known
};

class TscSource {
 public:
  virtual ~TscSource() = default;
  // TSCs in a row inside request.left that no sender of this identity has had or will get. nullopt
  // if there are none: nothing is sent then (TSS-36).
  virtual std::optional<TscRange> next_block(const TscRequest& request) = 0;
};

}  // namespace uet::tss
