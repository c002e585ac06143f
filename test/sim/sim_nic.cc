// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sim/sim_nic.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/sim_link.h"

namespace uet::sim {
namespace {

void append(std::vector<std::byte>& to, const std::byte* data, std::size_t length) {
  to.insert(to.end(), data, data + length);
}

}  // namespace

std::size_t SimNic::rx_burst(std::span<RxPacket> out, Time) {
  lent_.clear();
  const std::size_t count = std::min(out.size(), received_.size());
  for (std::size_t i = 0; i < count; ++i) {
    lent_.push_back(std::move(received_.front()));
    received_.pop_front();
    const SimPacket& packet = lent_.back();
    out[i] = RxPacket{.bytes = packet.bytes,
                      .source = packet.source,
                      .entropy = packet.entropy,
                      .ecn = packet.ecn,
                      .dscp = packet.dscp,
                      .trimmed = packet.trimmed};
  }
  return count;
}

std::optional<LostRail> SimNic::poll_lost_rail() {
  if (lost_.empty()) return {};
  const LostRail lost = lost_.back();
  lost_.pop_back();
  return lost;
}

void SimNic::cut(std::uint8_t rail, bool down) {
  cut_ = down ? cut_ | 1U << rail : cut_ & ~(1U << rail);
}

void SimNic::lose(const LostRail& lost) {
  left(lost) |= 1U << lost.rail;
  lost_.push_back(lost);
}

void SimNic::regain(const LostRail& lost) { left(lost) &= ~(1U << lost.rail); }

// As RailsNic: a value keeps its rail, and values of rails that were left share the others.
std::uint8_t SimNic::rail_for(const Packet& packet) const {
  const auto own = static_cast<std::uint8_t>(packet.entropy % config_.rails);
  const auto of_peer = left_of_.find(packet.to);
  const Rails left = left_ | (of_peer == left_of_.end() ? 0 : of_peer->second);
  const Rails all = (1U << config_.rails) - 1;
  if ((left >> own & 1U) == 0 || (left & all) == all) return own;
  auto number = packet.entropy / config_.rails % static_cast<unsigned>(std::popcount(all & ~left));
  std::uint8_t rail = 0;
  for (;; ++rail) {
    if ((left >> rail & 1U) == 0 && number-- == 0) return rail;
  }
}

std::size_t SimNic::tx_burst(std::span<const Packet* const> in) {
  while (!leaving_.empty() && leaving_.front() <= now_) leaving_.pop_front();
  refused_ = false;
  const auto data =
      std::find_if_not(in.begin(), in.end(), [](auto* each) { return each->control; });
  control_behind_data_ |= std::any_of(data, in.end(), [](auto* each) { return each->control; });
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (leaving_.size() >= config_.tx_queue) {
      refused_ = true;
      tx_refused_ += in.size() - i;
      return i;
    }
    const Packet& from = *in[i];
    from.rail = rail_for(from);
    SimPacket packet{.bytes = {},
                     .source = config_.address,
                     .destination = from.to,
                     .entropy = from.entropy,
                     .ecn = from.ecn,
                     .dscp = from.dscp,
                     .rail = from.rail,
                     .plain = plain_};
    packet.bytes.reserve(from.length());
    append(packet.bytes, from.head().data(), from.head().size());
    for (const Slice& slice : from.payload) append(packet.bytes, slice.data, slice.length);
    const auto wire_bytes = static_cast<std::uint32_t>(packet.bytes.size()) + kIpUdpBytes;
    if (wire_bytes > config_.caps.ip_mtu) ++oversized_;
    free_at_ = std::max(free_at_, now_) + serialization_time(wire_bytes, config_.rate_bps);
    leaving_.push_back(free_at_);
    wire_(std::move(packet), free_at_);
  }
  return in.size();
}

void SimNic::receive(SimPacket&& packet) {
  if (received_.size() >= config_.rx_queue) {
    ++rx_dropped_;
    return;
  }
  received_.push_back(std::move(packet));
}

}  // namespace uet::sim
