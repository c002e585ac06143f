// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC: a sender's window from ECN marks and queueing delay (CMS section 2).
//
// Decides how many bytes may be in flight to one peer. It has no deadlines: everything happens on
// an ACK, a NACK, a loss or a transmission. The rules are free functions on NsccState, named after
// the events of CMS 2.3 and 2.4; class Nscc puts them behind the Ccc interface and measures the
// base round trip time when it is not configured. Fields carry the specification's names.
//
// Windows and gains are real numbers: bytes, and microseconds for times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "cms/ccc.h"
#include "cms/host_delay.h"
#include "cms/window.h"
#include "uet/base/time.h"

namespace uet::cms {

// Of the measured base RTT and its noise (CMS-711, CMS-142), for all that judge delay.
inline constexpr double kTargetOfJitter = 4;
inline constexpr double kLightLoadOfBdp = 0.25;  // "light load" of CMS-711
inline constexpr double kCloseOfTarget = 0.25;   // and "close to the base RTT" (RttNoise)
inline constexpr double kNoiseAgeRtts = 1000;
inline constexpr double kRaiseLimitOfConfig = 4;
inline constexpr double kConfigOfMeasured = 1.1;  // CMS-710
// A way that is slower than the interface (CMS-724). The first is in reference round trip times.
inline constexpr double kWideTarget = 4;  // a longer target delay makes gains wide
inline constexpr double kRememberCongestionRtts = 100;
inline constexpr double kQueuedPackets = 2;  // of each flow, at the target delay

// Constants that follow from the configuration (CMS 2.1). Each context has its own, since the base
// RTT may be measured; so only constants whose computation takes a division are stored.
struct NsccConstants {
  SharedParameters parameters;
  double rate_bytes_per_us = 0;
  double config_base_rtt_us = 0;
  double target_qdelay_us = 0;  // before CMS-711
  double scaling_a = 0;
  double alpha_bytes_per_us = 0;   // gain of RISE
  bool synthetic_ecn = false;      // CMS-703
  bool recovery = false;           // CMS-151 ...
  bool recovery_by_count = false;  // ... and CMS-150
  bool in_order = false;           // RecoveryRules

  explicit NsccConstants(const SharedParameters& shared) : parameters(shared) {}
  const Tuning& tuning() const { return parameters->tuning; }
  double mtu_bytes() const { return std::max<std::uint32_t>(parameters->mtu_bytes, 1); }
  // Parameters::max_window_bytes
  double window_limit_bytes() const {
    return std::max(static_cast<double>(parameters->max_window_bytes), mtu_bytes());
  }
  double bdp_bytes() const { return rate_bytes_per_us * config_base_rtt_us; }
  double scaling_b() const { return target_qdelay_us / tuning().reference_rtt_us; }
  // Gain of FAIR.
  double fi_bytes() const { return tuned(tuning().fi_bytes, 5 * scaling_a * mtu_bytes()); }
  // Unconditional increase per period.
  double eta_bytes() const { return tuned(tuning().eta_bytes, 0.15 * scaling_a * mtu_bytes()); }
  // Gain of fast increase.
  double fi_scale() const { return tuned(tuning().fi_scale, 0.25 * scaling_a); }
  // An increase is applied after so many bytes ...
  double adjust_bytes() const { return tuned(tuning().adjust_bytes, 8 * mtu_bytes()); }
  // ... or after so long.
  double adjust_period_us() const { return tuned(tuning().adjust_period_us, config_base_rtt_us); }
  // MaxWnd for a round trip time: Tuning::max_window_bdp BDPs within [MTU, window_limit_bytes]
  // (CMS-101, CMS-102).
  double max_window(double rtt_us) const;
  // The round trip time beyond which window_limit_bytes bounds MaxWnd.
  double longest_rtt_us() const {
    return window_limit_bytes() / (tuning().max_window_bdp * rate_bytes_per_us);
  }
  // The chosen value, or the value by the rules if 0 is chosen.
  static double tuned(double chosen, double by_rule) { return chosen != 0 ? chosen : by_rule; }
};

NsccConstants nscc_constants(const SharedParameters& parameters, Duration config_base_rtt);
// The same of another base RTT: it was measured, or found to be shorter (CMS-143).
void nscc_set_base_rtt(NsccConstants& constants, Duration config_base_rtt);

// Scheduling noise (CMS-711): the median distance of consecutive round trip samples. Only batches
// in which some sample came close to the base RTT count: noise leaves such samples, a standing
// queue does not, and flows that took a queue for noise would widen their targets against each
// other. A flow under load measures none, so what it knew before is forgotten: else it would be
// more patient for ever than the flows it shares a queue with.
class RttNoise {
 public:
  // `rtt`: greater than zero. `close_us`: the largest sample that is close to the base RTT.
  void add(Duration rtt, double close_us, Time now);
  // A mark: there is a queue. Samples before and after it do not follow each other, and while
  // queues build up and drain they differ as those of a noisy host do.
  void restart();
  // Forgets a jitter that was measured more than `age_us` ago.
  void expire(double age_us, Time now);
  double jitter_us() const { return jitter_us_; }  // 0 until the first batch is complete

 private:
  static constexpr std::size_t kBatch = 15;  // distances; odd, so that the median is one of them
  // The last one of the batch before and this one's; more than 4 s count as that.
  std::array<std::uint32_t, kBatch + 1> samples_ns_{};
  std::uint8_t count_ = 0;
  bool close_seen_ = false;  // in this batch
  double jitter_us_ = 0;
  Time measured_{};
};

// Time in the hosts is no queue in the network: delay is judged by samples without it. But it is
// part of the control loop. So windows and gains are made for a round trip of base RTT + host delay
// (`loop`), and what happens once per round trip happens once per loop. Without host delay all is
// as CMS section 2 has it.
struct NsccState : Window {
  double base_rtt_us = 0;            // smallest round trip time seen (CMS-140)
  double avg_delay_us = 0;           // queueing delay over about the last base RTT (CMS-120)
  Time avg_delay_time;               // of its last sample
  double inc_bytes2 = 0;             // inc_bytes: increase waiting to be applied, bytes squared
  std::uint64_t received_bytes = 0;  // reported since the last application
  Time last_adjust_time;             // last periodic application
  std::uint64_t achieved_bytes = 0;  // reported in this quick-adapt epoch
  std::optional<Time> qa_end_time;   // end of the epoch; empty = not started
  std::int64_t bytes_to_ignore = 0;  // in flight at the last quick adapt
  std::int64_t bytes_ignored = 0;    // of those reported
  double fi_count_bytes = 0;         // bytes reported in a row at zero delay
  Time last_dec_time;                // last multiplicative decrease
  Time last_trim;                    // Time{} = none yet
  std::optional<Time> last_loss;     // a trim or an inferred loss
  Time last_feedback{};              // an ACK, a trim or a loss
  Time raise_since;                  // start of the time without a short sample (CMS-142) ...
  double raise_rtt_us = 0;           // ... and the smallest sample in it; 0 = none
  RttNoise noise;                    // CMS-711
  std::int64_t peak_bytes = 0;       // most in flight in this quick-adapt epoch ...
  std::int64_t last_peak_bytes = 0;  // ... and in the one before
  HostDelay host;
  std::optional<Time> delayed_since;  // all samples since then showed a queue
  // CMS-724: the window after the last cut, or half of what it was at the last loss; 0 = neither.
  double safe_bytes = 0;
  Time last_congestion{};            // the last cut, or beginning of a round trip with losses
  double before_collapse_bytes = 0;  // window before CMS-135 took all, 0 = it did not
  Counters* counts = nullptr;        // SharedParameters::counts
  bool trigger_qa = false;           // a packet was trimmed since the last quick adapt
  bool increase_mode = false;        // fast increase is running
  bool ecn_seen = false;             // a CE mark came from this peer (CMS-703)
  bool silent_since_rto = false;     // no ACK since the last RTO (CMS-135)
};

// The effect of an ACK on the window; for counters and tests.
enum class NsccReaction : std::uint8_t {
  NoSample,      // no valid round trip sample: bytes counted only
  QuickAdapt,    // quick adapt fired
  Ignored,       // the packet was sent before the last quick adapt
  Fair,          // delay without mark: even increase
  Rise,          // neither: increase by the distance to the target delay
  FastIncrease,  // the delay has been zero for a whole window
  Limited,       // FAIR or RISE was due, but the destination is busy
  Cut,           // both: multiplicative decrease
  Hold,          // mark without delay
};

// Base RTT and host delay: the round trip that windows and gains are made for.
double nscc_loop_us(const NsccState& state);
// The window is at its maximum at once: there is no slow start (CMS-100).
NsccState nscc_start(const NsccConstants& constants, Time now);
// The configured base RTT turned out to be another one (CMS-143): `smallest_rtt` becomes the base.
void nscc_rebase(NsccState& state, const NsccConstants& constants, Duration smallest_rtt);

// The base RTT that an earlier context learnt becomes the base (CMS-141), up to 4 times the
// configured one (CMS-142).
void nscc_resume(NsccState& state, const NsccConstants& constants, Duration base_rtt);
// A round trip without queues (CMS-140).
void nscc_on_probe_answer(NsccState& state, const NsccConstants& constants, Duration rtt);

// Target queueing delay and "delay is zero" tolerance with this host's noise (CMS-711).
double nscc_target_qdelay_us(const NsccState& state, const NsccConstants& constants);
double nscc_quiet_us(const NsccState& state, const NsccConstants& constants);
// Extra delay above which quick adapt fires; infinite with trimming.
double nscc_qa_threshold_us(const NsccState& state, const NsccConstants& constants);

NsccReaction nscc_on_ack(NsccState& state, const NsccConstants& constants,
                         const AckFeedback& feedback, Time now);
// NACK TRIMMED or TRIMMED_LASTHOP (CMS-130).
void nscc_on_trim(NsccState& state, const NsccConstants& constants, std::uint32_t bytes,
                  std::optional<Duration> rtt, Time now);
void nscc_on_inferred_loss(NsccState& state, std::uint32_t bytes, LossCause cause,
                           Time now);  // CMS-132, CMS-135
// A loss that was none.
void nscc_on_spurious_loss(NsccState& state, std::uint32_t bytes);
// CMS-133, CMS-725
void nscc_on_sent(NsccState& state, const NsccConstants& constants, std::uint32_t bytes, Time now);

// Input of recovery_rules() besides the window of a context, in microseconds.
struct RecoveryTimes {
  double base_us;    // base RTT
  double loop_us;    // with the time in hosts
  double target_us;  // target queueing delay
  Time last_trim;    // Time{} = none yet
};
// Ccc::recovery of a context with such a window (CMS-150 to CMS-153).
std::optional<RecoveryRules> recovery_rules(const NsccConstants& constants, const Window& window,
                                            const RecoveryTimes& times);

// Base RTT from the traffic itself (CMS-710): the smallest of the first samples and a tenth more.
class BaseRttMeasurement {
 public:
  static constexpr unsigned kSamples = 8;
  static constexpr Duration kLowest = std::chrono::microseconds(5);
  static constexpr Duration kHighest = std::chrono::milliseconds(10);

  // The configured base RTT for a path whose smallest sample this is.
  static Duration config_base_rtt(Duration smallest);
  // The configured base RTT to use from now on, once, with the last of kSamples samples.
  std::optional<Duration> add(Duration rtt);
  bool done() const { return count_ >= kSamples; }
  Duration smallest() const { return smallest_; }

 private:
  unsigned count_ = 0;
  Duration smallest_ = Duration::max();
};

// NSCC behind the interface PDS uses. Until the base RTT is known, windows move on losses only.
class Nscc final : public Ccc {
 public:
  // `base_rtt`: what an earlier context learnt; nothing is measured then (CMS-141).
  Nscc(const SharedParameters& parameters, Time now, std::optional<Duration> base_rtt = {});

  bool may_send(std::uint32_t bytes) const override;
  void on_sent(std::uint32_t bytes, Time now) override;
  bool on_ack(const AckFeedback& feedback, Time now) override;
  void on_nack(wire::NackCode code, std::uint32_t bytes, bool ce, std::optional<Duration> rtt,
               Time now) override;
  void on_inferred_loss(std::uint32_t bytes, LossCause cause, Time now) override;
  void on_spurious_loss(std::uint32_t bytes) override;
  void forget(std::int64_t bytes) override;
  bool wants_ack(std::uint32_t bytes, std::uint32_t unasked_packets) const override;
  void on_probe_answer(Duration rtt) override;
  std::optional<Duration> base_rtt() const override;
  std::optional<RecoveryRules> recovery() const override;
  std::uint64_t window_bytes() const override;
  std::uint64_t largest_window_bytes() const override;
  std::int64_t inflight_bytes() const override;

  Counters holdings() const override;

  const NsccState& state() const { return state_; }
  const NsccConstants& constants() const { return constants_; }

 private:
  // A sample of the base RTT while it is measured. True: it is known now.
  bool measure(Duration rtt);
  // After a smaller sample than all that were measured (CMS-143).
  void follow_base_rtt();

  NsccConstants constants_;
  NsccState state_;
  bool measuring_;          // Parameters::base_rtt is empty and too few samples came
  bool rtt_known_ = false;  // some sample came
  BaseRttMeasurement measurement_;
};

}  // namespace uet::cms
