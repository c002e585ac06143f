// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Turns of the receiver's grants, in the order of CMS 3.3.
#include "cms/credit_pacer.h"

#include <algorithm>
#include <cmath>

#include "cms/rccc.h"

namespace uet::cms {
namespace {

constexpr std::uint32_t kTurnPackets = 4;  // CMS-221
constexpr double kSilenceFactor = 4;       // CMS-226
constexpr int kLooksATurn = 8;             // at sources that may get credit unasked

std::uint32_t units_of(double bytes) {
  return (static_cast<std::uint32_t>(bytes) + kCreditUnit - 1) / kCreditUnit;
}

std::uint32_t turn_units_of(const Parameters& parameters) {
  const double tuned = parameters.tuning.grant_bytes;
  return units_of(tuned >= 1 ? tuned : kTurnPackets * parameters.mtu_bytes);
}

}  // namespace

std::uint32_t unsolicited_units(const Parameters& parameters) {
  if (parameters.algorithm == Algorithm::Sird) return 0;  // it would count as unused
  const Duration rtt = parameters.base_rtt.value_or(parameters.default_base_rtt);
  const double bdp_bytes = static_cast<double>(parameters.path_rate_bps()) / 8e6 * to_us(rtt);
  const double units = parameters.tuning.unsolicited_bdp * bdp_bytes / kCreditUnit;
  return static_cast<std::uint32_t>(std::min(units, 1e6));
}

CreditPacer::CreditPacer(const Parameters& parameters, Duration rto)
    : bytes_per_ns_(
          parameters.tuning.pacer_fraction *
          static_cast<double>(std::min(parameters.link_rate_bps, parameters.receive_rate_bps)) /
          8e9),
      turn_units_(turn_units_of(parameters)),
      zero_grant_units_(units_of(parameters.tuning.zero_grant_bytes)),
      rto_(rto),
      unsolicited_units_(unsolicited_units(parameters)),
      mtu_bytes_(parameters.mtu_bytes),
      period_(credit_period(parameters)) {
  if (parameters.algorithm != Algorithm::Sird) return;
  limits_ = sird_limits(parameters, double{kCreditUnit} * turn_units_);
}

Duration CreditPacer::spacing(std::uint32_t units) const {
  return Duration(std::llround(units * double{kCreditUnit} / (bytes_per_ns_ * rate_factor_)));
}

bool CreditPacer::on_target(CreditSource& source, std::uint32_t target, Time now) {
  source.last_heard = now;
  if (credit_ahead(target, source.target_units) == 0) return false;
  source.target_units = target & kCreditMask;
  const bool active = source.linked() && !source.idle;
  if (active || credit_ahead(source.target_units, source.granted_units) == 0) return true;
  remove(source);
  if (active_.empty()) next_turn_ = std::max(next_turn_, now);
  blocked_until_.reset();
  active_.push_back(source);
  return true;
}

void CreditPacer::on_arrival(CreditSource& source, const CreditArrival& arrival, Time now) {
  source.unseen_bytes -= std::min<std::uint64_t>(arrival.bytes, source.unseen_bytes);
  // A trimmed packet has used up its credit. Its size is not known.
  const std::uint32_t bytes = arrival.trimmed ? mtu_bytes_ : arrival.bytes;
  source.outstanding.enter(period(now));
  source.outstanding.arrive(bytes);
  if (!limits_) return;
  SirdSource& sird = source.sird;
  outstanding_.enter(period(now));
  outstanding_.arrive(bytes);
  const bool could_ask = credit_ahead(source.target_units, source.granted_units) > 0;
  const bool asks = credit_ahead(arrival.target, source.granted_units) > 0;
  sird.by_sender.on_arrival(bytes, could_ask && !asks, *limits_);
  sird.by_network.on_arrival(bytes, arrival.ce, *limits_);
  blocked_until_.reset();
}

void CreditPacer::remove(CreditSource& source) {
  if (source.linked()) (source.idle ? idle_ : active_).remove(source);
  source.idle = false;
}

// CMS-226: the granted bytes are long overdue. A source that has been granted nothing since it was
// last heard may be silent: among many sources its turn comes late.
bool CreditPacer::silent(const CreditSource& source, Time now) const {
  if (source.first_granted <= source.last_heard) return false;
  const double due_ns = kSilenceFactor * static_cast<double>(source.unseen_bytes) / bytes_per_ns_;
  return now - source.first_granted > Duration(std::llround(due_ns)) + 2 * rto_;
}

void CreditPacer::grant_units(CreditSource& source, std::uint32_t units, Time now) {
  source.granted_units = (source.granted_units + units) & kCreditMask;
  last_grant_bytes_ = std::uint64_t{units} * kCreditUnit;
  source.unseen_bytes += last_grant_bytes_;
  if (source.first_granted <= source.last_heard) source.first_granted = now;
  source.outstanding.enter(period(now));
  source.outstanding.grant(last_grant_bytes_);
  if (limits_) outstanding_.grant(last_grant_bytes_);
  take_time(units, now);
}

// Within the bound of all sources and the bucket of this one (sird.h). Always without SIRD.
bool CreditPacer::may_have(CreditSource& source, std::uint32_t units, Time now) {
  if (!limits_) return true;
  const double bytes = units * double{kCreditUnit};
  outstanding_.enter(period(now));
  source.outstanding.enter(period(now));
  return outstanding_.bytes() + bytes <= limits_->all &&
         source.outstanding.bytes() + bytes <= source.sird.bucket_bytes(*limits_);
}

// A source that waits for its turn does not wait longer because of it.
void CreditPacer::on_zero_grant(Time now) {
  if (active_.empty()) take_time(zero_grant_units_, now);
}

// CMS-227: a late pass makes up for one turn, not for all the time it missed.
void CreditPacer::take_time(std::uint32_t units, Time now) {
  next_turn_ = std::max(next_turn_, now - spacing(turn_units_)) + spacing(units);
}

// It has all it has asked for.
void CreditPacer::rest(CreditSource& source) {
  if (unsolicited_units_ == 0) return;
  source.idle = true;
  idle_.push_back(source);
}

CreditSource* CreditPacer::grant(Time now) {
  if (blocked_until_ && now < *blocked_until_) return nullptr;
  blocked_until_.reset();
  const CreditSource* refused = nullptr;  // the first
  while (!active_.empty() && now >= next_turn_) {
    if (&active_.front() == refused) {  // and all others since
      blocked_until_ = Time{} + (period(now) + 1) * period_;
      return nullptr;
    }
    CreditSource& source = active_.pop_front();
    if (silent(source, now)) {
      source.target_units = source.granted_units;
      continue;
    }
    const std::uint32_t demand = credit_ahead(source.target_units, source.granted_units);
    const std::uint32_t units = std::min(demand, turn_units_);
    if (!may_have(source, units, now)) {
      if (refused == nullptr) refused = &source;
      active_.push_back(source);
      continue;
    }
    grant_units(source, units, now);
    if (units < demand) {
      active_.push_back(source);
    } else {
      rest(source);
    }
    return &source;
  }
  return grant_unasked(now);
}

// CMS-223: a source that starts again then has credit at once. A source whose window limits its
// target may have much to send, and more credit would fill the queues between. Therefore credit
// that it has asked for must be used up first.
bool CreditPacer::has_used(CreditSource& source, std::uint32_t beyond, Time now) const {
  source.outstanding.enter(period(now));
  return source.outstanding.bytes() <= (beyond + turn_units_) * double{kCreditUnit};
}

CreditSource* CreditPacer::grant_unasked(Time now) {
  const auto is_turn = [this, now] {
    return active_.empty() && !idle_.empty() && now >= next_turn_;
  };
  for (int looks = 0; looks < kLooksATurn && is_turn(); ++looks) {
    CreditSource& source = idle_.pop_front();
    source.idle = false;
    const std::uint32_t beyond = credit_ahead(source.granted_units, source.target_units);
    if (beyond >= unsolicited_units_) continue;  // it has had its share
    rest(source);
    if (!has_used(source, beyond, now)) continue;
    grant_units(source, std::min(turn_units_, unsolicited_units_ - beyond), now);
    return &source;
  }
  if (is_turn()) take_time(turn_units_, now);
  return nullptr;
}

}  // namespace uet::cms
