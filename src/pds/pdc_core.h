// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The identity of a PDC and its way out, for the objects that it consists of: ids, state and
// destination; its deadlines, its place in line, and packets that are sent without being tracked.
// Must not know what is outstanding, nor what has arrived.
//
// Deadlines, all in one wheel entry: Resend (time-out of the oldest packet, or the end of a NACK's
// waiting time; armed while packets are outstanding), Idle (armed always: closes, or shows by a
// NOOP that the peer of a waiting PDC lives), Close (Close_REQ_Time, armed while a Close Request is
// out), Silence (CMS-151 and PDS-128, armed while data is outstanding whose context recovers from
// losses, or that has asked for no ACK).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/timer_wheel.h"
#include "cms/path.h"
#include "pds/ccc_pool.h"
#include "pds/close_handshake.h"
#include "pds/environment.h"
#include "pds/pdc_identity.h"
#include "pds/pdc_state.h"
#include "uet/base/intrusive_list.h"
#include "uet/pds/api.h"

namespace uet::pds {

class PdcCore : public ListNode<ReadyTag>,
                public ListNode<WaitingForCccTag>,
                public TimerEntry,
                public PdcIdentity {
 public:
  enum Deadline : std::uint8_t { kResend, kIdle, kClose, kSilence, kDeadlines };

  PdcCore(Environment& environment, Role role, PdcId id, PdcId peer_id,
          const Destination& destination, Psn start_psn, SharedCcc& ccc, Time now);
  PdcCore(const PdcCore&) = delete;
  PdcCore& operator=(const PdcCore&) = delete;

  Environment& env() const { return env_; }
  SharedCcc& ccc() const { return ccc_; }
  PeerCounters& peer_counts() const { return ccc_.peer->counts; }
  PdcState state() const { return state_; }
  Time opened() const { return opened_; }
  Time last_activity() const { return last_activity_; }
  // A packet of either end that shows that the PDC is in use.
  void note_activity(Time now) { last_activity_ = now; }
  // The PSN of the Close Command, sent or received; for the tombstone.
  Psn close_psn() const { return close_psn_; }
  // The first packet of the peer has told its PDC id. False if the id is known already.
  bool establish(PdcId peer_id);
  // May a new message join (PDS-28, PDS-29)?
  bool takes_messages() const {
    return state_ == PdcState::Creating || state_ == PdcState::Established;
  }
  bool finished() const { return state_ == PdcState::Closed; }
  // Its Close Command has left, which no packet may follow.
  bool has_sent_close() const { return state_ == PdcState::CloseAckWait || finished(); }
  // Why it failed; empty after an orderly close.
  std::optional<PdsError> error() const { return error_; }

  // The peer has sent a packet to our PDC id, so that it hears what is sent to its address. A
  // target PDC is unproved before: its SYN may come from anybody.
  bool proved() const { return proved_; }
  void note_proved();
  // A packet of so many bytes came from the address of the peer: three times as many may be sent
  // there until the PDC is proved, so that a forged address gains nothing (as RFC 9000, 8.1).
  void allow_answers(std::uint32_t nominal_bytes) {
    if (!proved_) unproved_bytes_ += 3 * static_cast<std::int32_t>(nominal_bytes);
  }
  // Sends one packet whose answer proves it. Not repeated before `keepalive_time`.
  void ask_for_proof();
  // The peer is asked, and may not be asked again yet.
  bool asked_for_proof() const { return proof_asked_; }
  // May so many bytes go to the peer? If not, the peer is asked for the proof that permits them.
  bool may_send(std::uint32_t nominal_bytes);
  void charge(std::uint32_t nominal_bytes) {
    if (!proved_) unproved_bytes_ -= static_cast<std::int32_t>(nominal_bytes);
  }
  // The host that stored responses and early packets are charged to.
  std::uint64_t host() const;

  // The peer asks for the close. It begins in the next turn, and does not wait for watchers.
  void want_close() {
    close_.peer_asks();
    make_ready();
  }
  // Puts the PDC in line for Pdc::pump.
  void make_ready();
  void set_deadline(Deadline which, Time at);
  Time deadline_of(Deadline which) const { return deadlines_[which]; }
  // The deadline is at `at` at the latest.
  void bring_forward(Deadline which, Time at) {
    if (at < deadlines_[which]) set_deadline(which, at);
  }
  // Something came from the initiator that was asked to close: it is still finishing, or waits for
  // credit, and has time to do so (PDS-177).
  void extend_close(Time now);

  cms::PathSelector& path() { return own_path_ ? *own_path_ : *ccc_.paths; }
  // nullptr: none is left for this kind of packet.
  Packet* take_packet(bool control);
  // A control packet that is neither tracked nor acknowledged. False if there is no packet for it.
  // With data: it queues where data does.
  bool send_untracked(wire::ControlHeader header, bool with_data = false);
  // The last control packet without a PSN that the peer may refuse (PDS-221); Noop: none was sent.
  wire::CpType last_optional() const { return last_optional_; }
  void forget_last_optional() { last_optional_ = wire::CpType::Noop; }
  // PDS-90: its answer is an ACK or a NACK for that PSN.
  bool send_ack_request(Psn psn);
  void send_nack(NackCode code, const PacketMeta& refused);

  // After the congestion window may have become smaller.
  void note_window_in_trace() {
    env_.trace.write(trace::Kind::Window, 0, id_, {}, ccc_.ccc->window_bytes(),
                     static_cast<std::uint64_t>(ccc_.ccc->inflight_bytes()));
  }

 protected:
  ~PdcCore();
  void enter(PdcEvent event);

  PdcState state_;
  std::optional<PdsError> error_;
  CloseHandshake close_;
  bool proved_ : 1;
  bool proof_asked_ : 1 = false;  // and may not be asked again yet
  bool proof_due_ : 1 = false;    // may be asked again, in the next turn
  bool refused_ : 1 = false;      // the port of the silent peer was reported closed
  wire::CpType last_optional_ : 4 = wire::CpType::Noop;
  std::uint16_t local_connection_ = 0;  // RxPacket::connection of the peer; 0: not known
  std::int32_t unproved_bytes_ = 0;     // may be sent before the proof
  Psn close_psn_{};
  Environment& env_;
  SharedCcc& ccc_;
  std::optional<cms::PathSelector> own_path_;  // if it has one of its own
  std::uint32_t locks_ = 0;
  std::uint32_t watches_ = 0;
  const Time opened_;
  Time last_activity_;
  std::array<Time, kDeadlines> deadlines_;
};

}  // namespace uet::pds
