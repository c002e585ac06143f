// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Epoch and TSC keep each IV of a sender unique under one key (TSS-32, TSS-33). Knows no
// key. The owner makes a new object when it changes the key, so that both start again together.
#pragma once

#include <cstdint>
#include <optional>

#include "tss/clear_fields.h"
#include "uet/base/result.h"

namespace uet::tss {

// The TSCs that one sender may use, first <= TSC < end. Senders that share key and identity need
// disjoint ranges (TSS-32, TSS-34). The default end is a million packets below the last TSC.
struct TscRange {
  std::uint64_t first = 1;
  std::uint64_t end = kTscEnd - (std::uint64_t{1} << 20);
  friend bool operator==(const TscRange&, const TscRange&) = default;
};
constexpr bool is_valid(const TscRange& range) {
  return range.first < range.end && range.end <= kTscEnd;
}
// Server mode with SSI: both directions have the same IV prefix, so that servers take the upper
// half (TSS-32).
inline constexpr TscRange kClientTscs{1, kTscEnd >> 1};
inline constexpr TscRange kServerTscs{kTscEnd >> 1, kTscEnd - (std::uint64_t{1} << 20)};

// The history of packets that this identity sealed with a key (TSS-37).
struct SenderStart {
  enum class History : std::uint8_t {
    Fresh,    // none: the key is new to this identity
    Known,    // `next_tsc` is above every TSC used in `epoch`
    Unknown,  // this identity may have used any TSC in `epoch`
  };
  History history = History::Fresh;
  std::uint16_t epoch = 0;
  std::uint64_t next_tsc = 0;  // Known only
};

struct EpochAndTsc {
  std::uint16_t epoch = 0;
  std::uint64_t tsc = 0;
};

class SenderState {
 public:
  // `by_blocks`: `range` is shared with other senders, so that nothing can be taken before the
  // first add().
  SenderState(const SenderStart& start, const TscRange& range, bool by_blocks = false);

  // May packets be sealed? Not while the history of this epoch is unknown.
  bool ready() const { return ready_; }
  // A pair that this object never gives again; nullopt if it is not ready or at the end of the
  // range (TSS-36).
  std::optional<EpochAndTsc> take();
  // Begins a newer epoch, which starts with the first TSC (TSS-38). Invalid if it is not newer, or
  // would come again after 2^16 epochs of this key. The state is then unchanged.
  Result<void> set_epoch(std::uint16_t epoch);

  // May packets be sealed as soon as add() has brought TSCs?
  bool needs_block() const { return by_blocks_ && ready_ && next_ >= end_; }
  // The TSCs of the range that were not used yet: the next block must be among them.
  TscRange left() const { return {next_, range_.end}; }
  // `start` said which TSC follows those that were used in this epoch.
  bool history_told() const { return history_told_; }
  // TSCs that no other sender gets, inside left().
  void add(const TscRange& block) {
    next_ = block.first;
    end_ = block.end;
  }

  std::uint16_t epoch() const { return epoch_; }
  // The TSC that take() gives next: kept by the owner across a restart.
  std::uint64_t next_tsc() const { return next_; }

 private:
  TscRange range_;
  bool by_blocks_;
  std::uint16_t first_epoch_;
  std::uint16_t epoch_;
  std::uint64_t next_;
  std::uint64_t end_;  // of what may be taken now
  bool ready_;
  bool history_told_;
};

}  // namespace uet::tss
