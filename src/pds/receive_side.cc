// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a PDC delivers, stores and acknowledges (PDS sections 8 to 11, 15).
#include "pds/receive_side.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cms/rtt.h"
#include "pds/start_psns.h"

namespace uet::pds {

using Slot = RxWindow::Slot;

namespace {

// The response to the packet is in `stored_responses`.
bool is_stored(const RxWindow& window, Psn psn) {
  return window.state(psn) == Slot::Guaranteed || window.state(psn) == Slot::Provisional;
}

// Stored responses of one host up to which answers to requests without an endpoint are stored.
constexpr std::size_t kStoredForNobody = 64;

// Features that a Negotiation may turn on (PDS-215). Not SYN_RETX_TRANSFER (PDS-216): a successor
// that took over packets would have to know what its predecessor has delivered, which a tombstone
// (PDS-175) does not keep, while the hazard that the feature is for is met by the tombstone.
constexpr std::uint32_t kFeatures = 0;

constexpr std::int32_t kLargestRangePsns = 32 * std::int32_t{wire::kMprUnitPsns};

// Of a packet that was delivered more than our MP_RANGE ago: a source that did not know the range
// yet may have sent that many PSNs, and lost all ACKs of them (PDS-42, PDS-46). To refuse a copy
// would bring it back for ever, and so would an ACK Request without an answer.
bool came_long_ago(Psn psn, Psn cack) {
  const std::int32_t behind = cack - psn;
  return behind >= 0 && behind < kLargestRangePsns;
}

// The same of a request, whose SYN names the PDC that it is of.
bool came_long_ago(const Incoming& request, Psn cack, Psn start_psn) {
  return came_long_ago(request.meta.psn, cack) && (!request.syn || request.meta.psn >= start_psn);
}

// PDS-215: the answer rides behind the header of the ACK, the one packet that the peer expects for
// this PSN; a peer that expects none ignores what follows an ACK without SES header. A repeated
// Negotiation has a bare ACK, which agrees to nothing either.
Response negotiate(const Incoming& request) {
  Response response;
  wire::Negotiation asked;
  if (!wire::Negotiation::decode(request.view.bytes, asked)) return response;
  const std::uint32_t known = asked.type == wire::Negotiation::kOnOff ? kFeatures : 0;
  const wire::Negotiation agreed{.type = asked.type, .features = asked.features & known};
  response.length = static_cast<std::uint8_t>(agreed.encode(response.bytes.data()));
  return response;
}

// Control packets that consume a PSN. Their ACK has no SES header (PDS-104).
Response process_control(PdcCore& core, const Incoming& request) {
  if (request.ctl_type == wire::CpType::Negotiation) return negotiate(request);
  Response response;
  if (request.ctl_type == wire::CpType::CloseRequest && core.role() == Role::Initiator) {
    core.want_close();  // PDS-172: acknowledged before closing starts
  } else if (request.ctl_type != wire::CpType::Noop) {
    response.nack = NackCode::UnexpEvent;
  }
  return response;
}

// A request that matches no endpoint can come from a host without authorization. It is refused: if
// its answer were not stored, a repetition would get a success (PDS-111). The packet that CACK is
// waiting for is not refused, since no CLEAR can come over a gap.
bool must_wait_for_clear(const PdcCore& core, const Incoming& request, const Response& response) {
  return response.guaranteed && response.matches_no_endpoint && !request.view.holds_cack &&
         core.env().stored_responses.held(core.host()) >= kStoredForNobody;
}

// How near the host is to its share of the reorder buffer, 0 to 1 (CMS-305).
double early_occupancy(const PdcCore& core) {
  if (!core.ordered()) return 0;
  const Environment& env = core.env();
  const std::size_t held = env.early_packets.held(core.host());
  const std::size_t all = held + env.early_packets.available();
  return all == 0 ? 1 : std::min(1.0, 2.0 * static_cast<double>(held) / static_cast<double>(all));
}

// The NIC has not taken yet what answers this packet.
bool answer_waits(const PdcCore& core, Psn psn) {
  for (const Packet& packet : core.env().outbox.control()) {
    wire::AckHeader ack;
    if (packet.to != core.destination().address || !wire::AckHeader::decode(packet.head(), ack))
      continue;
    if (ack.spdcid == core.id() && ack.dpdcid == core.peer_id() && !ack.p && ack.ack_psn() == psn)
      return true;
  }
  return false;
}

}  // namespace

ReceiveSide::ReceiveSide(PdcCore& core, Psn start_psn)
    : core_(core), acks_(start_psn), rod_next_(start_psn), rx_(core.env().rx_entries, start_psn) {}

void ReceiveSide::rebase(Psn start_psn) {
  rx_.rebase(start_psn);
  acks_.rebase(start_psn);
  rod_next_ = start_psn;
}

// Packets that had to wait for the proof may leave.
void ReceiveSide::prove() {
  if (core_.proved()) [[likely]]
    return;
  // Apart, so that the check costs each packet little.
  const auto charge_to_host = [this]() __attribute__((noinline, cold)) {
    const std::uint64_t before = core_.host();
    core_.note_proved();
    env().stored_responses.move(before, core_.host(), stored_.count());
    std::size_t early = 0;
    for (Psn psn = rx_.cack_psn() + 1; psn <= rx_.highest_psn(); ++psn) {
      if (rx_.state(psn) == Slot::Buffered) ++early;
    }
    env().early_packets.move(before, core_.host(), early);
    core_.make_ready();
    env().client.pdc_proved(core_.id());
  };
  charge_to_host();
}

// The pipeline of PDS-210 from step 8 on; Manager did the lookup and the identity checks.
bool ReceiveSide::on_request(Incoming& request, Time now) {
  if (request.clear_psn) on_clear(*request.clear_psn, now);  // PDS-209: duplicates too
  const PacketMeta& meta = request.meta;
  const RxWindow::Place place = rx_.place(meta.psn);
  if (request.syn && meta.retx) core_.note_syn_came_again();
  if (!request.syn && place != RxWindow::Place::OutOfRange) prove();
  if (place == RxWindow::Place::Duplicate ||
      came_long_ago(request, rx_.cack_psn(), core_.start_psn())) {  // PDS-202
    on_duplicate(request, now);
  } else if (request.trimmed) {  // PDS-149, PDS-150
    core_.send_nack(*request.trimmed, meta);
  } else if (place == RxWindow::Place::OutOfRange) {  // PDS-46
    core_.send_nack(request.syn ? NackCode::InvalidSyn : NackCode::PsnOorWindow, meta);
  } else if (core_.ordered() && meta.psn != rod_next_) {
    buffer_early(request, now);
  } else if (request.ctl_type == wire::CpType::Close) {
    return true;
  } else if (deliver(request, now) && core_.ordered()) {
    deliver_early(now);
  }
  return false;
}

void ReceiveSide::close_arrived(const PacketMeta& close, Time now) {
  rx_.mark(close.psn, Slot::Finished);
  rx_.clear_up_to(close.psn);
  move_cack(now);
  AckDue due;
  due.meta = close;
  due.closing = true;
  if (env().start_psns != nullptr) {
    env().start_psns->ended(core_.destination().address.sdi, core_.start_psn());
  }
  send_ack(due, wire::AckRequestCode::None, now);
}

void ReceiveSide::on_duplicate(const Incoming& request, Time now) {
  if (!request.meta.retx) {  // PDS-206: the network copied it
    ++env().counters.duplicates_dropped;
    return;
  }
  if (rx_.state(request.meta.psn) == Slot::Buffered) {  // PDS-205: its response is not ready
    return core_.send_nack(NackCode::RcvdSesProcg, request.meta);
  }
  ++env().counters.duplicates_acked;
  if (acks_.answers_soon(request.meta.psn, rx_.cack_psn())) return;
  std::optional<RequestName> name;
  if (!request.ctl_type) name = env().client.name_of(request.view);
  resend_ack(request.meta, name, request.ctl_type.has_value(), now);
}

// The default response to the packet `psn`, at or above CACK, that was consumed.
Response ReceiveSide::default_response(Psn psn) const {
  return env().client.default_rsp({rx_.message(psn), core_.destination().job});
}

// PDS-203, PDS-204: the stored response again, or the default one, which needs the name of the
// request: an ACK without it leaves the SES of some peers waiting. For a request below CACK of
// unknown name the ACK of CACK itself goes. Once at a time: to a source that asks faster than the
// NIC takes answers, each further copy would make the next one later.
void ReceiveSide::resend_ack(PacketMeta asked, const std::optional<RequestName>& name, bool control,
                             Time now) {
  if (!name && !control) asked.psn = std::max(asked.psn, rx_.cack_psn());
  const Psn psn = asked.psn;
  if (answer_waits(core_, psn)) return;
  AckDue due;
  due.meta = asked;
  if (is_stored(rx_, psn)) {
    due.response = env().stored_responses[rx_.index(psn)];
  } else if (!control) {  // PDS-104: that of a control packet has none
    due.response = name ? env().client.default_rsp(*name) : default_response(psn);
  }
  send_ack(due, code_for(psn), now);
}

// PDS-105: the ACK of a guaranteed response asks for its CLEAR; there is none for what is no answer
// yet.
wire::AckRequestCode ReceiveSide::code_for(Psn psn) const {
  return rx_.state(psn) == Slot::Guaranteed ? wire::AckRequestCode::Clear
                                            : wire::AckRequestCode::None;
}

void ReceiveSide::answer(Psn psn, const Response& response) {
  if (rx_.state(psn) != Slot::Provisional) return;
  const std::uint16_t index = rx_.index(psn);
  env().stored_responses[index] = response;
  rx_.mark(psn, Slot::Guaranteed, index);
  // If it is lost, or there is no packet for it, the source asks for it (PDS-90). The request came
  // long ago: neither its time nor its path is known any more, and no SERVICE_TIME is measured.
  AckDue due;
  due.meta.psn = psn;
  due.response = response;
  send_ack(due, code_for(psn), {});
}

bool ReceiveSide::deliver(Incoming& request, Time now) {
  if (!stored_.may_store(env().stored_responses, core_.host())) {  // PDS-113: it might need one
    env().responses_short = true;
    core_.send_nack(NackCode::NoGtdDelAvail, request.meta);
    const bool late = stored_.clear_is_late(env().parameters.clear_time, now);
    if (stored_.count() > 0 && late) request_clear(now);
    return false;
  }
  const Response response = process(request, now);
  if (response.nack || must_wait_for_clear(core_, request, response)) {
    core_.send_nack(response.nack.value_or(NackCode::NoGtdDelAvail), request.meta);
    return false;
  }
  arrived(request, response, now);
  return true;
}

Response ReceiveSide::process(Incoming& request, Time now) {
  if (request.ctl_type) return process_control(core_, request);
  request.view.pdc = core_.id();
  request.view.psn = request.meta.psn;
  request.view.source = core_.destination().address;
  request.view.mode = core_.destination().mode;
  request.view.holds_cack = request.meta.psn == rx_.cack_psn() + 1;
  ++env().counters.requests_delivered;
  return env().client.rx_req(request.view, now);
}

bool ReceiveSide::predecessor_missing(Psn psn) const {
  return psn - 1 > rx_.cack_psn() && rx_.state(psn - 1) == Slot::Missing;
}

// PDS-133: says so once per gap.
void ReceiveSide::infer_loss_here(const PacketMeta& newest) {
  const std::uint32_t threshold = env().parameters.receiver_infers_loss_psns;
  const Psn gap = rx_.cack_psn() + 1;
  if (threshold == 0 || core_.ordered()) return;
  if (newest.psn - gap < static_cast<std::int32_t>(threshold)) return;
  if (rx_.state(gap) != Slot::Missing) return;  // held by a response that is not cleared
  if (!acks_.reports_gap(gap)) return;
  PacketMeta missing;
  missing.psn = gap;
  missing.entropy = newest.entropy;
  core_.send_nack(NackCode::RcvrInferLoss, missing);
}

// The packet was consumed: remember it and decide about its ACK.
void ReceiveSide::arrived(const Incoming& request, const Response& response, Time now) {
  const Psn psn = request.meta.psn;
  if (core_.role() == Role::Target && !request.ctl_type) core_.set_job(response.request.job);
  if (!request.early) rcvd_bytes_ += request.nominal_bytes;  // CMS-111
  if (core_.ordered()) rod_next_ = psn + 1;
  if (response.guaranteed) {
    const std::uint16_t index = stored_.store(env().stored_responses, core_.host(), response, now);
    rx_.mark(psn, response.provisional ? Slot::Provisional : Slot::Guaranteed, index);
    ask_for_clear_if_late(now);
    move_cack(now);
  } else if (!rx_.finish_in_order(psn, response.request.message)) {
    rx_.mark(psn, Slot::Finished, response.request.message.value);
    move_cack(now);
  }
  infer_loss_here(request.meta);

  const AckScheduler::Plan plan = plan_ack(request, response.guaranteed);
  if (plan.urgency == AckScheduler::Urgency::AfterBytes) return;
  if (plan.urgency != AckScheduler::Urgency::Now) {
    return owe_ack(request.meta, response, now, plan.urgency);
  }
  if (plan.waiting_first) send_waiting_ack(now);
  ack_each(plan.uncovered_from, request.meta, now);
  AckDue own;
  own.meta = request.meta;
  own.response.assign(response);
  send_ack(own, response.guaranteed ? code_for(psn) : wire::AckRequestCode::None, now);
}

AckScheduler::Window ReceiveSide::ack_window() const {
  return {rx_.cack_psn(), static_cast<std::int32_t>(rx_.range())};
}

// Of a packet that was consumed.
AckScheduler::Plan ReceiveSide::plan_ack(const Incoming& request, bool guaranteed) {
  const Psn psn = request.meta.psn;
  AckScheduler::Arrival arrival;
  arrival.payload_bytes = static_cast<std::uint32_t>(request.view.bytes.size());
  arrival.syn = request.syn;
  arrival.control = request.ctl_type.has_value();
  arrival.predecessor_missing = predecessor_missing(psn);
  arrival.guaranteed = guaranteed;
  arrival.behind_held = stored_.count() > 0 && psn > rx_.cack_psn();
  arrival.ordered = core_.ordered();
  return acks_.consumed(env().parameters, request.meta, arrival, ack_window());
}

// The ACK of this packet leaves with the next turn or behind the reply, or now if there is no
// memory for it to wait in. An ACK that waits for the turn already does so for this packet too;
// credit travels with ACKs.
void ReceiveSide::owe_ack(const PacketMeta& packet, const Response& response, Time now,
                          AckScheduler::Urgency urgency) {
  const bool behind_reply =
      urgency == AckScheduler::Urgency::BehindReply && credit_sender_ == nullptr &&
      (acks_.is_owed() ? !acks_.may_leave() : env().later_acks.add(core_.id()));
  if (acks_.owe(env().waiting_acks, packet, response)) {
    acks_.wait_for_reply(behind_reply);
    if (!behind_reply) core_.make_ready();
    return;
  }
  AckDue due;
  due.meta = packet;
  due.response.assign(response);
  send_ack(due, wire::AckRequestCode::None, now);
}

void ReceiveSide::send_waiting_ack(Time now) {
  acks_.take(env().waiting_acks,
             [&](const AckDue& due) { return send_ack(due, wire::AckRequestCode::None, now); });
}

// An ACK for each packet from `from` on that was consumed before `newest`, without that (PDS-232).
void ReceiveSide::ack_each(Psn from, const PacketMeta& newest, Time now) {
  AckDue own;
  own.meta.entropy = newest.entropy;
  own.meta.arrived = now;
  for (own.meta.psn = from; own.meta.psn < newest.psn; own.meta.psn = own.meta.psn + 1) {
    if (rx_.state(own.meta.psn) != Slot::Finished) continue;
    own.response = default_response(own.meta.psn);
    send_ack(own, wire::AckRequestCode::None, now);
  }
}

void ReceiveSide::move_cack(Time now) {
  rx_.advance([&](std::uint16_t index) {
    stored_.cleared(env().stored_responses, core_.host(), index, now);
  });
}

void ReceiveSide::ask_for_clear_if_late(Time now) {
  const bool late = stored_.clear_is_late(env().parameters.clear_time, now);
  if (late && stored_.count() > rx_.range() / 2) request_clear(now);
}

// PDS-117.
void ReceiveSide::request_clear(Time now) {
  stored_.clear_asked(now);
  core_.send_untracked(
      {.ctl_type = wire::CpType::ClearRequest, .payload = rx_.highest_psn().value});
}

void ReceiveSide::on_clear(Psn clear_psn, Time now) {
  if (clear_psn <= rx_.clear_psn()) return;  // as most packets say what one before has said
  const Psn before = rx_.cack_psn();
  rx_.clear_up_to(clear_psn);
  move_cack(now);
  const Psn cack = rx_.cack_psn();
  if (cack == before) return;
  if (!acks_.cleared(clear_psn, ack_window())) return;
  PacketMeta newest;
  newest.psn = cack;
  newest.arrived = now;
  owe_ack(newest, default_response(cack), now);
}

void ReceiveSide::on_clear_command(Psn clear_psn, Time now) {
  if (rx_.place(clear_psn) != RxWindow::Place::OutOfRange) prove();
  on_clear(clear_psn, now);
}

Delivered ReceiveSide::delivered() const {
  Psn psn = rx_.highest_psn();
  while (rx_.state(psn) == Slot::Buffered || rx_.state(psn) == Slot::Missing) psn = psn - 1;
  return {psn, rx_.cack_psn(), rx_.finished_bitmap()};
}

// PDS-156.
void ReceiveSide::on_ack_request(Psn psn, MsgId message, std::uint16_t entropy, Time now) {
  PacketMeta asked;
  asked.psn = psn;
  asked.entropy = entropy;
  asked.arrived = now;
  const RxWindow::Place place = rx_.place(psn);
  if (place == RxWindow::Place::OutOfRange) {
    if (!came_long_ago(psn, rx_.cack_psn())) return;
  } else {
    prove();
  }
  if (place == RxWindow::Place::New) return core_.send_nack(NackCode::PktNotRcvd, asked);
  if (rx_.state(psn) == Slot::Buffered) return core_.send_nack(NackCode::RcvdSesProcg, asked);
  std::optional<RequestName> name;
  if (psn < rx_.cack_psn() && message.value != 0)
    name = RequestName{message, core_.destination().job};
  resend_ack(asked, name, false, now);
}

// After a time-out the peer has asked again already. Each stored response needs an ACK of its own;
// one ACK serves everything else.
void ReceiveSide::repeat_acks(Time now) {
  const bool nothing_came = rx_.highest_psn() == core_.start_psn() - 1;
  if (nothing_came || core_.has_sent_close()) return;
  if (now - core_.last_activity() > env().parameters.rto_init) return;
  PacketMeta meta;
  meta.entropy = core_.path().next_for_control(env().rng);
  // A source that has proved nothing may be a stranger's address: one short ACK, as for its SYN.
  const Psn last = core_.proved() ? rx_.highest_psn() : rx_.cack_psn();
  for (Psn psn = rx_.cack_psn() + 1; psn <= last; ++psn) {
    meta.psn = psn;
    if (is_stored(rx_, psn)) resend_ack(meta, std::nullopt, false, now);
  }
  meta.psn = rx_.cack_psn();
  if (!acks_.is_owed()) owe_ack(meta, default_response(meta.psn), now);
}

// CMS-140: an answer without SES header that names no packet.
void ReceiveSide::on_probe(std::uint16_t opaque, Psn base, const PacketMeta& probe, Time now) {
  const std::int32_t ahead = base - rx_.cack_psn();
  const bool near = ahead > 0 && ahead <= static_cast<std::int32_t>(rx_.range());
  if (rx_.place(base) != RxWindow::Place::OutOfRange) prove();
  AckDue due;
  due.meta.psn = near ? base : rx_.cack_psn() + 1;
  due.probe_opaque = opaque;
  due.meta.entropy = probe.entropy;
  due.meta.arrived = probe.arrived;
  send_ack(due, wire::AckRequestCode::None, now);
}

// False if there was no packet to build it in.
bool ReceiveSide::send_ack(const AckDue& due, wire::AckRequestCode code, Time now) {
  Packet* packet = core_.take_packet(true);
  if (packet == nullptr) {
    ++env().counters.no_packet;
    return false;
  }
  packet->reset();
  const Response& response = due.response;
  if (response.length > 0) {
    response.copy_bytes(packet->append(response.length));
  }
  wire::AckHeader ack;
  if (due.closing) {
    ack.expected = append_expected_psn(env(), core_.destination().address.sdi, *packet);
  }
  ack.type = wire::PdsType::AckCc;
  ack.next_hdr = response.next_hdr;
  ack.ce = due.meta.ce;
  ack.retx = due.meta.retx;  // PDS-106
  ack.req = code;            // PDS-105
  ack.cack_psn = rx_.cack_psn();
  ack.ack_psn_offset = static_cast<std::int16_t>(due.meta.psn - ack.cack_psn);  // PDS-37
  ack.spdcid = core_.id();
  ack.dpdcid = core_.peer_id();
  ack.mpr = static_cast<std::uint8_t>(rx_.range() / wire::kMprUnitPsns);
  if (due.probe_opaque) {
    ack.p = true;
    ack.probe_opaque = *due.probe_opaque;
  }
  const Psn base =
      due.probe_opaque ? due.meta.psn : rx_.sack_base(due.sack_trigger.value_or(due.meta.psn));
  ack.sack_psn_offset = static_cast<std::int16_t>(base - ack.cack_psn);
  ack.sack_bitmap = rx_.bitmap(base);
  ack.service_time = due.meta.arrived == Time{} ? cms::kServiceTimeInvalid
                                                : cms::encode_service_time(now - due.meta.arrived);
  ack.rcvd_bytes = cms::encode_rcvd_bytes(rcvd_bytes_);
  const cms::DestinationReport::Fields report =
      report_.next(env().pressure, early_occupancy(core_));
  ack.rcv_cwnd_pend = report.pend;
  ack.rc = report.restore;
  env().counters.pend_sent += report.pend > 0 ? 1 : 0;
  env().counters.restores_sent += report.restore ? 1 : 0;
  ack.ooo_count = UINT16_MAX;                                                       // not tracked
  if (credit_sender_ != nullptr && cms::needs_credit_alone(env().cms.algorithm)) {  // CMS-202
    ack.cc_type = wire::CcType::Credit;
    ack.credit = credit_sender_->granted_units;
  }
  ack.encode(packet->prepend(sizeof(wire::PdsAckCc)));
  core_.charge(cms::nominal_packet_bytes(packet->length()));
  emit_control(env(), *packet, core_.destination().address, due.meta.entropy);  // PDS-103
  acks_.sent(ack.cack_psn);
  ++env().counters.acks_sent;
  env().trace.write(trace::Kind::AckSent, due.meta.ce ? 1 : 0, core_.id(), due.meta.psn,
                    ack.cack_psn.value, ack.sack_bitmap);
  return true;
}

// ---- ROD: packets that arrive before their predecessors (PDS-164)
// ---------------------------------

void ReceiveSide::buffer_early(const Incoming& request, Time now) {
  const std::optional<std::uint16_t> index =
      request.view.bytes.size() <= env().early_storage.bytes_each()
          ? env().early_packets.take(core_.host())
          : std::nullopt;
  std::byte* const room = index ? env().early_storage.room(*index) : nullptr;
  if (room != nullptr && !request.ctl_type) {
    EarlyPacket& early = env().early_packets[*index];
    early.meta = request.meta;
    early.length = static_cast<std::uint16_t>(request.view.bytes.size());
    early.next_hdr = request.view.next_hdr;
    early.nominal_bytes = request.nominal_bytes;
    std::memcpy(room, request.view.bytes.data(), request.view.bytes.size());
    rx_.mark(request.meta.psn, Slot::Buffered, *index);
    rcvd_bytes_ +=
        request.nominal_bytes;  // now: else what waits here would fill the source's window
    ++env().counters.rod_buffered;
  } else if (index) {
    env().early_packets.give_back(core_.host(), *index);
  }
  AckScheduler::Arrival arrival;
  arrival.payload_bytes = static_cast<std::uint32_t>(request.view.bytes.size());
  arrival.predecessor_missing = predecessor_missing(request.meta.psn);
  const AckScheduler::Gap gap =
      acks_.early(env().parameters, request.meta, arrival, rod_next_, ack_window());
  if (gap.ack) ack_early(request.meta, now);
  if (gap.nack) core_.send_nack(NackCode::RodOoo, request.meta);
}

// Names no packet that SES has not had yet; SACK tells what is here, so that only the gap is
// resent.
void ReceiveSide::ack_early(const PacketMeta& early, Time now) {
  AckDue sack;
  sack.meta = early;
  sack.meta.ce = false;  // reported when the packet is delivered
  sack.meta.psn = rx_.cack_psn();
  sack.response = default_response(sack.meta.psn);
  sack.sack_trigger = early.psn;
  send_ack(sack, wire::AckRequestCode::None, now);
}

void ReceiveSide::deliver_early(Time now) {
  while (rx_.state(rod_next_) == Slot::Buffered) {
    const Psn psn = rod_next_;
    const std::uint16_t index = rx_.index(psn);
    const EarlyPacket early = env().early_packets[index];
    Incoming request;
    request.meta = early.meta;
    request.early = true;
    request.view.next_hdr = early.next_hdr;
    request.view.bytes = {env().early_storage.room(index), early.length};
    request.nominal_bytes = early.nominal_bytes;
    rx_.mark(psn, Slot::Missing);
    const bool delivered = deliver(request, now);  // refused: NACKed, it comes again
    env().early_packets.give_back(core_.host(), index);
    if (!delivered || core_.finished()) return;
  }
}

void ReceiveSide::discard() {
  acks_.discard(env().waiting_acks);
  for (Psn psn = rx_.cack_psn() + 1; psn <= rx_.highest_psn(); ++psn) {
    const Slot state = rx_.state(psn);
    if (is_stored(rx_, psn)) {
      stored_.drop(env().stored_responses, core_.host(), rx_.index(psn));
    }
    if (state == Slot::Buffered) env().early_packets.give_back(core_.host(), rx_.index(psn));
    rx_.mark(psn, Slot::Missing);
  }
}

}  // namespace uet::pds
