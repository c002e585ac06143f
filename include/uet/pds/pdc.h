// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A packet delivery context: one connection-like state between two FEPs in one delivery mode.
//
// Each end is the source of one direction (TxWindow: initiator -> target requests, or read data the
// other way) and the destination of the other (RxWindow). pdc.cc opens, sends and closes;
// pdc_source.cc handles what comes back for packets sent (ACK, NACK, time-outs), pdc_loss.cc infers
// losses; pdc_destination.cc handles requests that arrive. Receiving only changes state; packets
// leave in pump(), except the ACK of a guaranteed response and NACKs, which go to the outbox at
// once.
//
// Deadlines, all in one wheel entry: Resend (time-out of the oldest packet, or the end of a NACK's
// waiting time; armed while packets are outstanding), Idle (armed always: closes, or shows by a
// NOOP that an awaited peer lives), Close (Close_REQ_Time, armed while a Close Request is out),
// Silence (CMS-151 and PDS-128, armed while data is outstanding whose context recovers from losses,
// or that has asked for no ACK).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "uet/base/indexed_pool.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"
#include "uet/base/peer_ports.h"
#include "uet/base/rng.h"
#include "uet/base/shares.h"
#include "uet/base/slab.h"
#include "uet/base/timer_wheel.h"
#include "uet/cms/ccc.h"
#include "uet/cms/destination.h"
#include "uet/cms/path.h"
#include "uet/pds/ack_policy.h"
#include "uet/pds/api.h"
#include "uet/pds/ccc_pool.h"
#include "uet/pds/counters.h"
#include "uet/pds/credits.h"
#include "uet/pds/loss_detector.h"
#include "uet/pds/outbox.h"
#include "uet/pds/packet_meta.h"
#include "uet/pds/parameters.h"
#include "uet/pds/pdc_state.h"
#include "uet/pds/peer_limits.h"
#include "uet/pds/rx_window.h"
#include "uet/pds/tx_window.h"

namespace uet::pds {

class Pdc;
struct ReadyTag;

// ROD: a packet that arrived before its predecessors (PDS-164).
struct EarlyPacket {
  PacketMeta meta;
  std::uint16_t length = 0;  // of its SES header and payload
  std::uint32_t nominal_bytes = 0;
  wire::NextHdr next_hdr{};
};

// The packet that an ACK answers.
struct AckDue {
  AckDue() {}  // member by member, as SesRequest

  PacketMeta meta;
  std::optional<Psn> sack_trigger{};  // decides the bitmap base if it is not meta.psn (PDS-92)
  std::optional<std::uint16_t> probe_opaque{};  // of the Probe that this answers (PDS-106)
  Response response{};
};

// What all PDCs of a FEP share. Owned by Manager.
struct Environment {
  const Parameters& parameters;
  const cms::Parameters& cms;
  Client& client;
  Outbox& outbox;
  PacketPool& packets;
  Counters& counters;
  Rng& rng;
  TimerWheel& wheel;
  SharedPool<Response>& stored_responses;  // guaranteed ones, until cleared (PDS-112)
  SharedPool<EarlyPacket>& early_packets;
  std::byte* early_storage;  // early_bytes_each for every early packet
  std::size_t early_bytes_each;
  TxWindow::Pool& tx_records;                 // of PDCs with something outstanding
  RxWindow::Pool& rx_entries;                 // of PDCs that miss something
  Slab<AckDue>& waiting_acks;                 // of PDCs that owe one
  IntrusiveList<SharedCcc, ReadyTag>& ready;  // contexts with PDCs that may have something to send
  std::size_t control_reserve;                // packets that data must leave in the pool
  bool packets_short = false;         // the pool had none for data: sending stops for this pass
  bool responses_short = false;       // a host found no room for one more stored response
  std::size_t unproved = 0;           // PDCs (Pdc::proved)
  Credits* credits = nullptr;         // set once, before there is a PDC
  cms::DestinationPressure pressure;  // what ACKs say of the memory here (CMS 4.1)
  LossScratch losses;                 // for one look for losses at a time
  PeerLimits peer_limits{};           // what peers of other makes have refused
  PeerPorts peer_ports;               // where answers go
};

// A request or PSN-consuming control packet, taken apart.
struct Incoming {
  Incoming() {}  // member by member, as SesRequest

  PacketMeta meta;
  // For SES: its `bytes` are the SES header and payload. The PDC that delivers it fills in the
  // rest.
  RequestView view;
  std::optional<Psn> clear_psn;  // control packets carry none
  bool syn = false;
  bool reserved_pool = false;  // of a SYN: its PDC may take a slot of the reserved pool
  std::optional<wire::CpType> ctl_type;
  std::uint32_t nominal_bytes = 0;  // CMS-6
  std::optional<NackCode> trimmed;  // how its trimming is reported; empty if it is whole
  bool early = false;               // waited in the reorder buffer, its bytes are counted
};

// Aligned, so that of one that has left the caches no more lines are fetched than it has.
class alignas(64) Pdc : public ListNode<ReadyTag>,
                        public ListNode<WaitingForCccTag>,
                        public TimerEntry {
 public:
  Pdc(Environment& environment, Role role, PdcId id, PdcId peer_id, const Destination& destination,
      Psn start_psn, SharedCcc& ccc, Time now);
  ~Pdc();

  PdcId id() const { return id_; }
  PdcId peer_id() const { return peer_id_; }
  Role role() const { return role_; }
  Use use() const { return {role_, destination_.reserved_pool}; }
  SharedCcc& ccc() { return ccc_; }
  PdcState state() const { return state_; }
  Psn start_psn() const { return start_psn_; }
  const Destination& destination() const { return destination_; }
  Time opened() const { return opened_; }
  Time last_activity() const { return last_activity_; }
  // Another one that leads to the same destination, for Manager; 0: none.
  PdcId next_there() const { return next_there_; }
  void set_next_there(PdcId id) { next_there_ = id; }
  // A packet with SYN was sent or received more than once (PDS-217).
  bool syn_came_again() const { return syn_came_again_; }
  // The PSN of the Close Command, sent or received; for the tombstone.
  Psn close_psn() const { return close_psn_; }

  // May a new message join (PDS-28, PDS-29)?
  bool takes_messages() const {
    return state_ == PdcState::Creating || state_ == PdcState::Established;
  }
  // Closing, and all that was given to it has been acknowledged.
  bool drained() const {
    return backlog_.empty() && (tx_.empty() || state_ == PdcState::CloseAckWait);
  }
  // Nothing outstanding, queued or awaited.
  bool idle() const { return yields() && watches_ == 0; }
  // Idle, or all that is awaited can do without this PDC (Delivery::watch).
  bool yields() const { return tx_.empty() && backlog_.empty() && locks_ == 0; }
  bool has_backlog() const { return !backlog_.empty(); }
  // A long message waits, or is being sent: shorter ones join it only where there is no other PDC,
  // so that its ends tell.
  bool carries_long() {
    return !backlog_.empty() && (backlog_.front().is_long || backlog_.back().is_long);
  }
  bool finished() const { return state_ == PdcState::Closed; }

  // The peer has sent a packet to our PDC id, so that it hears what is sent to its address. A
  // target PDC is unproved before: its SYN may come from anybody.
  bool proved() const { return proved_; }
  // A packet of so many bytes came from its address: three times as many may be sent there until it
  // is proved, so that whoever invents that address gains nothing by it (as RFC 9000, 8.1).
  void allow_answers(std::uint32_t nominal_bytes) {
    if (!proved_) unproved_bytes_ += 3 * static_cast<std::int32_t>(nominal_bytes);
  }
  // Sends one packet whose answer proves it. Not repeated before `keepalive_time`.
  void ask_for_proof();
  // What its stored responses and early packets are charged to.
  std::uint64_t host() const;
  // How long its stored responses have waited for a CLEAR; 0: there are none. An hour at most.
  Duration waits_for_clear(Time now) const {
    return stored_ > 0 ? since(cleared_at_, now) : Duration{};
  }

  // Why it failed; empty after an orderly close.
  std::optional<PdsError> error() const { return error_; }

  // Puts the PDC in line for pump().
  void make_ready();
  // The peer's PDC id becomes known from the first packet of its own (PDS-51, PDS-199).
  void learn_peer(PdcId peer_id);
  // This PSN, or the one before the first.
  bool has_sent(Psn psn) const { return psn >= start_psn_ - 1 && psn < tx_.next_psn(); }
  // A packet of the peer may have this PSN and has not come yet.
  bool expects(Psn psn) const { return rx_.place(psn) == RxWindow::Place::New; }
  // Gives back everything it holds without a word to the client: the FEP is going away.
  void discard();
  void enqueue(Message& message, Time now);
  // The message, which is in its backlog, will make no packet any more.
  void leave_backlog(Message& message) { set_backlog(message, 0); }
  void kick();
  // All that it has been given is awaited.
  void hurry();
  void lock() { ++locks_; }
  void unlock();
  void watch() { ++watches_; }
  void unwatch();

  // A packet that says nothing but wants an answer (PDS-57). False if none can be sent now.
  bool send_noop(Time now) { return send_control(wire::CpType::Noop, now); }

  // One turn of the scheduler: at most `budget` data packets. True if it could go on at once.
  bool pump(std::uint32_t& budget, Time now);

  // Source (pdc_source.cc).
  // `arrived`: when the ACK came to this host.
  void on_ack(const wire::AckHeader& ack, std::span<const std::byte> ses, Time arrived, Time now);
  void on_nack(const wire::NackHeader& nack, Time now);
  // An authentic packet of the peer has come: the peer lives (PDS-125).
  void heard(Time now);
  void on_deadline(Time now);
  void fail(PdsError error, Time now);

  // Processes of this host (LostPeer). A PDC belongs to the instance of the peer that has sent on
  // it first; before the first answer, to the instance that all its packets went to.
  void came_through(std::uint16_t connection) {
    if (local_connection_ == 0) local_connection_ = connection;
  }
  bool is_with(const LostPeer& lost);
  // Fails. If another process has the address now, what the lost one has not read is NotConsumed.
  void lose_peer(const LostPeer& lost, Time now);

  // Destination (pdc_destination.cc).
  void on_request(Incoming& request, Time now);
  // The response to a packet whose first one was provisional (SES-46).
  void answer(Psn psn, const Response& response);
  void on_clear(Psn clear_psn, Time now);
  void on_clear_command(Psn clear_psn, Time now);
  void on_clear_request(Time now);
  // A Probe: answered at once with what has arrived, its bitmap from `base`
  // on if that is near.
  void on_probe(std::uint16_t opaque, Psn base, const PacketMeta& probe, Time now);
  // `message`: of the packet asked about, if the peer says so, else 0.
  void on_ack_request(Psn psn, MsgId message, std::uint16_t entropy, Time now);
  // Something came from the initiator that was asked to close: it is still finishing, or waits for
  // credit, and has time to do so (PDS-177).
  void extend_close(Time now);
  void send_nack(NackCode code, const PacketMeta& refused);

  // Receiver credit (credits.h).
  CreditSender* credit_sender() const { return credit_sender_; }
  void set_credit_sender(CreditSender* sender) { credit_sender_ = sender; }
  bool ack_is_due() const { return ack_due_ != nullptr; }
  // pump() would send an ACK at most.
  bool has_only_ack() const {
    return state_ == PdcState::Established && backlog_.empty() && resend_count_ == 0 &&
           owed_clear_ != OwedClear::AtOnce && !close_wanted_;
  }
  // A Credit Request names no context: the peer must know it from a request of this PDC.
  bool can_request_credit() const { return context_known_ && !finished(); }
  // A NOOP opens it at the peer, since what it has sent has not and more needs credit. Once; false
  // if there is nothing to open, or it was tried.
  bool open_without_data(Time now);
  void send_credit(std::uint32_t credit);
  void send_credit_request(std::uint32_t target);
  void on_credit(std::uint32_t credit, Time now);

  // Starts closing: the initiator quiesces, the target asks for it (PDS-169).
  void begin_close(Time now);
  // The same for want of PDCs: what watches it lets it close.
  void give_way(Time now) {
    gives_way_ = true;
    begin_close(now);
  }

 private:
  enum Deadline : std::uint8_t { kResend, kIdle, kClose, kSilence, kDeadlines };
  enum class OwedClear : std::uint8_t { None, NextRequest, AtOnce };  // PDS-115

  // pdc.cc
  bool is_held() const { return locks_ > 0 || (watches_ > 0 && !gives_way_); }
  // A turn could do something.
  bool has_work() const { return ack_is_due() || !has_only_ack(); }
  cms::PathSelector& path() { return own_path_ ? *own_path_ : *ccc_.paths; }
  void set_deadline(Deadline which, Time at);
  void enter(PdcEvent event);
  bool within_peer_window(Psn psn) const;
  // Something is kept back by the peer's window, and no packet is out whose ACK would move it.
  bool waits_for_window() const;
  void await_window(Time now);
  Packet* take_packet(bool control);
  Packet* withdraw(TxRecord& record);
  void release(TxRecord& record);
  void transmit(Psn psn, TxRecord& record, bool retransmission, Time now);
  std::uint8_t dscp_for(const TxRecord& record, bool retransmission) const;
  void write_header(Psn psn, TxRecord& record, bool retransmission);
  bool shares_ack(const Message& message, Psn psn) const;
  bool wants_ack(bool tail, std::uint32_t nominal_bytes) const;
  bool may_send(std::uint32_t nominal_bytes);
  void charge(std::uint32_t nominal_bytes) {
    if (!proved_) unproved_bytes_ -= static_cast<std::int32_t>(nominal_bytes);
  }
  bool send_next_packet(Time now);
  bool send_control(wire::CpType type, Time now);
  bool send_untracked(wire::ControlHeader header, bool with_data = false);
  void owe_clear(Time now);
  bool clear_may_wait() const;
  void clear_at_once() {
    owed_clear_ = OwedClear::AtOnce;
    make_ready();
  }
  void send_clear_command();
  bool send_ack_request(Psn psn);
  void send_last_word();
  void probe_base_rtt(Time now);
  std::uint16_t choose_path(const TxRecord& record, Time now);
  std::uint32_t train_packets() const;
  enum class Resends : std::uint8_t { All, NotRefused, Refused };
  enum class Resent : std::uint8_t { All, Some, NoBudget };
  bool send_requests(std::uint32_t& budget, Time now);
  bool send_new(std::uint32_t& budget, Time now);
  // Sends those that were found lost.
  Resent resend(Resends which, std::uint32_t& budget, Time now);
  void wait_for_ccc(Time now);
  void stop_waiting_for_ccc(Time now);
  void end_wait(Time now);
  void set_backlog(Message& message, std::uint64_t bytes);
  void end_resend(TxRecord& record);
  void continue_close(Time now);
  void finish();
  void on_idle(Time now);
  void await_sign_of_life(Time now);
  void on_unproved_idle(Duration quiet, Time now);

  // pdc_source.cc
  bool believable(const wire::AckHeader& ack) const;
  void note_reported(Psn psn, TxRecord& record, Time now);
  void praise_path(const TxRecord& record, Time now);
  void back_in_flight(TxRecord& record);
  std::uint64_t acknowledge(Psn psn, const ResponseView& response, Time now);
  void await_final_response(Psn psn, TxRecord& record, Packet& packet, Time now);
  std::uint64_t apply_cack(Psn cack, Time now);
  void apply_sack(const wire::AckHeader& ack, Time now);
  // `feedback` holds what is known of the packet that the ACK names.
  void inform_ccc(const wire::AckHeader& ack, cms::AckFeedback& feedback,
                  std::uint64_t newly_acked_bytes, Time now);
  void on_probe_answer(const wire::AckHeader& ack, Time arrived, Time now);
  void wake_ccc_waiters();
  void settle_ccc();
  void mark_lost(TxRecord& record, cms::LossCause cause, Time now);
  // At once, or when the pause after retransmissions in vain is over: the time is returned, kNever
  // if it goes at once.
  Time queue_resend(Psn psn, TxRecord& record, Time now);
  void go_back(Time now);
  void rebase(Psn start_psn, Time now);
  void wait_for_first(TxRecord& refused, Time now);
  void send_later(TxRecord& record, Time not_before, Time now);
  bool is_beyond_window(const wire::NackHeader& nack) const;
  void halve_assumed_window(Psn refused);
  bool on_refused_control(const wire::NackHeader& nack, TxRecord* record, Time now);
  void give_up_credit(Time now);
  bool on_refused_credit(Psn psn, TxRecord& record, Time now);
  static bool names_credit(const TxRecord& record);
  void take_out_of_flight(TxRecord& record);
  bool was_only_to_hear_of_peer(const TxRecord& refused, NackCode code) const;
  void on_fatal_nack(NackCode code, Psn psn, const TxRecord& record, Time now);
  // How fail() ends the packets and messages it names, and whether the peer hears of it.
  struct Ending {
    PdsError error;
    std::optional<Psn> not_consumed{};  // a packet that the peer has not consumed (PDS-142)
    bool nothing_behind = false;        // nor what was sent once behind it
    bool spares_backlog = false;        // nor has it heard of what was not sent
    const LostPeer* lost = nullptr;     // nor has it read all that was sent
    bool tells_peer = true;
  };
  void end_all(const Ending& ending, Time now);
  void give_up(Time now);
  void leave_silent_path(Time now);

  // pdc_loss.cc
  LossContext loss_context();
  Time infer_losses(bool by_ack, Time now);
  void send_lost_again(Time now);
  void on_silence(Time now);
  TxRecord* tail_to_ask_for();
  void ask_for_tail();
  Time look_for_tail(Time now);
  Time look_for_silence(Time now);
  void on_recovery_answer(const wire::AckHeader& ack, Time arrived, Time now);
  std::optional<Time> check_record(Psn psn, TxRecord& record, bool first, bool asks, Time now);

  // pdc_destination.cc
  void on_duplicate(const Incoming& request, Time now);
  bool may_store_response() const;
  bool must_wait_for_clear(const Incoming& request, const Response& response) const;
  void prove();
  bool answers_proof(const wire::NackHeader& nack) const;
  double early_occupancy() const;
  // Times of events of the last hour, in units of 1.024 us.
  static std::uint32_t coarse(Time time) { return static_cast<std::uint32_t>(to_ns(time) >> 10); }
  static Duration since(std::uint32_t event, Time now) {
    return Duration{std::int64_t{coarse(now) - event} << 10};
  }
  bool deliver(Incoming& request, Time now);
  Response process(Incoming& request, Time now);
  Response process_control(const Incoming& request);
  static Response negotiate(const Incoming& request);
  void on_close_command(const Incoming& request, Time now);
  void move_cack(Time now);
  void buffer_early(const Incoming& request, Time now);
  void ack_early(const PacketMeta& early, Time now);
  void deliver_early(Time now);
  void arrived(const Incoming& request, const Response& response, Time now);
  bool predecessor_missing(Psn psn) const;
  void infer_loss_here(const Incoming& request);
  bool send_ack(const AckDue& due, wire::AckRequestCode code, Time now);
  AckDue* let_ack_wait();
  void send_waiting_ack(Time now);
  void forget_waiting_ack();
  void send_waiting_ack_first(Time now);
  void ack_what_cack_cannot_cover(const PacketMeta& newest, Time now);
  bool answer_waits(Psn psn) const;
  bool is_stored(Psn psn) const;
  wire::AckRequestCode code_for(Psn psn) const;
  Response default_response(Psn psn) const;
  void resend_ack(PacketMeta asked, const std::optional<RequestName>& name, bool control, Time now);
  void release_stored();
  bool uses_half_window(Psn psn) const;
  void request_clear(Time now);
  void ask_for_clear_if_late(Time now);
  std::byte* early_bytes(std::uint16_t index) const;

  // In the order that leaves no gaps: nine lines of the cache for each PDC.
  const Role role_;
  PdcState state_;
  const PdcId id_;
  PdcId peer_id_;  // 0 until the initiator has learnt it
  Environment& env_;
  Destination destination_;  // of a target PDC, `job` is that of the last request
  Psn start_psn_;
  SharedCcc& ccc_;
  std::optional<cms::PathSelector> own_path_;  // if it has one of its own
  PdcId next_there_;
  std::optional<PdsError> error_;
  bool ack_vouches_ : 1 = false;          // the ACK being applied is not marked (CMS-418)
  bool ack_is_newest_ : 1 = false;        // none has come with a higher CACK (PDS-41)
  bool peer_buffers_ : 1 = false;         // the peer SACKs on ROD, so it keeps early packets
  bool context_known_ : 1 = false;        // the peer has had a request that names the context
  bool opened_without_data_ : 1 = false;  // a NOOP was sent for that
  bool refused_went_ : 1 = false;         // rather than new packets, when last one could go (RUD)
  bool close_wanted_ : 1 = false;         // asked for while it could not begin
  bool gives_way_ : 1 = false;            // its end does not wait for what watches it
  bool range_told_ : 1 = false;           // the peer has said its MP_RANGE, `peer_range_`
  bool syn_came_again_ : 1 = false;
  bool proved_ : 1;
  bool proof_asked_ : 1 = false;  // and may not be asked again yet
  OwedClear owed_clear_ : 2 = OwedClear::None;
  // The last optional control packet without PSN (PeerLimits); Noop, which has one: none was sent.
  wire::CpType last_optional_ : 4 = wire::CpType::Noop;
  cms::DestinationReport report_;       // CMS-300; what ACKs of what arrives here say
  std::uint16_t resend_count_ = 0;      // records with `resend`
  std::uint16_t stored_ = 0;            // guaranteed responses that wait for their CLEAR
  std::uint16_t local_connection_ = 0;  // RxPacket::connection of the peer; 0: not known
  std::int32_t unproved_bytes_ = 0;     // may be sent before the proof
  std::uint32_t locks_ = 0;
  std::uint32_t watches_ = 0;

  // Source: from here to in_flight_bytes_ what each packet that is sent needs, in lines of the
  // cache that follow one another.
  Time last_activity_;
  std::array<Time, kDeadlines> deadlines_;
  [[no_unique_address]] TxWindow tx_;  // its last four bytes are peer_cack_'s
  Psn peer_cack_;
  IntrusiveList<Message, BacklogTag> backlog_;
  std::uint16_t peer_range_;           // MP_RANGE of the peer
  std::uint16_t unasked_packets_ = 0;  // sent since one asked for an ACK (CMS-124)
  std::uint16_t window_probes_ = 0;    // ACK Requests in a closed window since the last ACK
  std::uint16_t rebases_ = 0;          // PDS-77
  std::int64_t unreported_bytes_ = 0;  // nominal, each packet once, until reported (CMS-110)
  Time outside_peer_window_since_{};   // data waits for mpr since then; Time{}: none does
  std::int64_t ccc_balance_ = 0;       // what this PDC holds of the shared inflight (CMS-104)
  std::int64_t in_flight_bytes_ = 0;   // of packets neither given up nor reported: its limit
  // What ACKs move.
  Psn mpr_cack_;                       // highest cack_psn of ACKs that say MPR (PDS-41)
  std::uint32_t rcvd_bytes_seen_ = 0;  // CMS-110
  LossDetector loss_;
  std::optional<Psn> clear_wanted_;  // highest PSN asked to be cleared and not yet so (PDS-115)
  Time window_probe_due_{};          // not before
  static constexpr std::uint64_t kLongestTrainBytes = 65536;  // CMS-700
  // Of Probes, one more for each. What is the base RTT?
  static constexpr std::uint16_t kFirstProbeOpaque = 2;
  static std::uint16_t base_rtt_opaque(std::uint16_t number) {
    constexpr std::uint16_t kOpaques = LossDetector::kFirstOpaque - kFirstProbeOpaque;
    return static_cast<std::uint16_t>(kFirstProbeOpaque + number % kOpaques);
  }
  const Time opened_;
  Psn close_psn_{};

  // destination
  AckPolicy ack_policy_;
  CreditSender* credit_sender_ = nullptr;  // the peer's context, if its requests name one
  [[no_unique_address]] RxWindow rx_;      // its last four bytes are own_acks_'s
  Psn own_acks_;                      // up to here, what has arrived above CACK has ACKs of its own
  AckDue* ack_due_ = nullptr;         // its ACK waits for a turn; nullptr: none does
  Psn reported_cack_;                 // CACK of the last ACK sent
  std::optional<Psn> ar_behind_gap_;  // PDS-98
  Psn rod_next_;                      // next PSN to deliver in order
  std::optional<Psn> gap_reported_;   // PDS-165; RUD: with RCVR_INFER_LOSS
  // Of `stored_`, in coarse(): when one was cleared, or the first came; or was asked to be cleared.
  std::uint32_t cleared_at_ = 0;
  std::uint32_t clear_progress_ = 0;
  std::uint64_t rcvd_bytes_ = 0;  // CMS-111
};

// Addresses a packet that nobody keeps (ACK, NACK, unacknowledged control packet) and queues it.
void emit_control(Environment& environment, Packet& packet, const FepAddress& to,
                  std::uint16_t entropy);
// Builds a NACK; spdcid 0 when the sender has no PDC (WIRE 2.5). Counted.
void emit_nack(Environment& environment, const FepAddress& to, wire::NackHeader nack,
               std::uint16_t entropy);

}  // namespace uet::pds
