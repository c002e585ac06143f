// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Watches the packets of a SimWorld and notes the first one that breaks a rule of PDS which holds
// whatever the network does. Knows only what is on the wire.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/sim_world.h"

namespace uet::sim {

class WireMonitor {
 public:
  // `mprs`: what the FEP of each node assumes and advertises (PDS-44). A node that has none is
  // another process at the address of one. `mpr_zero_psns`: as in pds::Parameters.
  // `rebases`: a peer may tell another Start_PSN (PDS section 7).
  WireMonitor(std::vector<std::uint8_t> mprs, std::uint8_t mpr_zero_psns, bool rebases = false)
      : mprs_(std::move(mprs)), mpr_zero_psns_(mpr_zero_psns), rebases_(rebases) {}

  void sent(const Sighting& sighting);
  void delivered(const Sighting& sighting);
  // Empty if nothing was wrong.
  const std::string& complaint() const { return complaint_; }

 private:
  // One direction of a PDC, named by its sender and the sender's PDC id.
  using FlowKey = std::pair<int, std::uint16_t>;
  struct Flow {
    bool known = false;  // some PSN has been seen
    Psn start;           // of the PDC; both directions share it (PDS-32)
    Psn highest;         // newest PSN sent
    bool limited = false;
    Psn limit;  // largest PSN allowed so far (PDS-40)
    bool acked = false;
    Psn cack;  // newest CACK_PSN sent for it
    // The PSNs that were sent before each rebase, first and last: their ACKs may come late.
    std::vector<std::pair<Psn, Psn>> rebased_from;

    bool may_acknowledge(Psn psn) const;
  };
  // The PDC id that an invented packet with SYN names, and its source, which is another node's: its
  // target answers to there. First and last PSN that it may acknowledge then.
  struct Forged {
    FepAddress source;
    PdcId spdcid;
    Psn first;
    Psn last;
  };

  void request_sent(const Sighting& sighting, const wire::RequestHeader& request);
  void ack_sent(const Sighting& sighting, const wire::AckHeader& ack);
  void restart(Flow& flow, Psn start, int from);
  void note_psn(Flow& flow, Psn psn);
  void note_forged(const Sighting& sighting);
  bool answers_forged(const Sighting& sighting, const wire::AckHeader& ack) const;
  void complain(const Sighting& sighting, const std::string& what);

  std::uint8_t mpr_of(int node) const {
    const auto index = static_cast<std::size_t>(node);
    return index < mprs_.size() ? mprs_[index] : UINT8_MAX;
  }

  std::int32_t range(std::uint8_t mpr) const {
    return mpr == 0 ? mpr_zero_psns_ : mpr * static_cast<std::int32_t>(wire::kMprUnitPsns);
  }

  std::vector<std::uint8_t> mprs_;
  std::uint8_t mpr_zero_psns_;
  bool rebases_;
  std::map<FlowKey, Flow> flows_;
  std::vector<Forged> forged_;
  std::string complaint_;
};

}  // namespace uet::sim
