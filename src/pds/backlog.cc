// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the backlog of a PDC announces to the receiver's credit.
#include "pds/backlog.h"

#include <algorithm>
#include <bit>

#include "pds/credits.h"

namespace uet::pds {

// The nominal size of what a message will send is estimated with full packets, at least one. Rather
// too much: a message that asks for too little ends with one packet per round trip.
void Backlog::push(PdcCore& core, Message& message, Time now) {
  message.pdc = core.id();
  if (cms::Rccc* credit = core.ccc().credit; credit != nullptr) {
    const std::uint64_t mtu = core.env().cms.mtu_bytes;
    constexpr std::uint64_t kHeaders = 128;  // about the largest, IP's included
    const std::uint64_t payload =
        std::min(std::bit_floor(mtu), std::max(mtu, 2 * kHeaders) - kHeaders);
    const std::uint64_t packets = message.backlog_bytes / payload + 1;
    message.backlog_bytes += packets * (mtu - payload);
    message.backlog_bytes = std::max(message.backlog_bytes, mtu);
    credit->on_new_data(message.backlog_bytes, now);
    core.env().credits->note_demand(core.ccc());
  }
  if (message.ends_message) {
    messages_.push_front(message);
  } else {
    messages_.push_back(message);
  }
}

// A message that has packets to make announces one full packet at least.
void Backlog::sent(PdcCore& core, Message& message, std::uint32_t nominal_bytes, bool last) {
  if (core.ccc().credit == nullptr) return;
  const std::uint64_t before = message.backlog_bytes;
  const std::uint64_t sent = std::min<std::uint64_t>(nominal_bytes, before);
  const std::uint64_t least = std::min<std::uint64_t>(before, core.env().cms.mtu_bytes);
  announce(core, message, last ? 0 : std::max(before - sent, least));
}

// `bytes` of the message remain to be sent.
void Backlog::announce(PdcCore& core, Message& message, std::uint64_t bytes) {
  if (core.ccc().credit == nullptr) return;
  core.ccc().credit->on_backlog_left(message.backlog_bytes - bytes);
  message.backlog_bytes = bytes;
  core.env().credits->note_demand(core.ccc());
}

}  // namespace uet::pds
