// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The congestion contexts of a FEP and who shares them: one for each peer and traffic class, one
// for each ROD PDC (CMS-2). Bounded; decides who may have one, not what it does.
//
// A context is counted as taken for the most demanding of its users (Use): what an initiator holds
// may have to wait for a peer, so that it must not eat up what is kept for targets (PDS-182).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/timer_wheel.h"
#include "cms/ccc.h"
#include "cms/path.h"
#include "cms/rccc.h"
#include "cms/rtt_cache.h"
#include "pds/inference_history.h"
#include "pds/peer_table.h"
#include "pds/quota.h"
#include "uet/base/address.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/types.h"

namespace uet::pds {

class Pdc;
struct WaitingForCccTag;
struct ReadyTag;
struct LingeringTag;

struct CccKey {
  FepAddress address;
  std::uint8_t traffic_class = 0;
  PdcId rod_pdc;      // 0: shared by all PDCs that are not ROD
  bool rudi = false;  // RUDI carries no targets: where credit is used it has a context of its own
  friend bool operator==(const CccKey&, const CccKey&) = default;
};

inline constexpr std::uint8_t kBaseRttProbes = 8;  // CMS-710, ...
// ... of which each is twice as far from the one before as that was from its own: soon for short
// transfers, and later when hosts and queues may be calmer.
inline constexpr Duration kBaseRttProbeSpacing = std::chrono::microseconds(100);

// A congestion control context, the PDCs that wait for its leave to send, and those that may have
// something to send. It is itself in line while there are such (CMS-11).
struct SharedCcc : TimerEntry, ListNode<ReadyTag>, ListNode<LingeringTag> {
  SharedCcc() = default;
  ~SharedCcc() {
    if (wheel != nullptr) wheel->cancel(*this);
    if (ListNode<ReadyTag>::linked()) IntrusiveList<SharedCcc, ReadyTag>::remove(*this);
    if (ListNode<LingeringTag>::linked()) IntrusiveList<SharedCcc, LingeringTag>::remove(*this);
  }
  SharedCcc(const SharedCcc&) = delete;
  SharedCcc& operator=(const SharedCcc&) = delete;

  std::unique_ptr<cms::Ccc> ccc;
  cms::Rccc* credit = nullptr;  // the same, if it needs credit (credits.h)
  const CccKey* key = nullptr;  // where the pool keeps it
  Peer* peer = nullptr;         // counts of the remote FEP; never nullptr in a pool
  TimerWheel* wheel = nullptr;  // that the entry has been on
  bool wants_credit = false;    // counted as active by Credits
  // Its base RTT is not configured (CMS-710). Where it is all peers are alike, and flows that learn
  // at once that they are nearer are treated less fairly, not more: quick adapt spares them above a
  // lower rate.
  bool measures_base_rtt = false;
  // Probes still to be sent: while the base RTT is not known (CMS-140), and after it has risen.
  std::uint8_t probes_wanted = 0;
  bool recovers = false;           // losses are also found without knowing paths (CMS-151) ...
  bool recovers_midway = false;    // ... even while there is more to send (CMS-150)
  bool blocked_by_credit = false;  // and not by the window
  std::uint16_t probes = 0;        // sent so far; the number of the next one
  InferenceHistory inferences;
  std::array<std::uint16_t, 4> users{};  // by kind of use, the most demanding first
  Time probe_sent{};                     // of the last one; Time{}: it is answered
  Time probe_due{};                      // the next one's, with the first answer after it
  // The entropy values that its users share, with their scores (CMS-404). Empty: each has its own.
  std::unique_ptr<cms::PathSelector> paths;
  IntrusiveList<Pdc, WaitingForCccTag> waiting;
  IntrusiveList<Pdc, ReadyTag> ready;
  Time blocked_since{};  // data waits for its leave since then; Time{}: none does
  Time lingers_until{};  // without a user
};

// The paths of a user of the context: with `single` its own one, else those of all its users, made
// for the first. `own` keeps the former.
cms::PathSelector& paths_for(SharedCcc& shared, std::optional<cms::PathSelector>& own,
                             const cms::Parameters& cms, bool single, Rng& rng);

class CccPool {
 public:
  // `count`, `for_targets`, `for_pool`: as Quota.
  CccPool(const cms::Parameters& cms, std::size_t count, std::size_t for_targets,
          std::size_t for_pool)
      : cms_(cms),
        same_host_(cms.for_same_host()),
        most_(count),
        quota_(count, for_targets, for_pool),
        rtts_(cms.rtt_cache_time),
        peers_(count) {}

  // The context of `key` with one user more, made if there is none. nullptr: none is to be had now.
  SharedCcc* share(const CccKey& key, Use use, Time now);
  // Removes one user. Without users the context lingers for a while with all that it has learnt
  // (Parameters::linger, CMS 7.4) and the next share() takes it up; no PDC may wait for it then.
  // Later only its base RTT is kept (CMS-141). The context of a ROD PDC, and one that uses credit,
  // whose totals restart at the receiver with a new PDC, do not linger.
  void release(SharedCcc& shared, Use use, Time now);

  std::size_t in_use() const { return quota_.in_use(); }
  // Of all contexts, those that have ended included. Not for the data path.
  cms::Counters counters() const;
  // The remote FEPs of all contexts, and some that had one earlier.
  PeerTable& peers() { return peers_; }
  // visit(const SharedCcc&) for each context, for those who watch from outside.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [key, shared] : cccs_) visit(shared);
  }

 private:
  struct KeyHash {
    std::size_t operator()(const CccKey& key) const noexcept;
  };

  using Table = std::unordered_map<CccKey, SharedCcc, KeyHash>;

  Table::iterator begin(const CccKey& key, Time now);
  std::optional<std::uint8_t> free_ccc_id(const FepAddress& address);
  void end(SharedCcc& shared, Time now);
  void end_lingering(Time now);

  const cms::SharedParameters& parameters_for(const FabricAddress& ip) const {
    return cms_->same_host && cms_->same_host->ip == ip ? same_host_ : cms_;
  }

  const cms::SharedParameters cms_;
  const cms::SharedParameters same_host_;  // with peers there
  const std::size_t most_;                 // contexts, those that linger included
  Quota quota_;                            // of those with users
  std::uint8_t next_ccc_id_ = 0;
  cms::RttCache rtts_;
  cms::Counters ended_;  // of the paths of contexts that are gone
  PeerTable peers_;
  Table cccs_;
  IntrusiveList<SharedCcc, LingeringTag> lingering_;  // the first to end first
};

}  // namespace uet::pds
