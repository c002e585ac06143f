// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PDC as source, in the order of a packet: a message joins the backlog (SendSide), a turn makes
// packets of it within the windows and takes lost ones again (SendTurn), and transmit() gives each
// its header, its path and the accounts that it enters.
// Must not know SES headers, sockets or clocks.
#include "pds/send_side.h"

#include <algorithm>
#include <utility>

#include "pds/credits.h"
#include "pds/loss_recovery.h"
#include "pds/retransmit.h"
#include "pds/send_turn.h"

namespace uet::pds {

namespace {

// MP_RANGE of a peer that has not said one.
std::uint16_t assumed_range(const Environment& env, const FepAddress& peer) {
  const std::uint16_t assumed = range_psns(env.parameters, env.parameters.default_mpr);
  const std::uint16_t known = env.peer_limits.range(peer);
  return known > 0 ? std::min(assumed, known) : assumed;
}

// Writes the header of the packet of `record` and puts the packet into the outbox. A packet that
// waits there from before keeps its place in line.
void transmit(SendSide& side, Psn psn, TxRecord& record, bool retransmission, Time now);

}  // namespace

SendSide::SendSide(PdcCore& core, Time now)
    : core_(core),
      outstanding_(core.env().tx_records, core.start_psn()),
      peer_window_(core.start_psn(), assumed_range(core.env(), core.destination().address)),
      loss_(core.start_psn(), now) {
  const bool knows_credit =
      !env().peer_limits.refuses(core.destination().address, wire::CpType::CreditRequest);
  if (ccc().credit != nullptr && !knows_credit) ccc().credit->fall_back();
}

LossContext SendSide::loss_context() const {
  return {.parameters = env().parameters,
          .cms = env().cms,
          .ccc = *ccc().ccc,
          .history = ccc().inferences,
          .range_psns = peer_window_.range(),
          .recovers_midway = ccc().recovers_midway,
          .ordered = core_.ordered(),
          .creating = core_.state() == PdcState::Creating};
}

bool SendSide::went_only_to(std::uint16_t connection) {
  bool any = false;
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    const TxRecord* record = window().find(psn);
    if (record == nullptr || record->packet->way.connection == 0) continue;
    if (record->packet->way.connection != connection) return false;
    any = true;
  }
  return any;
}

bool SendSide::all_refused_once() {
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    const TxRecord* record = window().find(psn);
    if (record == nullptr) continue;
    if (record->sent_count != 1 || record->nack_count == 0) return false;
  }
  return true;
}

// ---- what SES gives -----------------------------------------------------------------------------

void SendSide::enqueue(Message& message, Time now) {
  backlog_.push(core_, message, now);
  core_.make_ready();
}

void SendSide::request_acks_now() {
  backlog_.expect_prompt_acks();
  ask_for_tail(*this);
}

void SendSide::discard() {
  outstanding_.release_all(core_);
  while (!backlog_.empty()) backlog_.forget(core_, backlog_.pop_front());
}

void SendSide::fail_all(const Ending& ending, Time now) {
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    TxRecord* record = window().find(psn);
    if (record == nullptr) continue;
    Message* message = record->message;
    const std::uint32_t tag = record->tag;
    const bool unread = ending.lost != nullptr && ending.lost->left_unread(record->packet->way);
    const bool behind = ending.nothing_behind && ending.not_consumed &&
                        psn > *ending.not_consumed && ending.is_fresh(record->sent_count) &&
                        !record->sacked;
    const bool unconsumed = unread || behind || psn == ending.not_consumed;
    outstanding_.release(core_, *record);
    if (message == nullptr) continue;
    message->owner->pds_error(*message, tag, unconsumed ? PdsError::NotConsumed : ending.error,
                              now);
  }
  window().slide();
  outstanding_.reconcile(core_);
  while (!backlog_.empty()) {
    Message& message = backlog_.pop_front();
    backlog_.forget(core_, message);
    message.owner->message_failed(
        message, ending.backlog_not_consumed ? PdsError::NotConsumed : ending.error, now);
  }
  wake_waiters(ccc());
}

// ---- windows ------------------------------------------------------------------------------------

bool SendSide::within_peer_window(Psn psn) const {
  if (core_.state() == PdcState::Creating &&
      psn - core_.start_psn() > static_cast<std::int32_t>(wire::kMaxPsnOffset)) {
    return false;
  }
  return peer_window_.allows(psn);
}

void SendSide::await_window(Time now) {
  core_.bring_forward(PdcCore::kResend, now + rto(env().parameters, 0));
}

void SendSide::on_credit(std::uint32_t credit, Time now) {
  if (ccc().credit == nullptr) return;
  ccc().credit->on_credit(credit, now);
  wake_waiters(ccc());
}

void SendSide::note_request_known() {
  context_known_ |= ccc().credit != nullptr && ccc().credit->asks_for_credit();
}

// ---- control packets ----------------------------------------------------------------------------

bool SendSide::send_control(wire::CpType type, Time now) {
  const Psn psn = window().next_psn();
  if (window().full() || !within_peer_window(psn)) return false;
  if (env().peer_limits.refuses(core_.destination().address, type)) return false;  // PDS-221
  if (!core_.may_send(cms::nominal_packet_bytes(sizeof(wire::PdsControl)))) return false;
  Packet* packet = core_.take_packet(true);
  if (packet == nullptr) return false;
  packet->reset();
  TxRecord& record = window().put();
  record.packet = packet;
  record.ctl_type = type;
  transmit(*this, psn, record, false, now);
  return true;
}

// PDS-116: a lost one is repaired by what follows (PDS-118).
void SendSide::send_clear_command() {
  const wire::ControlHeader clear{.ctl_type = wire::CpType::Clear,
                                  .payload = window().clear_psn().value};
  if (core_.send_untracked(clear)) clear_.paid();
}

void SendSide::clear_at_once() {
  clear_.pay_at_once();
  core_.make_ready();
}

// PDS-62: a peer opens nothing for a packet that was trimmed. ROD opens with its first one only.
bool SendSide::open_without_data(Time now) {
  const bool can = core_.state() == PdcState::Creating && !core_.ordered();
  if (!can || outstanding_.empty() || opened_without_data_) return false;
  opened_without_data_ = send_control(wire::CpType::Noop, now);
  return opened_without_data_;
}

Time SendSide::queue_resend(Psn psn, TxRecord& record, Time now) {
  UET_ASSERT(window().holds(psn));
  (void)psn;
  const Time allowed = loss_.may_leave(env().parameters, record);
  record.not_before = Time{};
  if (!record.resend) {
    // A packet that is to be given up waits for check_all, whatever asks for its resending: an
    // inference (PDS-132) may ask for it before each time-out.
    if (now < allowed || loss_.gives_up(env().parameters, record)) {
      const Time judged = std::max(now, allowed);
      record.not_before = judged;
      core_.bring_forward(PdcCore::kResend, judged);
      return judged;
    }
    outstanding_.queue(core_, record);
  }
  core_.make_ready();
  return kNever;
}

// ---- the peer -----------------------------------------------------------------------------------

void SendSide::heard(Time now) {
  core_.note_activity(now);
  peer_window_.heard();
  if (!loss_.heard(now)) return;
  core_.bring_forward(PdcCore::kResend, now + rto(env().parameters, 0));
}

void SendSide::learn_peer(PdcId peer_id, Time now) {
  if (core_.establish(peer_id)) release_held(now);
}

// The target has a PDC now. No packet leaves sooner after its last transmission than after a NACK:
// by then the target has reported the packets that it has.
void SendSide::release_held(Time now) {
  if (!outstanding_.holds_data()) return;
  outstanding_.end_hold();
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    TxRecord* record = window().find(psn);
    if (record == nullptr || !Outstanding::is_held(*record)) continue;
    const Time allowed = record->last_sent + env().parameters.nack_retransmission_time;
    outstanding_.send_later(core_, *record, allowed);
    if (now >= allowed) queue_resend(psn, *record, now);
  }
  core_.make_ready();
}

// PDS-76: the target has accepted nothing yet, so that all outstanding packets move by the same
// distance, in order, and are sent again.
bool SendSide::rebase(Psn start_psn, Time now) {
  if (rto_exhausted(env().parameters, rebases_++)) return false;
  outstanding_.end_hold();
  window().rebase(start_psn);
  core_.move_start(start_psn);
  peer_window_.rebase(start_psn);
  loss_.rebase(start_psn);
  for (Psn psn = window().base(); psn != window().next_psn(); ++psn) {
    TxRecord* record = window().find(psn);
    if (record == nullptr) continue;
    record->rto_count = record->nack_count = record->unanswered = 0;
    outstanding_.flight().refused(*ccc().ccc, *record);
    ++env().counters.nack_retransmissions;
    ++core_.peer_counts().nack_retransmissions;
    queue_resend(psn, *record, now);
  }
  outstanding_.reconcile(core_);
  wake_waiters(ccc());
  return true;
}

// ---- a turn: new packets ------------------------------------------------------------------------

namespace {

constexpr std::size_t kRequestBytes = sizeof(wire::PdsRequest);
constexpr std::uint32_t kLargestHeaders = 128;
// Packets of messages that wait for no ACK. Of long ones each kMostSharing-th PSN requests an ACK.
// As many short ones reach the default ACK_Gen_Trigger (PDS-97), so that the peer sends an ACK
// unasked. If kMostUnanswered have had none, its trigger is larger, and a short one requests an
// ACK.
constexpr std::uint32_t kMostSharing = 16;
constexpr std::size_t kMostUnanswered = 24;

}  // namespace

// PDS-128. Credit comes with ACKs. If packets leave now and then, each before the Tail_Loss_Time of
// the last one ends, one of them asks long before the oldest is presumed lost. `bytes` of the
// packet count for ACK_Gen_Trigger.
bool SendTurn::shares_ack(const Message& message, Psn psn, std::size_t bytes) const {
  if (message.prompt_ack) return false;
  const bool is_short = bytes <= env().parameters.ack_gen_min_packet_add_bytes;
  if (!is_short && psn.value % kMostSharing == 0) return false;
  const std::size_t unanswered = side_.window().span();  // with this one
  const std::size_t unasked = side_.outstanding().unasked() + std::size_t{1};
  if (std::min(unanswered, unasked) >= kMostUnanswered) return false;
  const Psn oldest = side_.window().base();
  const bool alone = oldest == psn;
  if (!alone && now_ - side_.window().at(oldest).first_sent > env().parameters.rto_init / 4) {
    return false;
  }
  return core_.state() == PdcState::Established && ccc().credit == nullptr &&
         env().parameters.tail_loss_time > Duration{};
}

// PDS-101 tails, PDS-47 half of the window, PDS-100 per packet, CMS-124 small congestion window.
bool SendTurn::wants_ack(bool tail, std::uint32_t nominal_bytes) const {
  const std::size_t span = side_.window().span();
  const std::size_t range =
      std::min(side_.window().capacity(), static_cast<std::size_t>(side_.peer_window().range()));
  return tail || env().parameters.ack_per_packet || span == range / 2 || span == range ||
         ccc().ccc->wants_ack(nominal_bytes, side_.outstanding().unasked());
}

// A packet of the backlog may be made now. If not, what it waits for is noted.
bool SendTurn::may_make_packet() {
  if (side_.window().full() || side_.outstanding().holds_data()) return false;
  if (!side_.within_peer_window(side_.window().next_psn())) {
    side_.wait().begin_for_peer(now_);
    // Nothing outstanding, so no ACK will come by itself to tell that CACK has moved on.
    if (side_.outstanding().empty()) side_.await_window(now_);
    return false;
  }
  if (!ccc().ccc->may_send(env().cms.mtu_bytes)) {
    wait_for_ccc();
    return false;
  }
  if (core_.proved()) return true;
  const std::uint64_t largest = side_.backlog().front().backlog_bytes + kLargestHeaders;
  return core_.may_send(
      static_cast<std::uint32_t>(std::min<std::uint64_t>(env().cms.mtu_bytes, largest)));
}

void SendTurn::wait_for_ccc() {
  side_.wait().begin_for_ccc(core_, now_);
  if (!side_.backlog().empty() && !side_.backlog().front().prompt_ack) ask_for_tail(side_);
  const bool for_credit = ccc().credit != nullptr && ccc().credit->lacks_credit();
  if (!for_credit) LossRecovery(side_, now_).on_closed_window();
}

// nullptr: the next packet cannot be made now.
Packet* SendTurn::take_packet() {
  if (!may_make_packet()) return nullptr;
  Packet* packet = core_.take_packet(false);
  if (packet == nullptr) {
    note_packets_short();
    core_.make_ready();  // packets come back as peers acknowledge
    return nullptr;
  }
  packet->reset();
  return packet;
}

void SendTurn::note_packets_short() {
  env().packets_short = true;
  if (env().packets_short_since != Time{}) return;
  env().packets_short_since = now_;
}

void SendTurn::note_packets_back() {
  const Time since = std::exchange(env().packets_short_since, Time{});
  env().trace.waited(trace::Wait::Packets, {}, now_ - since);
}

// So many new packets have left, and nothing else that has a PSN.
void SendTurn::note_in_trace(std::uint32_t packets, std::uint64_t bytes) {
  const Psn first = side_.window().next_psn() - static_cast<std::int32_t>(packets);
  if (const TxRecord* const record = side_.window().find(first); record != nullptr) {
    env().trace.write(trace::Kind::Sent, 0, core_.id(), first, std::uint64_t{packets} << 32 | bytes,
                      std::uint64_t{record->entropy} << 32 | std::uint64_t{1} << 16 |
                          record->message->id_in_trace);
  }
  if (env().packets_short_since != Time{} && !env().packets_short) note_packets_back();
}

bool SendTurn::send_new() {
  if (!new_may_leave_) return true;
  const std::uint32_t budget = budget_;
  const std::uint64_t bytes = core_.peer_counts().bytes_sent;
  bool budget_suffices = true;
  Backlog& backlog = side_.backlog();
  for (; !backlog.empty(); --budget_) {
    budget_suffices = budget_ > 0;
    if (!budget_suffices) break;
    Packet* packet = take_packet();
    if (packet == nullptr) break;
    Message& message = backlog.front();
    PreparedPacket prepared;
    const PacketPlan plan = message.owner->next_packet(message, *packet, prepared);
    if (plan == PacketPlan::NotNow) {
      env().packets.give_back(packet);
      break;
    }
    const bool last = plan == PacketPlan::Last;
    if (last) backlog.remove(message);  // PDS-8: only then the next one starts
    const Psn psn = side_.window().next_psn();
    TxRecord& record = side_.window().put();
    record.packet = packet;
    record.message = &message;
    record.tag = prepared.tag;
    record.next_hdr = prepared.next_hdr;
    const auto header_bytes = static_cast<std::uint32_t>(kRequestBytes);
    record.ar = wants_ack(last && !shares_ack(message, psn, packet->length()),
                          cms::nominal_packet_bytes(packet->length() + header_bytes));
    ++env().counters.requests_sent;
    transmit(side_, psn, record, false, now_);
    // After the target of its header was made: the packet counts as waiting there.
    backlog.sent(core_, message, record.nominal_bytes, last);
  }
  if (budget_ != budget) note_in_trace(budget - budget_, core_.peer_counts().bytes_sent - bytes);
  return budget_suffices;
}

// ---- a turn: packets that leave again -----------------------------------------------------------

bool SendTurn::send_lost() {
  Outstanding& outstanding = side_.outstanding();
  if (outstanding.queued() == 0) return true;
  const bool ordered = core_.ordered();
  const Resent lost = resend(ordered ? Resends::All : Resends::NotRefused);
  if (lost == Resent::NoBudget) return false;
  if (lost == Resent::All && (outstanding.queued() == 0 || outstanding.refused_went())) {
    new_before_refused_ = side_.window().next_psn();
    return true;
  }
  new_may_leave_ = false;
  if (outstanding.queued() == 0 || ordered) return true;
  if (!resend_refused()) return false;
  new_may_leave_ = outstanding.queued() == 0;
  return true;
}

bool SendTurn::send_refused() {
  if (!new_before_refused_) return true;
  Outstanding& outstanding = side_.outstanding();
  if (side_.window().next_psn() != *new_before_refused_) outstanding.set_refused_went(false);
  if (outstanding.queued() == 0 || core_.ordered()) return true;
  return resend_refused();
}

bool SendTurn::resend_refused() {
  Outstanding& outstanding = side_.outstanding();
  const std::size_t waiting = outstanding.queued();
  const Resent refused = resend(Resends::Refused);
  if (outstanding.queued() < waiting) outstanding.set_refused_went(true);
  return refused != Resent::NoBudget;
}

// Sends the queued packets again.
SendTurn::Resent SendTurn::resend(Resends which) {
  bool data_waits = false;
  bool oldest = true;  // of those that the peer has not reported
  for (Psn psn = side_.window().base();
       side_.outstanding().queued() > 0 && psn != side_.window().next_psn(); ++psn) {
    TxRecord* record = side_.window().find(psn);
    if (record == nullptr || record->sacked) continue;
    const bool is_oldest = std::exchange(oldest, false);
    if (!record->resend) continue;
    const bool refused = record->nack_count > 0 && record->rto_epoch == side_.loss().rto_epoch();
    if (which != Resends::All && refused != (which == Resends::Refused)) continue;
    if (budget_ == 0) return Resent::NoBudget;
    if (!core_.may_send(record->nominal_bytes)) return Resent::Some;
    if (!side_.within_peer_window(psn))
      return Resent::Some;  // PDS-42, PDS-127: until mpr allows it
    const bool data = record->message != nullptr;
    if (data && data_waits) continue;
    if (data && !may_resend_data(is_oldest)) {
      // Only there does a control packet stand behind it, which needs no leave (CMS-14).
      if (core_.state() != PdcState::Creating || !side_.opened_without_data()) return Resent::Some;
      data_waits = true;
      continue;
    }
    const std::uint32_t waited = record->nominal_bytes;
    side_.outstanding().take_from_queue(*record);
    --budget_;
    transmit(side_, psn, *record, true, now_);
    if (data) side_.outstanding().reconcile_credit(core_, waited);
  }
  return data_waits ? Resent::Some : Resent::All;
}

// CMS-12. Packets that the peer holds but has not reported may fill the window, and they are
// reported only when the oldest one arrives: once per RTO it goes anyway (PDS-119). Credit has
// nothing to do with what is under way, and many that go without it would leave none of it to use.
bool SendTurn::may_resend_data(bool oldest) {
  if (ccc().ccc->may_send(env().cms.mtu_bytes)) return true;
  const bool for_credit = ccc().credit != nullptr && ccc().credit->lacks_credit();
  const Time overdue =
      for_credit ? kNever : side_.loss().last_data_sent() + rto(env().parameters, 0);
  if (oldest && now_ >= overdue) return true;
  wait_for_ccc();
  // Another packet than the oldest waits for that one, which has a timer of its own.
  if (now_ < overdue) core_.bring_forward(PdcCore::kResend, overdue);
  return false;
}

// ---- one transmission ---------------------------------------------------------------------------

namespace {

constexpr std::uint8_t kTrimsBeforeNoTrim = 4;       // the first transmission and three more
constexpr std::uint64_t kLongestTrainBytes = 65536;  // CMS-700

std::uint8_t pdc_info_of(const PdcCore& core) {
  return core.destination().reserved_pool ? wire::kReservedPool : 0;
}

void write_control_header(const PdcCore& core, Psn psn, const TxRecord& record,
                          bool retransmission) {
  const bool syn = core.state() == PdcState::Creating;  // PDS-51, PDS-54
  wire::ControlHeader header;
  header.ctl_type = record.ctl_type;
  header.isrod = record.ctl_type == wire::CpType::Noop && syn && core.ordered();  // PDS-158
  header.retx = retransmission;
  header.ar = true;
  header.syn = syn;
  header.psn = psn;
  header.spdcid = core.id();
  header.dpdcid = core.peer_id();
  header.pdc_info = pdc_info_of(core);
  header.psn_offset = static_cast<std::uint16_t>(psn - core.start_psn());
  header.encode(record.packet->prepend(sizeof(wire::PdsControl)));
}

void write_request_header(SendSide& side, Psn psn, const TxRecord& record, bool retransmission) {
  PdcCore& core = side.core();
  SharedCcc& shared = core.ccc();
  const bool ordered = core.ordered();
  wire::RequestHeader header;
  header.type = ordered ? wire::PdsType::RodReq : wire::PdsType::RudReq;
  header.next_hdr = record.next_hdr;
  header.retx = retransmission;
  header.ar = record.ar;                            // PDS-101, PDS-124
  header.syn = core.state() == PdcState::Creating;  // PDS-51, PDS-54
  header.clear_psn_offset =
      static_cast<std::int16_t>(side.window().clear_psn() - psn);  // PDS-34, 36
  header.psn = psn;
  header.spdcid = core.id();
  header.dpdcid = core.peer_id();
  header.pdc_info = pdc_info_of(core);
  header.psn_offset = static_cast<std::uint16_t>(psn - core.start_psn());
  if (shared.credit != nullptr && shared.credit->asks_for_credit()) {  // CMS-200
    header.type = ordered ? wire::PdsType::RodCcReq : wire::PdsType::RudCcReq;
    header.ccc_id = shared.credit->ccc_id();
    header.credit_target = core.env().credits->take_target(shared);
    header.encode(record.packet->prepend(sizeof(wire::PdsCcRequest)));
  } else {
    header.encode(record.packet->prepend(sizeof(wire::PdsRequest)));
  }
  side.clear_debt().paid();  // PDS-115
}

// CMS-30, CMS-504. A packet that is trimmed again and again gets a DSCP that switches never trim,
// because otherwise only its headers would arrive (CMS-507).
std::uint8_t dscp_for(const PdcCore& core, const TxRecord& record, bool retransmission) {
  const Parameters& parameters = core.env().parameters;
  if (record.message == nullptr) return parameters.dscp_control;
  if (record.trim_count >= kTrimsBeforeNoTrim) return parameters.dscp_no_trim;
  const std::uint8_t dscp = retransmission
                                ? parameters.dscp_retransmission.value_or(parameters.dscp_data)
                                : parameters.dscp_data;
  return dscp_of_class(core.destination().traffic_class, dscp);
}

// CMS-700: so short that a window takes several paths.
std::uint32_t train_packets(const PdcCore& core) {
  const cms::Parameters& cms = core.env().cms;
  if (cms.train_packets <= 1) return 1;
  const std::uint64_t bytes =
      std::min<std::uint64_t>(kLongestTrainBytes, core.ccc().ccc->window_bytes() / 4);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(bytes / cms.mtu_bytes, 1, cms.train_packets));
}

// Odd retries after a time-out take the path of the last ACK; even ones take another path.
std::uint16_t choose_path(PdcCore& core, const TxRecord& record, Time now) {
  return record.rto_count % 2 == 1 ? core.path().next_answered(core.env().rng, now)
                                   : core.path().next(core.env().rng, now, train_packets(core));
}

// Control packets are not congestion controlled (PDS-3). `counted`: nominal bytes of the packet
// when it left before.
void note_data_sent(SendSide& side, TxRecord& record, std::uint32_t counted, Time now) {
  PdcCore& core = side.core();
  const SharedCcc& shared = core.ccc();
  side.wait().data_left(core, now);
  side.outstanding().flight().sent(*shared.ccc, record, counted, now);
  side.outstanding().note_data_sent(record.ar);
  WindowWait::leave_line(core);
  const bool may_ask =
      side.backlog().empty() ? shared.recovers || !record.ar : shared.recovers_midway;
  // A retransmission may bring forward what is set for the packets before it.
  const bool again = counted > 0;
  if (may_ask && (again || core.deadline_of(PdcCore::kSilence) == kNever)) {
    LossRecovery(side, now).on_silence();
  }
}

// A packet that is sent again, or a control packet. Others: SendTurn::note_in_trace.
void note_in_trace(PdcCore& core, Psn psn, const TxRecord& record, bool retransmission) {
  const Message* const message = record.message;
  const unsigned detail = (retransmission ? 1U : 0U) | (message == nullptr ? 2U : 0U);
  core.env().trace.write(
      trace::Kind::Sent, detail, core.id(), psn, std::uint64_t{1} << 32 | record.nominal_bytes,
      std::uint64_t{record.entropy} << 32 | std::uint64_t{record.sent_count} << 16 |
          (message != nullptr ? message->id_in_trace : 0U));
}

void transmit(SendSide& side, Psn psn, TxRecord& record, bool retransmission, Time now) {
  PdcCore& core = side.core();
  record.ar |= retransmission;  // PDS-124
  if (retransmission && core.state() == PdcState::Creating) core.note_syn_came_again();
  record.packet->drop_prepended();
  if (record.message != nullptr) {
    write_request_header(side, psn, record, retransmission);
  } else {
    write_control_header(core, psn, record, retransmission);
  }
  Packet& packet = *record.packet;
  packet.to = core.destination().address;
  packet.sent = {};
  packet.payload_stays = true;
  packet.sent_again = retransmission;
  packet.first_in_flight = side.window().span() == 1;
  packet.entropy = record.entropy = choose_path(core, record, now);
  const bool data = record.message != nullptr;
  packet.ecn = data ? Ecn::Ect0 : Ecn::NotEct;  // CMS-31
  packet.dscp = dscp_for(core, record, retransmission);
  const std::uint32_t counted = retransmission ? record.nominal_bytes : 0;
  record.nominal_bytes = cms::nominal_packet_bytes(packet.length());
  core.charge(record.nominal_bytes);
  ++core.peer_counts().packets_sent;
  core.peer_counts().bytes_sent += record.nominal_bytes;
  side.loss().sent(record, retransmission, now);
  if (retransmission || !data) note_in_trace(core, psn, record, retransmission);
  if (data) note_data_sent(side, record, counted, now);
  if (!Outbox::holds(packet)) core.env().outbox.push(packet);  // else it keeps its place in line
  core.note_activity(now);
  core.bring_forward(PdcCore::kResend, now + rto(core.env().parameters, 0));
}

}  // namespace

}  // namespace uet::pds
