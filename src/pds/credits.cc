// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who is told about a grant, and which PDC asks for one. CMS sections 3.2 and 3.3.
#include "pds/credits.h"

#include "cms/rccc.h"
#include "pds/pdc.h"

namespace uet::pds {

namespace {

// CMS-200. A lost one is repeated with the next (CMS-203).
void send_credit(Pdc& pdc, std::uint32_t credit) {
  if (pdc.send_untracked({.ctl_type = wire::CpType::Credit, .payload = credit})) {
    ++pdc.env().counters.credits_sent;
  }
}

void send_credit_request(Pdc& pdc, std::uint32_t target) {
  if (pdc.send_untracked({.ctl_type = wire::CpType::CreditRequest, .payload = target})) {
    ++pdc.env().counters.credit_requests_sent;
  }
}

}  // namespace

std::size_t Credits::KeyHash::operator()(const Key& key) const noexcept {
  return FepAddressHash{}(key.address) * 31 + key.ccc_id;
}

Credits::Credits(Environment& environment, Time now)
    : env_(environment),
      wheel_(now),
      pacer_(environment.cms, environment.parameters.rto_init),
      fabric_(environment.cms.tuning) {}

// ---- receiver -----------------------------------------------------------------------------------

void Credits::on_request(Pdc& pdc, std::uint8_t ccc_id, const cms::CreditArrival& arrival,
                         Time now) {
  CreditSender* sender = pdc.receive_side().credit_sender();
  if (sender == nullptr || sender->ccc_id != ccc_id) {
    leave(pdc);
    const Key key{pdc.destination().address, ccc_id};
    sender = &senders_[key];
    sender->address = key.address;
    sender->ccc_id = ccc_id;
    ++sender->users;
    pdc.receive_side().set_credit_sender(sender);
  }
  sender->speaker = &pdc;
  pacer_.on_target(*sender, arrival.target, now);
  pacer_.on_arrival(*sender, arrival, now);
}

void Credits::note_arrival(bool ce, bool trimmed, bool trimmed_last_hop, Time now) {
  if (!env_.cms.oversubscription_control || env_.cms.algorithm != cms::Algorithm::Rccc) return;
  if (now >= period_end_) {
    fabric_.on_period(arrivals_);
    arrivals_ = {};
    const Duration rtt = env_.cms.base_rtt.value_or(env_.cms.default_base_rtt);
    period_end_ = now + fabric_.period(rtt, env_.rng);
    set_rate();
  }
  ++arrivals_.all;
  if (trimmed) {
    ++(trimmed_last_hop ? arrivals_.trimmed_at_last_hop : arrivals_.trimmed_elsewhere);
  } else if (ce) {
    ++arrivals_.ce;
  }
}

void Credits::set_backlog(std::uint64_t bytes) {
  backlog_factor_ = cms::backlog_rate_factor(env_.cms.tuning, bytes);
  set_rate();
}

// CMS-232.
void Credits::set_rate() { pacer_.set_rate_factor(std::min(fabric_.rate(), backlog_factor_)); }

bool Credits::on_credit_request(Pdc& pdc, std::uint32_t target, Time now) {
  CreditSender* sender = pdc.receive_side().credit_sender();
  if (sender == nullptr) return false;
  sender->speaker = &pdc;
  pacer_.on_target(*sender, target, now);
  // The sender may have missed its grant, or wait behind many others. It must be able to
  // distinguish both cases from a receiver that grants nothing (CMS-241).
  send_credit(pdc, sender->granted_units);
  pacer_.on_zero_grant(now);
  return true;
}

void Credits::leave(Pdc& pdc) {
  CreditSender* sender = pdc.receive_side().credit_sender();
  if (sender == nullptr) return;
  pdc.receive_side().set_credit_sender(nullptr);
  if (sender->speaker == &pdc) {  // silent until it is heard on another one
    sender->speaker = nullptr;
    sender->target_units = sender->granted_units;
    pacer_.remove(*sender);
  }
  if (--sender->users == 0) senders_.erase(Key{sender->address, sender->ccc_id});
}

// ---- source -------------------------------------------------------------------------------------

std::uint32_t Credits::take_target(SharedCcc& shared) {
  return shared.credit->take_target(active_);
}

void Credits::note_demand(SharedCcc& shared) {
  const bool wants = shared.credit->has_data();
  if (wants == shared.wants_credit) return;
  shared.wants_credit = wants;
  active_ += wants ? 1 : std::size_t{0} - 1;
}

void Credits::await(SharedCcc& shared, Time now) {
  const Time due = shared.credit->request_due(now);
  if (due == kNever) {
    wheel_.cancel(shared);
  } else if (!shared.armed() || shared.deadline() != due) {
    shared.wheel = &wheel_;
    wheel_.move(shared, due);
  }
}

// CMS-215.
void Credits::ask(SharedCcc& shared, Time now) {
  cms::Rccc& credit = *shared.credit;
  if (shared.waiting.empty()) return;  // else it would not need credit any more
  if (credit.request_due(now) <= now) {
    Pdc* carrier = nullptr;
    for (Pdc& pdc : shared.waiting) {
      if (pdc.send_side().can_request_credit()) carrier = &pdc;
    }
    if (!credit.start_request(now)) {
      ++env_.counters.credit_fallbacks;
    } else if (carrier == nullptr) {
      bool opens = false;  // it needs no credit to be heard of
      for (Pdc& pdc : shared.waiting) opens |= pdc.send_side().open_without_data(now);
      if (!opens) credit.on_request_impossible(now);
    } else {
      send_credit_request(*carrier, take_target(shared));
    }
    for (Pdc& pdc : shared.waiting) pdc.make_ready();
  }
  await(shared, now);
}

// ---- time ---------------------------------------------------------------------------------------

bool Credits::expire(Time now) {
  bool fired = false;
  while (cms::CreditSource* source = pacer_.grant(now)) {
    env_.counters.credit_granted_bytes += pacer_.last_grant_bytes();
    const auto& sender = static_cast<CreditSender&>(*source);
    // With RCCC alone each ACK says what is granted (CMS-202).
    const bool rides =
        cms::needs_credit_alone(env_.cms.algorithm) && sender.speaker->receive_side().ack_is_due();
    if (!rides) send_credit(*sender.speaker, sender.granted_units);
    fired = true;
  }
  wheel_.expire(now, [&](TimerEntry& entry) {
    ask(static_cast<SharedCcc&>(entry), now);
    fired = true;
  });
  return fired;
}

Time Credits::next_deadline() const {
  if (wheel_.size() == 0) return pacer_.next_turn();
  return std::min(wheel_.next_deadline(), pacer_.next_turn());
}

}  // namespace uet::pds
