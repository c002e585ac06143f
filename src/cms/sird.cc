// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules of SIRD in the order of the paper: limits, buckets, credit that is lost. The turns are
// those of credit_pacer.cc, the source is that of rccc.cc.
#include "cms/sird.h"

#include "cms/rccc.h"

namespace uet::cms {
namespace {

constexpr double kLargestBucketBdp = 1;
constexpr int kPeriodRtts = 8;
constexpr int kUnsolicitedPeriodRtts = 1;  // without SIRD (CMS-223)

Duration rtt_of(const Parameters& parameters) {
  return parameters.base_rtt.value_or(parameters.default_base_rtt);
}

double bdp_bytes(const Parameters& parameters) {
  return static_cast<double>(parameters.path_rate_bps()) / 8e6 * to_us(rtt_of(parameters));
}

}  // namespace

Duration credit_period(const Parameters& parameters) {
  const int rtts = parameters.algorithm == Algorithm::Sird ? kPeriodRtts : kUnsolicitedPeriodRtts;
  return std::max(rtts * rtt_of(parameters), Duration(1));
}

SirdLimits sird_limits(const Parameters& parameters, double turn_bytes) {
  const double bdp = bdp_bytes(parameters);
  SirdLimits limits;
  limits.least = turn_bytes;
  limits.largest = std::max(kLargestBucketBdp * bdp, turn_bytes);
  limits.all = std::max(parameters.tuning.sird_credit_bdp * bdp, turn_bytes);
  limits.step = std::max<std::uint32_t>(parameters.mtu_bytes, 1);
  return limits;
}

std::int64_t sird_enough_bytes(const Parameters& parameters) {
  const double enough = parameters.tuning.sird_enough_bdp * bdp_bytes(parameters);
  return static_cast<std::int64_t>(std::max(enough, 1.0));
}

std::unique_ptr<Ccc> make_sird(const NewContext& context) { return make_rccc(context); }

void SirdBucket::on_arrival(std::uint64_t bytes, bool marked, const SirdLimits& limits) {
  if (!began_) bytes_ = limits.largest;
  began_ = true;
  arrived_bytes_ += bytes;
  marked_bytes_ += marked ? bytes : 0;
  if (static_cast<double>(arrived_bytes_) < bytes_) return;
  const double part = static_cast<double>(marked_bytes_) / static_cast<double>(arrived_bytes_);
  marked_part_ += kGain * (part - marked_part_);
  const double next = part > 0 ? bytes_ * (1 - marked_part_ / 2) : bytes_ + limits.step;
  bytes_ = std::clamp(next, limits.least, limits.largest);
  arrived_bytes_ = marked_bytes_ = 0;
}

void OutstandingCredit::enter(std::int64_t period) {
  if (period == period_) return;
  in_last_period_ = period == period_ + 1 ? in_period_ : 0;
  in_period_ = 0;
  period_ = period;
  bytes_ = std::min(bytes_, in_last_period_);
}

}  // namespace uet::cms
