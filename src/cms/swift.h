// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Swift: a sender's window from the round-trip time alone. After G. Kumar et al., "Swift: Delay is
// Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020, section 3.
//
// The window grows by a packet per round trip while a round trip takes less than its target, and is
// multiplied by a factor at most once per round trip when it takes longer. ECN marks mean nothing.
//
// Differences from the paper, with reasons:
// - Target: the base RTT (configured or measured, CMS 2.5) stands for base and per-hop delay, since
//   a host does not know the hops of its many paths.
// - No pacing of less than a packet per round trip: CMS-101 and CMS-133 permit one packet
//   always. So more senders than a BDP has packets leave a queue of a packet each.
// - No window for the delay of end hosts: an ACK's service time takes that out of samples, and the
//   receiver protects itself (CMS 4.1). Window and spacing are made for the loop with host delay.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cms/delay_signal.h"
#include "cms/window_ccc.h"

namespace uet::cms {

// The part of the target that depends on the window: a flow with a small window is one of many, and
// many flows need a longer queue. alpha / sqrt(window) + beta, between 0 at kFullPackets and
// `range_us` at kFewPackets.
double swift_flow_scaling_us(double range_us, double window_packets);
inline constexpr double kSwiftFewPackets = 0.1;
inline constexpr double kSwiftFullPackets = 100;

// The part of a window that a decrease leaves: 1 - beta x excess of the round trip over the target,
// not less than `least`.
double swift_decrease(double rtt_us, double target_us, double beta, double least);

class Swift final : public WindowCcc {
 public:
  Swift(const SharedParameters& parameters, Time now, std::optional<Duration> base_rtt = {});

  void on_sent(std::uint32_t bytes, Time now) override;
  bool on_ack(const AckFeedback& feedback, Time now) override;
  void on_nack(wire::NackCode code, std::uint32_t bytes, bool ce, std::optional<Duration> rtt,
               Time now) override;
  void on_inferred_loss(std::uint32_t bytes, LossCause cause, Time now) override;
  void on_spurious_loss(std::uint32_t bytes) override;
  void on_probe_answer(Duration rtt) override;
  std::optional<Duration> base_rtt() const override { return signal_.base_rtt(); }
  std::optional<RecoveryRules> recovery() const override;
  Counters holdings() const override;

  // The round trip time that the window aims at.
  double target_us() const;

 private:
  void on_sample(double rtt_us, std::uint64_t bytes, bool limited, Time now);
  bool may_decrease(Time now) const;
  void decrease(double part, Time now);
  void on_loss(Time now);
  void resize();

  DelaySignal signal_;
  double last_rtt_us_ = 0;
  // The window before the last reduction for a loss; 0: an ACK came since.
  double before_loss_bytes_ = 0;
  Time last_decrease_;
  Time last_trim_{};
  std::uint32_t timeouts_ = 0;  // in a row, without an ACK
};

}  // namespace uet::cms
