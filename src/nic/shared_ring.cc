// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records of a header and a packet's bytes, in steps of a cache line, each in one piece: where one
// does not fit before the end, a skip leads to the beginning. Positions only grow; their low bits
// are the place. While the consumer keeps up, the producer turns back early, so that light traffic
// stays in a part of the ring that the caches hold.
#include "nic/shared_ring.h"

#include <bit>
#include <cstring>
#include <utility>

#include "nic/middleware.h"
#include "uet/base/check.h"

namespace uet::nic {
namespace {

constexpr std::uint64_t kStep = 64;
constexpr std::uint32_t kSkip = 0xFFFFFFFF;  // instead of a length: go to the beginning
constexpr std::uint64_t kTurnBackBytes =
    64 * 1024;                                      // where the producer thinks of turning back ...
constexpr std::uint64_t kKeepsUpBytes = 16 * 1024;  // ... if the consumer is no further behind
// The producer also turns back at the beginning of a burst that finds the ring empty and might
// reach memory that was not used yet: the first use of a page costs more than copying it, and a
// ring that is empty whenever the next message comes needs no more pages. Not before kEnoughBytes:
// no more can be put until the consumer has come to the beginning, too.
constexpr std::uint64_t kEnoughBytes = 256 * 1024;
constexpr std::uint64_t kBurstBytes = 128 * 1024;  // hardly one is longer

struct Record {
  std::uint32_t length;
  std::uint16_t entropy;
  std::uint8_t dscp;
  std::uint8_t ecn;
};

constexpr std::uint64_t record_bytes(std::uint64_t length) {
  return (sizeof(Record) + length + kStep - 1) / kStep * kStep;
}
static_assert(2 * record_bytes(kMaxDatagramBytes) <= 2 * kMinRingBytes);

}  // namespace

bool is_ring_capacity(std::size_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kMinRingBytes && bytes <= kMaxRingBytes;
}

RingProducer::RingProducer(std::span<std::byte> memory)
    : control_(reinterpret_cast<RingControl*>(memory.data())),
      data_(memory.data() + kRingControlBytes),
      capacity_(memory.size() - kRingControlBytes),
      pages_(memory.subspan(kRingControlBytes), RingPages::Use::Write) {
  UET_ASSERT(is_ring_capacity(capacity_));
}

// A head beyond the tail is invalid: then the ring counts as full for ever.
bool RingProducer::has_room(std::uint64_t bytes) {
  if (tail_ + bytes - seen_head_ <= capacity_) return true;
  const std::uint64_t head = control_->head.load(std::memory_order_acquire);
  if (tail_ - head > capacity_) return false;
  seen_head_ = head;
  return tail_ + bytes - seen_head_ <= capacity_;
}

// `bytes` fit, and the consumer is no more than `behind` bytes behind.
bool RingProducer::may_turn_back(std::uint64_t bytes, std::uint64_t behind) const {
  const std::uint64_t head = control_->head.load(std::memory_order_acquire);
  return tail_ - head <= behind && bytes + kKeepsUpBytes <= capacity_;
}

bool RingProducer::put(const Packet& packet) {
  const std::uint32_t length = packet.length();
  if (length > kMaxDatagramBytes) return false;
  const std::uint64_t needed = record_bytes(length);
  std::uint64_t place = tail_ & (capacity_ - 1);
  const std::uint64_t to_end = capacity_ - place;
  const bool crosses = place / kTurnBackBytes != (place + needed) / kTurnBackBytes;
  bool turn_back = needed > to_end;
  const bool burst_begins = std::exchange(burst_begins_, false);
  if (!turn_back && crosses) turn_back = may_turn_back(to_end + needed, kKeepsUpBytes);
  const bool is_far = place >= kEnoughBytes && place + kBurstBytes > pages_.mapped();
  if (!turn_back && is_far && burst_begins) turn_back = may_turn_back(to_end + needed, 0);
  if (!has_room(turn_back ? to_end + needed : needed)) return false;
  if (turn_back) {
    const Record skip{.length = kSkip, .entropy = 0, .dscp = 0, .ecn = 0};
    std::memcpy(data_ + place, &skip, sizeof skip);
    tail_ += to_end;
    place = 0;
  }
  pages_.reach(place + needed);
  const Record record{.length = length,
                      .entropy = packet.entropy,
                      .dscp = packet.dscp,
                      .ecn = static_cast<std::uint8_t>(packet.ecn)};
  std::byte* end = data_ + place;
  std::memcpy(end, &record, sizeof record);
  end += sizeof record;
  std::memcpy(end, packet.head().data(), packet.head().size());
  end += packet.head().size();
  if (packet.device != nullptr) [[unlikely]] {
    copy_payload(packet, end);
  } else {
    for (const Slice& slice : packet.payload) end = copy_.write(end, slice);
  }
  tail_ += needed;
  return true;
}

bool RingProducer::publish() {
  copy_.finish();
  burst_begins_ = true;
  control_->tail.store(tail_, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // against announce_sleep, fence, empty
  return control_->consumer_sleeps.load(std::memory_order_relaxed) != 0 &&
         control_->consumer_sleeps.exchange(0) != 0;
}

RingConsumer::RingConsumer(std::span<std::byte> memory)
    : control_(reinterpret_cast<RingControl*>(memory.data())),
      data_(memory.data() + kRingControlBytes),
      capacity_(memory.size() - kRingControlBytes),
      pages_(memory.subspan(kRingControlBytes), RingPages::Use::Read) {
  UET_ASSERT(is_ring_capacity(capacity_));
}

RingConsumer::Next RingConsumer::next(RxPacket& out) {
  while (position_ != seen_tail_) {
    const std::uint64_t waiting = seen_tail_ - position_;
    if (waiting > capacity_ || waiting % kStep != 0) return Next::Broken;
    const std::uint64_t place = position_ & (capacity_ - 1);
    const std::uint64_t to_end = capacity_ - place;
    Record record;  // a copy: the producer may go on writing
    std::memcpy(&record, data_ + place, sizeof record);
    if (record.length == kSkip) {
      if (place == 0 || to_end > waiting) return Next::Broken;
      position_ += to_end;
      continue;
    }
    if (record.length > kMaxDatagramBytes) return Next::Broken;
    const std::uint64_t bytes = record_bytes(record.length);
    if (bytes > waiting || bytes > to_end) return Next::Broken;
    pages_.reach(place + bytes);
    out = {};
    out.bytes = {data_ + place + sizeof record, record.length};
    out.entropy = record.entropy;
    out.dscp = record.dscp & 0x3F;
    out.ecn = static_cast<Ecn>(record.ecn & 3);
    out.through_memory = true;
    position_ += bytes;
    return Next::Packet;
  }
  return Next::Empty;
}

void RingConsumer::release() {
  if (released_ == position_) return;
  released_ = position_;
  control_->head.store(released_, std::memory_order_release);
}

}  // namespace uet::nic
