// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The identity of a PDC: deadlines, the proof of its peer, and packets that are not tracked.
#include "pds/pdc_core.h"

#include <algorithm>

#include "pds/pdc.h"
#include "pds/start_psns.h"
#include "uet/wire/be.h"

namespace uet::pds {

namespace {

constexpr std::uint32_t kControlBytes = sizeof(wire::PdsControl);
constexpr auto kUnprovedControlBytes =
    static_cast<std::int32_t>(cms::nominal_packet_bytes(kControlBytes));
constexpr std::size_t kNackBytes = sizeof(wire::PdsNack);
static_assert(sizeof(wire::PdsAckCcx) <= Packet::kHeadroom, "no PDS header is longer");
static_assert(Response::kMaxBytes <= Packet::kHeadSize - Packet::kHeadroom);

void address_control(const Environment& env, Packet& packet, const FepAddress& to,
                     std::uint16_t entropy) {
  packet.to = to;
  packet.entropy = entropy;
  packet.ecn = Ecn::NotEct;  // CMS-31
  packet.dscp = env.parameters.dscp_control;
  packet.release_after_send = true;
  packet.control = true;
}

}  // namespace

PdcCore::PdcCore(Environment& environment, Role role, PdcId id, PdcId peer_id,
                 const Destination& destination, Psn start_psn, SharedCcc& ccc, Time now)
    : PdcIdentity(role, id, peer_id, destination, start_psn),
      state_(role == Role::Initiator ? PdcState::Creating : PdcState::Established),
      proved_(role == Role::Initiator),
      env_(environment),
      ccc_(ccc),
      opened_(now),
      last_activity_(now) {
  paths_for(ccc, own_path_, env_.cms, destination.mode == DeliveryMode::Rod, env_.rng);
  deadlines_.fill(kNever);
  set_deadline(kIdle, now + env_.parameters.keepalive_time);
  if (!proved_) ++env_.unproved;
  const FepAddress& peer = destination.address;
  const auto ip = trace::words_of(peer.ip);
  const unsigned detail =
      (role == Role::Target ? 1U : 0U) | (ordered() ? 2U : 0U) | (peer.ip.is_ipv6 ? 4U : 0U);
  env_.trace.write(trace::Kind::PdcOpened, detail, id, Psn{peer.port}, ip[0], ip[1]);
}

PdcCore::~PdcCore() {
  if (!proved_) --env_.unproved;
  if (proved_ && peer_id_ != PdcId{}) {
    if (!error_) env_.proved_hosts.keep(destination_.address.ip, last_activity_);
    env_.proved_hosts.remove(destination_.address.ip);
  }
  env_.wheel.cancel(*this);
  env_.turns.remove(static_cast<Pdc&>(*this));
  if (ListNode<WaitingForCccTag>::linked()) ccc_.waiting.remove(static_cast<Pdc&>(*this));
}

void PdcCore::note_proved() {
  env_.proved_hosts.add(destination_.address.ip);
  proved_ = true;
  --env_.unproved;
}

bool PdcCore::establish(PdcId peer_id) {
  if (state_ != PdcState::Creating) return false;
  env_.proved_hosts.add(destination_.address.ip);
  peer_id_ = peer_id;
  enter(PdcEvent::PeerKnown);
  return true;
}

std::uint64_t PdcCore::host() const {
  return proved_ ? host_hash(destination_.address.ip) : Shares::kUnknownHost;
}

bool PdcCore::may_send(std::uint32_t nominal_bytes) {
  if (proved_ || unproved_bytes_ >= static_cast<std::int32_t>(nominal_bytes)) return true;
  ask_for_proof();
  return false;
}

// The peer has the PSN before the first one at any time, so that it answers with an ACK.
void PdcCore::ask_for_proof() {
  if (proved_ || proof_asked_) return;
  proof_asked_ = true;
  send_ack_request(start_psn_ - 1);
}

// A finished PDC is queued too: its turn frees it.
void PdcCore::make_ready() { env_.turns.add(static_cast<Pdc&>(*this)); }

void PdcCore::set_deadline(Deadline which, Time at) {
  deadlines_[which] = at;
  const Time earliest = *std::min_element(deadlines_.begin(), deadlines_.end());
  if (armed() && deadline() == earliest) return;
  if (earliest == kNever) {
    env_.wheel.cancel(*this);
  } else {
    env_.wheel.move(*this, earliest);
  }
}

void PdcCore::extend_close(Time now) {
  if (deadlines_[kClose] == kNever) return;
  set_deadline(kClose, now + CloseHandshake::patience(env_.parameters, proved_));
}

void PdcCore::enter(PdcEvent event) {
  const std::optional<PdcState> next = next_state(state_, event);
  UET_ASSERT(next.has_value());
  if (!next) return;
  const std::uint64_t old =
      static_cast<std::uint64_t>(state_) | (local_connection_ != 0 ? trace::kThroughRing : 0);
  const std::uint64_t error = error_ ? static_cast<std::uint64_t>(*error_) : 0;
  state_ = *next;
  env_.trace.write(trace::Kind::PdcState, static_cast<unsigned>(state_), id_, {}, old, error);
}

// Data leaves some packets for ACKs and control, without which nothing would ever be freed;
// requests leave some for the reserved pool's and both for read data, since FEPs that wait for each
// other's read data would wait for ever. A PDC that the peer has not accepted leaves some to the
// others: it may wait for a PDC of the peer that ends only when those have sent.
Packet* PdcCore::take_packet(bool control) {
  if (control) return env_.packets.take();
  std::size_t reserve = env_.control_reserve;
  if (state_ != PdcState::Creating) reserve = reserve * 7 / 8;
  if (destination_.reserved_pool) reserve = reserve * 3 / 4;
  if (role_ == Role::Target) reserve = env_.control_reserve / 2;
  if (env_.packets.available() <= reserve) return nullptr;
  return env_.packets.take();
}

bool PdcCore::send_untracked(wire::ControlHeader header, bool with_data) {
  if (!proved_ && unproved_bytes_ < kUnprovedControlBytes) return false;
  if (PeerLimits::is_optional(header.ctl_type)) {
    if (env_.peer_limits.refuses(destination_.address, header.ctl_type)) return false;  // PDS-221
    last_optional_ = header.ctl_type;
  }
  Packet* packet = take_packet(true);
  if (packet == nullptr) return false;
  packet->reset();
  header.spdcid = id_;
  header.dpdcid = peer_id_;
  header.encode(packet->prepend(kControlBytes));
  charge(cms::nominal_packet_bytes(kControlBytes));
  env_.trace.write(trace::Kind::ControlSent, static_cast<unsigned>(header.ctl_type), id_,
                   header.psn != Psn{} ? header.psn : Psn{header.payload});
  address_control(env_, *packet, destination_.address, path().next_for_control(env_.rng));
  if (with_data) {
    packet->ecn = Ecn::Ect0;
    packet->dscp = dscp_of_class(destination_.traffic_class, env_.parameters.dscp_data);
  }
  // An ACK Request asks for packets that may still be in the outbox.
  packet->control = !with_data && header.ctl_type != wire::CpType::AckRequest;
  env_.outbox.push(*packet);
  return true;
}

bool PdcCore::send_ack_request(Psn psn) {
  if (!send_untracked({.ctl_type = wire::CpType::AckRequest, .ar = true, .psn = psn})) return false;
  ++env_.counters.ack_requests_sent;
  return true;
}

void PdcCore::send_nack(NackCode code, const PacketMeta& refused) {
  wire::NackHeader nack;
  nack.ce = refused.ce;
  nack.retx = refused.retx;  // PDS-212
  nack.nack_code = code;
  nack.nack_psn = refused.psn;
  nack.spdcid = id_;
  nack.dpdcid = peer_id_;
  charge(cms::nominal_packet_bytes(sizeof(wire::PdsNack)));
  emit_nack(env_, destination_.address, nack, refused.entropy);
}

bool append_expected_psn(Environment& env, std::uint32_t sdi, Packet& packet) {
  if (env.start_psns == nullptr) return false;
  const std::optional<Psn> expected = env.start_psns->expected(sdi);
  if (!expected) return false;
  wire::overlay<wire::be32>(packet.append(sizeof(wire::be32))) = expected->value;
  return true;
}

void emit_control(Environment& env, Packet& packet, const FepAddress& to, std::uint16_t entropy) {
  address_control(env, packet, to, entropy);
  env.outbox.push(packet);
}

void emit_nack(Environment& env, const FepAddress& to, wire::NackHeader nack,
               std::uint16_t entropy) {
  Packet* packet = env.outbox.has_room_for_nack() ? env.packets.take() : nullptr;
  if (packet == nullptr) {  // as if it was lost: the time-out recovers (PDS-123)
    ++env.counters.no_packet;
    return;
  }
  packet->reset();
  nack.encode(packet->prepend(kNackBytes));
  packet->answers_unknown_peer = nack.spdcid == PdcId{};
  address_control(env, *packet, to, entropy);
  env.outbox.push_nack(*packet);
  ++env.counters.nacks_sent[static_cast<std::uint8_t>(nack.nack_code)];
  env.trace.write(trace::Kind::NackSent, static_cast<unsigned>(nack.nack_code), nack.spdcid,
                  nack.nack_psn);
}

}  // namespace uet::pds
