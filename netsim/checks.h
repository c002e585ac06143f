// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The properties of CMS 8.4 that every run must have, checked from outside the core: on the wire,
// in a Fep's counters of its congestion contexts, and at the end. README.md says which is where.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/prefetch.h"
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
  // Fetches what on_delivered() will read of the packet's stream.
  void prefetch(const NetPacket& packet) const {
    if (packet.destination < newest_incoming_.size()) {
      uet::prefetch(newest_incoming_[packet.destination].incoming, kHotBytes);
    }
  }

 private:
  // Requests of one PDC in one direction, as their source sends them. (A source and a destination
  // may be on different ranks, so that neither knows what the other does.)
  struct Stream {
    std::uint32_t destination = 0;
    Psn start;
    std::vector<std::uint16_t> entropies;  // in order
    std::uint16_t entropy = 0;             // of the last one, taken first at entropy_since
    Picoseconds entropy_since = 0;
    std::uint64_t sends = 0;
  };
  // The same requests as they arrive.
  struct Incoming {
    Psn start;
    std::uint8_t ccc_id = 0;
    std::vector<bool> arrived;        // by PSN
    std::uint64_t nominal_bytes = 0;  // of those, once each (CMS-111)
  };
  struct Credit {               // of one context of a source, running totals (CMS-201)
    std::uint32_t target = 0;   // the highest that was asked for, as far as that has arrived
    std::uint32_t granted = 0;  // the newest
  };

  static constexpr std::size_t kHotBytes = 64;

  // The stream of a PDC of the host `source`; nullptr if it has sent no request.
  Stream* find_stream(std::uint32_t source, PdcId pdc);
  Stream& make_stream(std::uint32_t source, PdcId pdc);
  static std::uint64_t key(std::uint32_t source, PdcId pdc) {
    return std::uint64_t{source} << 16 | pdc.value;
  }
  static std::uint64_t key(std::uint32_t source, std::uint32_t destination, PdcId pdc) {
    return std::uint64_t{source} << 40 | std::uint64_t{destination} << 16 | pdc.value;
  }
  // The requests of a PDC of the host `source` that have arrived; nullptr if none has.
  Incoming* find_incoming(std::uint32_t source, std::uint32_t destination, PdcId pdc);
  Incoming* incoming_of(const NetPacket& packet, const wire::RequestHeader& request);
  static void note_arrival(const NetPacket& packet, Psn psn, Incoming& incoming);
  static void note_entropy(Stream& stream, std::uint16_t entropy);
  void request_sent(const NetPacket& packet, const wire::RequestHeader& request);
  void ack_sent(const NetPacket& packet, const wire::AckHeader& ack);
  Credit& credit_of(std::uint32_t source, std::uint32_t destination, const Incoming& incoming);
  void credit_asked(const NetPacket& packet, const Incoming& incoming, std::uint32_t target);
  void credit_given(const NetPacket& packet, PdcId pdc, std::uint32_t granted);
  void check_waiting(std::uint32_t host, const pds::SharedCcc& shared);
  void check_base_rtt(std::uint32_t host, const cms::Ccc& ccc);
  void check_entropy(const NetPacket& packet, bool rod, Stream& stream);
  bool is_alone(const NetPacket& packet) const;
  void check_single_entropy(const NetPacket& packet, Stream& stream);
  void check_contexts(std::uint32_t host);
  void check_rest(std::size_t host);
  void complain(std::uint32_t host, const std::string& what);

  Network& network_;
  std::unordered_map<std::uint64_t, Stream> streams_;  // whose addresses stay
  // By source, the one that was looked up last: mostly the one that is looked up next.
  struct Newest {
    PdcId pdc;
    Stream* stream = nullptr;
  };
  std::vector<Newest> newest_;
  std::unordered_map<std::uint64_t, Incoming> incoming_;  // whose addresses stay
  struct NewestIncoming {
    std::uint64_t key = 0;
    Incoming* incoming = nullptr;
  };
  std::vector<NewestIncoming> newest_incoming_;  // by destination
  std::unordered_map<std::uint64_t, Credit> credits_;
  bool held_ = false;
  std::vector<Sent> sent_;             // in this pass, first transmissions
  std::vector<std::uint32_t> passes_;  // by host
};

}  // namespace uet::netsim
