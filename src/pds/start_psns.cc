// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/start_psns.h"

#include <algorithm>

namespace uet::pds {

namespace {

constexpr std::uint32_t kRandomRange = std::uint32_t{1} << 30;

}  // namespace

StartPsns::Domain& StartPsns::domain(std::uint32_t sdi) {
  const auto at = std::find_if(domains_.begin(), domains_.end(),
                               [sdi](const Domain& domain) { return domain.sdi == sdi; });
  if (at != domains_.end()) return *at;
  Domain& added = domains_.emplace_back();
  added.sdi = sdi;
  added.random = parameters_.random_start;
  added.random_base = Psn{static_cast<std::uint32_t>(secret_.next())};
  return added;
}

// PDS-75. PDS-81 asks for a report of entries that expire: a counter.
void StartPsns::expire(Time now) {
  const auto first = std::find_if(pending_.begin(), pending_.end(),
                                  [now](const Pending& entry) { return entry.until > now; });
  counters_.pending_expired += static_cast<std::uint64_t>(first - pending_.begin());
  pending_.erase(pending_.begin(), first);
}

Psn StartPsns::assigned(Domain& domain) {
  if (!domain.random) return *domain.expected;
  const auto random = static_cast<std::uint32_t>(secret_.next()) % kRandomRange;
  return domain.random_base + static_cast<std::int32_t>(random);
}

std::optional<Psn> StartPsns::demanded(const PeerKey& peer, Psn start_psn, Time now) {
  expire(now);
  const auto known = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Pending& entry) { return entry.peer == peer; });
  if (known != pending_.end()) {
    if (known->start_psn != start_psn) return known->start_psn;  // PDS-73
    known->until = now + parameters_.new_pdc_time;  // PDS-75: if the PDC cannot be opened now
    std::rotate(known, known + 1, pending_.end());
    return {};  // PDS-72
  }
  Domain& its = domain(peer.address.sdi);
  if (!its.random) {
    if (!its.expected) return {};
    const std::int32_t ahead = start_psn - *its.expected;
    if (ahead >= 0 && ahead < kAhead) return {};
  }
  if (pending_.capacity() == 0) pending_.reserve(kPending);
  if (pending_.size() == kPending) pending_.erase(pending_.begin());
  const Psn wanted = assigned(its);
  pending_.push_back({peer, wanted, now + parameters_.new_pdc_time});
  return wanted;
}

void StartPsns::opened(const PeerKey& peer, Psn start_psn) {
  std::erase_if(pending_, [&](const Pending& entry) { return entry.peer == peer; });
  Domain& its = domain(peer.address.sdi);
  if (!its.random && !its.expected) its.expected = start_psn;
}

void StartPsns::ended(std::uint32_t sdi, Psn start_psn) {
  for (Domain& its : domains_) {
    if (its.sdi != sdi || !its.expected) continue;
    if (start_psn + 1 > *its.expected) its.expected = start_psn + 1;
  }
}

std::optional<Psn> StartPsns::expected(std::uint32_t sdi) const {
  for (const Domain& its : domains_) {
    if (its.sdi == sdi && !its.random) return its.expected;
  }
  return {};
}

// All Start_PSNs that were accepted so far are older than the first one that is expected.
void StartPsns::key_changed(std::uint32_t sdi) {
  Domain& its = domain(sdi);
  if (!its.random) return;
  its.random = false;
  its.expected = its.random_base + static_cast<std::int32_t>(kRandomRange);
}

}  // namespace uet::pds
