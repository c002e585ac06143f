// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PDC's own life: opening with SYN, sending in windows, closing with a handshake.
// Must not know SES headers, sockets or clocks.
#include "uet/pds/pdc.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "uet/pds/retransmit.h"

namespace uet::pds {

namespace {

constexpr std::size_t kRequestBytes = sizeof(wire::PdsRequest);
constexpr std::size_t kCcRequestBytes = sizeof(wire::PdsCcRequest);
constexpr std::uint32_t kControlBytes = sizeof(wire::PdsControl);
constexpr std::uint8_t kTrimsBeforeNoTrim = 4;  // the first transmission and three more
// One of so many messages without prompt ACK requests an ACK: as many short ones as make their peer
// send an ACK by itself (ACK_Gen_Trigger, PDS-97).
constexpr std::uint32_t kMostSharing = 16;

// An idle PDC takes 1 KiB at most with all that belongs to it, in steps of a cache line.
static_assert(sizeof(Pdc) <= 576);

// MP_RANGE of a peer that has not said one.
std::uint16_t assumed_range(const Environment& env, const FepAddress& peer) {
  const std::uint16_t assumed = range_psns(env.parameters, env.parameters.default_mpr);
  const std::uint16_t known = env.peer_limits.range(peer);
  return known > 0 ? std::min(assumed, known) : assumed;
}

}  // namespace

Pdc::Pdc(Environment& environment, Role role, PdcId id, PdcId peer_id,
         const Destination& destination, Psn start_psn, SharedCcc& ccc, Time now)
    : PdcCore(environment, role, id, peer_id, destination, start_psn, ccc, now),
      tx_(environment.tx_records, start_psn),
      window_(start_psn, assumed_range(environment, destination.address)),
      loss_(start_psn, now),
      receive_(*this, start_psn) {
  const bool knows_credit =
      !env_.peer_limits.refuses(destination.address, wire::CpType::CreditRequest);
  if (ccc.credit != nullptr && !knows_credit) ccc.credit->fall_back();
}

void Pdc::discard() {
  if (credit_sender() != nullptr) env_.credits->leave(*this);
  for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
    if (TxRecord* record = tx_.find(psn); record != nullptr) release(*record);
  }
  tx_.slide();
  settle_ccc();
  while (!backlog_.empty()) leave_backlog(backlog_.pop_front());
  receive_.discard();
}

// PDS-40, and PDS-52: before establishment psn_offset must fit its 12 bits.
bool Pdc::within_peer_window(Psn psn) const {
  if (state_ == PdcState::Creating &&
      psn - start_psn_ > static_cast<std::int32_t>(wire::kMaxPsnOffset)) {
    return false;
  }
  return window_.allows(psn);
}

bool Pdc::waits_for_window() const {
  if (within_peer_window(tx_.base())) return false;
  return !tx_.empty() || !backlog_.empty() || close_.wanted() || state_ == PdcState::AckWait;
}

void Pdc::await_window(Time now) {
  set_deadline(kResend, std::min(deadlines_[kResend], now + rto(env_.parameters, 0)));
}

// Ends the record; its packet leaves no more and is the caller's.
Packet* Pdc::withdraw(TxRecord& record) {
  if (record.resend) end_resend(record);
  env_.outbox.withdraw(*record.packet);
  return std::exchange(record.packet, nullptr);
}

void Pdc::release(TxRecord& record) { env_.packets.give_back(withdraw(record)); }

// ---- sending ------------------------------------------------------------------------------------

// The nominal size of what a message will send is estimated with full packets, at least one. Rather
// too much: who asks for too little ends with one packet per round trip.
void Pdc::enqueue(Message& message, Time now) {
  message.pdc = id_;
  if (ccc_.credit != nullptr) {
    const std::uint64_t mtu = env_.cms.mtu_bytes;
    constexpr std::uint64_t kHeaders = 128;  // about the largest, IP's included
    const std::uint64_t payload =
        std::min(std::bit_floor(mtu), std::max(mtu, 2 * kHeaders) - kHeaders);
    const std::uint64_t packets = message.backlog_bytes / payload + 1;
    message.backlog_bytes += packets * (mtu - payload);
    message.backlog_bytes = std::max(message.backlog_bytes, mtu);
    ccc_.credit->on_new_data(message.backlog_bytes, now);
    env_.credits->note_demand(ccc_);
  }
  backlog_.push_back(message);
  make_ready();
}

void Pdc::kick() { make_ready(); }

void Pdc::hurry() {
  for (Message& message : backlog_) message.awaited = true;
  ask_for_tail();
}

void Pdc::unlock() {
  UET_ASSERT(locks_ > 0);
  if (locks_ > 0) --locks_;
  make_ready();
}

void Pdc::unwatch() {
  UET_ASSERT(watches_ > 0);
  if (watches_ > 0) --watches_;
  make_ready();
}

// `bytes` of it remain.
void Pdc::set_backlog(Message& message, std::uint64_t bytes) {
  if (ccc_.credit == nullptr) return;
  ccc_.credit->on_backlog_left(message.backlog_bytes - bytes);
  message.backlog_bytes = bytes;
  env_.credits->note_demand(ccc_);
}

void Pdc::end_resend(TxRecord& record) {
  record.resend = false;
  --resend_count_;
  if (ccc_.credit == nullptr || record.message == nullptr) return;
  ccc_.credit->unmark_rtx(record.nominal_bytes);
  env_.credits->note_demand(ccc_);
}

void Pdc::wait_for_ccc(Time now) {
  if (ccc_.blocked_since == Time{}) {
    ccc_.blocked_since = now;
    ccc_.blocked_by_credit = ccc_.credit != nullptr && ccc_.credit->lacks_credit();
  }
  if (!ListNode<WaitingForCccTag>::linked()) ccc_.waiting.push_back(*this);
  if (ccc_.credit != nullptr) env_.credits->await(ccc_, now);
  if (!backlog_.empty() && !backlog_.front().awaited) ask_for_tail();
}

// The packets that waited were cancelled, or have arrived after all.
void Pdc::stop_waiting_for_ccc(Time now) {
  if (!ListNode<WaitingForCccTag>::linked()) return;
  ccc_.waiting.remove(*this);
  if (ccc_.waiting.empty()) end_wait(now);
}

// CMS 9.5: how long data waited, and for what.
void Pdc::end_wait(Time now) {
  const auto waited = [&](Time since) {
    return static_cast<std::uint64_t>(std::max(Duration::zero(), now - since).count());
  };
  if (ccc_.blocked_since != Time{}) {
    std::uint64_t& total = ccc_.blocked_by_credit ? env_.counters.blocked_by_credit_ns
                                                  : env_.counters.blocked_by_window_ns;
    total += waited(ccc_.blocked_since);
    ccc_.blocked_since = Time{};
  }
  if (outside_peer_window_since_ != Time{}) {
    env_.counters.blocked_by_peer_window_ns += waited(outside_peer_window_since_);
    outside_peer_window_since_ = Time{};
  }
}

void Pdc::write_header(Psn psn, TxRecord& record, bool retransmission) {
  Packet& packet = *record.packet;
  packet.drop_prepended();
  const bool syn = state_ == PdcState::Creating;  // PDS-51, PDS-54
  const std::uint8_t pdc_info = destination_.reserved_pool ? wire::kReservedPool : 0;
  const auto psn_offset = static_cast<std::uint16_t>(psn - start_psn_);
  if (record.message != nullptr) {
    wire::RequestHeader header;
    header.type =
        destination_.mode == DeliveryMode::Rod ? wire::PdsType::RodReq : wire::PdsType::RudReq;
    header.next_hdr = record.next_hdr;
    header.retx = retransmission;
    header.ar = record.ar;  // PDS-101, PDS-124
    header.syn = syn;
    header.clear_psn_offset = static_cast<std::int16_t>(tx_.clear_psn() - psn);  // PDS-34, PDS-36
    header.psn = psn;
    header.spdcid = id_;
    header.dpdcid = peer_id_;
    header.pdc_info = pdc_info;
    header.psn_offset = psn_offset;
    if (ccc_.credit != nullptr && ccc_.credit->asks_for_credit()) {  // CMS-200
      header.type = destination_.mode == DeliveryMode::Rod ? wire::PdsType::RodCcReq
                                                           : wire::PdsType::RudCcReq;
      header.ccc_id = ccc_.credit->ccc_id();
      header.credit_target = env_.credits->take_target(ccc_);
      header.encode(packet.prepend(kCcRequestBytes));
    } else {
      header.encode(packet.prepend(kRequestBytes));
    }
    clear_.paid();  // PDS-115
  } else {
    wire::ControlHeader header;
    header.ctl_type = record.ctl_type;
    header.isrod = record.ctl_type == wire::CpType::Noop && syn &&
                   destination_.mode == DeliveryMode::Rod;  // PDS-158
    header.retx = retransmission;
    header.ar = true;
    header.syn = syn;
    header.psn = psn;
    header.spdcid = id_;
    header.dpdcid = peer_id_;
    header.pdc_info = pdc_info;
    header.psn_offset = psn_offset;
    header.encode(packet.prepend(kControlBytes));
  }
}

// CMS-30, CMS-504. A packet that is trimmed again and again gets a DSCP that switches never trim,
// because otherwise only its headers would arrive (CMS-507).
std::uint8_t Pdc::dscp_for(const TxRecord& record, bool retransmission) const {
  const Parameters& parameters = env_.parameters;
  if (record.message == nullptr) return parameters.dscp_control;
  if (record.trim_count >= kTrimsBeforeNoTrim) return parameters.dscp_no_trim;
  const std::uint8_t dscp = retransmission
                                ? parameters.dscp_retransmission.value_or(parameters.dscp_data)
                                : parameters.dscp_data;
  return dscp_of_class(destination_.traffic_class, dscp);
}

// CMS-700: so short that a window takes several paths.
std::uint32_t Pdc::train_packets() const {
  const cms::Parameters& cms = env_.cms;
  if (cms.train_packets <= 1) return 1;
  const std::uint64_t bytes =
      std::min<std::uint64_t>(kLongestTrainBytes, ccc_.ccc->window_bytes() / 4);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(bytes / cms.mtu_bytes, 1, cms.train_packets));
}

// Odd retries after a time-out take the path of the last ACK; even ones take another path.
std::uint16_t Pdc::choose_path(const TxRecord& record, Time now) {
  return record.rto_count % 2 == 1 ? path().next_answered(env_.rng, now)
                                   : path().next(env_.rng, now, train_packets());
}

void Pdc::transmit(Psn psn, TxRecord& record, bool retransmission, Time now) {
  record.ar |= retransmission;  // PDS-124
  syn_came_again_ |= retransmission && state_ == PdcState::Creating;
  write_header(psn, record, retransmission);
  Packet& packet = *record.packet;
  packet.to = destination_.address;
  packet.sent = {};
  packet.payload_stays = true;
  packet.sent_again = retransmission;
  packet.entropy = record.entropy = choose_path(record, now);
  const bool data = record.message != nullptr;
  packet.ecn = data ? Ecn::Ect0 : Ecn::NotEct;  // CMS-31
  packet.dscp = dscp_for(record, retransmission);
  const std::uint32_t counted = retransmission ? record.nominal_bytes : 0;
  record.nominal_bytes = cms::nominal_packet_bytes(packet.length());
  charge(record.nominal_bytes);
  loss_.sent(record, retransmission, now);
  if (data) {  // control packets are not congestion controlled (PDS-3)
    if (ccc_.blocked_since != Time{} || outside_peer_window_since_ != Time{}) end_wait(now);
    flight_.sent(*ccc_.ccc, record, counted, now);
    unasked_packets_ = record.ar ? 0 : static_cast<std::uint16_t>(unasked_packets_ + 1);
    if (ListNode<WaitingForCccTag>::linked()) ccc_.waiting.remove(*this);  // it had its turn
    const bool may_ask = backlog_.empty() ? ccc_.recovers || !record.ar : ccc_.recovers_midway;
    if (may_ask && deadlines_[kSilence] == kNever) on_silence(now);
  }
  if (!Outbox::holds(packet)) env_.outbox.push(packet);  // else it keeps its place in line
  last_activity_ = now;
  const Time due = now + rto(env_.parameters, 0);
  if (due < deadlines_[kResend]) set_deadline(kResend, due);
}

// PDS-128. Credit comes with ACKs.
bool Pdc::shares_ack(const Message& message, Psn psn) const {
  return !message.awaited && psn.value % kMostSharing != 0 && state_ == PdcState::Established &&
         ccc_.credit == nullptr && env_.parameters.tail_loss_time > Duration{};
}

// PDS-101 tails, PDS-47 half of the window, PDS-100 per packet, CMS-124 small congestion window.
bool Pdc::wants_ack(bool tail, std::uint32_t nominal_bytes) const {
  const std::size_t range = std::min(tx_.capacity(), static_cast<std::size_t>(window_.range()));
  return tail || env_.parameters.ack_per_packet || tx_.span() == range / 2 || tx_.span() == range ||
         ccc_.ccc->wants_ack(nominal_bytes, unasked_packets_);
}

// Makes and sends the next packet of the backlog. False if nothing can be sent now.
bool Pdc::send_next_packet(Time now) {
  const Psn psn = tx_.next_psn();
  if (tx_.full() || peer_lacks_pdc_) return false;
  if (!within_peer_window(psn)) {
    if (outside_peer_window_since_ == Time{}) outside_peer_window_since_ = now;
    // Nothing outstanding, so no ACK will come by itself to tell that CACK has moved on.
    if (tx_.empty()) await_window(now);
    return false;
  }
  if (!ccc_.ccc->may_send(env_.cms.mtu_bytes)) {
    wait_for_ccc(now);
    return false;
  }
  if (!proved_) {  // with headers of the largest kind
    const std::uint64_t largest = backlog_.front().backlog_bytes + 128;
    if (!may_send(static_cast<std::uint32_t>(std::min<std::uint64_t>(env_.cms.mtu_bytes, largest))))
      return false;
  }
  Packet* packet = take_packet(false);
  if (packet == nullptr) {
    env_.packets_short = true;
    make_ready();  // packets come back as peers acknowledge
    return false;
  }
  packet->reset();
  Message& message = backlog_.front();
  PreparedPacket prepared;
  const PacketPlan plan = env_.client.next_packet(message, *packet, prepared);
  if (plan == PacketPlan::NotNow) {
    env_.packets.give_back(packet);
    return false;
  }
  const bool last = plan == PacketPlan::Last;
  if (last) backlog_.remove(message);  // PDS-8: only then the next one starts
  TxRecord& record = tx_.put();
  record.packet = packet;
  record.message = &message;
  record.tag = prepared.tag;
  record.next_hdr = prepared.next_hdr;
  const auto header_bytes = static_cast<std::uint32_t>(kRequestBytes);
  record.ar = wants_ack(last && !shares_ack(message, psn),
                        cms::nominal_packet_bytes(packet->length() + header_bytes));
  ++env_.counters.requests_sent;
  transmit(psn, record, false, now);
  if (ccc_.credit != nullptr) {  // after its target was made: it counts as waiting there
    const std::uint64_t before = message.backlog_bytes;
    const std::uint64_t sent = std::min<std::uint64_t>(record.nominal_bytes, before);
    const std::uint64_t least = std::min<std::uint64_t>(before, env_.cms.mtu_bytes);
    set_backlog(message, last ? 0 : std::max(before - sent, least));
  }
  return true;
}

// A control packet that consumes a PSN; acknowledged and resent like a request (PDS-155).
bool Pdc::send_control(wire::CpType type, Time now) {
  const Psn psn = tx_.next_psn();
  if (tx_.full() || !within_peer_window(psn)) return false;
  if (env_.peer_limits.refuses(destination_.address, type)) return false;  // PDS-221
  if (!may_send(cms::nominal_packet_bytes(kControlBytes))) return false;
  Packet* packet = take_packet(true);
  if (packet == nullptr) return false;
  packet->reset();
  TxRecord& record = tx_.put();
  record.packet = packet;
  record.ctl_type = type;
  transmit(psn, record, false, now);
  return true;
}

// Nothing is kept from leaving by the window that the CLEAR would open (PDS-48).
bool Pdc::clear_may_wait() const {
  return clear_.may_wait_for_request() && state_ == PdcState::Established && backlog_.empty() &&
         !close_.wanted();
}

// PDS-116: a lost one is repaired by what follows (PDS-118).
void Pdc::send_clear_command() {
  const wire::ControlHeader clear{.ctl_type = wire::CpType::Clear,
                                  .payload = tx_.clear_psn().value};
  if (send_untracked(clear)) clear_.paid();
}

// PDS-62: a peer opens nothing for a packet that was trimmed. ROD opens with its first one only.
bool Pdc::open_without_data(Time now) {
  const bool can = state_ == PdcState::Creating && destination_.mode == DeliveryMode::Rud;
  if (!can || tx_.empty() || opened_without_data_) return false;
  opened_without_data_ = send_control(wire::CpType::Noop, now);
  return opened_without_data_;
}

// CMS-200. A lost one is repaired by the next (CMS-203).
void Pdc::send_credit(std::uint32_t credit) {
  if (send_untracked({.ctl_type = wire::CpType::Credit, .payload = credit})) {
    ++env_.counters.credits_sent;
  }
}
void Pdc::send_credit_request(std::uint32_t target) {
  if (send_untracked({.ctl_type = wire::CpType::CreditRequest, .payload = target})) {
    ++env_.counters.credit_requests_sent;
  }
}

// CMS-140, CMS-710: while a transfer fills queues with data, packets that wait behind none tell how
// long the path is, and the quickest of them that no host was busy. Not for a transfer that is over
// with its first answer. Lost ones are not repeated: the traffic tells as well, if later.
void Pdc::probe_base_rtt(Time now) {
  const bool can = state_ == PdcState::Established && role_ == Role::Initiator;
  if (!can || backlog_.empty() || now < ccc_.probe_due) return;
  if (!send_untracked({.ctl_type = wire::CpType::Probe,
                       .ar = true,
                       .probe_opaque = base_rtt_opaque(ccc_.probes),
                       .payload = (window_.cack() + 1).value})) {
    return;
  }
  ++env_.counters.probes_sent;
  ++ccc_.probes;
  --ccc_.probes_wanted;
  ccc_.probe_sent = now;
  ccc_.probe_due = now + kBaseRttProbeSpacing;
}

// PDS-135: best effort, the PDC is already gone here.
void Pdc::send_last_word() {
  const bool initiator = role_ == Role::Initiator;
  send_untracked({.ctl_type = initiator ? wire::CpType::Close : wire::CpType::CloseRequest,
                  .ar = true,
                  .psn = close_psn_});
}

// Lost packets go first (CMS-12). In RUD those that the peer has refused take turns with new ones:
// with a window of one packet they would else go each time, and messages that have begun there
// would keep the memory for which the peer refuses. False if the budget does not suffice.
bool Pdc::send_requests(std::uint32_t& budget, Time now) {
  if (resend_count_ == 0) return send_new(budget, now);
  const bool ordered = destination_.mode == DeliveryMode::Rod;
  const Resent lost = resend(ordered ? Resends::All : Resends::NotRefused, budget, now);
  if (lost == Resent::NoBudget) return false;
  const bool new_first = lost == Resent::All && (resend_count_ == 0 || refused_went_);
  if (new_first) {
    const Psn next = tx_.next_psn();
    if (!send_new(budget, now)) return false;
    if (tx_.next_psn() != next) refused_went_ = false;
  }
  if (resend_count_ == 0 || ordered) return true;
  const std::size_t waiting = resend_count_;
  const Resent refused = resend(Resends::Refused, budget, now);
  refused_went_ |= resend_count_ < waiting;
  if (refused == Resent::NoBudget) return false;
  return new_first || resend_count_ > 0 || send_new(budget, now);
}

bool Pdc::send_new(std::uint32_t& budget, Time now) {
  while (!backlog_.empty()) {
    if (budget == 0) return false;
    if (!send_next_packet(now)) break;
    --budget;
  }
  return true;
}

Pdc::Resent Pdc::resend(Resends which, std::uint32_t& budget, Time now) {
  bool data_waits = false;
  bool oldest = true;  // of those that the peer has not reported
  for (Psn psn = tx_.base(); resend_count_ > 0 && psn != tx_.next_psn(); ++psn) {
    TxRecord* record = tx_.find(psn);
    if (record == nullptr || record->sacked) continue;
    const bool is_oldest = std::exchange(oldest, false);
    if (!record->resend) continue;
    const bool refused = record->nack_count > 0 && record->rto_epoch == loss_.rto_epoch();
    if (which != Resends::All && refused != (which == Resends::Refused)) continue;
    if (budget == 0) return Resent::NoBudget;
    if (!may_send(record->nominal_bytes)) return Resent::Some;
    if (!within_peer_window(psn)) return Resent::Some;  // PDS-42, PDS-127: until mpr allows it
    const bool data = record->message != nullptr;
    if (data && data_waits) continue;
    if (data && !ccc_.ccc->may_send(env_.cms.mtu_bytes)) {  // CMS-12
      // Packets that the peer holds but has not reported may fill the window, and they are reported
      // only when the oldest one arrives: once per RTO it goes anyway (PDS-119). Credit has nothing
      // to do with what is under way, and many that go without it would leave none of it to use.
      const bool for_credit = ccc_.credit != nullptr && ccc_.credit->lacks_credit();
      const Time overdue = for_credit ? kNever : loss_.last_data_sent() + rto(env_.parameters, 0);
      if (!is_oldest || now < overdue) {
        wait_for_ccc(now);
        // Another packet than the oldest waits for that one, which has a timer of its own.
        if (now < overdue) set_deadline(kResend, std::min(deadlines_[kResend], overdue));
        // Only there does a control packet stand behind it, which needs no leave (CMS-14).
        if (state_ != PdcState::Creating || !opened_without_data_) return Resent::Some;
        data_waits = true;
        continue;
      }
    }
    const std::uint32_t waited = record->nominal_bytes;
    record->resend = false;
    --resend_count_;
    --budget;
    transmit(psn, *record, true, now);
    if (data && ccc_.credit != nullptr) {
      ccc_.credit->unmark_rtx(waited);
      env_.credits->note_demand(ccc_);
    }
  }
  return data_waits ? Resent::Some : Resent::All;
}

bool Pdc::pump(std::uint32_t& budget, Time now) {
  if (state_ == PdcState::Closed) return false;
  if (ack_is_due()) receive_.send_waiting_ack(now);
  if (!send_requests(budget, now)) return true;
  if (resend_count_ == 0 && backlog_.empty()) stop_waiting_for_ccc(now);
  const bool owes_clear = clear_.owed() && state_ != PdcState::Creating;
  if (owes_clear && !clear_may_wait()) send_clear_command();
  if (close_.wanted()) begin_close(now);
  if (state_ != PdcState::Established && state_ != PdcState::Creating) continue_close(now);
  return ack_is_due();
}

// ---- closing ------------------------------------------------------------------------------------

namespace {

// PDS-177: an initiator that polls seldom has as long as any other peer that sends nothing. After
// the target has forgotten the PDC it could not tell which of the packets that the initiator sends
// again it has delivered. `answers`: what the peer's answers take.
Duration close_patience(const Parameters& parameters, bool proved, Duration answers) {
  const bool unlimited = parameters.max_rto_retransmissions == kUnlimited;
  if (!proved || unlimited) return parameters.close_request_time;
  return std::max(parameters.close_request_time, silence_limit(parameters, answers));
}

}  // namespace

void Pdc::begin_close(Time now) {
  hurry();
  const bool unused = tx_.next_psn() == start_psn_ && idle();
  switch (close_.begin(role_, state_, unused)) {
    case CloseHandshake::Begin::Later:
      return;
    case CloseHandshake::Begin::Forget:
      close_psn_ = start_psn_;
      return finish();
    case CloseHandshake::Begin::AskInitiator:
      if (!may_send(cms::nominal_packet_bytes(kControlBytes))) return fail(PdsError::PeerLost, now);
      if (!send_control(wire::CpType::CloseRequest, now)) return await_window(now);
      // PDS-177. A peer that is slow to close must not cost what waits for the application here.
      if (watches_ == 0)
        set_deadline(kClose, now + close_patience(env_.parameters, proved_, loss_.answers_take()));
      break;
    case CloseHandshake::Begin::Quiesce:
      break;
  }
  close_.begun();
  enter(PdcEvent::CloseWanted);
  make_ready();
}

CloseHandshake::Step Pdc::next_close_step() const {
  return CloseHandshake::next(role_, state_, backlog_.empty(), tx_.empty(), is_held());
}

void Pdc::continue_close(Time now) {
  if (next_close_step() == CloseHandshake::Step::Drained) enter(PdcEvent::Drained);
  if (next_close_step() != CloseHandshake::Step::SendClose) return;
  close_psn_ = tx_.next_psn();
  if (clear_.owed() || !send_control(wire::CpType::Close, now)) return await_window(now);
  enter(PdcEvent::CloseSent);
}

// The handshake is over. Manager frees the PDC and keeps a tombstone.
void Pdc::finish() {
  discard();
  enter(PdcEvent::CloseDone);
  ++env_.counters.pdcs_closed;
  make_ready();
}

// Idle is checked every keepalive_time, and when a CLEAR has found no request to travel with: an
// unused PDC closes (PDS-173, PDS-174); one that waits for the peer without having anything
// outstanding sends a NOOP, which fails the PDC if the peer is dead.
void Pdc::on_idle(Time now) {
  const Parameters& parameters = env_.parameters;
  const Duration quiet = now - last_activity_;
  const Duration limit =
      role_ == Role::Initiator ? parameters.initiator_idle_time : parameters.target_idle_time;
  set_deadline(kIdle, now + parameters.keepalive_time);
  receive_.ask_for_clear_if_late(now);
  if (clear_.may_wait_for_request()) clear_at_once();
  if (!proved_) {
    on_unproved_idle(quiet, now);
  } else if (takes_messages() && idle() && quiet >= limit) {
    begin_close(now);
  } else if (locks_ + watches_ > 0 && tx_.empty() && quiet >= parameters.keepalive_time) {
    await_sign_of_life(now);
  } else if (role_ == Role::Target && state_ == PdcState::Quiesce && idle() &&
             deadlines_[kClose] == kNever) {  // nothing watches it any more
    set_deadline(kClose, now + close_patience(env_.parameters, proved_, loss_.answers_take()));
  }
}

// To a peer that knows no NOOP (PDS-221) the ACK of the last PSN is one, if there is a last PSN.
void Pdc::await_sign_of_life(Time now) {
  const Parameters& parameters = env_.parameters;
  if (!env_.peer_limits.refuses(destination_.address, wire::CpType::Noop)) {
    send_control(wire::CpType::Noop, now);
  } else if (tx_.base() != start_psn_) {
    const Duration silence = now - std::max(loss_.peer_lived(), last_activity_);
    const Duration limit = silence_limit(parameters, loss_.answers_take());
    if (silence >= parameters.keepalive_time + limit) return fail(PdsError::RtoExhausted, now);
    send_ack_request(tx_.clear_psn());
  }
}

// Nothing is repeated to an address that has never answered: it is asked for its proof, and to
// close in the end, as often as what came from there allows.
void Pdc::on_unproved_idle(Duration quiet, Time now) {
  const Parameters& parameters = env_.parameters;
  // An initiator that waits for data sends a NOOP after its keepalive_time.
  const Duration limit = idle() ? parameters.target_idle_time
                                : std::max(silence_limit(parameters, loss_.answers_take()),
                                           4 * parameters.keepalive_time);
  if (quiet >= limit && !idle()) return fail(PdsError::PeerLost, now);
  if (quiet >= limit && takes_messages()) return begin_close(now);
  proof_asked_ = false;
  ask_for_proof();
}

// ---- destination --------------------------------------------------------------------------------

void Pdc::on_request(Incoming& request, Time now) {
  heard(now);
  extend_close(now);
  if (receive_.on_request(request, now)) on_close_command(request, now);
}

void Pdc::extend_close(Time now) {
  if (deadlines_[kClose] == kNever) return;
  set_deadline(kClose, now + close_patience(env_.parameters, proved_, loss_.answers_take()));
}

// PDS section 6.4: answered, then the PDC is gone.
void Pdc::on_close_command(const Incoming& request, Time now) {
  bool return_data = !backlog_.empty();
  for (Psn psn = tx_.base(); psn != tx_.next_psn(); ++psn) {
    const TxRecord* record = tx_.find(psn);
    return_data = return_data || (record != nullptr && record->message != nullptr);
  }
  switch (CloseHandshake::reply(role_, return_data, watches_ > 0)) {
    case CloseHandshake::Reply::Unexpected:
      return send_nack(NackCode::UnexpEvent, request.meta);
    case CloseHandshake::Reply::Ignore:
      return;
    case CloseHandshake::Reply::Refuse:
      send_nack(NackCode::ClosingInErr, request.meta);
      ++env_.counters.close_in_error;
      return fail(PdsError::ClosedInError, now);
    case CloseHandshake::Reply::Accept:
      break;
  }
  close_psn_ = request.meta.psn;
  receive_.close_arrived(request.meta, now);
  finish();
}

}  // namespace uet::pds
