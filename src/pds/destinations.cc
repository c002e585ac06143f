// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The PDCs of each destination, and where the next one begins to count.
#include "pds/destinations.h"

namespace uet::pds {

namespace {

std::size_t mix(std::size_t a, std::size_t b) {
  return (a ^ (b + 0x9E3779B97F4A7C15ULL + (a << 6) + (a >> 2)));
}

}  // namespace

std::size_t Destinations::Hash::operator()(const Destination& d) const noexcept {
  return mix(mix(FepAddressHash{}(d.address), d.job.value),
             static_cast<std::size_t>(d.mode) << 9 |
                 static_cast<std::size_t>(d.reserved_pool) << 8 | d.traffic_class);
}

// Mostly several messages in a row go to the same destination.
Outgoing& Destinations::at(const Destination& destination) {
  if (last_ == nullptr || last_->key != destination) last_ = &table_.at(destination);
  return last_->value;
}

void Destinations::append(Outgoing& outgoing, Pdc& pdc) {
  PdcId last = outgoing.first;
  while (last != PdcId{} && next(last) != PdcId{}) last = next(last);
  if (last == PdcId{}) {
    outgoing.first = pdc.id();
  } else {
    pdcs_.at(last)->set_next_there(pdc.id());
  }
}

void Destinations::remove(Outgoing& outgoing, Pdc& pdc) {
  if (outgoing.first == pdc.id()) {
    outgoing.first = pdc.next_there();
  } else {
    PdcId before = outgoing.first;
    while (next(before) != pdc.id()) before = next(before);
    pdcs_.at(before)->set_next_there(pdc.next_there());
  }
  pdc.set_next_there(PdcId{});
}

Psn Destinations::next_start_psn(Outgoing& outgoing) {
  if (parameters_.secured && outgoing.expected) return *outgoing.expected;
  constexpr std::int32_t kApart = 1 << 16;
  for (PdcId id = outgoing.first; id != PdcId{}; id = next(id)) {
    const Pdc& last = *pdcs_.at(id);  // it may have failed and not be freed yet
    if (last.finished()) outgoing.last_psn = last.close_psn();
  }
  if (parameters_.start_psn && !outgoing.last_psn) return Psn{*parameters_.start_psn};
  for (;;) {
    const Psn psn{static_cast<std::uint32_t>(secret_.next() ^ rng_.next())};
    if (psn.value < static_cast<std::uint32_t>(kApart)) continue;
    if (!outgoing.last_psn) return psn;
    const std::int32_t distance = psn - *outgoing.last_psn;
    if (distance > kApart || distance < -kApart) return psn;
  }
}

void Destinations::note_expected(const Pdc& pdc, Psn expected) {
  Table::Element* const there = table_.find(pdc.destination());
  if (there == nullptr || pdc.role() != Role::Initiator) return;
  std::optional<Psn>& newest = there->value.expected;
  if (!newest || expected > *newest) newest = expected;
}

void Destinations::leave(Pdc& pdc) {
  if (pdc.role() != Role::Initiator) return;
  if (parameters_.secured && pdc.peer_id() != PdcId{}) {
    note_expected(pdc, pdc.start_psn() + 1);
  }
  Table::Element* const there = table_.find(pdc.destination());
  if (there == nullptr) return;
  there->value.last_psn = pdc.close_psn();
  remove(there->value, pdc);
}

}  // namespace uet::pds
