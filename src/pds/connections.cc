// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The life of PDCs from slot to tombstone.
#include "pds/connections.h"

#include <new>

#include "pds/credits.h"

namespace uet::pds {

namespace {

constexpr Use kRudiUse{Role::Initiator, false};
// The ranks of PDCs for a message, the best first; from this one on it would wait for a larger one.
constexpr std::uint32_t kWaitsForLarger = 3;

// CMS-2: one per peer and class; a ROD PDC has its own.
CccKey ccc_key(const Destination& destination, PdcId id) {
  return CccKey{destination.address, destination.traffic_class,
                destination.mode == DeliveryMode::Rod ? id : PdcId{}};
}

}  // namespace

Connections::Connections(Environment& environment, KeyedSequence& secret)
    : env_(environment),
      pdcs_(environment.parameters, secret),
      destinations_(environment.parameters, pdcs_, secret, environment.rng),
      start_psns_(environment.parameters, secret, environment.counters),
      admission_(environment, pdcs_),
      cccs_(environment.cms, environment.parameters.ccc_count,
            environment.parameters.reserved_target_pdcs,
            environment.parameters.reserved_pool_pdcs) {
  if (environment.parameters.secured) environment.start_psns = &start_psns_;
}

Pdc* Connections::live(PdcId id, Time now) {
  Pdc* pdc = pdcs_.at(id);
  if (pdc == nullptr) return nullptr;
  if (!prefetched(*pdc).finished()) return pdc;
  free(*pdc, now);
  return nullptr;
}

// ---- opening -----------------------------------------------------------------------------------

Pdc* Connections::create(Role role, PdcId peer_id, const Destination& destination, Psn start_psn,
                         Time now) {
  const Use use{role, destination.reserved_pool};
  const std::optional<NackCode> refused = admission_.refusal(use);
  refusal_ = refused.value_or(NackCode::NoPdcAvail);
  if (refused) return nullptr;
  const std::optional<PdcTable::Place> place = pdcs_.reserve();
  if (!place) return nullptr;  // never: as many as Admission counts
  SharedCcc* ccc = cccs_.share(ccc_key(destination, place->id), use, now);
  if (ccc == nullptr) {
    refusal_ = NackCode::NoCccAvail;
    pdcs_.give_back(*place);
    return nullptr;
  }
  try {
    const std::size_t open = admission_.open_pdcs() + 1;
    env_.tx_records.reserve(open);
    env_.rx_entries.reserve(open);
    env_.wheel.prepare();
    admission_.prepare(place->slot);
    if (cms::uses_credit(env_.cms.algorithm)) env_.credits->prepare();
    Pdc& pdc = pdcs_.emplace(*place, env_, role, peer_id, destination, start_psn, *ccc, now);
    admission_.enter(use);
    return &pdc;
  } catch (const std::bad_alloc&) {
    cccs_.release(*ccc, use, now);
    pdcs_.give_back(*place);
    return nullptr;
  }
}

Pdc* Connections::for_message(const Destination& destination, std::uint8_t size_class, Time now) {
  Outgoing& outgoing = destinations_.at(destination);
  const bool alone = destination.mode == DeliveryMode::Rod || destination.reserved_pool;
  const std::size_t most = alone ? 1 : env_.parameters.pdcs_per_destination;
  std::size_t taking = 0;
  Pdc* best = nullptr;
  std::uint32_t best_rank = UINT32_MAX;
  for (PdcId id = outgoing.first; id != PdcId{}; id = destinations_.next(id)) {
    Pdc* pdc = find(id);
    if (pdc == nullptr) continue;
    if (!pdc->takes_messages()) {
      // SES-125: what is ordered must not overtake, on a new PDC, what the closing one still holds.
      if (destination.mode == DeliveryMode::Rod && !pdc->drained()) return nullptr;
      continue;
    }
    if (most == 1) return pdc;
    ++taking;
    const std::uint32_t rank = rank_of(pdc->send_side().backlog(), size_class);
    if (rank >= best_rank) continue;
    best = pdc;
    best_rank = rank;
  }
  if (best == nullptr) return open(destination, now);
  const bool waits = best_rank >= kWaitsForLarger;
  if (!waits || taking >= most || !may_open_another(destination.address, now)) return best;
  Pdc* another = start(destination, now);
  if (another == nullptr) return best;
  another->send_side().note_additional();
  return another;
}

// Messages of one size class share a PDC, so that PDCs without a message are left to others.
std::uint32_t Connections::rank_of(Backlog& backlog, std::uint8_t size_class) {
  if (backlog.empty()) return size_class == 0 ? 0 : 1;
  const std::uint8_t carried = backlog.size_class();
  if (carried == size_class) return size_class == 0 ? 1 : 0;
  return carried < size_class ? 2 : kWaitsForLarger + carried;
}

// PDS-180: an additional PDC is no reason to close another one, and half of all are left to peers
// that have none.
bool Connections::may_open_another(const FepAddress& peer, Time now) const {
  return 2 * (admission_.open_pdcs() + 1) <= env_.parameters.pdc_count &&
         !admission_.refusal({Role::Initiator, false}) &&
         now >= env_.peer_limits.no_additional_pdc_until(peer);
}

Pdc* Connections::open(const Destination& destination, Time now) {
  Pdc* pdc = start(destination, now);
  while (pdc == nullptr && drop_oldest_unproved(now)) pdc = start(destination, now);
  if (pdc == nullptr) {
    relieve_shortage(now);
    admission_.note_message_waits(now);
    return nullptr;
  }
  admission_.note_message_served();
  return pdc;
}

Pdc* Connections::start(const Destination& destination, Time now) {
  Outgoing& outgoing = destinations_.at(destination);
  const Psn start_psn = destinations_.next_start_psn(outgoing);
  Pdc* pdc = create(Role::Initiator, PdcId{}, destination, start_psn, now);
  if (pdc == nullptr) return nullptr;
  destinations_.append(outgoing, *pdc);
  ++env_.counters.pdcs_opened;
  return pdc;
}

Result<PdcId> Connections::connect(const Destination& destination, Time now) {
  const bool uses_pdc =
      destination.mode == DeliveryMode::Rud || destination.mode == DeliveryMode::Rod;
  if (!uses_pdc) return Error::Invalid;
  PdcId id = destinations_.at(destination).first;
  for (; id != PdcId{}; id = destinations_.next(id)) {
    if (const Pdc* pdc = find(id); pdc != nullptr && pdc->takes_messages()) return id;
  }
  Pdc* pdc = open(destination, now);
  if (pdc == nullptr) return Error::Again;
  if (pdc->send_side().send_control(wire::CpType::Noop, now)) return pdc->id();
  pdc->begin_close(now);  // the peer has not heard of it
  return Error::Again;
}

Pdc* Connections::accept(const PeerKey& peer, DeliveryMode mode, const Incoming& syn, Psn start_psn,
                         Time now) {
  const Destination destination{
      .address = peer.address, .job = {}, .mode = mode, .reserved_pool = syn.reserved_pool};
  const bool full = admission_.is_full_of_unproved();
  const bool paced = admission_.is_paced();
  refusal_ = NackCode::NoPdcAvail;
  if (!admission_.allows_unproved(now)) return nullptr;
  if (full && !drop_oldest_unproved(now)) return nullptr;
  const bool named = pdcs_.reserve_accepted(peer);
  Pdc* pdc = nullptr;
  if (named) pdc = create(Role::Target, peer.spdcid, destination, start_psn, now);
  while (named && pdc == nullptr && drop_oldest_unproved(now)) {
    pdc = create(Role::Target, peer.spdcid, destination, start_psn, now);
  }
  if (pdc == nullptr) {
    if (named) pdcs_.drop_reserved(peer);
    if (admission_.may_close_for_syn(now)) relieve_shortage(now);
    return nullptr;
  }
  pdc->allow_answers(syn.nominal_bytes);
  if (env_.parameters.secured) start_psns_.opened(peer, start_psn);
  admission_.enter_unproved(*pdc, paced, now);
  pdcs_.name_accepted(peer, pdc->id());
  ++env_.counters.pdcs_accepted;
  return pdc;
}

RudiFlow* Connections::rudi_flow(const Destination& destination, Time now) {
  std::unique_ptr<RudiFlow>& flow = destinations_.at(destination).rudi;
  if (flow != nullptr) return flow.get();
  CccKey key = ccc_key(destination, PdcId{});
  key.rudi = cms::uses_credit(env_.cms.algorithm);
  SharedCcc* ccc = cccs_.share(key, kRudiUse, now);
  if (ccc == nullptr) {
    relieve_shortage(now);
    return nullptr;
  }
  try {
    if (key.rudi) env_.credits->prepare();
    flow = std::make_unique<RudiFlow>(env_, destination, *ccc);
  } catch (const std::bad_alloc&) {
    cccs_.release(*ccc, kRudiUse, now);
  }
  return flow.get();
}

// ---- ending ------------------------------------------------------------------------------------

// PDS-174, PDS-180: an idle PDC closes, and idle RUDI flows are freed.
void Connections::relieve_shortage(Time now) {
  drop_idle_rudi_flows(now);
  admission_.close_idle(now);
}

void Connections::drop_idle_rudi_flows(Time now) {
  for (auto& [destination, outgoing] : destinations_) {
    if (outgoing.rudi == nullptr || !outgoing.rudi->idle()) continue;
    SharedCcc& ccc = outgoing.rudi->ccc;
    outgoing.rudi.reset();
    cccs_.release(ccc, kRudiUse, now);
  }
}

// A stranger that has never answered is no peer.
bool Connections::gives_up_peer(const Pdc& pdc) {
  const auto error = pdc.error();
  const bool lost = error == PdsError::RtoExhausted || error == PdsError::PeerLost;
  return lost && (pdc.role() == Role::Initiator || pdc.proved());
}

bool Connections::drop_oldest_unproved(Time now) {
  Pdc* pdc = admission_.droppable_unproved(now);
  if (pdc == nullptr) return false;
  drop_unproved(*pdc, now);
  return true;
}

void Connections::drop_unproved(Pdc& pdc, Time now) {
  pdc.fail(PdsError::PeerLost, now);
  free(pdc, now);
  ++env_.counters.pdcs_unproved_dropped;
}

void Connections::free(Pdc& pdc, Time now) {
  const PdcId id = pdc.id();
  const Use use = pdc.use();
  if (env_.parameters.secured && pdc.role() == Role::Target) {
    start_psns_.ended(pdc.destination().address.sdi, pdc.start_psn());
  }
  const std::optional<PdsError> error = pdc.error();
  const FepAddress peer = pdc.destination().address;
  const bool gives_up = env_.peers != nullptr && gives_up_peer(pdc);
  SharedCcc& ccc = pdc.ccc();  // which the PDC refers to until it is destroyed
  destinations_.leave(pdc);
  admission_.leave(pdc);
  pdcs_.free(pdc, now);
  cccs_.release(ccc, use, now);
  env_.client.pdc_closed(id, error, now);
  if (gives_up && !has_pdc_with(peer)) env_.peers->peer_given_up(peer, *error);
}

bool Connections::has_pdc_with(const FepAddress& address) const {
  return pdcs_.any_of([&](const Pdc& pdc) { return pdc.destination().address == address; });
}

void Connections::forget(const FepAddress& address, Time now) {
  for (const auto& [destination, outgoing] : destinations_) {
    if (!is_same_fep(destination.address, address)) continue;
    for (PdcId id = outgoing.first; id != PdcId{}; id = destinations_.next(id)) {
      if (Pdc* pdc = find(id); pdc != nullptr && pdc->takes_messages()) pdc->begin_close(now);
    }
  }
}

}  // namespace uet::pds
