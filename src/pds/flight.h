// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The account of one PDC with its congestion context: bytes that it has in flight, and bytes that
// the peer has not reported yet. The context's inflight is shared by many PDCs (CMS-104); what
// one of them has put in must be taken out exactly once.
#pragma once

#include <cstdint>
#include <optional>

#include "cms/ccc.h"
#include "pds/tx_window.h"
#include "uet/base/time.h"
#include "uet/wire/pds.h"

namespace uet::pds {

class Flight {
 public:
  // Of packets neither given up nor reported.
  std::int64_t bytes() const { return bytes_; }

  // A packet of data leaves. `counted`: its nominal bytes when it left before, 0 the first time.
  void sent(cms::Ccc& ccc, TxRecord& record, std::uint32_t counted, Time now);
  // It is lost; a control packet, or one that is out of flight already, changes nothing: false.
  bool lost(cms::Ccc& ccc, TxRecord& record, cms::LossCause cause, Time now);
  // It was refused, which is no loss. Without a NACK for it the window is told nothing else: the
  // peer has no PDC yet (PDS-223), or the rail that it took was lost (PDS-227).
  void refused(cms::Ccc& ccc, TxRecord& record, const wire::NackHeader& nack, Time now);
  void refused(cms::Ccc& ccc, TxRecord& record);
  // The peer has it although it was given up. A loss was spurious then, a refusal was none.
  void arrived_after_all(cms::Ccc& ccc, TxRecord& record);
  // The peer has reported it for the first time.
  void reported(const TxRecord& record) { bytes_ -= record.nominal_bytes; }
  // Applies the fields of the ACK that concern all packets; `feedback` describes the named packet.
  // `newest`: no ACK with a higher CACK has come. True: the base RTT has risen (Ccc::on_ack).
  bool inform(cms::Ccc& ccc, const wire::AckHeader& ack, bool newest, cms::AckFeedback& feedback,
              std::uint64_t newly_acked_bytes, bool nothing_outstanding, Time now);
  // Takes out of the context what this PDC cannot have in flight.
  void reconcile(cms::Ccc& ccc, bool nothing_outstanding);

 private:
  bool take_out(TxRecord& record);

  std::int64_t unreported_ = 0;        // nominal, each packet once, until reported (CMS-110)
  std::int64_t balance_ = 0;           // what this PDC holds of the shared inflight (CMS-104)
  std::int64_t bytes_ = 0;             // its limit
  std::uint32_t rcvd_bytes_seen_ = 0;  // CMS-110
};

}  // namespace uet::pds
