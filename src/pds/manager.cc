// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of PDS, connected: what SES asks goes to PDCs, and PDCs get their turns to send.
// Must not know what a PDC does with its packets: that is pdc.cc.
#include "pds/manager.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/prefetch.h"
#include "pds/lost_rail.h"

namespace uet::pds {

namespace {

constexpr std::size_t kControlReserve = 256;     // packets kept for ACKs and control
constexpr std::size_t kStoredResponses = 16384;  // guaranteed responses of all PDCs
constexpr std::size_t kShareWeight = 1;          // one host has half of either at most
constexpr std::uint32_t kTurnPackets = 32;       // of one PDC before the next has its turn

// A FEP that has no other meaning for an mpr of 0 never says it (PDS-43).
Parameters completed(Parameters parameters) {
  if (parameters.default_mpr == 0 && parameters.mpr_zero_psns == 0) parameters.default_mpr = 1;
  return parameters;
}

std::size_t window_psns(const Parameters& parameters) {
  return std::bit_ceil(std::size_t{range_psns(parameters, parameters.default_mpr)});
}

std::size_t paths_of(const cms::Parameters& cms) {
  return cms.paths == cms::PathPolicy::Single ? 1 : cms.path_count;
}

}  // namespace

Manager::Manager(const Parameters& parameters, const cms::Parameters& cms, Client& client,
                 Outbox& outbox, PacketPool& packets, std::size_t early_bytes, Rng& rng, Time now)
    : parameters_(completed(parameters)),
      cms_(cms),
      wheel_(now),
      secret_(rng.next()),
      tx_records_(window_psns(parameters_), parameters.pdc_count),
      rx_entries_(window_psns(parameters_), parameters.pdc_count),
      stored_responses_(kStoredResponses, kShareWeight, secret_.next()),
      early_packets_(EarlyStorage::kPackets, kShareWeight, secret_.next()),
      waiting_acks_(parameters.pdc_count),
      early_storage_(early_bytes),
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
                   .early_storage = early_storage_,
                   .tx_records = tx_records_,
                   .rx_entries = rx_entries_,
                   .waiting_acks = waiting_acks_,
                   .later_acks = later_acks_,
                   .turns = turns_,
                   .control_reserve = std::min(kControlReserve, packets.capacity() / 4),
                   .pressure = cms::DestinationPressure(cms.tuning),
                   .losses = LossScratch(paths_of(cms), window_psns(parameters_)),
                   .peer_ports = PeerPorts(parameters.first_udp_port)},
      credits_(environment_, now),
      datagrams_(environment_),
      rudi_(environment_, now),
      rudi_target_(environment_, datagrams_),
      connections_(environment_, secret_),
      demultiplexer_(environment_, connections_, rudi_, rudi_target_) {
  environment_.credits = &credits_;
}

Manager::~Manager() { rudi_.discard(); }

// ---- what SES asks (Delivery) -----------------------------------------------------------------

// Nothing has changed when memory is short.
Result<void> Manager::send(Message& message, const Destination& destination, Time now) {
  if (!may_go_to(destination)) return Error::Invalid;
  const bool replayable =
      destination.mode == DeliveryMode::Uud || destination.mode == DeliveryMode::Rudi;
  if (replayable && parameters_.refuses_replayable) return Error::NotSupported;
  try {
    if (destination.mode == DeliveryMode::Uud) return datagrams_.send(message, destination);
    if (destination.mode == DeliveryMode::Rudi) {
      RudiFlow* flow = connections_.rudi_flow(destination, now);
      if (flow == nullptr) return Error::Again;
      rudi_.send(message, *flow);
      return {};
    }
    Pdc* pdc = connections_.for_message(destination, message.size_class, now);
    if (pdc == nullptr) return Error::Again;
    prefetched(pdc->ccc());
    pdc->send_side().enqueue(message, now);
    return {};
  } catch (const std::bad_alloc&) {
    return Error::Again;
  }
}

Result<void> Manager::respond(Message& message, Time now) {
  return rudi_target_.respond(message, now);
}

Result<void> Manager::send_on(PdcId id, Message& message, Time now) {
  Pdc* pdc = find(id);
  if (pdc == nullptr) return Error::NotFound;
  if (pdc->has_sent_close()) return Error::Busy;
  pdc->send_side().enqueue(message, now);
  return {};
}

bool Manager::cancel(Message& message) {
  if (message.pdc == PdcId{}) return rudi_.cancel(message) || datagrams_.cancel(message);
  if (!message.linked()) return false;
  IntrusiveList<Message, BacklogTag>::remove(message);
  if (Pdc* pdc = find(message.pdc); pdc != nullptr) {
    pdc->send_side().backlog().forget(*pdc, message);
    pdc->make_ready();
  }
  return true;
}

void Manager::edit_packets(const Message& message, PacketEditor& editor) {
  if (Pdc* pdc = find(message.pdc); pdc != nullptr) {
    pdc->send_side().outstanding().edit(message, editor);
  }
}

void Manager::kick(PdcId id) {
  if (id == PdcId{}) rudi_.kick();
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->make_ready();
}
void Manager::request_acks_now(PdcId id) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->send_side().request_acks_now();
}
void Manager::lock(PdcId id) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->lock();
}
void Manager::answer(PdcId id, Psn psn, const Response& response) {
  if (Pdc* pdc = find(id); pdc != nullptr) pdc->receive_side().answer(psn, response);
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

Result<PdcId> Manager::connect(const Destination& destination, Time now) {
  if (!may_go_to(destination)) return Error::Invalid;
  return connections_.connect(destination, now);
}

// ---- progress ---------------------------------------------------------------------------------

bool Manager::pump(Time now) {
  bool sent = datagrams_.waiting() && datagrams_.pump(kTurnPackets);
  const std::uint32_t rudi_share = std::max(parameters_.packets_per_pass / 2, 1U);
  rudi_first_ = !rudi_first_;
  if (rudi_first_) sent |= rudi_.pump(rudi_share, now);
  std::uint32_t budget = parameters_.packets_per_pass;
  std::size_t turns = 2 * parameters_.pdc_count;
  environment_.packets_short = false;
  for (; turns > 0 && budget > 0 && !turns_.empty() && !environment_.packets_short; --turns) {
    Pdc& pdc = turns_.next();
    if (pdc.finished()) {
      connections_.free(pdc, now);
      continue;
    }
    std::uint32_t share = std::min(budget, kTurnPackets);
    const std::uint32_t before = share;
    const bool more = pdc.pump(share, now);
    budget -= before - share;
    sent = sent || share != before;
    if (pdc.finished()) {
      connections_.free(pdc, now);
    } else if (more) {
      pdc.make_ready();
    }
  }
  if (!rudi_first_) sent |= rudi_.pump(rudi_share, now);
  return sent;
}

void Manager::free_finished(Time now) {
  IntrusiveList<Pdc, ReadyTag>& finished = turns_.finished();
  while (!finished.empty()) connections_.free(finished.pop_front(), now);
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

void Manager::on_refusal(const FepAddress& address) {
  if (environment_.peers == nullptr || parameters_.peer_probe_period == Duration{}) return;
  connections_.pdcs().for_each([&](Pdc& pdc) { pdc.note_refusal(address); });
}

void Manager::on_dead_peer(const DeadPeer& lost, Time now) {
  const auto ip = trace::words_of(lost.address.ip);
  environment_.trace.write(trace::Kind::PeerLost, lost.address.ip.is_ipv6 ? 4 : 0, {},
                           Psn{lost.address.port}, ip[0], ip[1]);
  // The end of its last PDC tells otherwise.
  const bool has_pdc = connections_.has_pdc_with(lost.address);
  if (!has_pdc && environment_.peers != nullptr) {
    environment_.peers->peer_given_up(lost.address, PdsError::PeerLost);
  }
  connections_.pdcs().for_each([&](Pdc& pdc) {
    if (pdc.is_connected_to(lost)) pdc.on_dead_peer(lost, now);
  });
  for (const auto& [destination, outgoing] : connections_.destinations()) {
    if (destination.address != lost.address || !outgoing.rudi) continue;
    rudi_.on_dead_peer(*outgoing.rudi, lost, now);
  }
}

void Manager::on_lost_rail(const LostRail& lost, Time now) {
  connections_.pdcs().for_each([&](Pdc& pdc) {
    const bool led_there = !lost.peer || pdc.destination().address == *lost.peer;
    if (led_there && !pdc.finished()) lose_rail(pdc, lost.rail, now);
  });
  rudi_.on_lost_rail(lost, now);
}

void Manager::key_changed(std::uint32_t sdi) {
  try {
    connections_.start_psns().key_changed(sdi);
  } catch (const std::bad_alloc&) {
    ++counters_.no_packet;
  }
}

void Manager::begin_close_all(Time now) {
  connections_.pdcs().for_each([&](Pdc& pdc) {
    if (!pdc.finished()) pdc.begin_close(now);
  });
}

bool Manager::quiescent() const {
  if (connections_.pdcs().any_of([](const Pdc& pdc) { return !pdc.idle(); })) return false;
  return early_packets_.in_use() == 0 && datagrams_.empty() && rudi_.empty();
}

}  // namespace uet::pds
