// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes congestion control contexts, and the one that needs no file of its own: a fixed window for
// peers without a network in between (CMS-722). Only the destination can shrink it (CMS 4.1).
#include "cms/ccc.h"

#include <algorithm>

#include "cms/window_ccc.h"

namespace uet::cms {
namespace {

class FixedWindow final : public WindowCcc {
 public:
  explicit FixedWindow(const SharedParameters& parameters)
      : WindowCcc(parameters, static_cast<double>(parameters->fixed_window_bytes)) {}

  bool on_ack(const AckFeedback& feedback, Time) override {
    if (take_report(feedback)) return false;
    // The ACKs with the restore bit may all be lost: one MTU per window leads back without them.
    const auto bytes = static_cast<double>(feedback.newly_received_bytes);
    window_.set_cwnd(window_.cwnd_bytes + window_.mtu_bytes * bytes / window_.cwnd_bytes);
    return false;
  }
  std::uint64_t largest_window_bytes() const override { return window_bytes(); }
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

std::unique_ptr<Ccc> make_fixed_window(const NewContext& context) {
  return std::make_unique<FixedWindow>(context.parameters);
}

std::unique_ptr<Ccc> make_ccc(const SharedParameters& parameters, Time now,
                              std::optional<std::uint8_t> ccc_id,
                              std::optional<Duration> base_rtt) {
  const NewContext context{parameters, now, ccc_id, base_rtt};
  const AlgorithmRow& row = row_of(parameters->algorithm);
  return row.credit != Credit::No && !ccc_id ? make_nscc(context) : row.make(context);
}

}  // namespace uet::cms
