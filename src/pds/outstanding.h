// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The packets of a PDC that were sent and are not acknowledged: their records (TxWindow), which of
// them wait to leave again, and what the congestion context holds for them (Flight). Must not know
// why a packet leaves again, nor how.
#pragma once

#include <cstdint>

#include "cms/ccc.h"
#include "pds/flight.h"
#include "pds/pdc_core.h"
#include "pds/tx_window.h"
#include "uet/base/packet.h"
#include "uet/base/time.h"
#include "uet/base/types.h"
#include "uet/pds/api.h"

namespace uet::pds {

class Outstanding {
 public:
  Outstanding(TxWindow::Pool& pool, Psn start_psn) : window_(pool, start_psn) {}

  TxWindow& window() { return window_; }
  const TxWindow& window() const { return window_; }
  Flight& flight() { return flight_; }
  const Flight& flight() const { return flight_; }
  bool empty() const { return window_.empty(); }
  // A packet of a message is outstanding, not only control packets.
  bool has_data();
  // As Delivery::edit_packets.
  void edit(const Message& message, PacketEditor& editor);

  // Data packets sent since one asked for an ACK (CMS-124).
  std::uint16_t unasked() const { return unasked_; }
  void note_data_sent(bool asks) { unasked_ = asks ? 0 : static_cast<std::uint16_t>(unasked_ + 1); }
  // In RUD, refused packets take turns with new ones: the refused ones had the last turn.
  bool refused_went() const { return refused_went_; }
  void set_refused_went(bool went) { refused_went_ = went; }

  // ---- end of a packet --------------------------------------------------------------------------

  // Ends the record. Its packet leaves no more and is the caller's.
  Packet* withdraw(PdcCore& core, TxRecord& record);
  // Ends the record and gives its packet back.
  void release(PdcCore& core, TxRecord& record);
  // Ends all records.
  void release_all(PdcCore& core);

  // ---- packets that leave again -----------------------------------------------------------------

  // Packets that wait to leave again.
  std::uint16_t queued() const { return queued_; }
  // The packet waits to leave again from now on.
  void queue(PdcCore& core, TxRecord& record);
  // The packet waits no more.
  void unqueue(PdcCore& core, TxRecord& record);
  // The packet is about to leave. Call reconcile_credit() once it has left.
  void take_from_queue(TxRecord& record);
  // Data of `nominal_bytes` waits to leave again no more: the receiver's credit counts it no more.
  void reconcile_credit(PdcCore& core, std::uint32_t nominal_bytes);
  // The packet is lost: the congestion window and its path are told.
  void lost(PdcCore& core, TxRecord& record, cms::LossCause cause, Time now);
  // The refused packet leaves again at `at`.
  void send_later(PdcCore& core, TxRecord& record, Time at);

  // ---- the target has no PDC (PDS-223) ----------------------------------------------------------

  // Data behind the first packet wait until the target has a PDC.
  bool holds_data() const { return holds_data_; }
  static bool is_held(const TxRecord& record) { return record.not_before == kNever; }
  // Takes data behind the first packet out of flight. They have no deadline from now on.
  void hold_data(PdcCore& core);
  // The target has a PDC, or names another Start_PSN. The held packets are the caller's to queue.
  void end_hold() { holds_data_ = false; }

  // Takes out of the congestion context what this PDC cannot have in flight.
  void reconcile(PdcCore& core) { flight_.reconcile(*core.ccc().ccc, window_.empty()); }

 private:
  TxWindow window_;
  Flight flight_;
  std::uint16_t queued_ = 0;
  std::uint16_t unasked_ = 0;
  bool holds_data_ : 1 = false;
  bool refused_went_ : 1 = false;
};

}  // namespace uet::pds
