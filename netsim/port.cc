// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Order, marking and trimming in front of one link.
#include "netsim/port.h"

#include <algorithm>

namespace uet::netsim {
namespace {

constexpr std::uint32_t kControlRun = 10;        // CMS-13
constexpr std::uint16_t kTrimmedPdsBytes = 16;   // what a switch keeps above UDP (CMS-500)
constexpr std::uint32_t kTrimmedWireBytes = 64;  // and what that is on a link (CMS-809)

}  // namespace

void Port::account(Picoseconds now) {
  const std::uint64_t bytes = queues_[index(TrafficClass::Data)].bytes;
  const auto span = static_cast<double>(now - accounted_);
  if (bytes > 0) {
    counters.busy_ps += span;
    counters.data_byte_ps += span * static_cast<double>(bytes);
  }
  accounted_ = now;
}

void Port::push(NetPacket* packet) {
  Queue& queue = queues_[index(packet->traffic_class)];
  packet->next = nullptr;
  (queue.last == nullptr ? queue.first : queue.last->next) = packet;
  queue.last = packet;
  ++queue.packets;
  queue.bytes += packet->wire_bytes;
  ++waiting_;
}

NetPacket* Port::pop(Queue& queue) {
  NetPacket* packet = queue.first;
  queue.first = packet->next;
  if (queue.first == nullptr) queue.last = nullptr;
  packet->next = nullptr;
  --queue.packets;
  queue.bytes -= packet->wire_bytes;
  --waiting_;
  return packet;
}

// Singly linked, since only a full queue with trimming asks for it.
NetPacket* Port::pop_last(Queue& queue) {
  if (queue.packets == 1) return pop(queue);
  NetPacket* before = queue.first;
  while (before->next != queue.last) before = before->next;
  NetPacket* packet = queue.last;
  queue.last = before;
  before->next = nullptr;
  --queue.packets;
  queue.bytes -= packet->wire_bytes;
  --waiting_;
  return packet;
}

void Port::trim(NetPacket* packet) {
  packet->trimmed = true;
  packet->trimmed_last_hop = link.last_hop;
  packet->cut_head(kTrimmedPdsBytes);
  packet->pds_bytes = packet->head_bytes;
  packet->wire_bytes = kTrimmedWireBytes;
  packet->traffic_class = config.separate_trimmed ? TrafficClass::Trimmed : TrafficClass::Control;
  ++counters.trims;
}

NetPacket* Port::admit_control(NetPacket* packet) {
  const Queue& queue = queues_[index(packet->traffic_class)];
  if (queue.bytes + packet->wire_bytes > config.control_limit_bytes) {
    ++counters.control_drops;
    return packet;
  }
  push(packet);
  return nullptr;
}

NetPacket* Port::enqueue(NetPacket* packet, Rng& rng, Picoseconds now) {
  account(now);
  if (packet->traffic_class != TrafficClass::Data) return admit_control(packet);
  Queue& data = queues_[index(TrafficClass::Data)];
  if (data.bytes + packet->wire_bytes > config.data_limit_bytes) {
    if (!config.trimming) {
      ++counters.data_drops;
      return packet;
    }
    NetPacket* victim = packet;
    if (data.packets > 0 && rng.chance(0.5)) {  // CMS-501
      victim = pop_last(data);
      push(packet);
    }
    trim(victim);
    return admit_control(victim);
  }
  push(packet);
  counters.max_data_bytes = std::max(counters.max_data_bytes, data.bytes);
  return nullptr;
}

// Control, then trimmed packets up to every second one (CMS-502), then data.
Port::Queue& Port::choose() {
  Queue& control = queues_[index(TrafficClass::Control)];
  Queue& trimmed = queues_[index(TrafficClass::Trimmed)];
  Queue& data = queues_[index(TrafficClass::Data)];
  const bool others = data.packets > 0 || trimmed.packets > 0;
  const bool enough = config.scheduling == Scheduling::Weighted && control_run_ >= kControlRun;
  if (control.packets > 0 && !(others && enough)) {
    control_run_ = others ? control_run_ + 1 : 0;
    return control;
  }
  control_run_ = 0;
  trimmed_last_ = trimmed.packets > 0 && (data.packets == 0 || !trimmed_last_);
  return trimmed_last_ ? trimmed : data;
}

bool Port::marks(Rng& rng) const {
  if (config.ecn_high_bytes <= 0) return false;
  const auto left = static_cast<double>(queues_[index(TrafficClass::Data)].bytes);
  if (left <= config.ecn_low_bytes) return false;
  if (left >= config.ecn_high_bytes) return true;
  return rng.chance((left - config.ecn_low_bytes) / (config.ecn_high_bytes - config.ecn_low_bytes));
}

NetPacket* Port::dequeue(Rng& rng, Picoseconds now) {
  if (waiting_ == 0) return nullptr;
  account(now);
  NetPacket* packet = pop(choose());
  const bool data = packet->traffic_class == TrafficClass::Data;
  if (data && packet->ecn != Ecn::NotEct && packet->ecn != Ecn::Ce && marks(rng)) {
    packet->ecn = Ecn::Ce;
    ++counters.marks;
  }
  ++counters.packets;
  counters.bytes += packet->wire_bytes;
  if (!data) counters.control_bytes += packet->wire_bytes;
  return packet;
}

}  // namespace uet::netsim
