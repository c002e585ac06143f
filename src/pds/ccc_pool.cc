// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sharing congestion contexts, and what they are counted for.
#include "pds/ccc_pool.h"

#include <algorithm>
#include <bitset>

#include "pds/pdc.h"

namespace uet::pds {

namespace {

// The most demanding first.
constexpr std::array<Use, 4> kUses{{{Role::Initiator, false},
                                    {Role::Initiator, true},
                                    {Role::Target, false},
                                    {Role::Target, true}}};

std::size_t index_of(Use use) {
  return static_cast<std::size_t>(std::find(kUses.begin(), kUses.end(), use) - kUses.begin());
}

// The use that the context counts for: kUses.size() without a user.
std::size_t counted_for(const SharedCcc& shared) {
  std::size_t i = 0;
  while (i < kUses.size() && shared.users[i] == 0) ++i;
  return i;
}

}  // namespace

std::size_t CccPool::KeyHash::operator()(const CccKey& key) const noexcept {
  const std::size_t rest =
      std::size_t{key.rudi} << 24 | std::size_t{key.rod_pdc.value} << 8 | key.traffic_class;
  return FepAddressHash{}(key.address) ^ (rest * 0x9E3779B97F4A7C15ULL);
}

// CMS-204. They roll, so that the peer does not take a new context for one that has just ended.
std::optional<std::uint8_t> CccPool::free_ccc_id(const FepAddress& address) {
  std::bitset<256> taken;
  for (const auto& [key, shared] : cccs_) {
    if (shared.credit != nullptr && key.address == address) taken.set(shared.credit->ccc_id());
  }
  if (taken.all()) return std::nullopt;
  while (taken.test(next_ccc_id_)) ++next_ccc_id_;
  return next_ccc_id_++;
}

cms::PathSelector& paths_for(SharedCcc& shared, std::optional<cms::PathSelector>& own,
                             const cms::Parameters& cms, bool single, Rng& rng) {
  if (single || cms.paths == cms::PathPolicy::Single) return own.emplace(cms, true, rng);
  if (!shared.paths) shared.paths = std::make_unique<cms::PathSelector>(cms, false, rng);
  return *shared.paths;
}

cms::Counters CccPool::counters() const {
  cms::Counters sum = ended_;
  sum.add(cms_.counts());
  sum.add(same_host_.counts());
  for (const auto& [key, shared] : cccs_) {
    cms::Counters counters = shared.ccc->holdings();
    if (shared.paths) shared.paths->count(counters);
    if (counted_for(shared) == kUses.size()) counters.forget_holdings();  // it lingers
    sum.add(counters);
  }
  return sum;
}

SharedCcc* CccPool::share(const CccKey& key, Use use, Time now) {
  end_lingering(now);
  const std::size_t wanted = index_of(use);
  auto entry = cccs_.find(key);
  const std::size_t counted = entry == cccs_.end() ? kUses.size() : counted_for(entry->second);
  if (wanted < counted) {
    if (counted < kUses.size()) quota_.give_back(kUses[counted]);
    const bool available = quota_.available(use);
    if (available) {
      quota_.take(use);
    } else if (counted < kUses.size()) {
      quota_.take(kUses[counted]);
    }
    if (!available) return nullptr;
  }
  if (entry == cccs_.end() && cccs_.size() >= most_) end(lingering_.front(), now);
  try {
    if (entry == cccs_.end()) entry = begin(key, now);
  } catch (const std::bad_alloc&) {
    quota_.give_back(use);
    return nullptr;
  }
  SharedCcc& shared = entry->second;
  if (shared.ListNode<LingeringTag>::linked()) lingering_.remove(shared);
  ++shared.users[wanted];
  return &shared;
}

// A context without users. Leaves nothing behind when there is no memory for it.
CccPool::Table::iterator CccPool::begin(const CccKey& key, Time now) {
  const cms::SharedParameters& cms = parameters_for(key.address.ip);
  const bool credit = cms::uses_credit(cms->algorithm) && !key.rudi;
  const auto ccc_id = credit ? free_ccc_id(key.address) : std::nullopt;
  const std::optional<Duration> base_rtt = rtts_.find(key.address, now);
  std::unique_ptr<cms::Ccc> ccc = cms::make_ccc(cms, now, ccc_id, base_rtt);
  Peer& peer = peers_.join(key.address);
  Table::iterator entry;
  try {
    entry = cccs_.try_emplace(key).first;
  } catch (const std::bad_alloc&) {
    peers_.leave(peer);
    throw;
  }
  SharedCcc& shared = entry->second;
  shared.peer = &peer;
  shared.key = &entry->first;
  shared.ccc = std::move(ccc);
  shared.credit = shared.ccc->by_credit();
  const std::optional<cms::RecoveryRules> rules = shared.ccc->recovery();
  shared.recovers = rules.has_value();
  shared.recovers_midway = rules && !rules->only_probe_at_end;
  shared.measures_base_rtt =
      cms->probes_base_rtt && cms->algorithm != cms::Algorithm::None && !cms->base_rtt;
  shared.probes_wanted = shared.measures_base_rtt && !base_rtt ? kBaseRttProbes : 0;
  return entry;
}

void CccPool::release(SharedCcc& shared, Use use, Time now) {
  const std::size_t before = counted_for(shared);
  --shared.users[index_of(use)];
  const std::size_t after = counted_for(shared);
  if (after != before) quota_.give_back(kUses[before]);
  if (after != before && after < kUses.size()) quota_.take(kUses[after]);
  if (after < kUses.size()) return;
  const bool alone = shared.key->rod_pdc != PdcId{} || shared.credit != nullptr;
  if (alone || cms_->linger == Duration::zero()) return end(shared, now);
  shared.blocked_since = Time{};
  shared.lingers_until = now + cms_->linger;
  lingering_.push_back(shared);
  end_lingering(now);
}

void CccPool::end(SharedCcc& shared, Time now) {
  const std::optional<Duration> base_rtt = shared.ccc->base_rtt();
  if (base_rtt) rtts_.keep(shared.key->address, *base_rtt, now);
  if (shared.paths) shared.paths->count(ended_);
  ended_.forget_holdings();
  peers_.leave(*shared.peer);
  cccs_.erase(cccs_.find(*shared.key));
}

// Needs no timer: until a new context is needed, one that lingers too long does no harm.
void CccPool::end_lingering(Time now) {
  while (!lingering_.empty() && lingering_.front().lingers_until <= now) {
    end(lingering_.front(), now);
  }
}

}  // namespace uet::pds
