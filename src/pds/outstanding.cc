// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How records of packets end, and which packets wait to leave again.
#include "pds/outstanding.h"

#include <utility>

#include "pds/credits.h"

namespace uet::pds {

bool Outstanding::has_data() {
  for (Psn psn = window_.base(); psn != window_.next_psn(); ++psn) {
    const TxRecord* record = window_.find(psn);
    if (record != nullptr && record->message != nullptr) return true;
  }
  return false;
}

// A packet that waits for the NIC has its PDS header already. The congestion context goes on to
// count the bytes that were in flight before.
void Outstanding::edit(const Message& message, PacketEditor& editor) {
  for (Psn psn = window_.base(); psn != window_.next_psn(); ++psn) {
    TxRecord* record = window_.find(psn);
    if (record == nullptr || record->message != &message) continue;
    Packet& packet = *record->packet;
    PreparedPacket prepared{.next_hdr = record->next_hdr, .tag = record->tag};
    if (!editor.edit(packet, prepared)) continue;
    record->next_hdr = prepared.next_hdr;
    record->tag = prepared.tag;
    if (record->waits_for_nic()) wire::set_next_hdr(packet.prepend(0), prepared.next_hdr);
  }
}

Packet* Outstanding::withdraw(PdcCore& core, TxRecord& record) {
  if (record.resend) unqueue(core, record);
  core.env().outbox.withdraw(*record.packet);
  return std::exchange(record.packet, nullptr);
}

void Outstanding::release(PdcCore& core, TxRecord& record) {
  core.env().packets.give_back(withdraw(core, record));
}

void Outstanding::release_all(PdcCore& core) {
  for (Psn psn = window_.base(); psn != window_.next_psn(); ++psn) {
    if (TxRecord* record = window_.find(psn); record != nullptr) release(core, *record);
  }
  window_.slide();
  reconcile(core);
}

void Outstanding::queue(PdcCore& core, TxRecord& record) {
  record.resend = true;
  ++queued_;
  if (core.ccc().credit == nullptr || record.message == nullptr) return;
  core.ccc().credit->mark_rtx(record.nominal_bytes);
  core.env().credits->note_demand(core.ccc());
}

void Outstanding::unqueue(PdcCore& core, TxRecord& record) {
  take_from_queue(record);
  if (record.message != nullptr) reconcile_credit(core, record.nominal_bytes);
}

void Outstanding::take_from_queue(TxRecord& record) {
  record.resend = false;
  --queued_;
}

void Outstanding::reconcile_credit(PdcCore& core, std::uint32_t nominal_bytes) {
  if (core.ccc().credit == nullptr) return;
  core.ccc().credit->unmark_rtx(nominal_bytes);
  core.env().credits->note_demand(core.ccc());
}

void Outstanding::lost(PdcCore& core, TxRecord& record, cms::LossCause cause, Time now) {
  if (!flight_.lost(*core.ccc().ccc, record, cause, now)) return;
  if (cause != cms::LossCause::OutOfOrder) {  // else a NACK has said that it must come again
    const std::size_t banned = core.path().banned_count();
    core.path().on_feedback(record.entropy, cms::PathFeedback::Timeout, now);
    if (core.path().banned_count() > banned) {  // CMS-419
      core.env().trace.write(trace::Kind::PathBanned, 0, core.id(), {}, record.entropy, banned + 1);
    }
  }
  core.note_window_in_trace();
}

void Outstanding::send_later(PdcCore& core, TxRecord& record, Time at) {
  record.not_before = at;
  ++core.env().counters.nack_retransmissions;
  ++core.peer_counts().nack_retransmissions;
  core.bring_forward(PdcCore::kResend, at);
}

// A NOOP is not held: it opens the PDC where the first packet has no credit to leave.
void Outstanding::hold_data(PdcCore& core) {
  holds_data_ = true;
  for (Psn psn = window_.base() + 1; psn != window_.next_psn(); ++psn) {
    TxRecord* record = window_.find(psn);
    if (record == nullptr || record->message == nullptr) continue;
    if (record->resend) unqueue(core, *record);
    flight_.refused(*core.ccc().ccc, *record);
    record->rto_count = record->unanswered = 0;
    record->not_before = kNever;
  }
}

}  // namespace uet::pds
