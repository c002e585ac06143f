// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets that wait for their RUDI response. Decides when one is sent again and when it has failed;
// time-outs and limits are those of RUD (PDS-185).
#include "pds/rudi.h"

#include <algorithm>
#include <utility>

#include "pds/lost_rail.h"
#include "pds/nack.h"
#include "pds/retransmit.h"
#include "pds/window_wait.h"

namespace uet::pds {

namespace {

constexpr std::uint32_t kFlowTurnPackets = 16;  // of one flow before the next has its turn

}  // namespace

Rudi::Rudi(Environment& environment, Time now) : env_(environment), wheel_(now) {}

void Rudi::prepare() {
  wheel_.prepare();
  free_ = std::make_unique_for_overwrite<std::uint16_t[]>(kOutstanding);
  for (std::size_t i = 0; i < kOutstanding; ++i) {
    free_[i] = static_cast<std::uint16_t>(kOutstanding - 1 - i);
  }
  records_ = std::make_unique<Record[]>(kOutstanding);
}

void Rudi::discard() {
  for (Record& record : records()) {
    if (record.flow != nullptr) release(record);
  }
  while (!active_.empty()) {
    RudiFlow& flow = active_.pop_front();
    while (!flow.backlog.empty()) flow.backlog.pop_front();
  }
  active_count_ = 0;
}

// ---- sending ------------------------------------------------------------------------------------

void Rudi::send(Message& message, RudiFlow& flow) {
  if (records_ == nullptr) prepare();
  flow.backlog.push_back(message);
  ready_ = true;
  if (flow.linked()) return;
  active_.push_back(flow);
  ++active_count_;
}

bool Rudi::pump_flows(std::uint32_t budget, Time now) {
  const std::uint32_t before = budget;
  for (std::size_t turns = active_count_; turns > 0; --turns) {
    RudiFlow& flow = active_.pop_front();
    const Stop stop = send_some(flow, budget, now);
    if (stop == Stop::Drained) {
      --active_count_;
      continue;
    }
    active_.push_back(flow);
    ready_ = ready_ || stop == Stop::TurnOver;
  }
  return budget != before;
}

// A blocked flow goes on after a response, a time-out or the return of packets: each brings a pass.
Rudi::Stop Rudi::send_some(RudiFlow& flow, std::uint32_t& budget, Time now) {
  for (std::uint32_t turn = kFlowTurnPackets; !flow.backlog.empty(); --turn, --budget) {
    if (turn == 0 || budget == 0) return Stop::TurnOver;
    if (free_count_ == 0 || !flow.ccc.ccc->may_send(env_.cms.mtu_bytes)) return Stop::Blocked;
    if (env_.packets.available() <= env_.control_reserve) return Stop::TurnOver;
    Packet* packet = env_.packets.take();
    if (packet == nullptr) return Stop::TurnOver;
    packet->reset();
    Message& message = flow.backlog.front();
    PreparedPacket prepared;
    const PacketPlan plan = message.owner->next_packet(message, *packet, prepared);
    if (plan == PacketPlan::NotNow) {
      env_.packets.give_back(packet);
      return Stop::Blocked;
    }
    if (plan == PacketPlan::Last) flow.backlog.remove(message);
    const std::uint16_t index = free_[--free_count_];
    ++flow.outstanding;
    Record& record = records_[index];
    static_cast<Sent&>(record) = {.flow = &flow,
                                  .packet = packet,
                                  .message = &message,
                                  .tag = prepared.tag,
                                  .packet_id = next_packet_id(index),
                                  .next_hdr = prepared.next_hdr,
                                  .first_sent = now};
    ++env_.counters.rudi_requests_sent;
    transmit(record, now);
  }
  return Stop::Drained;
}

// PDS-183: the index is unique, the rest tells its uses apart, and those of an earlier process.
std::uint32_t Rudi::next_packet_id(std::uint16_t index) {
  if (uses_ == 0) uses_ = static_cast<std::uint32_t>(env_.rng.next());
  const std::uint32_t id = ++uses_ * static_cast<std::uint32_t>(kOutstanding) + index;
  const PdcIdShare& share = env_.parameters.id_share;
  if (share.bits == 0) return id;
  const unsigned shift = 32U - share.bits;
  return (id & ((1U << shift) - 1)) | std::uint32_t{share.number} << shift;
}

void Rudi::transmit(Record& record, Time now) {
  Packet& packet = *record.packet;
  packet.drop_prepended();
  const wire::RudiHeader header{.type = wire::PdsType::RudiReq,
                                .next_hdr = record.next_hdr,
                                .retx = record.resent,
                                .pkt_id = record.packet_id};
  header.encode(packet.prepend(sizeof(wire::PdsRudi)));
  packet.to = record.flow->destination.address;
  packet.entropy = record.entropy = record.flow->path.next(env_.rng, now);
  packet.sent_again = record.resent;
  packet.ecn = Ecn::Ect0;  // CMS-31
  packet.dscp = dscp_of_class(record.flow->destination.traffic_class, env_.parameters.dscp_data);
  record.nominal_bytes = cms::nominal_packet_bytes(packet.length());
  record.flow->ccc.ccc->on_sent(record.nominal_bytes, now);
  PeerCounters& counts = record.flow->ccc.peer->counts;
  ++counts.packets_sent;
  counts.bytes_sent += record.nominal_bytes;
  record.in_flight = true;
  record.state = State::Awaiting;
  record.last_sent = now;
  env_.outbox.push(packet);
  ++record.sent_count;
  wheel_.move(record, now + timeout(record));
}

Duration Rudi::timeout(const Record& record) const {
  return std::max(rto(env_.parameters, record.rto_count, record.flow->answer_time.limit()),
                  retransmission_pause(env_.parameters, record.unanswered));
}

// ---- answers ------------------------------------------------------------------------------------

// nullptr for an id that is not outstanding at that peer.
Rudi::Record* Rudi::find(std::uint32_t packet_id, const FepAddress& from) {
  if (records_ == nullptr) return nullptr;
  Record& record = records_[packet_id % kOutstanding];
  const bool ours = record.flow != nullptr && record.packet_id == packet_id &&
                    env_.peer_ports.may_be_from(record.flow->destination.address, from);
  return ours ? &record : nullptr;
}

// PDS-186. As find(), of the packet that an answer from there names; a stray answer is counted, in
// `others` unless it is of another secure domain than the request.
Rudi::Record* Rudi::answered(std::uint32_t packet_id, const FepAddress& from,
                             std::uint64_t& others) {
  if (records_ != nullptr) {
    Record& record = records_[packet_id % kOutstanding];
    const bool known = record.flow != nullptr && record.packet_id == packet_id;
    if (known && !is_bound(env_, record.flow->destination.address, from)) return nullptr;
  }
  Record* record = find(packet_id, from);
  if (record == nullptr) ++others;
  return record;
}

void Rudi::on_response(const wire::RudiHeader& header, std::span<const std::byte> ses,
                       const FepAddress& from, Time now) {
  Record* record = answered(header.pkt_id, from, env_.counters.stray_packets);
  if (record == nullptr) return;
  RudiFlow& flow = *record->flow;
  flow.last_heard = now;
  if (!header.retx) {  // it answers the first transmission
    flow.answer_time.add(now - record->first_sent);
  } else if (record->sent_count == 2) {
    flow.answer_time.add(now - record->last_sent);
  }
  cms::AckFeedback feedback;
  feedback.ce = header.ce;
  feedback.entropy = record->entropy;
  if (!record->resent) feedback.rtt = now - record->last_sent;
  if (record->in_flight) feedback.newly_received_bytes = record->nominal_bytes;
  record->in_flight = false;
  flow.ccc.ccc->on_ack(feedback, now);
  flow.path.on_acknowledged(record->entropy, now);
  if (header.ce || !record->resent) {
    flow.path.on_feedback(record->entropy,
                          header.ce ? cms::PathFeedback::Ecn : cms::PathFeedback::Good, now);
  }
  Message& message = *record->message;
  const std::uint32_t tag = record->tag;
  release(*record);
  wake_waiters(flow.ccc);
  message.owner->rx_rsp(
      message, tag, {.next_hdr = header.next_hdr, .bytes = ses, .psn = Psn{header.pkt_id}}, now);
}

// PDS-187.
RudiFlow* Rudi::on_nack(const wire::NackHeader& nack, const FepAddress& from, Time now) {
  ++env_.counters.nacks_received[static_cast<std::uint8_t>(nack.nack_code)];
  Record* record = answered(nack.nack_psn.value, from, env_.counters.nacks_ignored);
  if (record == nullptr) return nullptr;
  const NackAction action = nack_action(nack.nack_code);
  if (action == NackAction::Ignore || action == NackAction::Rebase) {
    ++env_.counters.nacks_ignored;
    return nullptr;
  }
  RudiFlow& flow = *record->flow;
  flow.last_heard = now;
  flow.ccc.peer->counts.nacks_received.count(nack.nack_code);
  record->rto_count = 0;
  if (is_fatal(nack.nack_code)) {
    fail(*record, nack_error(nack.nack_code), now);
    return nullptr;
  }
  if (record->in_flight) {
    record->in_flight = false;
    flow.ccc.ccc->on_nack(nack.nack_code, record->nominal_bytes, nack.ce, std::nullopt, now);
    wake_waiters(flow.ccc);
  }
  record->state = State::ToResend;
  ++env_.counters.nack_retransmissions;
  ++flow.ccc.peer->counts.nack_retransmissions;
  if (is_trim(nack.nack_code) && record->trim_count < kQuickTrims) {
    ++record->trim_count;
    record->excused = true;
  }
  if (action == NackAction::RetransmitNow) {  // the packet has not arrived
    if (rto_exhausted(env_.parameters, record->unanswered + 1)) {
      fail(*record, PdsError::RtoExhausted, now);
      return nullptr;
    }
    const Time allowed =
        record->last_sent + retransmission_pause(env_.parameters, record->unanswered);
    if (now < allowed) {
      wheel_.move(*record, allowed);
    } else {
      resend(*record, now);
    }
    return nullptr;
  }
  record->unanswered = 0;
  if (record->nack_count++ >= env_.parameters.max_nack_retransmissions) {
    fail(*record, PdsError::NackExhausted, now);
    return nullptr;
  }
  wheel_.move(*record, now + env_.parameters.nack_retransmission_time);
  return nack.nack_code == NackCode::NoResource ? &flow : nullptr;
}

// ---- loss ---------------------------------------------------------------------------------------

bool Rudi::expire_records(Time now) {
  bool fired = false;
  wheel_.expire(now, [&](TimerEntry& entry) {
    on_deadline(static_cast<Record&>(entry), now);
    fired = true;
  });
  return fired;
}

void Rudi::on_deadline(Record& record, Time now) {
  if (Outbox::holds(*record.packet)) {  // the NIC has not taken it yet
    wheel_.move(record, now + rto(env_.parameters, 0));
    return;
  }
  if (counts_as_dead(record, now)) {  // it takes nothing else either (PDS-139)
    ++env_.counters.rto_exhausted;
    return fail_flow(*record.flow, PdsError::RtoExhausted, now);
  }
  if (record.state == State::Awaiting) {
    lose(record, record.rto_count > 0 ? cms::LossCause::RepeatedRto : cms::LossCause::Rto, now);
    const bool silent = is_silent(record);
    if (!silent && rto_exhausted(env_.parameters, record.unanswered)) {
      ++env_.counters.rto_exhausted;
      return fail(record, PdsError::RtoExhausted, now);
    }
    if (silent && record.rto_count > 0 && !may_ask(record)) {
      return wheel_.move(record, now + timeout(record));
    }
    ++record.rto_count;
    ++env_.counters.rto_retransmissions;
    ++record.flow->ccc.peer->counts.rto_retransmissions;
    record.state = State::ToResend;
  }
  resend(record, now);
}

bool Rudi::counts_as_dead(const Record& record, Time now) const {
  const RudiFlow& flow = *record.flow;
  return now - std::max(flow.last_heard, record.first_sent) >=
         silence_limit(env_.parameters, flow.answer_time.limit());
}

// One packet asks a silent peer whether it lives. The others may all have arrived and wait there.
bool Rudi::may_ask(const Record& record) {
  RudiFlow& flow = *record.flow;
  const bool asked = find(flow.asking, flow.destination.address) != nullptr;
  if (!asked) flow.asking = record.packet_id;
  return flow.asking == record.packet_id;
}

void Rudi::lose(Record& record, cms::LossCause cause, Time now) {
  if (!record.in_flight) return;
  record.in_flight = false;
  record.flow->ccc.ccc->on_inferred_loss(record.nominal_bytes, cause, now);
  record.flow->path.on_feedback(record.entropy, cms::PathFeedback::Timeout, now);
  wake_waiters(record.flow->ccc);
}

// CMS-12: a retransmission needs space in the window too.
void Rudi::resend(Record& record, Time now) {
  if (Outbox::holds(*record.packet) || !record.flow->ccc.ccc->may_send(env_.cms.mtu_bytes)) {
    wheel_.move(record, now + rto(env_.parameters, 0));
    return;
  }
  record.resent = true;
  const bool excused = std::exchange(record.excused, false);
  if (!excused && !is_silent(record)) ++record.unanswered;
  transmit(record, now);
}

// ---- the end ------------------------------------------------------------------------------------

void Rudi::release(Record& record) {
  if (record.in_flight) record.flow->ccc.ccc->forget(record.nominal_bytes);
  wheel_.cancel(record);
  env_.outbox.withdraw(*record.packet);
  env_.packets.give_back(record.packet);
  --record.flow->outstanding;
  record.flow = nullptr;
  free_[free_count_++] = static_cast<std::uint16_t>(record.packet_id % kOutstanding);
}

void Rudi::fail(Record& record, PdsError error, Time now) {
  RudiFlow& flow = *record.flow;
  Message& message = *record.message;
  const std::uint32_t tag = record.tag;
  release(record);
  wake_waiters(flow.ccc);
  message.owner->pds_error(message, tag, error, now);
}

void Rudi::fail_flow(RudiFlow& flow, PdsError error, Time now) {
  for (Record& record : records()) {
    if (record.flow == &flow) fail(record, error, now);
  }
  while (!flow.backlog.empty()) {
    Message& message = flow.backlog.pop_front();
    message.owner->message_failed(message, error, now);
  }
  drop_drained_flows();
}

void Rudi::on_dead_peer(RudiFlow& flow, const DeadPeer& lost, Time now) {
  if (lost.succeeded || lost.to == 0) return;
  const auto all = records();
  const bool had_some = std::any_of(all.begin(), all.end(), [&](const Record& record) {
    return record.flow == &flow && record.packet->way.connection == lost.to;
  });
  if (had_some) fail_flow(flow, PdsError::PeerLost, now);
}

// No time-out of a packet, and no transmission that a living peer has left unanswered.
void Rudi::on_lost_rail(const LostRail& lost, Time now) {
  if (!in_use()) return;
  for (Record& record : records()) {
    if (record.flow == nullptr || !took_rail(*record.packet, lost.rail)) continue;
    if (lost.peer && record.flow->destination.address != *lost.peer) continue;
    if (record.state != State::Awaiting || Outbox::holds(*record.packet)) continue;
    if (std::exchange(record.in_flight, false)) {
      record.flow->ccc.ccc->forget(record.nominal_bytes);
    }
    ++env_.counters.lost_rail_retransmissions;
    ++env_.counters.inferred_loss_retransmissions;
    ++record.flow->ccc.peer->counts.inferred_loss_retransmissions;
    record.state = State::ToResend;
    record.excused = true;
    resend(record, now);
  }
}

void Rudi::drop_drained_flows() {
  for (auto at = active_.begin(); at != active_.end();) {
    RudiFlow& flow = *at;
    ++at;
    if (!flow.backlog.empty()) continue;
    active_.remove(flow);
    --active_count_;
  }
}

bool Rudi::cancel(Message& message) {
  bool found = message.linked();
  if (found) {
    IntrusiveList<Message, BacklogTag>::remove(message);
    drop_drained_flows();
  }
  for (Record& record : records()) {
    if (record.flow == nullptr || record.message != &message) continue;
    RudiFlow& flow = *record.flow;
    release(record);
    wake_waiters(flow.ccc);
    found = true;
  }
  return found;
}

}  // namespace uet::pds
