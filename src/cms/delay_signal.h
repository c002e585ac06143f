// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Round trip samples for algorithms that are driven by delay: the base RTT, configured or measured
// (CMS 2.5), the time that hosts add to it, the target for queues and the largest window. NSCC has
// the same rules in its own state; this is for the others.
#pragma once

#include <cstdint>
#include <optional>

#include "cms/ccc.h"
#include "cms/host_delay.h"
#include "cms/nscc.h"
#include "uet/base/time.h"

namespace uet::cms {

class DelaySignal {
 public:
  // `base_rtt`: what an earlier context learnt; nothing is measured then (CMS-141).
  DelaySignal(const SharedParameters& parameters, Time now, std::optional<Duration> base_rtt);

  // The round trip time that an ACK reports, in microseconds, without the time in hosts. Empty: the
  // ACK has no valid sample, or the base RTT is still measured and there is nothing to judge it by.
  // `inflight_bytes`: before the ACK.
  std::optional<double> add(const AckFeedback& feedback, std::int64_t inflight_bytes, Time now);
  // The answer to a Probe, which waited behind no data (CMS-140).
  void on_probe_answer(Duration rtt);
  // Sending begins after a pause, or a packet was lost: the time without a short sample begins
  // again (CMS-142).
  void restart_raise(Time now);
  // The base RTT has risen since the last question (CMS-142).
  bool take_raised();

  double base_us() const { return base_us_; }
  // Of one control loop: base RTT and the time in hosts.
  double loop_us() const { return base_us_ + host_.us(); }
  // How long packets may wait in queues: Tuning::target_qdelay_us, or by the rule of NSCC, so that
  // comparisons are about the reaction and not about the target; more where samples jitter
  // (CMS-711).
  double target_qdelay_us() const;
  // Tuning::max_window_bdp BDPs of the loop (CMS-101, CMS-102).
  double max_window_bytes() const;
  // Ccc::base_rtt
  std::optional<Duration> base_rtt() const;
  // Ccc::recovery for a window
  std::optional<RecoveryRules> recovery(const Window& window, Time last_trim) const;

 private:
  void set_config_base_rtt(Duration config);
  void lower(double rtt_us);
  void raise(double rtt_us, bool ce, Time now);
  bool measure(Duration rtt);
  void follow();

  NsccConstants constants_;
  double base_us_;
  HostDelay host_;
  RttNoise noise_;
  BaseRttMeasurement measurement_;
  Time raise_since_;
  double raise_rtt_us_ = 0;  // the shortest sample since then, 0: none
  bool measuring_;
  bool known_ = false;  // some sample came
  bool raised_ = false;
};

}  // namespace uet::cms
