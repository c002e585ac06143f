// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which PDC a message or a packet belongs to, and the life of PDCs from slot to tombstone.
// Must not know what a PDC does with its packets: that is pdc.cc.
#include "uet/pds/manager.h"

#include <algorithm>
#include <bit>
#include <new>

#include "uet/base/prefetch.h"

namespace uet::pds {

namespace {

constexpr std::size_t kControlReserve = 256;     // packets kept for ACKs and control
constexpr std::size_t kStoredResponses = 16384;  // guaranteed responses of all PDCs
constexpr std::size_t kEarlyPackets = 4096;      // ROD packets waiting for their predecessors

constexpr int kIdDraws = 64;             // of a PDC id; then the next one that is free
constexpr std::size_t kShareWeight = 1;  // one host has half of either at most
// A SYN that finds no PDC has an idle one closed, but no more often than this.
constexpr Duration kReliefInterval = std::chrono::milliseconds(1);
// In a shortage the PDC whose responses have waited for a CLEAR for so long ends.
constexpr Duration kClearPatience = std::chrono::seconds(30);
constexpr Duration kResponseReliefInterval = std::chrono::milliseconds(100);
// Of the table: unproved target PDCs may take half. Below a 16th a SYN has established ones closed.
constexpr std::size_t kMostUnproved = 2;
constexpr std::size_t kKeptForUnproved = 16;
// Above an eighth each one is asked for its proof. Above a quarter they are taken at an even pace,
// so that space is free again and again: a flood would otherwise fill the table at once, for long.
constexpr std::size_t kUnprovedUnasked = 8;
constexpr std::size_t kUnprovedUnpaced = 4;
constexpr std::size_t kLeastUnpaced = 16;
constexpr Duration kLongestPace = std::chrono::milliseconds(10);

constexpr std::size_t part(std::size_t all, std::size_t divisor) {
  return std::max<std::size_t>(1, all / divisor);
}

constexpr Use kRudiUse{Role::Initiator, false};

// The element of `key`, and whether it is new; nothing if there is no memory for it.
template <class Table>
std::optional<std::pair<typename Table::iterator, bool>> try_emplace(
    Table& table, const typename Table::key_type& key) {
  try {
    return table.try_emplace(key);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

// CMS-2: one per peer and class; a ROD PDC has its own.
CccKey ccc_key(const Destination& destination, PdcId id) {
  return CccKey{destination.address, destination.traffic_class,
                destination.mode == DeliveryMode::Rod ? id : PdcId{}};
}

std::size_t mix(std::size_t a, std::size_t b) {
  return (a ^ (b + 0x9E3779B97F4A7C15ULL + (a << 6) + (a >> 2)));
}

// A FEP that has no other meaning for an mpr of 0 never says it (PDS-43).
Parameters completed(Parameters parameters) {
  if (parameters.default_mpr == 0 && parameters.mpr_zero_psns == 0) parameters.default_mpr = 1;
  return parameters;
}

std::size_t window_psns(const Parameters& parameters) {
  return std::bit_ceil(std::size_t{range_psns(parameters, parameters.default_mpr)});
}

// PDS-175, PDS-217.
Time remembered_until(const Parameters& parameters, const Pdc& pdc, Time now) {
  Duration time = parameters.tombstone_time;
  if (pdc.syn_came_again()) time = std::max(time, parameters.syn_retx_safety_time.value_or(time));
  return now + time;
}

std::size_t paths_of(const cms::Parameters& cms) {
  return cms.paths == cms::PathPolicy::Single ? 1 : cms.path_count;
}

}  // namespace

std::size_t Manager::PeerKeyHash::operator()(const PeerKey& key) const noexcept {
  return mix(FepAddressHash{}(key.address), key.spdcid.value);
}
std::size_t Manager::DestinationHash::operator()(const Destination& d) const noexcept {
  return mix(mix(FepAddressHash{}(d.address), d.job.value),
             static_cast<std::size_t>(d.mode) << 9 |
                 static_cast<std::size_t>(d.reserved_pool) << 8 | d.traffic_class);
}

Manager::Manager(const Parameters& parameters, const cms::Parameters& cms, Client& client,
                 Outbox& outbox, PacketPool& packets, std::size_t early_bytes, Rng& rng, Time now)
    : parameters_(completed(parameters)),
      cms_(cms),
      wheel_(now),
      secret_(rng.next()),
      tx_records_(window_psns(parameters_), parameters.pdc_count),
      rx_entries_(window_psns(parameters_), parameters.pdc_count),
      stored_responses_(kStoredResponses, kShareWeight, secret_.next()),
      early_packets_(kEarlyPackets, kShareWeight, secret_.next()),
      waiting_acks_(parameters.pdc_count),
      early_storage_(std::make_unique_for_overwrite<std::byte[]>(kEarlyPackets * early_bytes)),
      rng_(rng),
      environment_{.parameters = parameters_,
                   .cms = cms_,
                   .client = client,
                   .outbox = outbox,
                   .packets = packets,
                   .counters = counters_,
                   .rng = rng_,
                   .wheel = wheel_,
                   .stored_responses = stored_responses_,
                   .early_packets = early_packets_,
                   .early_storage = early_storage_.get(),
                   .early_bytes_each = early_bytes,
                   .tx_records = tx_records_,
                   .rx_entries = rx_entries_,
                   .waiting_acks = waiting_acks_,
                   .ready = ready_,
                   .control_reserve = std::min(kControlReserve, packets.capacity() / 4),
                   .pressure = cms::DestinationPressure(cms.tuning),
                   .losses = LossScratch(paths_of(cms), window_psns(parameters_)),
                   .peer_ports = PeerPorts(parameters.first_udp_port)},
      credits_(environment_, now),
      datagrams_(environment_),
      rudi_(environment_, now),
      pdcs_(parameters.pdc_count),
      slot_numbers_(parameters.pdc_count),
      open_(parameters.pdc_count, parameters.reserved_target_pdcs, parameters.reserved_pool_pdcs),
      bitmaps_(parameters.bitmap_count, parameters.reserved_target_pdcs,
               parameters.reserved_pool_pdcs),
      tombstone_count_(parameters.place ? kPdcIdsOfPlace / 2 - 1 : kTombstones),
      tombstones_(kTombstones),
      next_id_(parameters.first_pdc_id),
      unproved_(parameters.pdc_count),
      cccs_(cms_, parameters.ccc_count, parameters.reserved_target_pdcs,
            parameters.reserved_pool_pdcs) {
  environment_.credits = &credits_;
}

Manager::~Manager() {
  rudi_.discard();
  for (std::size_t i = 0; i < pdcs_.size(); ++i) {
    if (pdcs_.holds(i)) pdcs_[i].discard();
    pdcs_.erase(i);
  }
}

// Mostly several messages in a row go to the same destination.
Manager::Outgoing& Manager::outgoing_to(const Destination& destination) {
  if (last_outgoing_ == nullptr || last_outgoing_->key != destination) {
    last_outgoing_ = &outgoing_.at(destination);
  }
  return last_outgoing_->value;
}

void Manager::append(Outgoing& outgoing, Pdc& pdc) {
  PdcId last = outgoing.first;
  while (last != PdcId{} && next_there(last) != PdcId{}) last = next_there(last);
  if (last == PdcId{}) {
    outgoing.first = pdc.id();
  } else {
    pdcs_[slot_of_id_[last.value]].set_next_there(pdc.id());
  }
}

void Manager::remove(Outgoing& outgoing, Pdc& pdc) {
  if (outgoing.first == pdc.id()) {
    outgoing.first = pdc.next_there();
  } else {
    PdcId before = outgoing.first;
    while (next_there(before) != pdc.id()) before = next_there(before);
    pdcs_[slot_of_id_[before.value]].set_next_there(pdc.next_there());
  }
  pdc.set_next_there(PdcId{});
}

// ---- what SES asks (Delivery) -----------------------------------------------------------------

Result<void> Manager::send(Message& message, const Destination& destination, Time now) {
  try {
    return send_to(message, destination, now);
  } catch (const std::bad_alloc&) {
    return Error::Again;
  }
}

// Nothing has changed when it throws bad_alloc.
Result<void> Manager::send_to(Message& message, const Destination& destination, Time now) {
  if (destination.mode == DeliveryMode::Uud) return datagrams_.send(message, destination);
  if (destination.mode == DeliveryMode::Rudi) {
    RudiFlow* flow = rudi_flow(destination, now);
    if (flow == nullptr) return Error::Again;
    rudi_.send(message, *flow);
    return {};
  }
  Pdc* pdc = choose(outgoing_to(destination), destination, message.is_long, now);
  if (pdc == nullptr) return Error::Again;
  prefetched(pdc->ccc());
  pdc->enqueue(message, now);
  return {};
}

Result<void> Manager::send_on(PdcId id, Message& message, Time now) {
  Pdc* pdc = find(id);
  if (pdc == nullptr) return Error::NotFound;
  if (pdc->has_sent_close()) return Error::Busy;
  pdc->enqueue(message, now);
  return {};
}

bool Manager::cancel(Message& message) {
  if (message.pdc == PdcId{}) return rudi_.cancel(message) || datagrams_.cancel(message);
  if (!message.linked()) return false;
  IntrusiveList<Message, BacklogTag>::remove(message);
  if (Pdc* pdc = find(message.pdc); pdc != nullptr) {
    pdc->leave_backlog(message);
    pdc->kick();
  }
  return true;
}

void Manager::kick(PdcId id) {
  if (id == PdcId{}) rudi_.kick();
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->kick();
}
void Manager::hurry(PdcId id) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->hurry();
}
void Manager::lock(PdcId id) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->lock();
}
void Manager::answer(PdcId id, Psn psn, const Response& response) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->answer(psn, response);
}
void Manager::unlock(PdcId id) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->unlock();
}
void Manager::watch(PdcId id) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->watch();
}
void Manager::unwatch(PdcId id) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->unwatch();
}
bool Manager::proved(PdcId id) {
  Pdc* pdc = find(id);
  if (pdc == nullptr || pdc->proved()) return true;
  pdc->ask_for_proof();
  return false;
}
void Manager::abort(PdcId id, Time now) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->fail(PdsError::LocalClose, now);
}

// ---- life of a PDC ----------------------------------------------------------------------------

Pdc* Manager::find(PdcId id) {
  const std::uint16_t slot = slot_of_id_[id.value];
  if (slot == kNoSlot) return nullptr;
  Pdc& pdc = prefetched(pdcs_[slot]);
  return pdc.finished() ? nullptr : &pdc;
}

// As find, for entry points that no PDC is on the stack of: buries a finished one.
Pdc* Manager::live(PdcId id, Time now) {
  const std::uint16_t slot = slot_of_id_[id.value];
  if (slot == kNoSlot) return nullptr;
  Pdc& pdc = prefetched(pdcs_[slot]);
  if (!pdc.finished()) return &pdc;
  bury(pdc, now);
  return nullptr;
}

// PDS-31: drawn, so that no other host can tell the next one; those of tombstones are skipped.
PdcId Manager::allocate_id() {
  const auto in_place = [this](std::uint16_t id) {
    if (!parameters_.place) return id;
    return static_cast<std::uint16_t>(*parameters_.place * kPdcIdsOfPlace + id % kPdcIdsOfPlace);
  };
  const auto is_free = [this](std::uint16_t id) {
    return id != 0 && slot_of_id_[id] == kNoSlot && tombstone_of_id_[id] == kNoSlot;
  };
  const auto drawn = [this] { return static_cast<std::uint16_t>(secret_.next()); };
  std::uint16_t id = next_id_ ? *next_id_ : drawn();
  for (int draws = 1; !is_free(in_place(id)); ++draws) {
    const bool draw = !next_id_ && draws < kIdDraws;
    id = draw ? drawn() : static_cast<std::uint16_t>(id + 1);
  }
  if (next_id_) next_id_ = static_cast<std::uint16_t>(id + 1);
  return PdcId{in_place(id)};
}

// PDS-53: random, not below 2^16, and as far from where the previous PDC to this peer ended.
Psn Manager::choose_start_psn(const Outgoing& outgoing) {
  constexpr std::int32_t kApart = 1 << 16;
  if (parameters_.start_psn && !outgoing.last_psn) return Psn{*parameters_.start_psn};
  for (;;) {
    const Psn psn{static_cast<std::uint32_t>(secret_.next() ^ rng_.next())};
    if (psn.value < static_cast<std::uint32_t>(kApart)) continue;
    if (!outgoing.last_psn) return psn;
    const std::int32_t distance = psn - *outgoing.last_psn;
    if (distance > kApart || distance < -kApart) return psn;
  }
}

Pdc* Manager::create(Role role, PdcId peer_id, const Destination& destination, Psn start_psn,
                     Time now) {
  const Use use{role, destination.reserved_pool};
  shortage_ = NackCode::NoPdcAvail;
  if (!open_.available(use)) return nullptr;
  shortage_ = NackCode::NoBitmap;
  if (!bitmaps_.available(use)) return nullptr;
  const std::optional<std::uint16_t> slot = slot_numbers_.take();
  if (!slot) return nullptr;  // never: as many as open_ counts
  const PdcId id = allocate_id();
  SharedCcc* ccc = cccs_.share(ccc_key(destination, id), use, now);
  if (ccc == nullptr) {
    shortage_ = NackCode::NoCccAvail;
    slot_numbers_.give_back(*slot);
    return nullptr;
  }
  Pdc* pdc = nullptr;
  try {
    pdc = &pdcs_.emplace(*slot, environment_, role, id, peer_id, destination, start_psn, *ccc, now);
  } catch (const std::bad_alloc&) {
    cccs_.release(*ccc, use, now);
    slot_numbers_.give_back(*slot);
    return nullptr;
  }
  slot_of_id_.set(id.value, *slot);
  open_.take(use);
  bitmaps_.take(use);
  return pdc;
}

// The PDC for the next message to there; nullptr if there is none now. Of several PDCs long
// messages leave one to the short ones (PDS-9).
Pdc* Manager::choose(Outgoing& outgoing, const Destination& destination, bool is_long, Time now) {
  const bool alone = destination.mode == DeliveryMode::Rod || destination.reserved_pool;
  const std::size_t most = alone ? 1 : parameters_.pdcs_per_destination;
  std::size_t taking = 0;
  std::size_t with_long = 0;
  Pdc* unused = nullptr;     // the first that has nothing waiting
  Pdc* for_long = nullptr;   // of those that have, the one used least recently that carries a long
  Pdc* for_short = nullptr;  // message, and the one that does not
  for (PdcId id = outgoing.first; id != PdcId{}; id = next_there(id)) {
    Pdc* pdc = find(id);
    if (pdc == nullptr) continue;
    if (!pdc->takes_messages()) {
      // SES-125: what is ordered must not overtake, on a new PDC, what the closing one still holds.
      if (destination.mode == DeliveryMode::Rod && !pdc->drained()) return nullptr;
      continue;
    }
    if (!pdc->has_backlog() && (!is_long || most == 1)) return pdc;
    ++taking;
    Pdc*& kind = pdc->carries_long() ? for_long : pdc->has_backlog() ? for_short : unused;
    if (kind == nullptr) kind = pdc;
    if (pdc->carries_long()) ++with_long;
  }
  const bool one_more = !is_long || with_long + 1 < most || with_long == 0;
  if (one_more && unused != nullptr) return unused;
  if (taking == 0) return open(destination, now);
  const Use use{Role::Initiator, false};
  const bool room = taking < most && open_.available(use) && bitmaps_.available(use);
  if (one_more && room) return open(destination, now);
  Pdc* shared = is_long ? for_long : for_short;
  if (shared == nullptr) shared = is_long ? for_short : for_long;
  if (taking > 1) {
    remove(outgoing, *shared);
    append(outgoing, *shared);
  }
  return shared;
}

Pdc* Manager::open(const Destination& destination, Time now) {
  Outgoing& outgoing = outgoing_to(destination);
  for (PdcId id = outgoing.first; id != PdcId{}; id = next_there(id)) {
    const Pdc& last = pdcs_[slot_of_id_[id.value]];  // it may have failed and not be buried yet
    if (last.finished()) outgoing.last_psn = last.close_psn();
  }
  Pdc* pdc = create(Role::Initiator, PdcId{}, destination, choose_start_psn(outgoing), now);
  while (pdc == nullptr && drop_oldest_unproved(now)) {
    pdc = create(Role::Initiator, PdcId{}, destination, choose_start_psn(outgoing), now);
  }
  if (pdc == nullptr) {
    relieve_shortage(now);
    relieve_long_shortage(now);
    return nullptr;
  }
  short_since_ = kNever;
  append(outgoing, *pdc);
  ++counters_.pdcs_opened;
  return pdc;
}

Result<void> Manager::open_ahead(const Destination& destination, Time now) {
  const Result<PdcId> pdc = connect(destination, now);
  if (!pdc) return pdc.error();
  return {};
}

Result<PdcId> Manager::connect(const Destination& destination, Time now) {
  const bool uses_pdc =
      destination.mode == DeliveryMode::Rud || destination.mode == DeliveryMode::Rod;
  if (!uses_pdc) return Error::Invalid;
  for (PdcId id = outgoing_to(destination).first; id != PdcId{}; id = next_there(id)) {
    if (const Pdc* pdc = find(id); pdc != nullptr && pdc->takes_messages()) return id;
  }
  Pdc* pdc = open(destination, now);
  if (pdc == nullptr) return Error::Again;
  if (pdc->send_noop(now)) return pdc->id();
  pdc->begin_close(now);  // the peer has not heard of it
  return Error::Again;
}

Pdc* Manager::accept(const PeerKey& peer, DeliveryMode mode, const Incoming& syn, Psn start_psn,
                     Time now) {
  const Destination destination{
      .address = peer.address, .job = {}, .mode = mode, .reserved_pool = syn.reserved_pool};
  const bool full = environment_.unproved >= part(parameters_.pdc_count, kMostUnproved);
  shortage_ = NackCode::NoPdcAvail;
  const std::size_t unpaced =
      std::max(kLeastUnpaced, part(parameters_.pdc_count, kUnprovedUnpaced));
  const bool paced = environment_.unproved >= unpaced;
  if (paced && now < next_unproved_) return nullptr;
  if (full && !drop_oldest_unproved(now)) return nullptr;
  const auto known = try_emplace(accepted_, peer);
  Pdc* pdc = nullptr;
  if (known) pdc = create(Role::Target, peer.spdcid, destination, start_psn, now);
  while (known && pdc == nullptr && drop_oldest_unproved(now)) {
    pdc = create(Role::Target, peer.spdcid, destination, start_psn, now);
  }
  if (pdc == nullptr) {
    if (known && known->second) accepted_.erase(peer);
    if (may_relieve_for_syn(now)) relieve_shortage(now);
    return nullptr;
  }
  if (paced) {
    const auto pace = kUnprovedPatience / static_cast<std::int64_t>(unpaced);
    next_unproved_ = now + std::min<Duration>(kLongestPace, pace);
  }
  unproved_.push_back(slot_of_id_[pdc->id().value]);
  pdc->allow_answers(syn.nominal_bytes);
  if (environment_.unproved > part(parameters_.pdc_count, kUnprovedUnasked)) pdc->ask_for_proof();
  accepted_[peer] = pdc->id();
  ++counters_.pdcs_accepted;
  return pdc;
}

// The packets of RUDI to there, or nullptr if no congestion context is to be had for them now.
RudiFlow* Manager::rudi_flow(const Destination& destination, Time now) {
  std::unique_ptr<RudiFlow>& flow = outgoing_.at(destination).value.rudi;
  if (flow == nullptr) {
    CccKey key = ccc_key(destination, PdcId{});
    key.rudi = cms::uses_credit(cms_.algorithm);
    SharedCcc* ccc = cccs_.share(key, kRudiUse, now);
    try {
      if (ccc != nullptr) flow = std::make_unique<RudiFlow>(environment_, destination, *ccc);
    } catch (const std::bad_alloc&) {
      cccs_.release(*ccc, kRudiUse, now);
    }
    if (ccc == nullptr) {
      relieve_shortage(now);
    }
  }
  return flow.get();
}

void Manager::drop_idle_rudi_flows(Time now) {
  for (auto& [destination, outgoing] : outgoing_) {
    if (outgoing.rudi == nullptr || !outgoing.rudi->idle()) continue;
    SharedCcc& ccc = outgoing.rudi->ccc;
    outgoing.rudi.reset();
    cccs_.release(ccc, kRudiUse, now);
  }
}

// Drops the oldest target PDC that is not proved. False if there is none that may be dropped.
bool Manager::drop_oldest_unproved(Time now) {
  while (!unproved_.empty()) {
    const std::size_t slot = unproved_.front();
    Pdc& oldest = pdcs_[slot];
    if (oldest.proved() || oldest.finished()) {
      unproved_.remove(slot);
      continue;
    }
    if (now - oldest.opened() < kUnprovedPatience) {
      oldest.ask_for_proof();  // one that is proved and idle can close sooner
      return false;
    }
    drop_unproved(oldest, now);
    return true;
  }
  return false;
}

// Without a word to its peer.
void Manager::drop_unproved(Pdc& pdc, Time now) {
  pdc.fail(PdsError::PeerLost, now);
  bury(pdc, now);
  ++counters_.pdcs_unproved_dropped;
}

// The source of a SYN may be forged: established PDCs close for a few PDCs that are not proved,
// and not for as many as an attacker can invent.
bool Manager::may_relieve_for_syn(Time now) {
  if (now < next_relief_) return false;
  next_relief_ = now + kReliefInterval;
  std::size_t coming = environment_.unproved;
  pdcs_.for_each([&](const Pdc& pdc) {
    if (!pdc.takes_messages() && pdc.role() == Role::Target) ++coming;
  });
  return coming < part(parameters_.pdc_count, kKeptForUnproved);
}

// A host that has used up its share of stored responses: of those that hold as much the PDC ends
// whose responses have waited longest for a CLEAR.
void Manager::relieve_responses(std::uint64_t host, Time now) {
  environment_.responses_short = false;
  if (now < next_response_relief_) return;
  next_response_relief_ = now + kResponseReliefInterval;
  const std::size_t held = stored_responses_.held(host);
  Pdc* oldest = nullptr;
  Duration longest = kClearPatience;
  pdcs_.for_each([&](Pdc& pdc) {
    if (pdc.finished() || stored_responses_.held(pdc.host()) < held) return;
    if (pdc.waits_for_clear(now) < longest) return;
    longest = pdc.waits_for_clear(now);
    oldest = &pdc;
  });
  if (oldest == nullptr) return;
  oldest->fail(PdsError::ClosedInError, now);
  ++counters_.pdcs_uncleared_closed;
}

// PDS-174, PDS-180: the PDC that has been idle for longest closes, and idle RUDI flows are freed.
// If no PDC is idle, a PDC closes that carries nothing and is only watched (Delivery::watch).
void Manager::relieve_shortage(Time now) {
  drop_idle_rudi_flows(now);
  Pdc* oldest = nullptr;
  pdcs_.for_each([&](Pdc& pdc) {
    if (!pdc.takes_messages() || !pdc.yields() || !pdc.proved()) return;
    const auto rank = [](const Pdc& at) { return std::pair{!at.idle(), at.last_activity()}; };
    if (oldest == nullptr || rank(pdc) < rank(*oldest)) oldest = &pdc;
  });
  if (oldest != nullptr && (oldest->idle() || may_close_watched(now))) oldest->give_way(now);
}

// Watched PDCs are opened again later. No more of them close at a time than may be needed soon,
// unless closing takes long.
bool Manager::may_close_watched(Time now) {
  std::size_t closing = 0;
  pdcs_.for_each([&](const Pdc& pdc) {
    if (!pdc.takes_messages()) ++closing;
  });
  if (closing >= part(parameters_.pdc_count, kKeptForUnproved) && now < next_watched_relief_) {
    return false;
  }
  next_watched_relief_ = now + parameters_.pending_timeout;
  return true;
}

// PDS-181: with PDCs that are never idle a message to somewhere else would wait for ever. After
// Pend_Timeout one of them, and one more after each further one, takes no new messages and closes
// when it has sent those it has.
void Manager::relieve_long_shortage(Time now) {
  const bool begins = short_since_ == kNever || now - short_at_ > parameters_.pending_timeout;
  if (begins) short_since_ = now;
  short_at_ = now;
  if (now - short_since_ < parameters_.pending_timeout) return;
  short_since_ = now;
  Pdc* oldest = nullptr;
  pdcs_.for_each([&](Pdc& pdc) {
    if (pdc.state() != PdcState::Established) return;
    if (pdc.role() == Role::Target || pdc.destination().reserved_pool) return;
    if (oldest == nullptr || pdc.opened() < oldest->opened()) oldest = &pdc;
  });
  if (oldest != nullptr) oldest->give_way(now);
}

// PDS-63 asks whom the PDCs opened here lead to: known from their first answer on.
void Manager::note_peer(const Pdc& pdc) {
  if (pdc.role() != Role::Initiator || pdc.peer_id().value == 0) return;
  const auto known = try_emplace(opened_, {pdc.destination().address, pdc.peer_id()});
  if (known) known->first->second = pdc.id();
}

// Frees a finished PDC and remembers it for a while, so that late packets neither open it again nor
// stay unanswered (PDS-175).
void Manager::bury(Pdc& pdc, Time now) {
  const PdcId id = pdc.id();
  const PeerKey peer{pdc.destination().address, pdc.peer_id()};
  Tombstone& tomb = tombstones_[next_tombstone_];
  if (tombstone_of_id_[tomb.id.value] == next_tombstone_) {  // the oldest one gives way
    tombstone_of_id_.set(tomb.id.value, kNoSlot);
    const auto entry = accepted_.find(tomb.peer);
    if (entry != accepted_.end() && entry->second == tomb.id) accepted_.erase(entry);
  }
  tomb = Tombstone{.id = id,
                   .peer = peer,
                   .role = pdc.role(),
                   .start_psn = pdc.start_psn(),
                   .close_psn = pdc.close_psn(),
                   .until = remembered_until(parameters_, pdc, now)};
  tombstone_of_id_.set(id.value, static_cast<std::uint16_t>(next_tombstone_));
  next_tombstone_ = (next_tombstone_ + 1) % tombstone_count_;

  OutgoingTable::Element* const there = outgoing_.find(pdc.destination());
  if (pdc.role() == Role::Initiator && there != nullptr) {
    there->value.last_psn = pdc.close_psn();
    remove(there->value, pdc);
  }
  const std::optional<PdsError> error = pdc.error();
  if (const auto opened = opened_.find(peer); opened != opened_.end() && opened->second == id) {
    opened_.erase(opened);
  }
  open_.give_back(pdc.use());
  bitmaps_.give_back(pdc.use());
  const std::uint16_t slot = slot_of_id_[id.value];
  slot_of_id_.set(id.value, kNoSlot);
  unproved_.remove(slot);
  pdc.discard();
  SharedCcc& ccc = pdc.ccc();  // which the PDC refers to until it is destroyed
  const Use use = pdc.use();
  pdcs_.erase(slot);
  slot_numbers_.give_back(slot);
  cccs_.release(ccc, use, now);
  environment_.client.pdc_closed(id, error, now);
}

const Manager::Tombstone* Manager::tombstone(PdcId id, Time now) const {
  const std::uint16_t index = tombstone_of_id_[id.value];
  if (index == kNoSlot || tombstones_[index].until < now) return nullptr;
  return &tombstones_[index];
}

// ---- progress ---------------------------------------------------------------------------------

bool Manager::pump(Time now) {
  bool sent = datagrams_.waiting() && datagrams_.pump(kTurnPackets);
  rudi_first_ = !rudi_first_;
  if (rudi_first_) sent |= rudi_.pump(std::max(parameters_.packets_per_pass / 2, 1U), now);
  if (!ready_.empty()) sent |= pump_pdcs(2 * parameters_.pdc_count, now);
  if (!rudi_first_) sent |= rudi_.pump(std::max(parameters_.packets_per_pass / 2, 1U), now);
  return sent;
}

// Contexts take turns, so that a peer and class gets no more by using more PDCs (CMS-11); those of
// one context take turns in its.
Pdc& Manager::next_ready() {
  SharedCcc& shared = ready_.pop_front();
  Pdc& pdc = shared.ready.pop_front();
  if (!shared.ready.empty()) ready_.push_back(shared);
  return pdc;
}

bool Manager::pump_pdcs(std::size_t turns, Time now) {
  std::uint32_t budget = parameters_.packets_per_pass;
  bool sent = false;
  environment_.packets_short = false;
  for (std::size_t turn = 0; turn < turns && !ready_.empty(); ++turn) {
    if (budget == 0 || environment_.packets_short) break;
    Pdc& pdc = next_ready();
    if (pdc.finished()) {
      bury(pdc, now);
      continue;
    }
    std::uint32_t share = std::min(budget, kTurnPackets);
    const std::uint32_t before = share;
    const bool more = pdc.pump(share, now);
    budget -= before - share;
    sent = sent || share != before;
    if (pdc.finished()) {
      bury(pdc, now);
    } else if (more) {
      pdc.make_ready();
    }
  }
  return sent;
}

void Manager::bury_finished(Time now) {
  for (auto context = ready_.begin(); context != ready_.end();) {
    SharedCcc& shared = *context;
    ++context;
    for (auto at = shared.ready.begin(); at != shared.ready.end();) {
      Pdc& pdc = *at;
      ++at;
      const bool last = at == shared.ready.end();  // the context may go with it
      if (pdc.finished()) {
        shared.ready.remove(pdc);
        if (shared.ready.empty()) ready_.remove(shared);
        bury(pdc, now);
      }
      if (last) break;
    }
  }
}

// CMS-305, CMS-233. ROD packets that wait press their own host alone (Pdc::send_ack).
void Manager::set_receive_load(const cms::ReceiveLoad& load) {
  environment_.pressure.update(load.occupancy);
  if (cms::uses_credit(cms_.algorithm)) credits_.set_backlog(load.bytes);
}

bool Manager::expire(Time now) {
  bool fired = rudi_.expire(now);
  if (cms::uses_credit(cms_.algorithm)) fired |= credits_.expire(now);
  wheel_.expire(now, [&](TimerEntry& entry) {
    static_cast<Pdc&>(entry).on_deadline(now);
    fired = true;
  });
  return fired;
}

void Manager::forget(const FepAddress& address, Time now) {
  for (const auto& [destination, outgoing] : outgoing_) {
    if (destination.address != address) continue;
    for (PdcId id = outgoing.first; id != PdcId{}; id = next_there(id)) {
      if (Pdc* pdc = find(id); pdc != nullptr && pdc->takes_messages()) pdc->begin_close(now);
    }
  }
}

void Manager::on_peer_lost(const LostPeer& lost, Time now) {
  pdcs_.for_each([&](Pdc& pdc) {
    if (pdc.is_with(lost)) pdc.lose_peer(lost, now);
  });
  for (const auto& [destination, outgoing] : outgoing_) {
    if (destination.address != lost.address || !outgoing.rudi) continue;
    rudi_.lose_peer(*outgoing.rudi, lost, now);
  }
}

void Manager::begin_close_all(Time now) {
  pdcs_.for_each([&](Pdc& pdc) {
    if (!pdc.finished()) pdc.begin_close(now);
  });
}

bool Manager::quiescent() const {
  if (pdcs_.any_of([](const Pdc& pdc) { return !pdc.idle(); })) return false;
  return early_packets_.in_use() == 0 && datagrams_.empty() && rudi_.empty();
}

}  // namespace uet::pds
