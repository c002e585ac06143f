// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which PSNs of the peer have arrived on a PDC, and how far they are finished.
//
// CACK_PSN moves over a PSN when it was delivered and its response either needs no guarantee or has
// been cleared (PDS-83 to 87). Window and duplicates follow PDS-45 and PDS-46. Memory is held only
// while something above CACK has arrived: most PDCs are idle, and most packets come in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/block_pool.h"
#include "uet/base/check.h"
#include "uet/base/types.h"

namespace uet::pds {

class RxWindow {
 public:
  enum class Slot : std::uint8_t {
    Missing,
    Finished,     // delivered, default response
    Guaranteed,   // delivered, response stored until cleared
    Provisional,  // delivered, the response stored is not the one that counts (SES-46)
    Buffered,     // ROD: arrived early, waits for its predecessors
  };
  enum class Place : std::uint8_t { New, Duplicate, OutOfRange };

  struct Entry {
    Slot slot;
    std::uint16_t index;  // of what is stored; of a Finished one its message
  };
  using Pool = BlockPool<Entry>;

  // The size of a block of the pool, a power of two, is MP_RANGE. Blocks come and go Missing.
  RxWindow(Pool& pool, Psn start_psn)
      : pool_(pool), cack_(start_psn - 1), clear_(cack_), highest_(cack_), owed_(cack_) {}
  ~RxWindow() {
    for (Psn psn = cack_ + 1; psn <= highest_; ++psn) entries_[position(psn)].slot = Slot::Missing;
    let_go();
  }
  RxWindow(const RxWindow&) = delete;
  RxWindow& operator=(const RxWindow&) = delete;

  Psn cack_psn() const { return cack_; }
  Psn clear_psn() const { return clear_; }
  Psn highest_psn() const { return highest_; }              // highest one that arrived
  std::size_t range() const { return pool_.block_size(); }  // MP_RANGE

  Place place(Psn psn) const {
    const std::int32_t ahead = psn - cack_;
    const auto most = static_cast<std::int32_t>(range());
    if (ahead <= 0) return ahead > -most ? Place::Duplicate : Place::OutOfRange;
    if (ahead > most) return Place::OutOfRange;
    return slot(psn) == Slot::Missing ? Place::New : Place::Duplicate;
  }
  // State of a PSN above CACK; Finished for those at or below it.
  Slot state(Psn psn) const {
    if (psn <= cack_) return Slot::Finished;
    return psn - cack_ > static_cast<std::int32_t>(range()) ? Slot::Missing : slot(psn);
  }
  // A packet up to `psn`, at or below the highest one that arrived, has not come.
  bool misses_up_to(Psn psn) const {
    for (Psn next = cack_ + 1; next <= psn && next <= highest_; ++next) {
      if (slot(next) == Slot::Missing) return true;
    }
    return false;
  }
  // Of what is stored.
  std::uint16_t index(Psn psn) const { return entries_[position(psn)].index; }
  // The message of the Finished packet `psn`, at or above CACK; 0: unknown, or it had none.
  MsgId message(Psn psn) const { return psn == cack_ ? cack_message_ : MsgId{index(psn)}; }

  // Nothing has arrived, and Start_PSN is another one (PDS-77).
  void rebase(Psn start_psn) { cack_ = clear_ = highest_ = owed_ = start_psn - 1; }

  // `index` names what is stored for Guaranteed and Buffered, and the message of a Finished one.
  void mark(Psn psn, Slot state, std::uint16_t index = 0) {
    UET_ASSERT(psn > cack_ && psn - cack_ <= static_cast<std::int32_t>(range()));
    if (entries_ == nullptr) {
      if (state == Slot::Missing) return;
      entries_ = pool_.take();
    }
    entries_[position(psn)] = {state, index};
    if (state != Slot::Missing && psn > highest_) highest_ = psn;
    if (state == Slot::Provisional && (!owes() || psn < owed_)) owed_ = psn;
    if (owes() && state == Slot::Guaranteed && psn == owed_) find_owed();
  }
  // As mark(psn, Slot::Finished, message) and advance() where it is the next one and none above it
  // has arrived; false and without effect elsewhere.
  bool finish_in_order(Psn psn, MsgId message = {}) {
    if (highest_ != cack_ || psn != cack_ + 1) return false;
    highest_ = cack_ = psn;
    cack_message_ = message;
    return true;
  }
  // The source says that it has the responses of all PSNs up to `psn` (PDS-114); older values
  // change nothing, values beyond what has arrived are not believed, nor those of a PSN whose
  // response does not exist yet (SES-46).
  void clear_up_to(Psn psn) {
    if (owes() && psn >= owed_) psn = owed_ - 1;
    if (psn <= clear_ || psn > highest_) return;
    if (!owes()) owed_ = psn;
    clear_ = psn;
  }
  // Moves CACK as far as the rules allow; `release(index)` is called for every guaranteed response
  // that it passes.
  template <class Release>
  void advance(Release&& release) {
    while (cack_ != highest_) {
      const Psn psn = cack_ + 1;
      Entry& entry = entries_[position(psn)];
      if (entry.slot == Slot::Guaranteed && psn <= clear_) {
        release(entry.index);
      } else if (entry.slot != Slot::Finished) {
        return;
      }
      cack_message_ = MsgId{entry.slot == Slot::Finished ? entry.index : std::uint16_t{0}};
      entry.slot = Slot::Missing;
      cack_ = psn;
    }
    let_go();
  }
  // 64 bits from `base` on, bit 0 = base; PSNs at or below CACK count as received (PDS-88).
  std::uint64_t bitmap(Psn base) const {
    std::uint64_t bits = 0;
    for (std::int32_t i = 0; i < 64; ++i) {
      const Psn psn = base + i;
      if (psn > highest_) break;
      if (state(psn) != Slot::Missing) bits |= std::uint64_t{1} << i;
    }
    return bits;
  }
  // A bitmap of the 64 PSNs that follow CACK: 1 = Finished; bit 0 is CACK + 1.
  std::uint64_t finished_bitmap() const {
    std::uint64_t bits = 0;
    for (std::int32_t i = 0; i < 64; ++i) {
      const Psn psn = cack_ + 1 + i;
      if (psn > highest_) break;
      if (state(psn) == Slot::Finished) bits |= std::uint64_t{1} << i;
    }
    return bits;
  }
  // Bitmap base for an ACK triggered by `trigger` (PDS-92).
  Psn sack_base(Psn trigger) const {
    const std::int32_t ahead = trigger - (cack_ + 1);
    return ahead < 64 ? cack_ + 1 : cack_ + 1 + (ahead & ~63);
  }

 private:
  bool owes() const { return owed_ != clear_; }
  // The next PSN that is still Provisional.
  void find_owed() {
    Psn psn = std::exchange(owed_, clear_);
    while (!owes() && psn != highest_) {
      psn = psn + 1;
      if (slot(psn) == Slot::Provisional) owed_ = psn;
    }
  }
  std::size_t position(Psn psn) const { return psn.value & (range() - 1); }
  Slot slot(Psn psn) const {
    return entries_ != nullptr ? entries_[position(psn)].slot : Slot::Missing;
  }
  void let_go() {
    if (entries_ != nullptr) pool_.give_back(entries_);
    entries_ = nullptr;
  }

  Pool& pool_;
  Entry* entries_ = nullptr;
  Psn cack_;
  Psn clear_;
  Psn highest_;
  Psn owed_;  // the lowest one that is Provisional; clear_: none is
  MsgId cack_message_{};
};

}  // namespace uet::pds
