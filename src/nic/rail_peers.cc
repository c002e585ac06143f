// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/rail_peers.h"

#include <algorithm>
#include <utility>

namespace uet::nic {

RailPeers::Peer* RailPeers::find(const FepAddress& first) {
  const auto found = peers_.find(first);
  return found != peers_.end() ? &found->second : nullptr;
}

RailPeers::Peer& RailPeers::get(const FepAddress& first) {
  const auto [found, added] = peers_.try_emplace(first);
  Peer& peer = found->second;
  if (added) {
    peer.first = first;
    peer.ways[0] = {.ip = first.ip, .state = State::Up};
  }
  return peer;
}

// ---- silence ------------------------------------------------------------------------------------

void RailPeers::list(Peer& peer, std::size_t rail) {
  Way& way = peer.ways[rail];
  next_look_ = std::min(next_look_, due(way));
  if (!std::exchange(way.listed, true)) {
    unanswered_.push_back({&peer, static_cast<std::uint8_t>(rail)});
  }
}

void RailPeers::note_departure(Peer& peer, std::size_t rail, bool data, Time now) {
  Way& way = peer.ways[rail];
  if (way.unanswered == Time{}) way.unanswered = now;
  if (!data || way.expects || way.state != State::Up) return;
  way.expects = true;
  list(peer, rail);
}

void RailPeers::note_arrival(Peer& peer, std::size_t rail, Time now) {
  peer.last_arrival = now;
  for (std::size_t other = 0; other < rails_; ++other) {
    Way& way = peer.ways[other];
    if (other == rail) {
      way.unanswered = way.asked = way.heard = Time{};
      way.expects = false;
      way.next_hello = std::min(way.next_hello, now + kFirstPause);
    } else if (way.unanswered != Time{} && way.state == State::Up) {
      list(peer, other);
    }
  }
}

// Other packets may have left the peer before the Hello came there, and prove nothing.
void RailPeers::note_answer(Peer& peer, std::size_t rail, Time now) {
  note_arrival(peer, rail, now);
  for (std::size_t other = 0; other < rails_; ++other) {
    Way& way = peer.ways[other];
    if (way.state != State::Up || way.asked == Time{} || way.heard != Time{}) continue;
    way.heard = now;
    list(peer, other);
  }
}

// When answers() may show more. A peer that is not heard at all computes, or is gone.
Time RailPeers::due(const Way& way) {
  if (way.asked == Time{}) return way.unanswered + kSilence;
  return way.heard == Time{} ? kNever : std::max(way.asked + kAnswer, way.heard + kSilence);
}

// Is the way, which is Up, better than silent? If not, it is Silent from now on.
bool RailPeers::answers(Peer& peer, std::size_t rail, Time now) {
  Way& way = peer.ways[rail];
  if (!waits(peer, way) || now < due(way)) return true;
  if (way.asked == Time{}) {
    way.asked = now;
    hello_(peer, rail);
    if (const auto other = other_rail(peer, rail)) hello_(peer, *other);
    return true;
  }
  leave(peer, rail, now);
  return false;
}

void RailPeers::look_at_all(Time now) {
  next_look_ = kNever;
  std::erase_if(unanswered_, [this, now](const Listed& listed) {
    Way& way = listed.peer->ways[listed.rail];
    way.listed = way.state == State::Up && waits(*listed.peer, way) &&
                 answers(*listed.peer, listed.rail, now);
    if (way.listed) next_look_ = std::min(next_look_, due(way));
    return !way.listed;
  });
}

// ---- ways that are left -------------------------------------------------------------------------

void RailPeers::leave(Peer& peer, std::size_t rail, Time next_hello) {
  Way& way = peer.ways[rail];
  way.state = State::Silent;
  way.next_hello = next_hello;
  way.pause = kFirstPause;
  lost_.push_back({peer.first, static_cast<std::uint8_t>(rail)});
}

void RailPeers::set_carrier(std::size_t rail, bool up) {
  carrier_[rail] = up;
  if (!up) return lost_.push_back({{}, static_cast<std::uint8_t>(rail)});
  for (auto& [first, peer] : peers_) {  // they are asked with the next packet
    peer.ways[rail].next_hello = Time{};
    peer.ways[rail].pause = kFirstPause;
  }
}

void RailPeers::note_choice(Peer& peer, bool usable) {
  if (usable && peer.stranded) lost_.push_back({peer.first, kLastResort});
  peer.stranded = !usable;
}

std::optional<LostRail> RailPeers::poll_lost() {
  if (lost_.empty()) return {};
  const LostRail lost = lost_.back();
  lost_.pop_back();
  return lost;
}

bool RailPeers::may_use(Peer& peer, std::size_t rail, Time now) {
  Way& way = peer.ways[rail];
  if (way.state == State::None || !carrier_[rail]) return false;
  if (way.state == State::Up && answers(peer, rail, now)) return true;
  if (now >= way.next_hello) {
    hello_(peer, rail);
    way.next_hello = now + way.pause;
    way.pause = std::min(2 * way.pause, kLongestPause);
  }
  return false;
}

std::optional<std::size_t> RailPeers::other_rail(const Peer& peer, std::size_t than) const {
  for (std::size_t rail = 0; rail < rails_; ++rail) {
    if (rail != than && carrier_[rail] && peer.ways[rail].state == State::Up) return rail;
  }
  return {};
}

}  // namespace uet::nic
