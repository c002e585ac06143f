// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/wire_monitor.h"

#include <algorithm>

#include "wire/dissect.h"

namespace uet::sim {

void WireMonitor::complain(const Sighting& sighting, const std::string& what) {
  if (!complaint_.empty()) return;
  complaint_ = what + ": node " + std::to_string(sighting.from) + " to " +
               std::to_string(sighting.to) + ": " +
               wire::dissect(sighting.packet->plain.empty() ? sighting.packet->bytes
                                                            : sighting.packet->plain);
}

// CACK_PSN is one before the first PSN until that has come.
bool WireMonitor::Flow::may_acknowledge(Psn psn) const {
  if (psn <= highest) return true;
  return std::ranges::any_of(rebased_from, [&](const std::pair<Psn, Psn>& before) {
    return psn >= before.first - 1 && psn <= before.second;
  });
}

void WireMonitor::note_psn(Flow& flow, Psn psn) {
  if (!flow.known || psn > flow.highest) flow.highest = psn;
  flow.known = true;
}

void WireMonitor::sent(const Sighting& sighting) {
  if (!sighting.parsed->has_value()) {
    complain(sighting, "a packet that does not parse");
  } else if (const auto* request = sighting.header<wire::RequestHeader>()) {
    request_sent(sighting, *request);
  } else if (const auto* ack = sighting.header<wire::AckHeader>()) {
    ack_sent(sighting, *ack);
  } else if (const auto* control = sighting.header<wire::ControlHeader>()) {
    const bool takes_psn = control->ctl_type == wire::CpType::Noop ||
                           control->ctl_type == wire::CpType::Close ||
                           control->ctl_type == wire::CpType::CloseRequest;
    if (takes_psn) {  // with SYN it may be of another incarnation, whose requests begin it
      Flow& flow = flows_[{sighting.from, control->spdcid.value}];
      const Psn start = control->psn - control->psn_offset;
      const bool rebased = rebases_ && control->syn && flow.known;
      if (rebased && flow.start != start) restart(flow, start, sighting.from);
      const bool same = flow.known && flow.start == start;
      if (!control->syn || same) note_psn(flow, control->psn);
    }
    if (control->syn && control->ctl_type == wire::CpType::Close) {
      complain(sighting, "PDS-56: Close Command with SYN");
    }
  }
}

// Another incarnation of the PDC id. PDS-77: after a rebase, what was sent is sent again.
void WireMonitor::restart(Flow& flow, Psn start, int from) {
  const bool rebased = rebases_ && flow.known;
  const std::int32_t span = flow.highest - flow.start;
  std::vector<std::pair<Psn, Psn>> rebased_from = std::move(flow.rebased_from);
  if (rebased) rebased_from.emplace_back(flow.start, flow.highest);
  flow = Flow{};
  flow.rebased_from = std::move(rebased_from);
  flow.start = start;
  flow.limited = true;
  flow.limit = start + (range(mpr_of(from)) - 1);
  if (rebased) note_psn(flow, start + span);
}

void WireMonitor::request_sent(const Sighting& sighting, const wire::RequestHeader& request) {
  Flow& flow = flows_[{sighting.from, request.spdcid.value}];
  if (request.spdcid.value == 0) complain(sighting, "PDS-27: request with SPDCID 0");
  if (request.clear_psn_offset > 0) complain(sighting, "PDS-34: clear_psn_offset above 0");
  if (request.syn && (!flow.known || flow.start != request.start_psn())) {
    restart(flow, request.start_psn(), sighting.from);
  }
  if (flow.limited && request.psn > flow.limit) {
    complain(sighting, "PDS-40: PSN beyond CACK_PSN + MP_RANGE");
  }
  if (request.retx && (!flow.known || request.psn > flow.highest)) {
    complain(sighting, "PDS-124: RETX on a PSN that was never sent");
  }
  note_psn(flow, request.psn);
}

void WireMonitor::ack_sent(const Sighting& sighting, const wire::AckHeader& ack) {
  const auto found = flows_.find({sighting.to, ack.dpdcid.value});
  if (found == flows_.end() || !found->second.known) return;
  Flow& flow = found->second;
  if (!flow.may_acknowledge(ack.cack_psn)) {
    if (answers_forged(sighting, ack)) return;
    complain(sighting, "PDS-83: CACK_PSN beyond what was sent");
  }
  if (flow.acked && ack.cack_psn > flow.cack) flow.cack = ack.cack_psn;
  flow.acked = true;
}

void WireMonitor::note_forged(const Sighting& sighting) {
  const auto* request = sighting.header<wire::RequestHeader>();
  const auto* control = sighting.header<wire::ControlHeader>();
  const FepAddress& source = sighting.packet->source;
  if (request != nullptr && request->syn) {
    forged_.push_back({source, request->spdcid, request->start_psn() - 1, request->psn});
  } else if (control != nullptr && control->syn) {
    forged_.push_back({source, control->spdcid, control->start_psn() - 1, control->psn});
  }
}

// A PDC id may have been in use before.
bool WireMonitor::answers_forged(const Sighting& sighting, const wire::AckHeader& ack) const {
  return std::ranges::any_of(forged_, [&](const Forged& forged) {
    return forged.source == sighting.packet->destination && forged.spdcid == ack.dpdcid &&
           ack.cack_psn >= forged.first && ack.cack_psn <= forged.last;
  });
}

void WireMonitor::delivered(const Sighting& sighting) {
  const auto* ack = sighting.header<wire::AckHeader>();
  // A copy of a protected packet, sent again by an attacker, is authentic (TSS-46): it may be the
  // first one to arrive.
  const bool authentic = sighting.from >= 0 || !sighting.packet->plain.empty();
  if (!authentic) note_forged(sighting);
  if (ack == nullptr || !authentic) return;
  const auto found = flows_.find({sighting.to, ack->dpdcid.value});
  if (found == flows_.end()) return;
  Flow& flow = found->second;
  const std::uint8_t mpr = ack->type == wire::PdsType::Ack ? mpr_of(sighting.to) : ack->mpr;
  const Psn limit = ack->cack_psn + range(mpr);
  // Return data that were made before the first ACK came may still wait in the NIC (PDS-44).
  const Psn assumed = ack->cack_psn + range(mpr_of(sighting.to));
  flow.limit = std::max(limit, flow.limited ? flow.limit : assumed);
  flow.limited = true;
}

}  // namespace uet::sim
