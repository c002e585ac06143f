// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message has at most one train that is kept without a packet: the newest, from which its next
// packets, or the next answers to reads of it, are made.
#include "ses/staging.h"

#include <algorithm>

#include "ses/reads.h"
#include "uet/base/check.h"

namespace uet::ses {
namespace {

constexpr std::size_t kTrainsOfChunk = 4;  // the first packets leave while later trains are copied
constexpr std::size_t kLine = 64;          // of the processor's cache: trains begin at one

bool awaits_chunk(const TxMessage& message) {
  return static_cast<const ListNode<AwaitingChunkTag>&>(message).linked();
}

Train* find_holder(const TxMessage& message, std::uint64_t offset, std::uint32_t length) {
  Train* train = message.trains;
  while (train != nullptr && !train->holds(offset, length)) train = train->next;
  return train;
}

StagingMemory& memory_of(const TxMessage& message) {
  const auto slices = message.slices();
  const auto first = std::find_if(slices.begin(), slices.end(),
                                  [](const IoSlice& slice) { return slice.device != nullptr; });
  UET_ASSERT(first != slices.end());
  return first->device->staging();
}

}  // namespace

Staging::Staging(const Parameters& parameters, Counters& counters)
    : payload_mtu_(parameters.payload_mtu),
      chunk_bytes_(std::max<std::size_t>(parameters.staging_chunk_bytes, payload_mtu_)),
      chunks_limit_(std::max<std::size_t>(parameters.staging_bytes / chunk_bytes_, 1)),
      train_bytes_(std::max<std::size_t>(chunk_bytes_ / kTrainsOfChunk / payload_mtu_, 1) *
                   payload_mtu_),
      counters_(counters) {}

Staging::~Staging() {
  while (!pools_.empty()) {
    StagingPool& pool = pools_.pop_front();
    while (!pool.free.empty()) {
      StagingChunk& chunk = pool.free.pop_front();
      pool.memory.give_back(chunk.memory, chunk_bytes_);
      chunks_.give_back(&chunk);
    }
    pools_memory_.give_back(&pool);
  }
}

void Staging::detach() {
  while (!waiting_.empty()) waiting_.pop_front();
}

bool Staging::begin(TxMessage& message) {
  StagingPool* pool = pool_of(memory_of(message));
  if (pool == nullptr || (pool->chunks == 0 && !grow(*pool))) return false;
  message.staging = pool;
  return true;
}

bool Staging::point_next(TxMessage& message, std::uint32_t length, std::array<Slice, 2>& out,
                         std::uint32_t& tag) {
  Train* train = find_holder(message, message.offset, length);
  if (train == nullptr) train = cut(message, message.offset, message.eager_bytes());
  if (train == nullptr) {
    if (awaits_chunk(message)) return false;
    ++counters_.staging_waits;
    waiting_.push_back(message);
    return false;
  }
  if (awaits_chunk(message)) waiting_.remove(message);
  ++train->unanswered;
  tag = train->tag;
  out = {train->slice(message.offset, length), Slice{}};
  return true;
}

void Staging::answered(TxMessage& message, std::uint32_t tag) {
  Train* train = message.trains;
  while (train != nullptr && train->tag != tag) train = train->next;
  UET_ASSERT(train != nullptr && train->unanswered > 0);
  if (train == nullptr || --train->unanswered > 0) return;
  const bool used_up = message.ended || message.offset >= train->offset + train->length;
  if (train != message.trains || used_up) end_and_wake(message, *train);
}

Train* Staging::point_at(TxMessage& message, std::uint64_t offset, std::uint32_t length,
                         std::array<Slice, 2>& out) {
  Train* train = find_holder(message, offset, length);
  if (train == nullptr) train = cut(message, offset, message.length);
  if (train == nullptr) return nullptr;
  ++train->unanswered;
  out = {train->slice(offset, length), Slice{}};
  return train;
}

void Staging::read(TxMessage& message, Train& train) {
  if (--train.unanswered == 0 && &train != message.trains) end_and_wake(message, train);
}

void Staging::pause(TxMessage& message) {
  Train* newest = message.trains;
  if (newest != nullptr && newest->unanswered == 0) end_and_wake(message, *newest);
}

void Staging::resume(TxMessage& message) {
  if (!awaits_chunk(message)) return;
  waiting_.remove(message);
  delivery_->kick(message.pdc);
}

void Staging::drop(TxMessage& message) {
  if (awaits_chunk(message)) waiting_.remove(message);
  while (message.trains != nullptr) end_and_wake(message, *message.trains);
}

// nullptr: no memory for a new one.
StagingPool* Staging::pool_of(StagingMemory& memory) {
  for (StagingPool& pool : pools_) {
    if (&pool.memory == &memory) return &pool;
  }
  StagingPool* pool = pools_memory_.take(memory);
  if (pool != nullptr) pools_.push_back(*pool);
  return pool;
}

bool Staging::grow(StagingPool& pool) {
  if (pool.chunks == chunks_limit_ || !chunks_.ready()) return false;
  std::byte* memory = pool.memory.take(chunk_bytes_);
  if (memory == nullptr) return false;
  pool.free.push_back(*chunks_.take(memory));
  ++pool.chunks;
  return true;
}

// A train that begins at `offset` and ends at `limit` or before, at the end of a packet. nullptr:
// no chunk.
Train* Staging::cut(TxMessage& message, std::uint64_t offset, std::uint64_t limit) {
  if (!trains_.ready()) return nullptr;
  // Without waking others: a chunk is in use afterwards, and wakes them when it is free.
  if (Train* newest = message.trains; newest != nullptr && newest->unanswered == 0) {
    end(message, *newest);
  }
  StagingPool& pool = *message.staging;
  const std::uint64_t wanted = std::min(limit - offset, train_bytes_);
  if (pool.open == nullptr || fit(*pool.open, wanted) == 0) {
    if (pool.free.empty() && !grow(pool)) return nullptr;
    pool.open = &pool.free.pop_front();
    counters_.staging_bytes += chunk_bytes_;
  }
  StagingChunk& chunk = *pool.open;
  Train* train = trains_.take();
  train->chunk = &chunk;
  train->data = chunk.memory + chunk.used;
  train->offset = offset;
  train->length = fit(chunk, wanted);
  train->tag = kFirstStaged + trains_made_++ % (kNoPiece - kFirstStaged);
  train->next = message.trains;
  message.trains = train;
  ++chunk.trains;
  chunk.used = std::min((chunk.used + train->length + kLine - 1) / kLine * kLine, chunk_bytes_);
  stage(message.slices(), offset, train->length, train->data, pool.memory);
  counters_.staged_bytes += train->length;
  return train;
}

// Bytes of a train that may be cut from the chunk: whole packets, or all. 0: not one packet.
std::uint32_t Staging::fit(const StagingChunk& chunk, std::uint64_t wanted) const {
  const std::uint64_t left = chunk_bytes_ - chunk.used;
  const std::uint64_t fits = wanted <= left ? wanted : left / payload_mtu_ * payload_mtu_;
  return static_cast<std::uint32_t>(fits);
}

// True: its chunk is free now.
bool Staging::end(TxMessage& message, Train& train) {
  Train** link = &message.trains;
  while (*link != &train) link = &(*link)->next;
  *link = train.next;
  StagingChunk& chunk = *train.chunk;
  trains_.give_back(&train);
  if (--chunk.trains > 0) return false;
  StagingPool& pool = *message.staging;
  chunk.used = 0;
  if (pool.open == &chunk) pool.open = nullptr;
  pool.free.push_front(chunk);
  counters_.staging_bytes -= chunk_bytes_;
  return true;
}

// Kicks all that wait, since one that is kicked may end before it takes the chunk.
void Staging::end_and_wake(TxMessage& message, Train& train) {
  if (!end(message, train)) return;
  while (!waiting_.empty()) delivery_->kick(waiting_.pop_front().pdc);
}

}  // namespace uet::ses
