// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which Start_PSN a SYN must have where transport security protects PDCs (PDS section 7): a SYN
// that was captured and is sent again opens no second PDC. Holds the Expected_PSN of each secure
// domain, and the PENDING PDCs, which are no more than a peer and the Start_PSN that it was told.
// Sends nothing, and knows no PDC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/keyed_sequence.h"
#include "pds/counters.h"
#include "pds/parameters.h"
#include "pds/tombstones.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::pds {

class StartPsns {
 public:
  static constexpr std::size_t kPending = 256;  // one more replaces the oldest
  // A Start_PSN is accepted if it is newer than Expected_PSN by less. Each PDC moves Expected_PSN
  // by as much at most, so that it does not pass an old Start_PSN before 2^15 PDCs have ended.
  static constexpr std::int32_t kAhead = 1 << 16;

  // The arguments outlive it. `secret` gives the Start_PSNs that are drawn.
  StartPsns(const Parameters& parameters, KeyedSequence& secret, Counters& counters)
      : parameters_(parameters), secret_(secret), counters_(counters) {}

  // The Start_PSN that NEW_START_PSN must tell the peer that opens a PDC with this SYN, which is
  // then PENDING; nothing if its Start_PSN is accepted (PDS-69 to PDS-73). May throw bad_alloc.
  std::optional<Psn> demanded(const PeerKey& peer, Psn start_psn, Time now);
  // The PDC was opened: it is PENDING no more.
  void opened(const PeerKey& peer, Psn start_psn);
  // A target PDC with this Start_PSN has ended, or is about to (PDS-78).
  void ended(std::uint32_t sdi, Psn start_psn);
  // The number that the closing ACK reports; nothing while Start_PSNs are random.
  std::optional<Psn> expected(std::uint32_t sdi) const;
  // No key that is older than this FEP opens packets of the domain any more: expected start is safe
  // from now on (TSS-51, TSS-52). May throw bad_alloc.
  void key_changed(std::uint32_t sdi);
  // PDCs that are PENDING.
  std::size_t pending() const { return pending_.size(); }

 private:
  struct Domain {
    std::uint32_t sdi = 0;
    bool random = false;
    std::optional<Psn> expected;  // nothing: no PDC was opened yet
    Psn random_base;              // random Start_PSNs lie in the 2^30 behind it
  };
  struct Pending {
    PeerKey peer;
    Psn start_psn;
    Time until{};
  };

  Domain& domain(std::uint32_t sdi);
  Psn assigned(Domain& domain);
  void expire(Time now);

  const Parameters& parameters_;
  KeyedSequence& secret_;
  Counters& counters_;
  std::vector<Domain> domains_;   // few: those that the FEP uses
  std::vector<Pending> pending_;  // the one that expires next first
};

}  // namespace uet::pds
