// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends from device memory. Their bytes are copied in trains of many packets, each when its first
// packet is made, to memory that the CPU reads: chunks of a pool for each StagingMemory. A packet
// that is sent again points to the same copy. A train ends when PDS has answered for its packets,
// and a chunk is used again when its trains have ended; a message that finds no chunk waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ses/counters.h"
#include "ses/message.h"
#include "ses/parameters.h"
#include "uet/base/device_memory.h"
#include "uet/base/intrusive_list.h"
#include "uet/base/packet.h"
#include "uet/base/slab.h"
#include "uet/pds/api.h"

namespace uet::ses {

struct FreeChunkTag;
struct PoolTag;

// Trains are cut from its front to its end.
struct StagingChunk : ListNode<FreeChunkTag> {
  explicit StagingChunk(std::byte* begin) : memory(begin) {}

  std::byte* const memory;
  std::size_t used = 0;
  std::size_t trains = 0;
};

struct StagingPool : ListNode<PoolTag> {
  explicit StagingPool(StagingMemory& of) : memory(of) {}

  StagingMemory& memory;
  std::size_t chunks = 0;        // altogether
  StagingChunk* open = nullptr;  // the one that trains are cut from; it has some
  IntrusiveList<StagingChunk, FreeChunkTag> free;
};

// A copy of the bytes [offset, offset + length) of a message.
struct Train {
  bool holds(std::uint64_t at, std::uint32_t count) const {
    return at >= offset && at - offset <= length && count <= length - (at - offset);
  }
  Slice slice(std::uint64_t at, std::uint32_t count) const { return {data + (at - offset), count}; }

  Train* next = nullptr;  // of the message
  StagingChunk* chunk = nullptr;
  std::byte* data = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t tag = 0;         // of its packets
  std::uint32_t unanswered = 0;  // packets that PDS has not answered for
};

class Staging {
 public:
  Staging(const Parameters& parameters, Counters& counters);
  // No message has a train.
  ~Staging();
  void attach(pds::Delivery& delivery) { delivery_ = &delivery; }
  // PDS may be gone: nothing that waits is kicked any more.
  void detach();

  // The message, one slice of which at least lies on a device, will be sent from trains. False: its
  // StagingMemory gives not even one chunk.
  bool begin(TxMessage& message);
  // Points `out` at the `length` bytes of the next packet, which gets `tag`. False: no chunk is
  // free; the message's PDC is kicked when one is.
  bool point_next(TxMessage& message, std::uint32_t length, std::array<Slice, 2>& out,
                  std::uint32_t& tag);
  // PDS has answered for the packet with this tag.
  void answered(TxMessage& message, std::uint32_t tag);
  // Points `out` at any `length` bytes of the message until read() for the train. nullptr: no chunk
  // is free.
  Train* point_at(TxMessage& message, std::uint64_t offset, std::uint32_t length,
                  std::array<Slice, 2>& out);
  void read(TxMessage& message, Train& train);
  // No packet of its bytes is made for a while, or ever.
  void pause(TxMessage& message);
  // Its next packet needs no chunk: if the message waits for one, its PDC is kicked.
  void resume(TxMessage& message);
  // Nothing points to the message's trains: all end.
  void drop(TxMessage& message);

 private:
  StagingPool* pool_of(StagingMemory& memory);
  bool grow(StagingPool& pool);
  Train* cut(TxMessage& message, std::uint64_t offset, std::uint64_t limit);
  std::uint32_t fit(const StagingChunk& chunk, std::uint64_t wanted) const;
  bool end(TxMessage& message, Train& train);
  void end_and_wake(TxMessage& message, Train& train);

  const std::uint32_t payload_mtu_;
  const std::size_t chunk_bytes_;
  const std::size_t chunks_limit_;
  const std::uint64_t train_bytes_;
  Counters& counters_;
  pds::Delivery* delivery_ = nullptr;
  std::uint32_t trains_made_ = 0;
  Slab<StagingPool> pools_memory_{SIZE_MAX};
  Slab<StagingChunk> chunks_{SIZE_MAX};
  Slab<Train> trains_{SIZE_MAX};
  IntrusiveList<StagingPool, PoolTag> pools_;
  IntrusiveList<TxMessage, AwaitingChunkTag> waiting_;
};

}  // namespace uet::ses
