// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the entry of a full table that ends so that a host which was refused one finds space: the
// entry that has made no progress for longest, and whose host holds at least as much of the table
// as the host that was refused. A host that has used up its own share therefore ends no entry of a
// host that holds less. The shares themselves: Shares.
#pragma once

#include <cstddef>

#include "uet/base/time.h"

namespace uet {

// One search. Of entries that have waited equally long, the first one ends.
template <class Entry>
class LongestWait {
 public:
  // `held`: how much of the table the refused host holds. `patience`: an entry that has waited for
  // less does not end.
  LongestWait(std::size_t held, Duration patience) : held_(held), patience_(patience) {}

  // The host of `entry` holds `held`, and the entry has made no progress for `wait`.
  void consider(Entry& entry, std::size_t held, Duration wait) {
    if (held < held_ || wait < patience_) return;
    if (longest_ != nullptr && wait <= wait_) return;
    longest_ = &entry;
    wait_ = wait;
  }
  // nullptr: no entry ends.
  Entry* found() const { return longest_; }

 private:
  std::size_t held_;
  Duration patience_;
  Entry* longest_ = nullptr;
  Duration wait_{};
};

}  // namespace uet
