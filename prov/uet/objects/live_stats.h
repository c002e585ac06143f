// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The live page of a domain (live/page.h): what it shows, and when. A domain without a page works
// as well as one that has a page.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "live/page_writer.h"
#include "live/trace_dump.h"
#include "objects/trace_log.h"
#include "pds/peer_table.h"
#include "pds/waiting_pdc.h"
#include "ses/waiting_operation.h"
#include "uet/base/time.h"

namespace uet::prov {

class Engine;

// The record of a peer at `now`.
live::PeerRecord peer_record(const pds::PeerView& view, Time now);
live::PdcRecord pdc_record(const pds::WaitingPdc& pdc);
live::OperationRecord operation_record(const ses::WaitingOperation& operation);
// Keeps the `most` PDCs whose oldest packet was sent first, the first of them first; PDCs without
// packets come last.
void keep_oldest(std::vector<pds::WaitingPdc>& pdcs, std::size_t most);
// Keeps the `most` views whose peers have exchanged most bytes, the first of them first.
void keep_busiest(std::vector<pds::PeerView>& views, std::size_t most);

// When the page may be written again at all, and when it must be if something has changed. An
// update that took `cost` and began at `start` is followed by kShare times as long without one:
// however many peers and PDCs there are, at most 1 / kShare of the time goes into updates.
struct Pace {
  static constexpr Duration kPeriod = std::chrono::milliseconds(100);
  // Before the domain sleeps, its last changes are shown if the page is that old.
  static constexpr Duration kLeastPeriod = std::chrono::milliseconds(10);
  static constexpr int kShare = 200;

  Time earliest;
  Time due;
};
Pace pace_after(Time start, Duration cost);

// All calls but the constructor: with the engine's lock.
class LiveStats {
 public:
  // Makes the page, unless the parameters or the rights of the program forbid it. If no page can be
  // made, that is logged once for each process.
  void open(Engine& engine, const std::string& interface) noexcept;
  // Removes the page.
  void close() noexcept;
  // Removes the file of the page, which may be written meanwhile. Needs no lock.
  void remove_file() noexcept {
    if (page_) page_->remove_file();
  }

  // The end of a pass.
  void passed(Engine& engine, bool busy, Time now) noexcept {
    changed_ |= busy;
    if (trace::Ring* const ring = this->ring()) {
      ring->last_pass_ns = to_ns(now);
      if (log_.wants(*ring)) log_.write(*ring);
    }
    if (dumps_failures_) note_failures(engine, now);
    if (now >= pace_.due) update(engine, now);
  }
  void sleeps(Engine& engine, Time now) noexcept {
    if (trace::Ring* const ring = this->ring()) ring->sleeping_since_ns = to_ns(now);
    if (changed_ && now >= pace_.earliest) update(engine, now);
  }
  // The trace of the domain; nullptr: there was no memory for it.
  trace::Ring* ring() const { return page_ ? &page_->trace() : own_ring_.get(); }
  // Writes the counters where FI_UET_STATS says.
  void write_counters(Engine& engine, const char* why) noexcept;
  // Copies the page, with the numbers of `now`, into the directory that FI_UET_STATS names.
  void save_page(Engine& engine, Time now) noexcept;
  // Writes counters and trace there.
  void write_all(Engine& engine, const char* why, Time now) noexcept;
  // Appends the trace and all that waits to `file`, as text (live/trace_dump.h); empty: to standard
  // error. 0 or a negative fi_errno.
  int write_trace(Engine& engine, const std::string& file, const char* why, Time now);
  // When the domain must make a pass so that the page shows what has changed; kNever: not at all.
  Time next_deadline() const { return changed_ ? pace_.due : kNever; }

 private:
  void open_page(Engine& engine, const std::string& interface) noexcept;
  void update(Engine& engine, Time now) noexcept;
  void note_failures(Engine& engine, Time now) noexcept;
  live::TraceDump dump(Engine& engine, const char* why, Time now);
  live::Waiting list_waiting(Engine& engine);

  std::unique_ptr<live::PageWriter> page_;
  Pace pace_{kNever, kNever};  // without a page
  bool changed_ = false;
  std::vector<pds::PeerView> views_;
  std::vector<live::PeerRecord> records_;
  std::vector<pds::WaitingPdc> waiting_pdcs_;
  std::vector<live::PdcRecord> pdc_records_;
  std::vector<ses::WaitingOperation> operations_;
  std::vector<live::OperationRecord> operation_records_;
  std::unique_ptr<trace::Ring> own_ring_;  // of a domain without a page
  bool dumps_failures_ = false;            // FI_UET_STATS=error
  std::uint64_t failures_seen_ = 0;
  Time next_failure_dump_ = Time::min();
  TraceLog log_;
};

}  // namespace uet::prov
