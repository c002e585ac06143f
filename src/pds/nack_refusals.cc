// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a peer of another implementation does not know and refuses: control packets that it can do
// without, and receiver credit (PDS-221). It gets none of them any more.
#include "pds/credits.h"
#include "pds/nack_intake.h"
#include "uet/wire/be.h"

namespace uet::pds {

// PDS-221: the peer does not know a control packet that it can do without, and gets none of its
// type any more. The PSN of a NOOP goes to the next packet, unless one has left since. False: the
// NACK is for something else, or ends the PDC.
bool NackIntake::on_refused_control(const wire::NackHeader& nack, TxRecord* record) {
  if (nack.nack_code != NackCode::UnexpEvent) return false;
  if (record == nullptr) return on_refused_untracked(nack);
  const FepAddress& peer = core_.destination().address;
  if (record->message != nullptr) {
    if (on_refused_credit(nack.nack_psn, *record)) return true;
    // Perhaps late, for the NOOP that had this PSN before.
    return record->sent_count == 1 && env().peer_limits.refuses(peer, wire::CpType::Noop);
  }
  if (record->ctl_type != wire::CpType::Noop) return false;
  env().peer_limits.note_refusal(peer, wire::CpType::Noop);
  const bool newest = nack.nack_psn + 1 == side_.window().next_psn();
  if (core_.state() == PdcState::Creating || !newest) return false;
  side_.outstanding().release(core_, *record);
  side_.window().take_back();
  return true;
}

// The NACK may answer the last optional control packet, which had no PSN.
bool NackIntake::on_refused_untracked(const wire::NackHeader& nack) {
  const wire::CpType type = core_.last_optional();
  if (type == wire::CpType::Noop || side_.window().holds(nack.nack_psn)) return false;
  env().peer_limits.note_refusal(core_.destination().address, type);
  if (type == wire::CpType::Probe) core_.ccc().probes_wanted = 0;
  if (type == wire::CpType::CreditRequest) give_up_credit();
  core_.forget_last_optional();
  return true;
}

// PDS-221: the peer has no receiver credit, neither as Credit Request nor in requests.
void NackIntake::give_up_credit() {
  SharedCcc& shared = core_.ccc();
  env().peer_limits.note_refusal(core_.destination().address, wire::CpType::CreditRequest);
  if (shared.credit == nullptr || !shared.credit->asks_for_credit()) return;
  shared.credit->fall_back();
  ++env().counters.credit_fallbacks;
  env().credits->await(shared, now_);
  wake_waiters(core_.ccc());
}

// The peer does not know requests that name a context of credit: each of them goes again without
// it. False: the refused packet was none.
bool NackIntake::on_refused_credit(Psn psn, TxRecord& record) {
  if (!names_credit(record)) {  // perhaps late, for the transmission before, which did
    return record.sent_count == 2 &&
           env().peer_limits.refuses(core_.destination().address, wire::CpType::CreditRequest);
  }
  give_up_credit();
  side_.outstanding().flight().refused(ccc(), record);
  ++env().counters.nack_retransmissions;
  ++core_.peer_counts().nack_retransmissions;
  side_.queue_resend(psn, record, now_);
  side_.outstanding().reconcile(core_);
  wake_waiters(core_.ccc());
  return true;
}

// Its last transmission was one of a request with a target.
bool NackIntake::names_credit(const TxRecord& record) {
  const auto& prologue = wire::load<wire::PdsPrologue>(record.packet->head());
  const auto type = static_cast<wire::PdsType>(wire::PdsPrologue::Type::get(prologue));
  return type == wire::PdsType::RudCcReq || type == wire::PdsType::RodCcReq;
}

}  // namespace uet::pds
