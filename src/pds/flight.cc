// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a PDC tells its congestion context of packets sent, lost, refused and reported.
#include "pds/flight.h"

#include <algorithm>

#include "cms/rtt.h"

namespace uet::pds {

void Flight::sent(cms::Ccc& ccc, TxRecord& record, std::uint32_t counted, Time now) {
  ccc.on_sent(record.nominal_bytes, now);
  balance_ += record.nominal_bytes;
  unreported_ += record.nominal_bytes - std::min(record.nominal_bytes, counted);
  record.out_of_flight = false;
  if (!record.sacked) bytes_ += record.nominal_bytes;
}

// False if it is not in flight.
bool Flight::take_out(TxRecord& record) {
  if (record.message == nullptr || record.out_of_flight) return false;
  if (!record.sacked) bytes_ -= record.nominal_bytes;
  record.out_of_flight = true;
  record.refused = false;
  balance_ -= record.nominal_bytes;
  return true;
}

bool Flight::lost(cms::Ccc& ccc, TxRecord& record, cms::LossCause cause, Time now) {
  if (!take_out(record)) return false;
  ccc.on_inferred_loss(record.nominal_bytes, cause, now);
  return true;
}

void Flight::refused(cms::Ccc& ccc, TxRecord& record, const wire::NackHeader& nack, Time now) {
  if (!take_out(record)) return;
  record.refused = true;
  const auto rtt = cms::trimmed_rtt(record.transmissions(), now);  // of a NACK that says so
  ccc.on_nack(nack.nack_code, record.nominal_bytes, nack.ce, rtt, now);
}

void Flight::refused(cms::Ccc& ccc, TxRecord& record) {
  if (!take_out(record)) return;
  record.refused = true;
  ccc.forget(record.nominal_bytes);
}

void Flight::arrived_after_all(cms::Ccc& ccc, TxRecord& record) {
  if (!record.out_of_flight) return;
  record.out_of_flight = false;
  if (!record.sacked) bytes_ += record.nominal_bytes;
  if (record.refused) {
    ccc.forget(-std::int64_t{record.nominal_bytes});
  } else {
    ccc.on_spurious_loss(record.nominal_bytes);
  }
  balance_ += record.nominal_bytes;
}

bool Flight::inform(cms::Ccc& ccc, const wire::AckHeader& ack, bool newest,
                    cms::AckFeedback& feedback, std::uint64_t newly_acked_bytes,
                    bool nothing_outstanding, Time now) {
  feedback.ce = ack.ce;
  // No more than was sent, each packet once, and not told yet, except for the rounding (CMS-820).
  const auto most = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, unreported_ + std::int64_t{cms::kRcvdBytesUnit}));
  feedback.newly_received_bytes = std::min(newly_acked_bytes, most);  // CMS-115
  const bool counts = ack.type == wire::PdsType::AckCc && ack.cc_type == wire::CcType::Nscc;
  if (counts && !newest) {  // what it says is part of what newer ones have said
    feedback.newly_received_bytes = 0;
  } else if (counts) {
    feedback.rcv_cwnd_pend = ack.rcv_cwnd_pend;
    feedback.restore_cwnd = ack.rc;
    const cms::ReceivedBytes received = cms::newly_received(rcvd_bytes_seen_, ack.rcvd_bytes);
    // If the count exceeds the bytes sent, the acknowledged bytes count instead. Such a count is
    // stored only if nothing is outstanding, because it then makes no packet seem old.
    const bool plausible = received.newly_received_bytes <= most;
    if (plausible) feedback.newly_received_bytes = received.newly_received_bytes;
    if (plausible || nothing_outstanding) rcvd_bytes_seen_ = received.last;
  }
  unreported_ -= static_cast<std::int64_t>(feedback.newly_received_bytes);
  balance_ -= static_cast<std::int64_t>(feedback.newly_received_bytes);
  return ccc.on_ack(feedback, now);
}

// CMS-104: with nothing outstanding, nothing of this PDC is in flight; and never more than what is
// neither given up nor reported. (rcvd_bytes may count a packet that was given up just before: it
// would be taken out of flight once and put back when its ACK comes.)
void Flight::reconcile(cms::Ccc& ccc, bool nothing_outstanding) {
  if (nothing_outstanding) bytes_ = 0;
  const std::int64_t excess = balance_ - bytes_;
  if (excess == 0 || (excess < 0 && !nothing_outstanding)) return;
  ccc.forget(excess);
  balance_ -= excess;
  if (excess > 0) unreported_ -= excess;  // acknowledged, not told
}

}  // namespace uet::pds
