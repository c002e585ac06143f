// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets to oneself, through a bounded ring in memory.
#include <algorithm>
#include <cstring>

#include "nic/middleware.h"

namespace uet::nic {

LoopbackNic::LoopbackNic(std::unique_ptr<Nic> inner_nic)
    : Middleware(std::move(inner_nic)),
      self_(inner().local_address()),
      storage_(std::make_unique_for_overwrite<std::byte[]>(kRingPackets * kMaxDatagramBytes)) {}

std::size_t LoopbackNic::tx_burst(std::span<const Packet* const> in) {
  std::size_t done = 0;
  while (done < in.size()) {
    if (in[done]->to == self_) {
      if (!deliver(*in[done])) {
        ++own_.sends_refused;
        break;
      }
      ++done;
      continue;
    }
    std::size_t end = done + 1;
    while (end < in.size() && in[end]->to != self_) ++end;
    const std::size_t accepted = inner().tx_burst(in.subspan(done, end - done));
    done += accepted;
    if (done < end) break;
  }
  return done;
}

// False: the ring is full now.
bool LoopbackNic::deliver(const Packet& packet) {
  if (packet.length() > kMaxDatagramBytes) {
    ++own_.packets_dropped;
    return true;
  }
  if (tail_ - released_ == kRingPackets) return false;
  const std::size_t place = tail_ % kRingPackets;
  std::byte* const start = storage_.get() + place * kMaxDatagramBytes;
  std::byte* end = std::copy(packet.head().begin(), packet.head().end(), start);
  end = copy_payload(packet, end);
  RxPacket& received = ring_[place];
  received.bytes = {start, end};
  received.source = self_;
  received.entropy = packet.entropy != 0 ? packet.entropy : self_.port;
  received.ecn = packet.ecn;
  received.dscp = packet.dscp;
  received.trimmed = false;
  received.arrived = {};
  ++tail_;
  ++own_.packets_sent;
  own_.bytes_sent += received.bytes.size();
  return true;
}

std::size_t LoopbackNic::take(std::span<RxPacket> out) {
  const std::size_t count = std::min<std::size_t>(out.size(), tail_ - head_);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = ring_[head_++ % kRingPackets];
    own_.bytes_received += out[i].bytes.size();
  }
  own_.packets_received += count;
  return count;
}

std::size_t LoopbackNic::rx_burst(std::span<RxPacket> out, Time now) {
  released_ = head_;
  // Half of `out` for each side first, so that neither starves the other.
  std::size_t filled = take(out.first((out.size() + 1) / 2));
  filled += inner().rx_burst(out.subspan(filled), now);
  filled += take(out.subspan(filled));
  return filled;
}

NicCounters LoopbackNic::counters() const { return Middleware::counters() + own_; }

}  // namespace uet::nic
