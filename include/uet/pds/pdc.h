// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A packet delivery context: one connection-like state between two FEPs in one delivery mode.
//
// Each end is the source of one direction (TxWindow: initiator -> target requests, or read data the
// other way) and the destination of the other (ReceiveSide). pdc.cc opens, sends and closes;
// pdc_source.cc handles what comes back for packets sent (ACK, NACK, time-outs), pdc_loss.cc acts
// on losses. Receiving only changes state; packets leave in pump(), except the ACK of a guaranteed
// response and NACKs, which go to the outbox at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"
#include "uet/cms/ccc.h"
#include "uet/pds/api.h"
#include "uet/pds/clear_debt.h"
#include "uet/pds/environment.h"
#include "uet/pds/flight.h"
#include "uet/pds/incoming.h"
#include "uet/pds/loss_detector.h"
#include "uet/pds/pdc_core.h"
#include "uet/pds/peer_window.h"
#include "uet/pds/receive_side.h"
#include "uet/pds/tx_window.h"

namespace uet::pds {

// Aligned, so that of one that has left the caches no more lines are fetched than it has.
class alignas(64) Pdc final : public PdcCore {
 public:
  Pdc(Environment& environment, Role role, PdcId id, PdcId peer_id, const Destination& destination,
      Psn start_psn, SharedCcc& ccc, Time now);

  // Closing, and all that was given to it has been acknowledged.
  bool drained() const {
    return backlog_.empty() && (tx_.empty() || state_ == PdcState::CloseAckWait);
  }
  // Nothing is outstanding or queued, and no lock or watch holds the PDC.
  bool idle() const { return yields() && watches_ == 0; }
  // Idle, or held by watches only (Delivery::watch).
  bool yields() const { return tx_.empty() && backlog_.empty() && locks_ == 0; }
  bool has_backlog() const { return !backlog_.empty(); }
  // A long message waits, or is being sent: shorter ones join it only where there is no other PDC,
  // so that its ends tell.
  bool carries_long() {
    return !backlog_.empty() && (backlog_.front().is_long || backlog_.back().is_long);
  }
  // The peer's PDC id becomes known from the first packet of its own (PDS-51, PDS-199).
  void learn_peer(PdcId peer_id, Time now);
  // This PSN, or the one before the first.
  bool has_sent(Psn psn) const { return psn >= start_psn_ - 1 && psn < tx_.next_psn(); }
  // A packet of the peer may have this PSN and has not come yet.
  bool expects(Psn psn) const { return receive_.expects(psn); }
  Duration waits_for_clear(Time now) const { return receive_.waits_for_clear(now); }
  // Gives back everything it holds without a word to the client: the FEP is going away.
  void discard();
  void enqueue(Message& message, Time now);
  // The message, which is in its backlog, will make no packet any more.
  void leave_backlog(Message& message) { set_backlog(message, 0); }
  void kick();
  // From now on the application waits for the answers to all messages of the PDC.
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

  // Destination (receive_side.h).
  void on_request(Incoming& request, Time now);
  void answer(Psn psn, const Response& response) { receive_.answer(psn, response); }
  void on_clear_command(Psn clear_psn, Time now) { receive_.on_clear_command(clear_psn, now); }
  // PDS-117: answered with the current CLEAR_PSN.
  void on_clear_request() { clear_at_once(); }
  void on_probe(std::uint16_t opaque, Psn base, const PacketMeta& probe, Time now) {
    receive_.on_probe(opaque, base, probe, now);
  }
  void on_ack_request(Psn psn, MsgId message, std::uint16_t entropy, Time now) {
    receive_.on_ack_request(psn, message, entropy, now);
  }
  // Something came from the initiator that was asked to close: it is still finishing, or waits for
  // credit, and has time to do so (PDS-177).
  void extend_close(Time now);

  // Receiver credit (credits.h).
  CreditSender* credit_sender() const { return receive_.credit_sender(); }
  void set_credit_sender(CreditSender* sender) { receive_.set_credit_sender(sender); }
  bool ack_is_due() const { return receive_.ack_is_due(); }
  // pump() would send an ACK at most.
  bool has_only_ack() const {
    return state_ == PdcState::Established && backlog_.empty() && resend_count_ == 0 &&
           !clear_.is_urgent() && !close_.wanted();
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
  // Starts closing for lack of PDCs: watches do not keep the PDC open.
  void give_way(Time now) {
    close_.give_way();
    begin_close(now);
  }

 private:
  // pdc.cc
  bool is_held() const { return close_.is_held(locks_, watches_); }
  // A turn could do something.
  bool has_work() const { return ack_is_due() || !has_only_ack(); }
  bool within_peer_window(Psn psn) const;
  // Something is kept back by the peer's window, and no packet is out whose ACK would move it.
  bool waits_for_window() const;
  void await_window(Time now);
  Packet* withdraw(TxRecord& record);
  void release(TxRecord& record);
  void transmit(Psn psn, TxRecord& record, bool retransmission, Time now);
  std::uint8_t dscp_for(const TxRecord& record, bool retransmission) const;
  void write_header(Psn psn, TxRecord& record, bool retransmission);
  bool shares_ack(const Message& message, Psn psn) const;
  bool wants_ack(bool tail, std::uint32_t nominal_bytes) const;
  bool send_next_packet(Time now);
  bool send_control(wire::CpType type, Time now);
  bool clear_may_wait() const;
  void clear_at_once() {
    clear_.pay_at_once();
    make_ready();
  }
  void send_clear_command();
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
  CloseHandshake::Step next_close_step() const;
  void continue_close(Time now);
  void finish();
  void on_idle(Time now);
  void await_sign_of_life(Time now);
  void on_unproved_idle(Duration quiet, Time now);

  // pdc_source.cc
  bool believable(const wire::AckHeader& ack) const;
  void note_reported(Psn psn, TxRecord& record, Time now);
  void praise_path(const TxRecord& record, Time now);
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
  // Queues at once and returns kNever, or returns the end of the pause that follows unanswered
  // retransmissions.
  Time queue_resend(Psn psn, TxRecord& record, Time now);
  void go_back(Time now);
  void rebase(Psn start_psn, Time now);
  bool on_refused_pdc(const wire::NackHeader& nack, TxRecord& record, Time now);
  void send_later(TxRecord& record, Time at);
  void hold_behind_first();
  void release_held(Time now);
  bool is_beyond_window(const wire::NackHeader& nack) const;
  void halve_assumed_window(Psn refused);
  bool on_refused_control(const wire::NackHeader& nack, TxRecord* record, Time now);
  void give_up_credit(Time now);
  bool on_refused_credit(Psn psn, TxRecord& record, Time now);
  static bool names_credit(const TxRecord& record);
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

  void prove() { receive_.prove(); }
  bool answers_proof(const wire::NackHeader& nack) const;
  void on_close_command(const Incoming& request, Time now);

  bool ack_vouches_ : 1 = false;          // the ACK being applied is not marked (CMS-418)
  bool ack_is_newest_ : 1 = false;        // none has come with a higher CACK (PDS-41)
  bool peer_buffers_ : 1 = false;         // the peer SACKs on ROD, so it keeps early packets
  bool context_known_ : 1 = false;        // the peer has had a request that names the context
  bool opened_without_data_ : 1 = false;  // a NOOP was sent for that
  bool refused_went_ : 1 = false;         // rather than new packets, when last one could go (RUD)
  bool peer_lacks_pdc_ : 1 = false;       // data behind the first packet waits (PDS-223)
  std::uint16_t resend_count_ = 0;        // records with `resend`

  // The fields that each transmission uses come first, in adjacent cache lines.
  [[no_unique_address]] TxWindow tx_;
  std::uint16_t unasked_packets_ = 0;  // sent since one asked for an ACK (CMS-124)
  std::uint16_t rebases_ = 0;          // PDS-77
  IntrusiveList<Message, BacklogTag> backlog_;
  PeerWindow window_;
  Flight flight_;
  Time outside_peer_window_since_{};  // data waits for mpr since then; Time{}: none does
  LossDetector loss_;
  ClearDebt clear_;
  static constexpr std::uint64_t kLongestTrainBytes = 65536;  // CMS-700
  // Of Probes, one more for each. What is the base RTT?
  static constexpr std::uint16_t kFirstProbeOpaque = 2;
  static std::uint16_t base_rtt_opaque(std::uint16_t number) {
    constexpr std::uint16_t kOpaques = LossDetector::kFirstOpaque - kFirstProbeOpaque;
    return static_cast<std::uint16_t>(kFirstProbeOpaque + number % kOpaques);
  }

  ReceiveSide receive_;
};

}  // namespace uet::pds
