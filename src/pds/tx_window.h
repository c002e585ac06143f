// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What this end has sent on a PDC and the peer has not yet acknowledged, by PSN.
//
// A record stays until its PSN is acknowledged explicitly or by CACK (PDS-87). A SACKed record
// stays too: its response may be lost (PDS-89). The window slides over acknowledged records, and
// its edge is CLEAR_PSN (PDS-114). An empty one holds no memory: most PDCs are idle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <type_traits>

#include "base/block_pool.h"
#include "cms/rtt.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

struct TxRecord {
  Packet* packet = nullptr;    // nullptr: acknowledged
  Message* message = nullptr;  // nullptr: a control packet
  std::uint32_t tag = 0;       // of Client::next_packet
  std::uint32_t nominal_bytes = 0;
  Time first_sent{};
  Time last_sent{};
  Time last_inferred{};         // last retransmission by inference; Time{} = never
  Time overtaken_since{};       // one sent later on its path has arrived; Time{} = none
  Time not_before{};            // its retransmission waits until then; Time{} = no
  std::uint64_t order = 0;      // count of transmissions on this PDC when it was last sent
  std::uint32_t rto_count = 0;  // retransmissions by time-out, valid in rto_epoch (PDS-125)
  std::uint32_t rto_epoch = 0;
  std::uint32_t nack_count = 0;
  std::uint16_t sent_count = 0;
  std::uint8_t trim_count = 0;  // times that it was trimmed on the way
  std::uint16_t entropy = 0;
  // Transmissions that nothing has answered although the peer was heard of later; valid in
  // rto_epoch. Max_RTO_Retx_Cnt bounds them (PDS-121).
  std::uint16_t unanswered = 0;
  bool sacked = false;
  bool provisional = false;       // answered, but the answer that counts is still to come (SES-46)
  bool resend = false;            // waits in the retransmission scan
  bool out_of_flight = false;     // told to CMS as lost or refused, and not resent since
  bool refused = false;           // with `out_of_flight`: the peer has refused it, no loss
  bool inferred_by_path = false;  // the last inference was by path (PDS-131)
  bool ar = false;                // has asked for an ACK, or an ACK Request has
  bool asked = false;             // an ACK Request has: its answer tells no round trip time
  bool restarted = false;         // `last_sent` begins a time-out, and is no transmission
  bool excused = false;      // the last transmission does not count in `unanswered`: its rail was
                             // lost (PDS-227), or it was trimmed (kQuickTrims)
  wire::NextHdr next_hdr{};  // if message is set
  wire::CpType ctl_type{};   // if message is nullptr

  bool waits_for_nic() const { return packet->linked(); }
  // CMS-712: a packet that waits its turn in this host is not in the network yet.
  Time departure() const { return packet->sent == Time{} ? last_sent : packet->sent; }
  // Another time-out, though nothing is sent.
  void restart_time_out(Time now) {
    last_sent = now;
    restarted = true;
  }
  cms::Transmissions transmissions() const {
    return {sent_count, trim_count, departure(), !restarted};
  }
};

static_assert(std::is_trivially_copyable_v<TxRecord>);

class TxWindow {
 public:
  using Pool = BlockPool<TxRecord, false>;

  // A block of the pool is the tracking window of this source (PDS-40), a power of two records.
  TxWindow(Pool& pool, Psn start_psn)
      : pool_(pool), base_(start_psn), next_(start_psn), first_(start_psn) {}
  ~TxWindow() { let_go(); }
  TxWindow(const TxWindow&) = delete;
  TxWindow& operator=(const TxWindow&) = delete;

  Psn next_psn() const { return next_; }
  // Oldest PSN that is not acknowledged; next_psn() if there is none.
  Psn base() const { return base_; }
  // Highest PSN up to which everything is acknowledged (PDS-114).
  Psn clear_psn() const { return base_ - 1; }
  bool empty() const { return base_ == next_; }
  std::size_t span() const { return static_cast<std::size_t>(next_ - base_); }
  std::size_t capacity() const { return pool_.block_size(); }
  bool full() const { return span() >= capacity(); }

  bool holds(Psn psn) const { return psn >= base_ && psn < next_; }
  // The window must not be empty.
  TxRecord& at(Psn psn) { return records_[(psn.value - first_.value) & mask_]; }
  // The record if the PSN is outstanding, else nullptr.
  TxRecord* find(Psn psn) {
    if (!holds(psn)) return nullptr;
    TxRecord& record = at(psn);
    return record.packet != nullptr ? &record : nullptr;
  }

  // A blank record for next_psn(); the window must not be full. Other records may move.
  TxRecord& put() {
    UET_ASSERT(!full());
    if (records_ == nullptr) {
      begin();
    } else if (span() > mask_) {
      widen();
    }
    TxRecord* record = new (&at(next_)) TxRecord;
    ++next_;
    return *record;
  }
  // The newest record, which is ended, was none: its PSN is the next one again.
  void take_back() {
    next_ = next_ - 1;
    if (empty()) let_go();
  }
  // All of it begins at `start_psn` instead (PDS-77).
  void rebase(Psn start_psn) {
    first_ = start_psn + (first_ - base_);
    next_ = start_psn + (next_ - base_);
    base_ = start_psn;
  }
  // Moves the edge over acknowledged records. An empty window gives its records back.
  void slide() {
    while (base_ != next_ && at(base_).packet == nullptr) ++base_;
    if (empty()) let_go();
  }

 private:
  static constexpr std::size_t kFirstRing = 32;

  void begin() {
    records_ = pool_.take();
    first_ = next_;
    mask_ = static_cast<std::uint32_t>(std::min(kFirstRing, capacity()) - 1);
  }
  // The ring is full: it gets twice as many records of the block.
  void widen() {
    const std::uint32_t added = mask_ + 1;
    mask_ = 2 * mask_ + 1;
    for (Psn psn = base_; psn != next_; ++psn) {
      const std::uint32_t place = (psn.value - first_.value) & mask_;
      if (place >= added) records_[place] = records_[place - added];
    }
  }
  void let_go() {
    if (records_ != nullptr) pool_.give_back(records_);
    records_ = nullptr;
  }

  Pool& pool_;
  // A ring of so many of the block's records as have been outstanding at a time, a power of two:
  // the fewer they are, the more of them the caches hold.
  TxRecord* records_ = nullptr;
  Psn base_;
  Psn next_;
  // That of records_[0]. A window begins where the one that had the block before began, in records
  // that the caches still hold, so that many PDCs with a packet each share a few of them.
  Psn first_;
  std::uint32_t mask_ = 0;
};

}  // namespace uet::pds
