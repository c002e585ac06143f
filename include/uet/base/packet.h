// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Packets as they pass between the protocol and a NIC.
//
// Packet: one to send. Its head holds the headers; the payload stays where it is (user memory or a
// buffer of a BufferPool) and is only pointed to. RxPacket: one that arrived, a view of memory that
// the NIC owns and that stays valid until the next rx_burst.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "uet/base/address.h"
#include "uet/base/check.h"
#include "uet/base/device_memory.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/slab.h"
#include "uet/base/time.h"
#include "uet/base/types.h"

namespace uet {

// A piece of memory to read from.
struct Slice {
  const std::byte* data = nullptr;
  std::uint32_t length = 0;
};

struct OutboxTag;

// The connection between two processes of this host that has carried a packet (nic/local.h).
struct LocalWay {
  static constexpr std::uint16_t kSeveral = UINT16_MAX;  // another connection, or the network
  std::uint16_t connection = 0;                          // 0: none yet
  std::uint64_t position = 0;  // of the packet's first copy in the stream of that connection
};

// A process of this host has ended, or its NIC was closed.
struct DeadPeer {
  FepAddress address;
  std::uint16_t from = 0;  // RxPacket::connection of what the peer has sent; 0: none
  std::uint16_t to = 0;    // Packet::way of what was sent to the peer; 0: none
  // The peer has read nothing of connection `to` from this position on.
  std::uint64_t unread_from = UINT64_MAX;
  bool succeeded = false;  // another process has the address now

  // The peer has never seen the packet that went this way.
  bool left_unread(const LocalWay& way) const {
    return to != 0 && way.connection == to && way.position >= unread_from;
  }
};

// One of several ways that a NIC has to its peers (a port, a rail, a plane) carries nothing any
// more: what left by it and is not answered is lost, and so are answers that were to come by it.
struct LostRail {
  std::optional<FepAddress> peer;  // to this peer; empty: to all
  std::uint8_t rail = 0;           // Packet::rail of what left by it
};

// A packet to send. The SES header begins in the middle of the head and grows up, the PDS header is
// put in front of it and grows down. Thousands wait for their ACKs at a time: a packet has space
// for the largest headers and no more, four lines of the cache in all.
class Packet : public ListNode<OutboxTag> {
 public:
  static constexpr std::size_t kHeadroom = 40;              // the largest PDS header
  static constexpr std::size_t kHeadSize = kHeadroom + 96;  // and the largest response of SES

  // Bytes of headers written so far.
  std::span<const std::byte> head() const {
    return {buffer_.data() + begin_, buffer_.data() + end_};
  }
  // `count` fresh bytes in front of / behind what is there. count must fit (see kHeadSize).
  std::byte* prepend(std::size_t count) {
    UET_ASSERT(count <= begin_);
    begin_ = static_cast<std::uint16_t>(begin_ - count);
    return buffer_.data() + begin_;
  }
  std::byte* append(std::size_t count) {
    UET_ASSERT(end_ + count <= kHeadSize);
    std::byte* at = buffer_.data() + end_;
    end_ = static_cast<std::uint16_t>(end_ + count);
    return at;
  }
  // As append, of as many bytes, at most `most`, as write(std::byte* at) returns.
  template <class Write>
  void append_with(std::size_t most, Write&& write) {
    UET_ASSERT(end_ + most <= kHeadSize);
    end_ = static_cast<std::uint16_t>(end_ + write(buffer_.data() + end_));
  }
  // Forgets the headers in front of the first appended byte, so that they can be written again.
  void drop_prepended() { begin_ = kHeadroom; }
  // Forgets the appended bytes, so that others can be appended; those in front stay.
  void drop_appended() { end_ = kHeadroom; }
  void reset() {
    begin_ = end_ = kHeadroom;
    payload = {};
    device = nullptr;
    release_after_send = false;
    control = false;
    answers_unknown_peer = false;
    payload_stays = false;
    sent_again = false;
    first_in_flight = false;
    sent = {};
    way = {};
  }

  // All of `from` but its payload: headers, and where and how it leaves.
  void copy_headers(const Packet& from) {
    reset();
    begin_ = from.begin_;
    end_ = from.end_;
    std::copy(from.buffer_.begin() + begin_, from.buffer_.begin() + end_, buffer_.begin() + begin_);
    to = from.to;
    entropy = from.entropy;
    ecn = from.ecn;
    dscp = from.dscp;
    way = from.way;
    control = from.control;
    answers_unknown_peer = from.answers_unknown_peer;
    sent_again = from.sent_again;
    first_in_flight = from.first_in_flight;
  }

  std::uint32_t payload_length() const { return payload[0].length + payload[1].length; }
  // Everything above IP and UDP.
  std::uint32_t length() const {
    return static_cast<std::uint32_t>(end_ - begin_) + payload_length();
  }

  std::array<Slice, 2> payload{};  // second one only after the first; length 0 = unused
  // Whose memory the payload is; nullptr: the CPU's. Others only if Nic::register_device_memory has
  // accepted that memory: the device of the NIC reads it, all other code calls copy_payload.
  DeviceMemory* device = nullptr;
  FepAddress to;
  std::uint16_t entropy = 0;  // UDP source port or entropy header; 0 = the NIC's own port
  Ecn ecn = Ecn::NotEct;
  std::uint8_t dscp = 0;

 private:
  std::uint16_t begin_ = kHeadroom;  // of the bytes in use of buffer_
  std::uint16_t end_ = kHeadroom;

 public:
  // When it was last handed to the network, on the core's time line (CMS-712). Written by a NIC
  // that can tell; Time{} = not known.
  mutable Time sent{};
  // Which connection to a process of this host it took. Written by a NIC that has such connections.
  mutable LocalWay way{};
  bool release_after_send = false;  // not kept for retransmission (ACK, NACK, control)
  // May leave before data that was made earlier: an ACK, a NACK or a control packet that follows no
  // data. A NIC with a queue of its own for them takes them while that for data is full.
  bool control = false;
  // Answers a packet that no PDC took, whose source may be invented: a NIC keeps nothing for it.
  bool answers_unknown_peer = false;
  // The operation lasts until the peer has answered, so that a NIC may go on reading payload that
  // lies in registered memory (Nic::register_memory) after it has accepted the packet.
  bool payload_stays = false;
  // A retransmission: a NIC joins it to no other packet, so that a device that drops packets joined
  // by UDP_SEGMENT, and so lost the first transmission, does not lose every further one.
  bool sent_again = false;
  // Nothing else of its PDC is in flight: the peer waits for it, and has nothing to copy meanwhile.
  bool first_in_flight = false;
  // Which rail it took when it last left. Written by a NIC with several (LostRail).
  mutable std::uint8_t rail = 0;

 private:
  alignas(8) std::array<std::byte, kHeadSize> buffer_;
};
static_assert(sizeof(Packet) == 256);

// Copies all payload to `to`, also that of a device; returns the end of the copy.
inline std::byte* copy_payload(const Packet& packet, std::byte* to) {
  for (const Slice& slice : packet.payload) {
    fetch(packet.device, {to, slice.length}, slice.data);
    to += slice.length;
  }
  return to;
}

using PacketPool = Slab<Packet>;

struct RxPacket {
  std::span<const std::byte>
      bytes;                  // from the PDS prologue (or TSS header) to the end of the packet
  FepAddress source;          // sender's IP address, UDP source port (0: native form, under TSS)
  std::uint16_t entropy = 0;  // what the sender chose; copied into the answer (WIRE 1.1)
  Ecn ecn = Ecn::NotEct;
  std::uint8_t dscp = 0;
  // When it came to this host, however late it was taken, on the core's time line (CMS-712); Time{}
  // = not known.
  Time arrived{};
  bool trimmed = false;           // a switch cut the payload away (PDS section 13)
  bool trimmed_last_hop = false;  // with `trimmed`: it was the last switch on the way
  bool through_memory = false;    // of this host: an answer costs no more than writing it
  std::uint16_t connection = 0;   // to a process of this host, which brought it; 0: the network did
};

// Equal buffers for payload that cannot stay in user memory: inject, gathers, read data, messages
// that arrive before their receive. Memory comes for a few buffers at a time when they are first
// needed, and is kept.
class BufferPool {
 public:
  BufferPool(std::size_t buffer_bytes, std::size_t count)
      : buffer_bytes_(buffer_bytes), count_(count) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // nullptr when all buffers are in use, or when there is no memory for one more.
  std::byte* take() {
    if (free_count_ == 0 && !grow()) return nullptr;
    ++in_use_;
    return free_[--free_count_];
  }
  void give_back(std::byte* buffer) {
    UET_ASSERT(in_use_ > 0);
    --in_use_;
    free_[free_count_++] = buffer;
  }
  std::size_t buffer_bytes() const { return buffer_bytes_; }
  std::size_t capacity() const { return count_; }
  std::size_t in_use() const { return in_use_; }
  std::size_t available() const { return count_ - in_use_; }

 private:
  static constexpr std::size_t kPart = 16;  // buffers that share an allocation

  bool grow() {
    const std::size_t more = std::min(kPart, count_ - reserved_);
    if (more == 0) return false;
    try {
      auto free = std::make_unique_for_overwrite<std::byte*[]>(reserved_ + more);
      parts_.reserve(parts_.size() + 1);
      parts_.push_back(std::make_unique_for_overwrite<std::byte[]>(more * buffer_bytes_));
      for (std::size_t i = 0; i < more; ++i) {
        free[i] = parts_.back().get() + (more - 1 - i) * buffer_bytes_;
      }
      free_ = std::move(free);
    } catch (const std::bad_alloc&) {
      return false;
    }
    free_count_ = more;
    reserved_ += more;
    return true;
  }

  std::vector<std::unique_ptr<std::byte[]>> parts_;
  std::unique_ptr<std::byte*[]> free_;  // as many as are reserved; the last one is taken next
  std::size_t buffer_bytes_;
  std::size_t count_;
  std::size_t reserved_ = 0;
  std::size_t free_count_ = 0;
  std::size_t in_use_ = 0;
};

}  // namespace uet
