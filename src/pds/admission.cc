// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The limits of what peers may take, and who goes first.
#include "pds/admission.h"

#include <algorithm>
#include <utility>

#include "base/longest_wait.h"

namespace uet::pds {

namespace {

// A SYN that finds no PDC has an idle one closed, but no more often than this.
constexpr Duration kSynInterval = std::chrono::milliseconds(1);
// In a shortage the PDC whose responses have waited for a CLEAR for so long ends.
constexpr Duration kClearPatience = std::chrono::seconds(30);
constexpr Duration kUnclearedInterval = std::chrono::milliseconds(100);
// A target PDC that is not proved after so long may be dropped for another one. Its initiator has
// long repeated its SYN by then if the ACK was lost.
constexpr Duration kUnprovedPatience = std::chrono::seconds(2);
// Of the table: unproved target PDCs may take half. Below a 16th a SYN has established ones closed.
constexpr std::size_t kMostUnproved = 2;
constexpr std::size_t kKeptForUnproved = 16;
// Above an eighth each one is asked for its proof. Above a quarter they are taken at an even pace,
// so that space is free again and again: a flood would otherwise fill the table at once, for long.
constexpr std::size_t kUnprovedUnasked = 8;
constexpr std::size_t kUnprovedUnpaced = 4;
constexpr std::size_t kLeastUnpaced = 16;
constexpr Duration kLongestPace = std::chrono::milliseconds(10);

}  // namespace

Admission::Admission(Environment& environment, PdcTable& pdcs)
    : env_(environment),
      pdcs_(pdcs),
      open_(environment.parameters.pdc_count, environment.parameters.reserved_target_pdcs,
            environment.parameters.reserved_pool_pdcs),
      bitmaps_(environment.parameters.bitmap_count, environment.parameters.reserved_target_pdcs,
               environment.parameters.reserved_pool_pdcs),
      unpaced_(std::max(kLeastUnpaced, part(kUnprovedUnpaced))) {}

Duration Admission::pace() const {
  return std::min<Duration>(kLongestPace, kUnprovedPatience / static_cast<std::int64_t>(unpaced_));
}

Admission::Share Admission::share() const {
  return {static_cast<std::uint32_t>(part(kMostUnproved)), pace()};
}

// At least one PDC.
std::size_t Admission::part(std::size_t divisor) const {
  return std::max<std::size_t>(1, env_.parameters.pdc_count / divisor);
}

std::optional<NackCode> Admission::refusal(Use use) const {
  if (!open_.available(use)) return NackCode::NoPdcAvail;
  if (!bitmaps_.available(use)) return NackCode::NoBitmap;
  return std::nullopt;
}

void Admission::enter(Use use) {
  open_.take(use);
  bitmaps_.take(use);
}

void Admission::leave(const Pdc& pdc) {
  open_.give_back(pdc.use());
  bitmaps_.give_back(pdc.use());
  unproved_.remove(pdcs_.slot_of(pdc));
}

// ---- target PDCs that are not proved -----------------------------------------------------------

bool Admission::is_full_of_unproved() const { return env_.unproved >= part(kMostUnproved); }

void Admission::enter_unproved(Pdc& pdc, bool paced, Time now) {
  if (paced) next_unproved_ = now + pace();
  unproved_.push_back(pdcs_.slot_of(pdc));
  if (env_.unproved > part(kUnprovedUnasked)) pdc.ask_for_proof();
}

Pdc* Admission::droppable_unproved(Time now) {
  while (!unproved_.empty()) {
    const std::size_t slot = unproved_.front();
    Pdc& oldest = pdcs_.in_slot(slot);
    if (oldest.proved() || oldest.finished()) {
      unproved_.remove(slot);
      continue;
    }
    if (has_had_time(oldest, now)) return &oldest;
    oldest.ask_for_proof();
    return nullptr;
  }
  return nullptr;
}

bool Admission::has_had_time(const Pdc& pdc, Time now) {
  return now - pdc.opened() >= kUnprovedPatience;
}

// ---- shortage ----------------------------------------------------------------------------------

void Admission::close_idle(Time now) {
  Pdc* oldest = nullptr;
  pdcs_.for_each([&](Pdc& pdc) {
    if (!pdc.takes_messages() || !pdc.yields() || !pdc.proved()) return;
    const auto rank = [](const Pdc& at) { return std::pair{!at.idle(), at.last_activity()}; };
    if (oldest == nullptr || rank(pdc) < rank(*oldest)) oldest = &pdc;
  });
  if (oldest != nullptr && (oldest->idle() || may_close_watched(now)))
    oldest->close_for_shortage(now);
}

bool Admission::may_close_for_syn(Time now) {
  if (now < next_for_syn_) return false;
  next_for_syn_ = now + kSynInterval;
  std::size_t coming = env_.unproved;
  pdcs_.for_each([&](const Pdc& pdc) {
    if (!pdc.takes_messages() && pdc.role() == Role::Target) ++coming;
  });
  return coming < part(kKeptForUnproved);
}

// Watched PDCs are opened again later. No more of them close at a time than may be needed soon,
// unless closing takes long.
bool Admission::may_close_watched(Time now) {
  std::size_t closing = 0;
  pdcs_.for_each([&](const Pdc& pdc) {
    if (!pdc.takes_messages()) ++closing;
  });
  if (closing >= part(kKeptForUnproved) && now < next_watched_) return false;
  next_watched_ = now + env_.parameters.pending_timeout;
  return true;
}

void Admission::note_message_waits(Time now) {
  const Duration patience = env_.parameters.pending_timeout;
  const bool begins = short_since_ == kNever || now - short_at_ > patience;
  if (begins) short_since_ = now;
  short_at_ = now;
  if (now - short_since_ < patience) return;
  short_since_ = now;
  Pdc* oldest = nullptr;
  pdcs_.for_each([&](Pdc& pdc) {
    if (pdc.state() != PdcState::Established) return;
    if (pdc.role() == Role::Target || pdc.destination().reserved_pool) return;
    if (oldest == nullptr || pdc.opened() < oldest->opened()) oldest = &pdc;
  });
  if (oldest != nullptr) oldest->close_for_shortage(now);
}

void Admission::end_uncleared(std::uint64_t host, Time now) {
  if (now < next_uncleared_) return;
  next_uncleared_ = now + kUnclearedInterval;
  const std::size_t held = env_.stored_responses.held(host);
  LongestWait<Pdc> search(held, kClearPatience);
  pdcs_.for_each([&](Pdc& pdc) {
    if (pdc.finished()) return;
    search.consider(pdc, env_.stored_responses.held(pdc.host()),
                    pdc.receive_side().waits_for_clear(now));
  });
  if (search.found() == nullptr) return;
  search.found()->fail(PdsError::ClosedInError, now);
  ++env_.counters.pdcs_uncleared_closed;
}

}  // namespace uet::pds
