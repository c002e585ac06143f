// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a peer of another implementation does not know and refuses: control packets that it can do
// without, and receiver credit (PDS-221). It gets none of them any more.
#include "uet/pds/pdc.h"
#include "uet/wire/be.h"

namespace uet::pds {

// PDS-221: the peer does not know a control packet that it can do without, and gets none of its
// type any more. The PSN of a NOOP goes to the next packet, unless one has left since. False: the
// NACK is for something else, or ends the PDC.
bool Pdc::on_refused_control(const wire::NackHeader& nack, TxRecord* record, Time now) {
  if (nack.nack_code != NackCode::UnexpEvent) return false;
  if (record == nullptr) {
    if (last_optional_ == wire::CpType::Noop || tx_.holds(nack.nack_psn)) return false;
    env_.peer_limits.note_refusal(destination_.address, last_optional_);
    if (last_optional_ == wire::CpType::Probe) ccc_.probes_wanted = 0;
    if (last_optional_ == wire::CpType::CreditRequest) give_up_credit(now);
    last_optional_ = wire::CpType::Noop;
    return true;
  }
  if (record->message != nullptr) {
    if (on_refused_credit(nack.nack_psn, *record, now)) return true;
    // Perhaps late, for the NOOP that had this PSN before.
    return record->sent_count == 1 &&
           env_.peer_limits.refuses(destination_.address, wire::CpType::Noop);
  }
  if (record->ctl_type != wire::CpType::Noop) return false;
  env_.peer_limits.note_refusal(destination_.address, wire::CpType::Noop);
  if (state_ == PdcState::Creating || nack.nack_psn + 1 != tx_.next_psn()) return false;
  release(*record);
  tx_.take_back();
  return true;
}

// PDS-221: the peer has no receiver credit, neither as Credit Request nor in requests.
void Pdc::give_up_credit(Time now) {
  env_.peer_limits.note_refusal(destination_.address, wire::CpType::CreditRequest);
  if (ccc_.credit == nullptr || !ccc_.credit->asks_for_credit()) return;
  ccc_.credit->fall_back();
  ++env_.counters.credit_fallbacks;
  env_.credits->await(ccc_, now);
  wake_ccc_waiters();
}

// The peer does not know requests that name a context of credit: each of them goes again without
// it. False: the refused packet was none.
bool Pdc::on_refused_credit(Psn psn, TxRecord& record, Time now) {
  if (!names_credit(record)) {  // perhaps late, for the transmission before, which did
    return record.sent_count == 2 &&
           env_.peer_limits.refuses(destination_.address, wire::CpType::CreditRequest);
  }
  give_up_credit(now);
  flight_.refused(*ccc_.ccc, record);
  ++env_.counters.nack_retransmissions;
  queue_resend(psn, record, now);
  settle_ccc();
  wake_ccc_waiters();
  return true;
}

// Its last transmission was one of a request with a target.
bool Pdc::names_credit(const TxRecord& record) {
  const auto& prologue = wire::load<wire::PdsPrologue>(record.packet->head());
  const auto type = static_cast<wire::PdsType>(wire::PdsPrologue::Type::get(prologue));
  return type == wire::PdsType::RudCcReq || type == wire::PdsType::RodCcReq;
}

}  // namespace uet::pds
