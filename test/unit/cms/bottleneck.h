// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A throw-away model of one congested port (CMS 2.9): N senders with endless data behind real
// congestion control contexts, one queue with ECN marking, trimming or tail drop, ACK per packet.
// It knows nothing of PDS: losses without trimming are reported after a fixed time-out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cms/ccc.h"

namespace uet::cms::test {

class Bottleneck {
 public:
  struct Config {
    Parameters parameters;  // of every sender
    double slower = 1;      // so much less than the senders believe is the rate of the port
    std::size_t flows = 1;
    bool ecn = true;
    double one_way_us = 6;
    double jitter_us = 3;  // added to each ACK, uniform; stands for spraying
    double host_us = 0;    // every ACK is taken up so much later, evenly up to twice that
    double timeout_us = 443;
    std::uint64_t seed = 1;
  };

  explicit Bottleneck(const Config& config)
      : config_(config),
        rate_(static_cast<double>(config.parameters.link_rate_bps) / 8e6 / config.slower),
        bdp_(rate_ * config.slower * 2 * config.one_way_us),
        rng_(config.seed),
        delivered_(config.flows),
        active_(config.flows, true) {
    for (std::size_t i = 0; i < config.flows; ++i) {
      contexts_.push_back(make_ccc(config.parameters, Time{}));
    }
  }

  Ccc& context(std::size_t flow) { return *contexts_[flow]; }
  double delivered(std::size_t flow) const { return delivered_[flow]; }
  double lost() const { return lost_; }
  double mean_queue_delay_us() const { return delay_sum_ / static_cast<double>(packets_); }
  double port_rate() const { return rate_; }
  void stop(std::size_t flow) { active_[flow] = false; }
  // Sets the counters to 0; contexts and queue go on.
  void reset_counters() {
    std::fill(delivered_.begin(), delivered_.end(), 0.0);
    lost_ = delay_sum_ = 0;
    packets_ = 0;
  }

  void run_until(double end_us) {
    for (std::size_t i = 0; i < contexts_.size(); ++i) send(i);
    while (!events_.empty() && events_.top().at_us <= end_us) {
      const Event event = events_.top();
      events_.pop();
      now_us_ = event.at_us;
      handle(event);
      send(event.flow);
    }
    now_us_ = end_us;
  }

  // 1 when all flows delivered the same.
  double jain() const {
    double sum = 0;
    double squares = 0;
    for (double d : delivered_) {
      sum += d;
      squares += d * d;
    }
    return sum * sum / (static_cast<double>(delivered_.size()) * squares);
  }

 private:
  enum class Kind { Ack, Trim, Timeout };
  struct Event {
    double at_us;
    std::uint64_t order;
    Kind kind;
    std::size_t flow;
    double sent_us;
    bool ecn;
    double host_us;  // of the time until at_us, in the hosts
    bool operator<(const Event& other) const {
      return std::pair(at_us, order) > std::pair(other.at_us, other.order);
    }
  };

  static Time time_of(double us) { return time_from_ns(std::llround(us * 1000)); }

  void push(double at_us, Kind kind, std::size_t flow, bool ecn, double host_us = 0) {
    events_.push({at_us + host_us, ++order_, kind, flow, now_us_, ecn, host_us});
  }

  void send(std::size_t flow) {
    const std::uint32_t size = config_.parameters.mtu_bytes;
    while (active_[flow] && contexts_[flow]->may_send(size)) {
      contexts_[flow]->on_sent(size, time_of(now_us_));
      const double arrival_us = now_us_ + config_.one_way_us;
      const double queue = std::max(0.0, free_us_ - arrival_us) * rate_;
      ++packets_;
      delay_sum_ += queue / rate_;
      if (config_.parameters.trimming ? queue > bdp_ : queue > 5 * bdp_) {
        lost_ += size;
        if (config_.parameters.trimming) {
          push(arrival_us + config_.one_way_us, Kind::Trim, flow, false);
        } else {
          push(now_us_ + config_.timeout_us, Kind::Timeout, flow, false);
        }
        continue;
      }
      free_us_ = std::max(free_us_, arrival_us) + size / rate_;
      const bool mark = config_.ecn && rng_.chance((queue / bdp_ - 0.2) / 0.6);
      const double jitter_us = static_cast<double>(rng_.below(1000)) / 1000 * config_.jitter_us;
      const double departure_us = free_us_ - size / rate_;
      const double host_us =
          config_.host_us == 0 ? 0 : static_cast<double>(rng_.below(2000)) / 1000 * config_.host_us;
      push(departure_us + config_.one_way_us + jitter_us, Kind::Ack, flow, mark, host_us);
    }
  }

  void handle(const Event& event) {
    const std::uint32_t size = config_.parameters.mtu_bytes;
    Ccc& ccc = *contexts_[event.flow];
    const Time now = time_of(event.at_us);
    switch (event.kind) {
      case Kind::Ack: {
        AckFeedback feedback;
        feedback.newly_received_bytes = size;
        feedback.ce = event.ecn;
        feedback.loop = now - time_of(event.sent_us);
        feedback.rtt = time_of(event.at_us - event.host_us) - time_of(event.sent_us);
        ccc.on_ack(feedback, now);
        delivered_[event.flow] += size;
        break;
      }
      case Kind::Trim:
        ccc.on_nack(wire::NackCode::Trimmed, size, false, std::nullopt, now);
        break;
      case Kind::Timeout:
        ccc.on_inferred_loss(size, LossCause::Rto, now);
        break;
    }
  }

  Config config_;
  double rate_;  // bytes per microsecond
  double bdp_;
  Rng rng_;
  std::vector<std::unique_ptr<Ccc>> contexts_;
  std::vector<double> delivered_;
  std::vector<bool> active_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::uint64_t packets_ = 0;
  double now_us_ = 0;
  double free_us_ = 0;
  double lost_ = 0;
  double delay_sum_ = 0;
};

}  // namespace uet::cms::test
