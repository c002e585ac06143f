// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When the base RTT is measured by a Probe, and which answers count.
#include "pds/base_rtt_probe.h"

#include "cms/rtt.h"

namespace uet::pds {

namespace {

// The opaque of Probes that measure the base RTT, one more for each.
constexpr std::uint16_t kFirstProbeOpaque = 2;
std::uint16_t base_rtt_opaque(std::uint16_t number) {
  constexpr std::uint16_t kOpaques = LossDetector::kFirstOpaque - kFirstProbeOpaque;
  return static_cast<std::uint16_t>(kFirstProbeOpaque + number % kOpaques);
}

}  // namespace

// CMS-140, CMS-710: while a transfer fills queues with data, packets that wait behind none tell how
// long the path is, and the quickest of them that no host was busy. Not for a transfer that is over
// with its first answer. Lost ones are not repeated: the traffic tells as well, if later.
void probe_base_rtt(SendSide& side, Time now) {
  PdcCore& core = side.core();
  SharedCcc& shared = core.ccc();
  if (shared.probes_wanted == 0) return;
  const bool can = core.state() == PdcState::Established && core.role() == Role::Initiator;
  if (!can || side.backlog().empty() || now < shared.probe_due) return;
  if (!core.send_untracked({.ctl_type = wire::CpType::Probe,
                            .ar = true,
                            .probe_opaque = base_rtt_opaque(shared.probes),
                            .payload = (side.peer_window().cack() + 1).value})) {
    return;
  }
  ++core.env().counters.probes_sent;
  ++shared.probes;
  shared.probe_sent = now;
  shared.probe_due = now + kBaseRttProbeSpacing * (1 << (kBaseRttProbes - shared.probes_wanted));
  --shared.probes_wanted;
}

// CMS-140: the first answer to the newest Probe; one to an older one, or a copy, tells nothing.
void on_base_rtt_answer(SharedCcc& shared, const wire::AckHeader& ack, Time arrived) {
  const auto newest = static_cast<std::uint16_t>(shared.probes - 1);
  if (shared.probe_sent == Time{} || ack.probe_opaque != base_rtt_opaque(newest)) return;
  const auto rtt =
      cms::rtt_sample({.sent = 1, .latest = shared.probe_sent}, false, arrived, ack.service_time);
  shared.probe_sent = Time{};
  if (rtt) shared.ccc->on_probe_answer(*rtt);
}

}  // namespace uet::pds
