// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One transmission of a packet by a PDC: its header, its path, and the accounts that it enters.
#include "pds/transmission.h"

#include <algorithm>

#include "pds/credits.h"
#include "pds/loss_recovery.h"
#include "pds/retransmit.h"

namespace uet::pds {

namespace {

constexpr std::uint8_t kTrimsBeforeNoTrim = 4;       // the first transmission and three more
constexpr std::uint64_t kLongestTrainBytes = 65536;  // CMS-700

std::uint8_t pdc_info_of(const PdcCore& core) {
  return core.destination().reserved_pool ? wire::kReservedPool : 0;
}

void write_control_header(const PdcCore& core, Psn psn, const TxRecord& record,
                          bool retransmission) {
  const bool syn = core.state() == PdcState::Creating;  // PDS-51, PDS-54
  wire::ControlHeader header;
  header.ctl_type = record.ctl_type;
  header.isrod = record.ctl_type == wire::CpType::Noop && syn && core.ordered();  // PDS-158
  header.retx = retransmission;
  header.ar = true;
  header.syn = syn;
  header.psn = psn;
  header.spdcid = core.id();
  header.dpdcid = core.peer_id();
  header.pdc_info = pdc_info_of(core);
  header.psn_offset = static_cast<std::uint16_t>(psn - core.start_psn());
  header.encode(record.packet->prepend(sizeof(wire::PdsControl)));
}

void write_request_header(SendSide& side, Psn psn, const TxRecord& record, bool retransmission) {
  PdcCore& core = side.core();
  SharedCcc& shared = core.ccc();
  const bool ordered = core.ordered();
  wire::RequestHeader header;
  header.type = ordered ? wire::PdsType::RodReq : wire::PdsType::RudReq;
  header.next_hdr = record.next_hdr;
  header.retx = retransmission;
  header.ar = record.ar;                            // PDS-101, PDS-124
  header.syn = core.state() == PdcState::Creating;  // PDS-51, PDS-54
  header.clear_psn_offset =
      static_cast<std::int16_t>(side.window().clear_psn() - psn);  // PDS-34, 36
  header.psn = psn;
  header.spdcid = core.id();
  header.dpdcid = core.peer_id();
  header.pdc_info = pdc_info_of(core);
  header.psn_offset = static_cast<std::uint16_t>(psn - core.start_psn());
  if (shared.credit != nullptr && shared.credit->asks_for_credit()) {  // CMS-200
    header.type = ordered ? wire::PdsType::RodCcReq : wire::PdsType::RudCcReq;
    header.ccc_id = shared.credit->ccc_id();
    header.credit_target = core.env().credits->take_target(shared);
    header.encode(record.packet->prepend(sizeof(wire::PdsCcRequest)));
  } else {
    header.encode(record.packet->prepend(sizeof(wire::PdsRequest)));
  }
  side.clear_debt().paid();  // PDS-115
}

// CMS-30, CMS-504. A packet that is trimmed again and again gets a DSCP that switches never trim,
// because otherwise only its headers would arrive (CMS-507).
std::uint8_t dscp_for(const PdcCore& core, const TxRecord& record, bool retransmission) {
  const Parameters& parameters = core.env().parameters;
  if (record.message == nullptr) return parameters.dscp_control;
  if (record.trim_count >= kTrimsBeforeNoTrim) return parameters.dscp_no_trim;
  const std::uint8_t dscp = retransmission
                                ? parameters.dscp_retransmission.value_or(parameters.dscp_data)
                                : parameters.dscp_data;
  return dscp_of_class(core.destination().traffic_class, dscp);
}

// CMS-700: so short that a window takes several paths.
std::uint32_t train_packets(const PdcCore& core) {
  const cms::Parameters& cms = core.env().cms;
  if (cms.train_packets <= 1) return 1;
  const std::uint64_t bytes =
      std::min<std::uint64_t>(kLongestTrainBytes, core.ccc().ccc->window_bytes() / 4);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(bytes / cms.mtu_bytes, 1, cms.train_packets));
}

// Odd retries after a time-out take the path of the last ACK; even ones take another path.
std::uint16_t choose_path(PdcCore& core, const TxRecord& record, Time now) {
  return record.rto_count % 2 == 1 ? core.path().next_answered(core.env().rng, now)
                                   : core.path().next(core.env().rng, now, train_packets(core));
}

// Control packets are not congestion controlled (PDS-3). `counted`: nominal bytes of the packet
// when it left before.
void note_data_sent(SendSide& side, TxRecord& record, std::uint32_t counted, Time now) {
  PdcCore& core = side.core();
  const SharedCcc& shared = core.ccc();
  side.wait().data_left(core, now);
  side.outstanding().flight().sent(*shared.ccc, record, counted, now);
  side.outstanding().note_data_sent(record.ar);
  WindowWait::leave_line(core);
  const bool may_ask =
      side.backlog().empty() ? shared.recovers || !record.ar : shared.recovers_midway;
  if (may_ask && core.deadline_of(PdcCore::kSilence) == kNever) {
    LossRecovery(side, now).on_silence();
  }
}

}  // namespace

void transmit(SendSide& side, Psn psn, TxRecord& record, bool retransmission, Time now) {
  PdcCore& core = side.core();
  record.ar |= retransmission;  // PDS-124
  if (retransmission && core.state() == PdcState::Creating) core.note_syn_came_again();
  record.packet->drop_prepended();
  if (record.message != nullptr) {
    write_request_header(side, psn, record, retransmission);
  } else {
    write_control_header(core, psn, record, retransmission);
  }
  Packet& packet = *record.packet;
  packet.to = core.destination().address;
  packet.sent = {};
  packet.payload_stays = true;
  packet.sent_again = retransmission;
  packet.entropy = record.entropy = choose_path(core, record, now);
  const bool data = record.message != nullptr;
  packet.ecn = data ? Ecn::Ect0 : Ecn::NotEct;  // CMS-31
  packet.dscp = dscp_for(core, record, retransmission);
  const std::uint32_t counted = retransmission ? record.nominal_bytes : 0;
  record.nominal_bytes = cms::nominal_packet_bytes(packet.length());
  core.charge(record.nominal_bytes);
  ++core.peer_counts().packets_sent;
  core.peer_counts().bytes_sent += record.nominal_bytes;
  side.loss().sent(record, retransmission, now);
  if (data) note_data_sent(side, record, counted, now);
  if (!Outbox::holds(packet)) core.env().outbox.push(packet);  // else it keeps its place in line
  core.note_activity(now);
  core.bring_forward(PdcCore::kResend, now + rto(core.env().parameters, 0));
}

}  // namespace uet::pds
