// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC's rules in the order of CMS 2.3 and 2.4. One-letter symbols in comments are those of
// CMS 2.1.
#include "cms/nscc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace uet::cms {
namespace {

constexpr double kQaThresholdFactor = 4;  // queue of 5 Plane_BDP before a drop
constexpr double kQuietUs = 1;
constexpr double kQuietOfBaseRtt = 0.02;
constexpr double kCalmRtts = 16;           // without a trim, before a Probe
constexpr double kLeastBaseRttUs = 0.001;  // the resolution of Duration
constexpr double kPauseOfLoop = 0.25;      // CMS-725

// CMS-724: is nothing known of the way but the rate of the interface in front of it?
bool knows_no_way(const NsccConstants& c) {
  return !c.parameters->rate_is_stated && !c.parameters->base_rtt &&
         c.tuning().target_qdelay_us == 0;
}

double wide_target_us(const NsccConstants& c) { return kWideTarget * c.tuning().reference_rtt_us; }

// The time in which the flow sends a few packets.
double few_packets_us(const NsccState& s) {
  return kQueuedPackets * s.mtu_bytes / s.cwnd_bytes * (nscc_loop_us(s) + s.avg_delay_us);
}

// CMS-724: gains that follow from a long round trip, or a long queue, and the rate of an interface
// are so wide that one ACK could raise a small window a hundredfold, though the way may be a slow
// one.
bool has_wide_gains(const NsccState& s, const NsccConstants& c) {
  if (c.parameters->rate_is_stated) return false;
  return c.target_qdelay_us > wide_target_us(c) ||
         (knows_no_way(c) && few_packets_us(s) > wide_target_us(c));
}

// CMS-100
double initial_window_bytes(const NsccState& s, const NsccConstants& c) {
  const double chosen_bytes = c.tuning().initial_window_bytes;
  return chosen_bytes != 0 ? chosen_bytes : s.max_bytes;
}

void remember_congestion(NsccState& s, double safe_bytes, Time now) {
  s.safe_bytes = safe_bytes;
  s.last_congestion = now;
}

// An application of what has accumulated, or its loss.
void drop_increase(NsccState& s) {
  s.inc_bytes2 = 0;
  s.received_bytes = 0;
}

// After a change of base RTT or host delay. A window that nothing has ever cut stays the largest.
void resize(NsccState& s, const NsccConstants& c) {
  const bool largest = s.cwnd_bytes >= s.max_bytes;
  s.max_bytes = c.max_window(nscc_loop_us(s));
  s.set_cwnd(largest ? s.max_bytes : s.cwnd_bytes);
}

void set_base_rtt(NsccState& s, const NsccConstants& c, double rtt_us) {
  s.base_rtt_us = rtt_us;
  resize(s, c);
}

// The factor for the gains of CMS 2.1, which are made for the configured RTT.
double loop_gain(const NsccState& s, const NsccConstants& c) {
  const double loop_us = std::min(nscc_loop_us(s), c.longest_rtt_us());
  return std::max(1.0, loop_us / c.config_base_rtt_us);
}

void add_host_delay(NsccState& s, const NsccConstants& c, const AckFeedback& feedback, Time now) {
  if (!feedback.loop) return;
  const double network_us = feedback.rtt ? to_us(*feedback.rtt) : s.base_rtt_us;
  s.host.add(std::max(0.0, to_us(*feedback.loop) - network_us), s.base_rtt_us, now);
  resize(s, c);
}

void restart_raise(NsccState& s, Time now) {
  s.raise_since = now;
  s.raise_rtt_us = 0;
}

// CMS-102, CMS-140: R falls with every smaller sample; gains stay as they were.
void lower_base_rtt(NsccState& s, const NsccConstants& c, double rtt_us) {
  if (rtt_us < s.base_rtt_us) set_base_rtt(s, c, rtt_us);
}

// CMS-142: the path has become longer for good. Only real marks count as congestion here, since a
// longer path looks like a synthetic mark.
void raise_base_rtt(NsccState& s, const NsccConstants& c, double rtt_us, bool ce, Time now) {
  if (ce || rtt_us < s.base_rtt_us + nscc_target_qdelay_us(s, c)) {
    restart_raise(s, now);
    return;
  }
  s.raise_rtt_us = s.raise_rtt_us == 0 ? rtt_us : std::min(s.raise_rtt_us, rtt_us);
  if (to_us(now - s.raise_since) < c.tuning().raise_after_rtts * s.base_rtt_us) return;
  const double limit_us = std::max(s.base_rtt_us, kRaiseLimitOfConfig * c.config_base_rtt_us);
  set_base_rtt(s, c, std::min(s.raise_rtt_us, limit_us));
  restart_raise(s, now);
}

// CMS-120: the weight is the time since the last sample, so that coalesced ACKs change nothing.
void average_delay(NsccState& s, const NsccConstants& c, double delay_us, Time now) {
  const double memory_us = c.tuning().delay_average_rtts * nscc_loop_us(s);
  const double weight = std::min(1.0, to_us(now - s.avg_delay_time) / memory_us);
  s.avg_delay_us += weight * (delay_us - s.avg_delay_us);
  s.avg_delay_time = now;
}

// The answers of a full window may be taken up together: what is in flight just now tells little.
double load_bytes(const NsccState& s) {
  return static_cast<double>(std::max({s.inflight_bytes, s.peak_bytes, s.last_peak_bytes}));
}

// A queue in the network delays all packets of a round trip; a host that lost its core for a moment
// delays a few. Where hosts add time, a delay has to last before it counts as a queue.
void note_delay(NsccState& s, const NsccConstants& c, double delay_us, Time now) {
  if (delay_us < c.tuning().synthetic_ecn_at * nscc_target_qdelay_us(s, c)) {
    s.delayed_since.reset();
  } else if (!s.delayed_since) {
    s.delayed_since = now;
  }
}

bool queue_lasts(const NsccState& s, Time now) {
  const double long_enough_us = std::min(s.base_rtt_us, s.host.us());
  return s.delayed_since && to_us(now - *s.delayed_since) >= long_enough_us;
}

double qa_epoch_us(const NsccState& s, const NsccConstants& c) {
  return nscc_loop_us(s) + nscc_target_qdelay_us(s, c);
}

// Whole epochs since the last one began. Where ACKs come further apart than epochs end, one that
// reports a whole window would otherwise set the window to itself for ever, however long that took.
double epochs_over(const NsccState& s, const NsccConstants& c, Time now) {
  if (!s.qa_end_time) return 1;
  return 1 + std::floor(to_us(now - *s.qa_end_time) / qa_epoch_us(s, c));
}

// The effect of a signal: it fires now, or is ignored as it concerns packets older than the last
// time that quick adapt fired.
enum class QuickAdapt : std::uint8_t { No, Fired, Ignored };

QuickAdapt quick_adapt(NsccState& s, const NsccConstants& c, bool loss, bool ce, double delay_us,
                       Time now) {
  QuickAdapt did = s.bytes_ignored < s.bytes_to_ignore && ce ? QuickAdapt::Ignored : QuickAdapt::No;
  if (did == QuickAdapt::No && (!s.qa_end_time || now >= *s.qa_end_time)) {
    const bool queue = delay_us > nscc_qa_threshold_us(s, c) && queue_lasts(s, now);
    const bool congested = s.trigger_qa || loss || queue;
    const double achieved = static_cast<double>(s.achieved_bytes) / epochs_over(s, c, now);
    if (s.qa_end_time && congested && achieved < s.max_bytes / std::exp2(c.tuning().qa_gate)) {
      s.set_cwnd(achieved);
      remember_congestion(s, s.cwnd_bytes, now);
      s.bytes_to_ignore = s.inflight_bytes;
      s.bytes_ignored = 0;
      s.trigger_qa = false;
      ++s.counts->quick_adapts;
      did = QuickAdapt::Fired;
    }
    s.achieved_bytes = 0;
    s.last_peak_bytes = std::exchange(s.peak_bytes, s.inflight_bytes);
    s.qa_end_time = now + Duration(std::llround(qa_epoch_us(s, c) * 1000));
  }
  if (did != QuickAdapt::No) drop_increase(s);
  return did;
}

// CMS-725. After a pause with nothing in flight, the queue that earlier marks reported is gone, and
// the bytes of the current epoch of quick adapt are too few.
void begin_after_pause(NsccState& s, const NsccConstants& c, Time now) {
  const double loop_us = nscc_loop_us(s);
  if (to_us(now - s.last_feedback) <= kPauseOfLoop * loop_us) return;
  s.qa_end_time.reset();
  s.achieved_bytes = 0;
  s.trigger_qa = false;
  const bool lost = s.last_loss && to_us(now - *s.last_loss) <= kRememberCongestionRtts * loop_us;
  const bool limited = s.saved_cwnd_bytes != 0;  // CMS-301
  if (lost || limited || has_wide_gains(s, c)) return;
  s.set_cwnd(std::max(s.cwnd_bytes, initial_window_bytes(s, c)));
}

bool has_slow_hosts(const NsccState& s) { return s.host.us() > s.base_rtt_us; }

// CMS-724, rule 1.
double doubled_at_most(const NsccState& s, const NsccConstants& c, double increase_bytes,
                       double arrived_bytes) {
  if (!has_wide_gains(s, c) && !has_slow_hosts(s)) return increase_bytes;
  return std::min({increase_bytes, arrived_bytes, s.cwnd_bytes});
}

// The part of an increase that is due after `arrived_bytes` have been reported: rules 1 and 2.
double bounded_increase(const NsccState& s, const NsccConstants& c, double increase_bytes,
                        double arrived_bytes, Time now) {
  const double doubled_bytes = doubled_at_most(s, c, increase_bytes, arrived_bytes);
  const double remembered_us = kRememberCongestionRtts * nscc_loop_us(s);
  const bool remembered = s.safe_bytes != 0 && to_us(now - s.last_congestion) <= remembered_us;
  const bool queue = s.avg_delay_us >= nscc_target_qdelay_us(s, c) / 2;
  if (!has_wide_gains(s, c) || !remembered || !queue) return doubled_bytes;
  const double per_round_trip = std::sqrt(s.mtu_bytes * s.cwnd_bytes);
  return std::min(doubled_bytes, std::max(0.0, s.safe_bytes - s.cwnd_bytes) +
                                     per_round_trip * arrived_bytes / s.cwnd_bytes);
}

bool fast_increase(NsccState& s, const NsccConstants& c, double bytes, double delay_us) {
  if (delay_us >= nscc_quiet_us(s, c)) {
    s.fi_count_bytes = 0;
    s.increase_mode = false;
    return false;
  }
  s.fi_count_bytes += bytes;
  if (s.fi_count_bytes <= s.cwnd_bytes && !s.increase_mode) return false;
  const double increase_bytes = c.fi_scale() * loop_gain(s, c) * bytes;
  s.set_cwnd(s.cwnd_bytes + doubled_at_most(s, c, increase_bytes, bytes));
  s.counts->fast_increase_bytes += static_cast<std::uint64_t>(bytes);
  s.increase_mode = true;
  return true;
}

void decrease(NsccState& s, const NsccConstants& c, Time now) {
  s.increase_mode = false;
  s.fi_count_bytes = 0;
  const double target_us = nscc_target_qdelay_us(s, c);
  const double spacing_us = c.tuning().decrease_spacing_rtts * nscc_loop_us(s);
  if (s.avg_delay_us <= target_us || to_us(now - s.last_dec_time) <= spacing_us) return;
  const double excess = (s.avg_delay_us - target_us) / s.avg_delay_us;
  double rest = std::max(1 - c.tuning().gamma * excess, c.tuning().max_md_jump);
  if (has_wide_gains(s, c)) {  // rule 3
    const double loop_us = nscc_loop_us(s);
    rest = std::max(rest, (loop_us + target_us) / (loop_us + s.avg_delay_us));
  }
  s.set_cwnd(s.cwnd_bytes * rest);
  remember_congestion(s, s.cwnd_bytes, now);
  ++s.counts->cuts;
  s.last_dec_time = now;
}

// Step 6: which of the four quadrants of CMS-121.
NsccReaction react(NsccState& s, const NsccConstants& c, double bytes, bool ce, double delay_us,
                   bool limited, Time now) {
  const double target_us = nscc_target_qdelay_us(s, c);
  if (ce && delay_us < target_us) return NsccReaction::Hold;
  if (ce) {
    decrease(s, c, now);
    return NsccReaction::Cut;
  }
  if (limited) return NsccReaction::Limited;
  if (delay_us >= target_us) {
    s.inc_bytes2 += c.fi_bytes() * loop_gain(s, c) * bytes;
    return NsccReaction::Fair;
  }
  if (fast_increase(s, c, bytes, delay_us)) return NsccReaction::FastIncrease;
  s.inc_bytes2 += c.alpha_bytes_per_us * loop_gain(s, c) * bytes * (target_us - delay_us);
  return NsccReaction::Rise;
}

// Step 7. Dividing by W gives every flow the same increase per round trip (CMS-122). Where hosts
// take longer than the network, eta is added once per loop.
void apply_increase(NsccState& s, const NsccConstants& c, Time now) {
  const bool slow_hosts = has_slow_hosts(s);
  const double gain = loop_gain(s, c);
  const double period_us = c.adjust_period_us() * (slow_hosts ? gain : 1);
  const bool period_over = to_us(now - s.last_adjust_time) >= period_us;
  if (!period_over && static_cast<double>(s.received_bytes) <= c.adjust_bytes()) return;
  double increase_bytes = s.inc_bytes2 / s.cwnd_bytes;
  if (period_over) {
    increase_bytes += c.eta_bytes() * gain;
    s.last_adjust_time = now;
  }
  const double arrived_bytes = static_cast<double>(s.received_bytes);
  s.set_cwnd(s.cwnd_bytes + bounded_increase(s, c, increase_bytes, arrived_bytes, now));
  drop_increase(s);
}

}  // namespace

double NsccConstants::max_window(double rtt_us) const {
  const double bytes = tuning().max_window_bdp * rate_bytes_per_us * rtt_us;
  const double least_bytes = tuning().min_window_bytes;
  return std::clamp(bytes, std::max(mtu_bytes(), least_bytes),
                    std::max(window_limit_bytes(), least_bytes));
}

NsccConstants nscc_constants(const SharedParameters& shared, Duration config_base_rtt) {
  NsccConstants constants(shared);
  nscc_set_base_rtt(constants, config_base_rtt);
  return constants;
}

void nscc_set_base_rtt(NsccConstants& c, Duration config_base_rtt) {
  const Parameters& parameters = *c.parameters;
  const Tuning& tuning = parameters.tuning;
  c.rate_bytes_per_us = static_cast<double>(parameters.path_rate_bps()) / 8e6;
  c.config_base_rtt_us = to_us(std::max(config_base_rtt, Duration(1)));
  // CMS-143: pairs that measure a base RTT of their own share queues, so near ones have the target
  // of the reference RTT. The tenth that CMS-710 adds to the measured RTT is not part of it.
  const double target_rtt_us =
      parameters.base_rtt
          ? c.config_base_rtt_us
          : std::max(c.config_base_rtt_us / kConfigOfMeasured, tuning.reference_rtt_us);
  c.target_qdelay_us =
      c.tuned(tuning.target_qdelay_us, (parameters.trimming ? 0.75 : 1.0) * target_rtt_us);
  c.scaling_a = c.bdp_bytes() / (tuning.reference_rate_mbps / 8 * tuning.reference_rtt_us);
  c.alpha_bytes_per_us = c.tuned(tuning.alpha_bytes_per_us, 4 * c.scaling_a * c.scaling_b() *
                                                                c.mtu_bytes() / c.target_qdelay_us);
  c.recovery = parameters.recovery;
  c.in_order = parameters.path_count <= 1 || parameters.paths == PathPolicy::Single;
  // With trimming windows that exceed themselves do harm (CMS-152): credit cannot be exceeded.
  c.recovery_by_count = !parameters.trimming || uses_credit(parameters.algorithm);
  c.synthetic_ecn = parameters.synthetic_ecn && !parameters.trimming;
}

void RttNoise::add(Duration rtt, double close_us, Time now) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  samples_ns_[count_++] = static_cast<std::uint32_t>(std::min<std::int64_t>(rtt.count(), kMost));
  close_seen_ |= to_us(rtt) <= close_us;
  if (count_ < samples_ns_.size()) return;
  if (close_seen_) {
    std::array<double, kBatch> distances_us;
    const auto us = [&](std::size_t i) { return to_us(Duration(samples_ns_[i])); };
    for (std::size_t i = 0; i < kBatch; ++i) distances_us[i] = std::abs(us(i + 1) - us(i));
    const auto middle = distances_us.begin() + kBatch / 2;
    std::nth_element(distances_us.begin(), middle, distances_us.end());
    jitter_us_ = *middle;
    measured_ = now;
  }
  samples_ns_[0] = samples_ns_.back();
  count_ = 1;
  close_seen_ = false;
}

void RttNoise::restart() {
  count_ = 0;
  close_seen_ = false;
}

double nscc_loop_us(const NsccState& state) { return state.base_rtt_us + state.host.us(); }

void RttNoise::expire(double age_us, Time now) {
  if (to_us(now - measured_) > age_us) jitter_us_ = 0;
}

NsccState nscc_start(const NsccConstants& constants, Time now) {
  NsccState s;
  s.counts = &constants.parameters.counts();
  s.mtu_bytes = constants.mtu_bytes();
  s.base_rtt_us = constants.config_base_rtt_us;
  s.least_bytes = constants.tuning().min_window_bytes;
  s.max_bytes = constants.max_window(s.base_rtt_us);
  s.set_cwnd(initial_window_bytes(s, constants));
  s.avg_delay_time = now;
  s.last_feedback = now;
  s.last_adjust_time = now;
  s.last_dec_time = now;
  s.raise_since = now;
  return s;
}

void nscc_rebase(NsccState& state, const NsccConstants& constants, Duration smallest_rtt) {
  set_base_rtt(state, constants, std::min(to_us(smallest_rtt), constants.config_base_rtt_us));
}

void nscc_resume(NsccState& state, const NsccConstants& constants, Duration base_rtt) {
  const double limit_us = kRaiseLimitOfConfig * constants.config_base_rtt_us;
  set_base_rtt(state, constants, std::clamp(to_us(base_rtt), kLeastBaseRttUs, limit_us));
}

void nscc_on_probe_answer(NsccState& state, const NsccConstants& constants, Duration rtt) {
  lower_base_rtt(state, constants, to_us(rtt));
}

double nscc_target_qdelay_us(const NsccState& state, const NsccConstants& constants) {
  double target_us = constants.target_qdelay_us;
  if (knows_no_way(constants)) {  // CMS-724, rule 4
    const double wide_us = wide_target_us(constants);
    const double packets_us = few_packets_us(state);
    // Packets of others behind a slow link look like noise.
    if (packets_us > wide_us) return packets_us;
    target_us = std::min(target_us, wide_us);
  }
  return std::max(target_us, kTargetOfJitter * state.noise.jitter_us());
}

double nscc_quiet_us(const NsccState& state, const NsccConstants& constants) {
  if (constants.tuning().quiet_us != 0) return constants.tuning().quiet_us;
  return std::max({kQuietUs, kQuietOfBaseRtt * state.base_rtt_us, state.noise.jitter_us()});
}

double nscc_qa_threshold_us(const NsccState& state, const NsccConstants& constants) {
  if (constants.parameters->trimming) return std::numeric_limits<double>::infinity();
  if (constants.tuning().qa_threshold_us != 0) return constants.tuning().qa_threshold_us;
  return kQaThresholdFactor * nscc_target_qdelay_us(state, constants);
}

namespace {

// Reports of packets older than the last quick adapt.
void note_ignored(NsccState& s, std::uint64_t bytes) {
  if (s.bytes_ignored < s.bytes_to_ignore) s.counts->bytes_ignored += bytes;
}

NsccReaction take_ack(NsccState& s, const NsccConstants& c, const AckFeedback& feedback, Time now) {
  s.last_feedback = now;
  const std::uint64_t bytes = feedback.newly_received_bytes;
  s.inflight_bytes -= static_cast<std::int64_t>(bytes);
  note_ignored(s, bytes);
  s.bytes_ignored += static_cast<std::int64_t>(bytes);
  s.received_bytes += bytes;
  s.achieved_bytes += bytes;
  s.silent_since_rto = false;
  s.before_collapse_bytes = 0;
  s.ecn_seen |= feedback.ce;
  const bool limited = s.apply_destination_flow_control(feedback);
  add_host_delay(s, c, feedback, now);
  if (!feedback.rtt || *feedback.rtt <= Duration::zero()) return NsccReaction::NoSample;

  const double rtt_us = to_us(*feedback.rtt);
  lower_base_rtt(s, c, rtt_us);
  raise_base_rtt(s, c, rtt_us, feedback.ce, now);
  if (feedback.ce) {
    s.noise.restart();
  } else if (load_bytes(s) <= kLightLoadOfBdp * c.bdp_bytes()) {
    s.noise.add(*feedback.rtt, s.base_rtt_us + kCloseOfTarget * c.target_qdelay_us, now);
  }
  s.noise.expire(kNoiseAgeRtts * s.base_rtt_us, now);
  const double delay_us = std::max(0.0, rtt_us - s.base_rtt_us);
  average_delay(s, c, delay_us, now);

  note_delay(s, c, delay_us, now);
  const bool synthetic = c.synthetic_ecn && !s.ecn_seen && queue_lasts(s, now);
  const bool ce = feedback.ce || synthetic;
  const QuickAdapt adapted = quick_adapt(s, c, false, ce, delay_us, now);
  if (adapted == QuickAdapt::Fired) return NsccReaction::QuickAdapt;
  if (adapted == QuickAdapt::Ignored) return NsccReaction::Ignored;
  const NsccReaction reaction = react(s, c, static_cast<double>(bytes), ce, delay_us, limited, now);
  apply_increase(s, c, now);
  return reaction;
}

std::uint64_t& counter_of(NsccReaction reaction, Counters& counters) {
  switch (reaction) {
    case NsccReaction::Fair:
      return counters.acks_fair;
    case NsccReaction::Rise:
      return counters.acks_rise;
    case NsccReaction::FastIncrease:
      return counters.acks_fast_increase;
    case NsccReaction::Limited:
      return counters.acks_limited;
    case NsccReaction::Cut:
      return counters.acks_cut;
    case NsccReaction::Hold:
      return counters.acks_hold;
    case NsccReaction::QuickAdapt:
      return counters.acks_quick_adapt;
    case NsccReaction::Ignored:
      return counters.acks_ignored;
    case NsccReaction::NoSample:
      break;
  }
  return counters.acks_without_sample;
}

}  // namespace

NsccReaction nscc_on_ack(NsccState& s, const NsccConstants& c, const AckFeedback& feedback,
                         Time now) {
  const NsccReaction reaction = take_ack(s, c, feedback, now);
  ++counter_of(reaction, *s.counts);
  ++(reaction == NsccReaction::NoSample ? s.counts->rtt_invalid : s.counts->rtt_samples);
  s.counts->marks_received += feedback.ce ? 1 : 0;
  s.counts->pend_received += feedback.rcv_cwnd_pend > 0 ? 1 : 0;
  s.counts->restores_received += feedback.restore_cwnd ? 1 : 0;
  return reaction;
}

void nscc_on_trim(NsccState& s, const NsccConstants& c, std::uint32_t bytes,
                  std::optional<Duration> rtt, Time now) {
  s.inflight_bytes -= bytes;
  if (rtt && *rtt > Duration::zero()) lower_base_rtt(s, c, to_us(*rtt));
  restart_raise(s, now);
  s.last_trim = now;
  s.last_feedback = now;
  s.last_loss = now;
  average_delay(s, c, c.config_base_rtt_us, now);  // a trim proves at least a full queue
  note_ignored(s, bytes);
  s.bytes_ignored += bytes;
  s.trigger_qa = true;
  if (quick_adapt(s, c, true, true, 0, now) == QuickAdapt::No) s.set_cwnd(s.cwnd_bytes - bytes);
}

void nscc_on_inferred_loss(NsccState& s, std::uint32_t bytes, LossCause cause, Time now) {
  if (to_us(now - s.last_congestion) > nscc_loop_us(s)) {
    remember_congestion(s, s.cwnd_bytes / 2, now);
  }
  s.last_feedback = now;
  s.last_loss = now;
  s.set_cwnd(s.cwnd_bytes - bytes);
  note_ignored(s, bytes);
  s.bytes_ignored += bytes;
  s.inflight_bytes -= bytes;
  restart_raise(s, now);
  const bool rto = cause == LossCause::Rto || cause == LossCause::RepeatedRto;
  count_loss(*s.counts, cause);
  if (cause == LossCause::RepeatedRto && s.silent_since_rto) {
    if (s.before_collapse_bytes == 0) s.before_collapse_bytes = s.cwnd_bytes;
    s.set_cwnd(s.mtu_bytes);
  }
  if (rto) s.silent_since_rto = true;
}

void nscc_on_spurious_loss(NsccState& s, std::uint32_t bytes) {
  ++s.counts->losses_spurious;
  s.inflight_bytes += bytes;
  s.set_cwnd(std::max(s.cwnd_bytes, s.before_collapse_bytes) + bytes);
  s.before_collapse_bytes = 0;
}

void nscc_on_sent(NsccState& s, const NsccConstants& c, std::uint32_t bytes, Time now) {
  if (s.inflight_bytes <= 0) {
    restart_raise(s, now);  // CMS-142 asks for continuous sending
    begin_after_pause(s, c, now);
  }
  s.inflight_bytes += bytes;
  s.peak_bytes = std::max(s.peak_bytes, s.inflight_bytes);
}

std::optional<Duration> BaseRttMeasurement::add(Duration rtt) {
  if (done()) return std::nullopt;
  smallest_ = std::min(smallest_, rtt);
  ++count_;
  if (!done()) return std::nullopt;
  return config_base_rtt(smallest_);
}

Duration BaseRttMeasurement::config_base_rtt(Duration smallest) {
  smallest = std::min(smallest, kHighest);  // so that the product cannot overflow
  const Duration config(std::llround(kConfigOfMeasured * static_cast<double>(smallest.count())));
  return std::clamp(config, kLowest, kHighest);
}

Nscc::Nscc(const SharedParameters& parameters, Time now, std::optional<Duration> base_rtt)
    : constants_(nscc_constants(
          parameters,
          parameters->base_rtt.value_or(base_rtt ? BaseRttMeasurement::config_base_rtt(*base_rtt)
                                                 : parameters->default_base_rtt))),
      state_(nscc_start(constants_, now)),
      measuring_(!parameters->base_rtt && !base_rtt) {
  if (base_rtt) nscc_resume(state_, constants_, *base_rtt);
}

std::unique_ptr<Ccc> make_nscc(const NewContext& context) {
  return std::make_unique<Nscc>(context.parameters, context.now, context.base_rtt);
}

bool Nscc::may_send(std::uint32_t bytes) const { return state_.may_send(bytes); }

void Nscc::on_sent(std::uint32_t bytes, Time now) { nscc_on_sent(state_, constants_, bytes, now); }

bool Nscc::on_ack(const AckFeedback& feedback, Time now) {
  AckFeedback seen = feedback;
  const bool sampled = feedback.rtt && *feedback.rtt > Duration::zero();
  rtt_known_ |= sampled;
  if (measuring_ && sampled && !measure(*feedback.rtt)) {
    seen.rtt.reset();   // without a base there is no delay to judge ...
    seen.loop.reset();  // ... and a queue on the way is no time in hosts
  }
  const double base_rtt_us = state_.base_rtt_us;
  nscc_on_ack(state_, constants_, seen, now);
  const bool raised = state_.base_rtt_us > base_rtt_us;
  follow_base_rtt();
  return raised;
}

// The first measurement may include a queue, so a shorter base RTT replaces it. But the shortest
// sample lacks the delay that software adds to packets that leave together: targets shorter than
// the usual RTT are kept only if the first samples said so. A configured base RTT stays (CMS-102).
void Nscc::follow_base_rtt() {
  if (constants_.parameters->base_rtt || measuring_ || !rtt_known_) return;
  const Duration base(std::llround(state_.base_rtt_us * 1000));
  const Duration config =
      std::max(BaseRttMeasurement::config_base_rtt(base), constants_.parameters->default_base_rtt);
  if (to_us(config) >= constants_.config_base_rtt_us) return;
  nscc_set_base_rtt(constants_, config);
  nscc_rebase(state_, constants_, base);
}

bool Nscc::measure(Duration rtt) {
  const std::optional<Duration> measured = measurement_.add(rtt);
  if (!measured) return false;
  nscc_set_base_rtt(constants_, *measured);
  nscc_rebase(state_, constants_, measurement_.smallest());
  measuring_ = false;
  return true;
}

void Nscc::on_probe_answer(Duration rtt) {
  if (rtt <= Duration::zero()) return;
  rtt_known_ = true;
  if (measuring_) {
    measure(rtt);
  } else {
    nscc_on_probe_answer(state_, constants_, rtt);
    follow_base_rtt();
  }
}

std::optional<Duration> Nscc::base_rtt() const {
  if (measuring_ || !rtt_known_) return std::nullopt;
  return Duration(std::llround(state_.base_rtt_us * 1000));
}

// More bytes above a gap than paths of different length explain, and a longer silence than a queue
// of the target delay does.
std::optional<RecoveryRules> recovery_rules(const NsccConstants& constants, const Window& state,
                                            const RecoveryTimes& times) {
  if (!constants.recovery) return std::nullopt;
  const auto us = [](double count) { return Duration(std::llround(count * 1000)); };
  const Tuning& tuning = constants.tuning();
  const double window = std::min(tuning.recovery_windows * state.cwnd_bytes, state.max_bytes);
  const double least = tuning.recovery_packets * state.mtu_bytes;
  // A queue that trims has its losses reported by NACKs. Where it is so full that it loses what it
  // trimmed, too, only time-outs that double calm it.
  const Time not_before =
      times.last_trim == Time{} ? Time{} : times.last_trim + us(kCalmRtts * times.loop_us);
  // The order of a single path proves what a count would only suggest (CMS-153).
  const std::uint64_t bytes = constants.in_order
                                  ? std::numeric_limits<std::uint64_t>::max()
                                  : static_cast<std::uint64_t>(std::max(window, least));
  return RecoveryRules{.bytes = bytes,
                       .silence = us(tuning.recovery_silence_rtts * times.loop_us),
                       .silence_at_end = us(times.loop_us + times.target_us),
                       .retry = us(tuning.recovery_retry_rtts * times.loop_us),
                       .not_before = not_before,
                       .only_probe_at_end = !constants.recovery_by_count,
                       .unqueued_rtt = us(times.base_us + times.target_us),
                       .in_order = constants.in_order};
}

std::optional<RecoveryRules> Nscc::recovery() const {
  return recovery_rules(constants_, state_,
                        {.base_us = state_.base_rtt_us,
                         .loop_us = nscc_loop_us(state_),
                         .target_us = nscc_target_qdelay_us(state_, constants_),
                         .last_trim = state_.last_trim});
}

void Nscc::on_nack(wire::NackCode code, std::uint32_t bytes, bool ce, std::optional<Duration> rtt,
                   Time now) {
  state_.ecn_seen |= ce;
  state_.counts->marks_received += ce ? 1 : 0;
  state_.counts->trims_in_fabric += code == wire::NackCode::Trimmed ? 1 : 0;
  state_.counts->trims_at_last_hop += code == wire::NackCode::TrimmedLastHop ? 1 : 0;
  if (code == wire::NackCode::Trimmed || code == wire::NackCode::TrimmedLastHop) {
    nscc_on_trim(state_, constants_, bytes, rtt, now);
  } else {
    state_.inflight_bytes -= bytes;  // CMS-131: not a congestion signal
  }
}

void Nscc::on_inferred_loss(std::uint32_t bytes, LossCause cause, Time now) {
  nscc_on_inferred_loss(state_, bytes, cause, now);
}

void Nscc::on_spurious_loss(std::uint32_t bytes) { nscc_on_spurious_loss(state_, bytes); }

void Nscc::forget(std::int64_t bytes) { state_.inflight_bytes -= bytes; }

bool Nscc::wants_ack(std::uint32_t bytes, std::uint32_t unasked_packets) const {
  return state_.wants_ack(bytes, unasked_packets, constants_.parameters->ack_gen_trigger_bytes);
}

std::uint64_t Nscc::window_bytes() const { return static_cast<std::uint64_t>(state_.cwnd_bytes); }

std::uint64_t Nscc::largest_window_bytes() const {
  return static_cast<std::uint64_t>(state_.max_bytes);
}

std::int64_t Nscc::inflight_bytes() const { return state_.inflight_bytes; }

Counters Nscc::holdings() const {
  Counters counters;
  counters.contexts = 1;
  counters.window_bytes = window_bytes();
  counters.inflight_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, inflight_bytes()));
  counters.base_rtt_ns = static_cast<std::uint64_t>(state_.base_rtt_us * 1000);
  counters.avg_delay_ns = static_cast<std::uint64_t>(state_.avg_delay_us * 1000);
  return counters;
}

}  // namespace uet::cms
