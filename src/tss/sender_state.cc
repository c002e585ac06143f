// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/sender_state.h"

#include <algorithm>

namespace uet::tss {

SenderState::SenderState(const SenderStart& start, const TscRange& range, bool by_blocks)
    : range_(range),
      by_blocks_(by_blocks),
      first_epoch_(start.epoch),
      epoch_(start.epoch),
      next_(range.first),
      end_(range.end),
      ready_(start.history != SenderStart::History::Unknown),
      history_told_(start.history == SenderStart::History::Known) {
  if (history_told_) next_ = std::max(range.first, start.next_tsc);
  if (by_blocks_) end_ = next_;
}

std::optional<EpochAndTsc> SenderState::take() {
  if (!ready_ || next_ >= end_) return {};
  return EpochAndTsc{epoch_, next_++};
}

Result<void> SenderState::set_epoch(std::uint16_t epoch) {
  const auto distance = [](std::uint16_t from, std::uint16_t to) {
    return static_cast<std::uint16_t>(to - from);
  };
  const std::uint16_t step = distance(epoch_, epoch);
  if (step == 0 || step >= 0x8000 ||
      distance(first_epoch_, epoch) < distance(first_epoch_, epoch_)) {
    return Error::Invalid;
  }
  epoch_ = epoch;
  next_ = range_.first;
  end_ = by_blocks_ ? next_ : range_.end;
  ready_ = true;
  history_told_ = false;
  return {};
}

}  // namespace uet::tss
