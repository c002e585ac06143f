// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which packets of one PDC are lost. Times, PSNs and reports go in; lost PSNs, "ask the peer now"
// and the time of the next look come out. The caller sends, marks as lost and counts.
//
// Four causes make a packet leave again, besides the loss of a rail, which the NIC tells
// (LossRecovery::on_lost_rail). Each has its output here:
// 1. its time-out, which alone is sufficient for correctness (PDS-119, PDS-120): check(),
//    Verdict::TimedOut;
// 2. a NACK, at once or after NACK_Retx_Time by its code (PDS-122, nack.h): check(),
//    Verdict::Resend when the time is over;
// 3. reports of later packets: enough above the gap (PDS-130), or a later one on the same path
//    (PDS-131), at most once per RTO (PDS-132): overtaken();
// 4. the answer to a Probe after a silence: what was sent before the Probe and is missing in the
//    answer is lost (CMS-151, CMS-153): presume_lost_before_probe().
// Whatever the cause, may_leave() spaces transmissions that nothing answers, and check() bounds
// their number and the time that a peer may be silent (PDS-121): Verdict::Dead.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cms/ccc.h"
#include "pds/answer_time.h"
#include "pds/inference_history.h"
#include "pds/parameters.h"
#include "pds/path_evidence.h"
#include "pds/tx_window.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet::pds {

// Input of the decision about losses, besides the packets themselves.
struct LossContext {
  const Parameters& parameters;
  const cms::Parameters& cms;
  const cms::Ccc& ccc;        // base RTT, largest window, rules of recovery
  InferenceHistory& history;  // of the same congestion context
  std::uint32_t range_psns;   // MP_RANGE of the peer
  bool recovers_midway;       // losses are also found while there is more to send (CMS-150)
  bool ordered;               // ROD
  bool creating;              // the peer has not answered yet

  // Measured or stated; empty if neither.
  std::optional<Duration> known_base_rtt() const {
    const std::optional<Duration> measured = ccc.base_rtt();
    return measured ? measured : cms.base_rtt;
  }
  Duration base_rtt() const { return known_base_rtt().value_or(cms.default_base_rtt); }
};

// For one look at a time, of any PDC.
struct LossScratch {
  // `window_psns`: packets that a PDC may have outstanding.
  LossScratch(std::size_t path_count, std::size_t window_psns)
      : arrived(path_count), window_psns_(window_psns) {}
  // Takes memory for a look if there was none yet. False: there is none; then time-outs alone find
  // what is lost.
  bool prepare() noexcept { return lost.capacity() > 0 || take_memory(); }
  PathEvidence arrived;
  std::vector<Psn> lost;  // what the look has found

 private:
  bool take_memory() noexcept;

  std::size_t window_psns_;
};

class LossDetector {
 public:
  enum class Verdict : std::uint8_t {
    Wait,           // nothing to do before `again`
    Resend,         // the time that a NACK, or may_leave(), has set is over
    OutsideWindow,  // the peer's window has shrunk below this packet (PDS-127)
    NotSent,        // the NIC has not taken it yet
    Ask,            // the peer has it: its response is to be asked for (PDS-90)
    TimedOut,       // lost
    Dead,           // the peer counts as dead (PDS-121)
  };
  struct Judgement {
    Verdict verdict;
    Time again = kNever;  // when this packet must be looked at again
  };
  // Which packet check() looks at.
  struct Standing {
    bool first;      // its silence is that of the PDC
    bool asks;       // it is repeated while the peer is silent
    bool in_window;  // of the peer
  };
  struct Look {
    Time again = kNever;         // when time alone may show more
    std::uint32_t reported = 0;  // packets above the lowest gap that have arrived
  };
  // Summary of the outstanding packets, for silence().
  struct Outstanding {
    bool nothing;       // no packet at all
    bool more_to_send;  // messages wait
    bool unasked_tail;  // the last packet has asked for no ACK
    bool may_ask;       // the PDC is established and data is in flight
  };
  struct Silence {
    bool ask = false;     // a Probe is due
    Time again = kNever;  // the next look
  };

  LossDetector(Psn start_psn, Time opened) : opened_(opened), highest_reported_(start_psn - 1) {}

  // ---- what happens -----------------------------------------------------------------------------

  // A transmission of this record leaves at `now`. Numbers it.
  void sent(TxRecord& record, bool retransmission, Time now);
  // A packet of any type came from the peer (PDS-125). True: it ends a silence. Packets sent before
  // have one short time-out from now on, since the peer takes up one after another.
  bool heard(Time now);
  void ack_heard(Time now) { last_heard_ = now; }
  // CACK has moved: retries are counted from 0 again (PDS-125).
  void cack_moved() { ++rto_epoch_; }
  void answer_took(Duration answer) { answer_time_.add(answer); }
  // The peer has reported `psn`. True: an inference that it was lost was wrong. Call it before the
  // record is marked as reported.
  bool reported(const LossContext& at, Psn psn, TxRecord& record, Time now);
  // The peer has the packet, and its final response takes as long as an application does (SES-46).
  // Returns when to ask for it.
  Time await_final_response(const Parameters& parameters, Psn psn, TxRecord& record, Time now);
  // A Probe that silence() asked for has left.
  void probe_left(Time now) {
    probe_sent_ = now;
    probe_open_ = 1;
  }
  // Start_PSN is another one, and the peer has accepted nothing (PDS-77).
  void rebase(Psn start_psn) { highest_reported_ = start_psn - 1; }
  // Retries of this record count since CACK last moved (PDS-125).
  void note_progress(TxRecord& record) const;

  // ---- verdicts ---------------------------------------------------------------------------------

  // When the record may leave again, whatever asks for it.
  Time may_leave(const Parameters& parameters, TxRecord& record) const;
  // Has this packet left as often as it may although the peer lives (PDS-121)? Then check() says
  // Dead.
  bool gives_up(const Parameters& parameters, const TxRecord& record) const;
  // A deadline of `record`, an outstanding packet that does not wait to be sent again, may be over.
  Judgement check(const LossContext& at, TxWindow& window, Psn psn, TxRecord& record,
                  Standing standing, Time now);
  // Puts PSNs that reports of later packets show as lost into `scratch.lost`, highest first.
  // `by_ack`: a report has just come; otherwise only what has waited since may be found.
  Look overtaken(const LossContext& at, TxWindow& window, bool by_ack, LossScratch& scratch,
                 Time now);
  // CMS-150: so much has arrived above what is missing that fewer reports suffice. True: a recovery
  // begins, and another look may find more.
  bool begin_recovery(const LossContext& at, const TxWindow& window, std::uint32_t reported,
                      Time now);
  // CMS-151: do ACKs still come while data is outstanding?
  Silence silence(const LossContext& at, const Outstanding& outstanding, Time now) const;
  // Is `opaque` that of the newest Probe, not answered yet? Only of that one it is known when it
  // left: the time is returned.
  std::optional<Time> probe_answered(std::uint16_t opaque);
  // The Probe that left at `sent` was answered, in a time of `rtt` if known: puts PSNs that it
  // shows as lost into `scratch.lost`, lowest first.
  void presume_lost_before_probe(const LossContext& at, TxWindow& window, Time sent,
                                 std::optional<Duration> rtt, LossScratch& scratch, Time now);

  // Time for which the answer to this packet is waited for since it was last sent or asked for.
  Duration response_time(const Parameters& parameters, const TxRecord& record) const;

  Psn highest_reported() const { return highest_reported_; }  // acknowledged or SACKed
  std::uint32_t rto_epoch() const { return rto_epoch_; }
  Time last_data_sent() const { return last_data_sent_; }
  Time peer_lived() const { return peer_lived_; }  // last packet of any type
  Duration answers_take() const { return answer_time_.limit(); }

  // Names a Probe after the microsecond in which it left.
  static constexpr std::uint16_t kFirstOpaque = 0x8000;
  static std::uint16_t probe_opaque(Time sent) {
    const auto us = static_cast<std::uint64_t>(to_ns(sent)) / 1000;
    return static_cast<std::uint16_t>(kFirstOpaque | (us % kFirstOpaque));
  }

 private:
  bool has_answered_nothing_since(const TxRecord& record) const {
    return peer_lived_ <= record.last_sent;
  }
  void count_unanswered(TxRecord& record) const;
  Duration waited_for(const Parameters& parameters, const TxRecord& record) const;
  Time answer_due(const Parameters& parameters, TxRecord& record) const;
  bool counts_as_dead(const Parameters& parameters, const TxRecord& record, bool first,
                      Time now) const;
  bool was_inferred_wrongly(const LossContext& at, const TxRecord& record, Time now) const;
  void presume_lost(const LossContext& at, Psn psn, TxRecord& record, bool by_path,
                    LossScratch& scratch, Time now) const;

  // The fields that each transmission uses come first.
  std::uint64_t order_ = 0;  // transmissions so far
  Time last_data_sent_{};
  Time last_heard_{};  // last ACK
  Time peer_lived_{};
  // When a silence that had lasted for a time-out ended; kNever: it lasts.
  Time silence_over_{};
  const Time opened_;
  AnswerTime answer_time_;
  Psn highest_reported_;
  std::uint32_t rto_epoch_ : 31 = 0;  // grows with CACK (PDS-125)
  std::uint32_t probe_open_ : 1 = 0;  // the newest Probe is not answered
  std::optional<Psn> recover_until_;  // CMS-150: until CACK has come there; empty: no recovery
  Time probe_sent_{};                 // CMS-151: the newest; Time{}: none yet
  // Transmissions up to this one prove nothing and are not proven lost by later ones on their path:
  // since they left, the route of a path has changed (CMS-421).
  std::uint64_t route_epoch_ = 0;
};

// The newest packet, if it is data that no ACK has been asked for: no later one asks (PDS-128).
std::optional<Psn> unasked_tail(TxWindow& window);
// The same of the newest packet that is in flight. Later ones have been reported, refused or lost.
std::optional<Psn> unasked_in_flight(TxWindow& window);

}  // namespace uet::pds
