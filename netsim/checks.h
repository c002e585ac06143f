// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The properties of CMS 8.4 that every run must have, checked from outside the core: on the wire,
// in a Fep's counters of its congestion contexts, and at the end. README.md says which is where.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "netsim/clock.h"
#include "netsim/packet.h"
#include "pds/ccc_pool.h"
#include "uet/base/types.h"
#include "uet/wire/pds.h"

namespace uet::netsim {

class Network;

// The receiver of a packet, its class and its ROD PDC.
struct Sent {
  std::uint32_t destination = 0;
  std::uint8_t dscp = 0;
  PdcId rod_pdc;  // 0: not ordered
};

class Checks {
 public:
  // Violations are told to `network`, which outlives this.
  explicit Checks(Network& network) : network_(network) {}

  // A host begins a pass. `held`: packets of earlier passes are still to leave in this one, so that
  // what is sent tells nothing of the state after the pass.
  void before_pass(bool held);
  // A packet leaves its host, or arrives at one.
  void on_sent(const NetPacket& packet);
  void on_delivered(const NetPacket& packet);
  void after_pass(std::uint32_t host);
  // `finished`: all flows have completed.
  void at_end(bool finished);

 private:
  struct Stream {  // requests of one PDC in one direction
    Psn start;
    std::vector<bool> arrived;             // by PSN
    std::uint64_t nominal_bytes = 0;       // of those, once each (CMS-111)
    std::vector<std::uint16_t> entropies;  // in order
    std::uint16_t entropy = 0;             // of the last one, taken first at entropy_since
    Picoseconds entropy_since = 0;
    std::uint64_t sends = 0;
    std::uint8_t ccc_id = 0;
  };
  struct Credit {               // of one context of a source, running totals (CMS-201)
    std::uint32_t target = 0;   // the highest that was asked for
    std::uint32_t granted = 0;  // the newest
  };

  static std::uint64_t key(std::uint32_t source, PdcId pdc) {
    return std::uint64_t{source} << 16 | pdc.value;
  }
  static void note_entropy(Stream& stream, std::uint16_t entropy);
  void request_sent(const NetPacket& packet, const wire::RequestHeader& request);
  void ack_sent(const NetPacket& packet, const wire::AckHeader& ack);
  Credit& credit_of(std::uint32_t source, std::uint32_t destination, const Stream& stream);
  void credit_asked(const NetPacket& packet, PdcId pdc, std::uint32_t target);
  void credit_given(const NetPacket& packet, PdcId pdc, std::uint32_t granted);
  void check_waiting(std::uint32_t host, const pds::SharedCcc& shared);
  void check_entropy(const NetPacket& packet, bool rod, Stream& stream);
  void check_single_entropy(const NetPacket& packet, Stream& stream);
  void check_contexts(std::uint32_t host);
  void check_rest(std::size_t host);
  void complain(std::uint32_t host, const std::string& what);

  Network& network_;
  std::unordered_map<std::uint64_t, Stream> streams_;
  std::unordered_map<std::uint64_t, Credit> credits_;
  bool held_ = false;
  std::vector<Sent> sent_;  // in this pass, first transmissions
  std::uint64_t passes_ = 0;
};

}  // namespace uet::netsim
