// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes congestion control contexts, and the one that needs no file of its own: a fixed window for
// peers without a network in between (CMS-722). Only the destination can shrink it (CMS 4.1).
#include "cms/ccc.h"

#include <algorithm>

#include "cms/nscc.h"
#include "cms/rccc.h"
#include "cms/window.h"

namespace uet::cms {
namespace {

class FixedWindow final : public Ccc {
 public:
  explicit FixedWindow(const SharedParameters& parameters) : parameters_(parameters) {
    const std::uint64_t limit =
        std::min(parameters->fixed_window_bytes, parameters->max_window_bytes);
    window_.mtu_bytes = std::max<std::uint32_t>(parameters->mtu_bytes, 1);
    window_.max_bytes = std::max(static_cast<double>(limit), window_.mtu_bytes);
    window_.cwnd_bytes = window_.max_bytes;
  }

  bool may_send(std::uint32_t bytes) const override { return window_.may_send(bytes); }
  void on_sent(std::uint32_t bytes, Time) override { window_.inflight_bytes += bytes; }

  bool on_ack(const AckFeedback& feedback, Time) override {
    const auto bytes = static_cast<std::int64_t>(feedback.newly_received_bytes);
    window_.inflight_bytes -= bytes;
    Counters& counts = parameters_.counts();
    counts.marks_received += feedback.ce ? 1 : 0;
    counts.pend_received += feedback.rcv_cwnd_pend > 0 ? 1 : 0;
    counts.restores_received += feedback.restore_cwnd ? 1 : 0;
    if (window_.apply_destination_flow_control(feedback)) return false;
    // The ACKs with the restore bit may all be lost: one MTU per window leads back without them.
    window_.set_cwnd(window_.cwnd_bytes +
                     window_.mtu_bytes * static_cast<double>(bytes) / window_.cwnd_bytes);
    return false;
  }

  void on_nack(wire::NackCode, std::uint32_t bytes, bool, std::optional<Duration>, Time) override {
    window_.inflight_bytes -= bytes;
  }
  void on_inferred_loss(std::uint32_t bytes, LossCause cause, Time) override {
    window_.inflight_bytes -= bytes;
    count_loss(parameters_.counts(), cause);
  }
  void on_spurious_loss(std::uint32_t bytes) override {
    window_.inflight_bytes += bytes;
    ++parameters_.counts().losses_spurious;
  }
  void forget(std::int64_t bytes) override { window_.inflight_bytes -= bytes; }
  bool wants_ack(std::uint32_t bytes, std::uint32_t unasked_packets) const override {
    return window_.wants_ack(bytes, unasked_packets, parameters_->ack_gen_trigger_bytes);
  }
  std::uint64_t window_bytes() const override {
    return static_cast<std::uint64_t>(window_.cwnd_bytes);
  }
  std::uint64_t largest_window_bytes() const override { return window_bytes(); }
  std::int64_t inflight_bytes() const override { return window_.inflight_bytes; }
  Counters holdings() const override {
    Counters counters;
    counters.contexts = 1;
    counters.window_bytes = window_bytes();
    counters.inflight_bytes =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, window_.inflight_bytes));
    return counters;
  }

 private:
  SharedParameters parameters_;
  Window window_;
};

}  // namespace

Parameters Parameters::for_same_host() const {
  Parameters parameters = *this;
  if (same_host) {
    parameters.algorithm = same_host->algorithm;
    parameters.fixed_window_bytes = same_host->fixed_window_bytes;
    parameters.max_window_bytes = std::max(max_window_bytes, same_host->fixed_window_bytes);
  }
  return parameters;
}

std::unique_ptr<Ccc> make_ccc(const SharedParameters& parameters, Time now,
                              std::optional<std::uint8_t> ccc_id,
                              std::optional<Duration> base_rtt) {
  if (parameters->algorithm == Algorithm::None) return std::make_unique<FixedWindow>(parameters);
  if (uses_credit(parameters->algorithm) && ccc_id) {
    return std::make_unique<Rccc>(parameters, *ccc_id, now, base_rtt);
  }
  return std::make_unique<Nscc>(parameters, now, base_rtt);
}

}  // namespace uet::cms
