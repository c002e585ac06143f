// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RCCC at the source: permission to send that the receiver grants (CMS 3.2), alone or together with
// NSCC's window (CMS 3.5). The rules are free functions on CreditState; class Rccc puts them behind
// the Ccc interface. The receiver's half is credit_pacer.h.
//
// Credits and targets are running totals in units of 256 bytes modulo 2^24 (CMS-201).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cms/ccc.h"
#include "cms/nscc.h"
#include "uet/base/time.h"

namespace uet::cms {

inline constexpr std::uint32_t kCreditUnit = 256;  // bytes
inline constexpr std::uint32_t kCreditMask = 0xFFFFFF;

// How far `newer` is ahead of `older` in units; 0 if it is not: an old message (CMS-201).
constexpr std::uint32_t credit_ahead(std::uint32_t newer, std::uint32_t older) {
  const std::uint32_t units = (newer - older) & kCreditMask;
  return units > kCreditMask / 2 ? 0 : units;
}

struct CreditState {
  std::int64_t credit_bytes = 0;        // C: may be sent; ends less than a packet below 0 (CMS-211)
  std::uint32_t granted_units = 0;      // G: the newest credit seen
  bool speculative = false;             // nothing was heard since it began (CMS-210)
  std::uint64_t backlog_bytes = 0;      // waits for its first transmission
  std::uint64_t rtx_backlog_bytes = 0;  // waits to be sent again
};

// A new or long idle context sends `allowance_bytes` before any credit (CMS-210, CMS-216).
void credit_start(CreditState& state, std::uint64_t allowance_bytes);
// The first answer ends that (CMS-212).
void credit_end_speculation(CreditState& state);
// A credit counter arrived (CMS-213). True if it was newer than those before.
bool credit_on_update(CreditState& state, std::uint32_t credit, std::uint64_t max_bytes);

// The limits of the credit that a source asks for (CMS-214).
struct TargetLimits {
  std::uint64_t max_bytes = 0;                // Wmax
  std::optional<std::uint64_t> window_bytes;  // W, if NSCC is on too
  std::uint32_t mtu_bytes = 0;
  std::size_t active = 1;  // contexts of this FEP that want to send, itself included
};
// credit_target for requests and Credit Requests. Asks at least for the credit to send one packet,
// and for nothing if nothing waits.
std::uint32_t credit_target(const CreditState& state, const TargetLimits& limits);

class Rccc final : public Ccc {
 public:
  // parameters.algorithm: one that uses credit. `ccc_id`: what requests call this context
  // (CMS-204).
  Rccc(const SharedParameters& parameters, std::uint8_t ccc_id, Time now,
       std::optional<Duration> base_rtt = {});

  bool may_send(std::uint32_t bytes) const override;
  void on_sent(std::uint32_t bytes, Time now) override;
  bool on_ack(const AckFeedback& feedback, Time now) override;
  void on_nack(wire::NackCode code, std::uint32_t bytes, bool ce, std::optional<Duration> rtt,
               Time now) override;
  void on_inferred_loss(std::uint32_t bytes, LossCause cause, Time now) override;
  void on_spurious_loss(std::uint32_t bytes) override;
  std::optional<RecoveryRules> recovery() const override;
  void forget(std::int64_t bytes) override { window_.forget(bytes); }
  bool wants_ack(std::uint32_t bytes, std::uint32_t unasked_packets) const override {
    return window_.wants_ack(bytes, unasked_packets);
  }
  void on_probe_answer(Duration rtt) override { window_.on_probe_answer(rtt); }
  std::optional<Duration> base_rtt() const override { return window_.base_rtt(); }
  std::uint64_t window_bytes() const override { return window_.window_bytes(); }
  std::uint64_t largest_window_bytes() const override { return window_.largest_window_bytes(); }
  std::int64_t inflight_bytes() const override { return window_.inflight_bytes(); }
  Counters holdings() const override { return window_.holdings(); }
  Rccc* by_credit() override { return this; }

  // NewData, in nominal bytes (CMS-6), and what leaves the backlog: as a packet or cancelled.
  void on_new_data(std::uint64_t bytes, Time now);
  void on_backlog_left(std::uint64_t bytes);
  void mark_rtx(std::uint32_t bytes) { state_.rtx_backlog_bytes += bytes; }
  void unmark_rtx(std::uint32_t bytes);
  // Would its window allow what it forbids?
  bool lacks_credit() const { return !fallen_back_ && state_.credit_bytes <= 0; }
  // Permission to send that is left; at most a packet below 0 (CMS-211).
  std::int64_t credit_bytes() const { return state_.credit_bytes; }
  bool has_data() const { return state_.backlog_bytes + state_.rtx_backlog_bytes > 0; }

  // OnCreditUpdate: from a Credit control packet or an ACK_CC.
  void on_credit(std::uint32_t credit, Time now);
  // The field for what leaves now; `active` as in TargetLimits.
  std::uint32_t take_target(std::size_t active);
  std::uint8_t ccc_id() const { return ccc_id_; }
  // Requests name the context and its target. Not after the peer turned out to give no credit:
  // then NSCC alone decides, until credit comes after all (CMS-241).
  bool asks_for_credit() const { return !fallen_back_; }
  // The peer knows no credit (PDS-221): as after CMS-241, without three questions first.
  void fall_back() { fallen_back_ = true; }

  // When to send a Credit Request; kNever if none is due (CMS-215).
  Time request_due(Time now) const;
  // It is due: true if one is to be sent now. False: three were not answered though ACKs come, and
  // the context has fallen back to NSCC (CMS-241). Where nothing comes one packet may go besides.
  bool start_request(Time now);
  // There is nothing that could carry it: one packet may go in its place, which asks as well.
  void on_request_impossible(Time now);

 private:
  Duration rtt() const;
  bool has_enough() const;
  void on_answer(Time now);
  void let_one_go();

  SharedParameters parameters_;
  Nscc window_;  // always fed; decides in Both, and after falling back
  void start_speculation();

  CreditState state_;
  std::uint8_t ccc_id_;
  std::uint32_t last_target_ = 0;
  bool fallen_back_ = false;
  std::uint32_t unanswered_ = 0;  // Credit Requests since the last answer
  std::uint32_t requests_ = 0;    // since there was credit
  bool acked_ = false;            // an ACK came since then
  Time last_request_{};
  Time last_event_;  // something was sent or answered
  // A request that told its target was sent, or credit came. ACKs say nothing of credit.
  Time last_credit_event_;
};

}  // namespace uet::cms
