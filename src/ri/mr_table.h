// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory key -> registered memory, its rights and bounds (SES section 11).
//
// Keys chosen by the provider (bit 48 set) and keys chosen by the application are two name spaces
// (SES-133). Peers cannot guess a provider-chosen key, and it is not given out again before 2^48
// others were (SES-141).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "ri/key_sequence.h"
#include "uet/base/device_memory.h"
#include "uet/base/result.h"
#include "uet/base/types.h"

namespace uet::ri {

enum Access : std::uint8_t { kRemoteRead = 1, kRemoteWrite = 2 };

// Hears of the remote operations on a region that have been executed.
class AccessObserver {
 public:
  virtual ~AccessObserver() = default;
  // `access`: kRemoteRead if the operation brought bytes of the region to the peer, kRemoteWrite if
  // it may have changed some; `length`: of the operation, in bytes.
  virtual void accessed(std::uint8_t access, std::uint64_t length) noexcept = 0;
  // As ses::CompletionSink::counts_reads.
  virtual bool counts_reads() const noexcept { return true; }
  // A part of an operation on the region: bytes that count, while the operation does not yet.
  virtual void accessed_part(std::uint8_t, std::uint64_t) noexcept {}
};

// Hears of regions that are about to go.
class RemovalObserver {
 public:
  virtual ~RemovalObserver() = default;
  // The memory of the region is there until the call returns.
  virtual void removing(Rkey key) noexcept = 0;
};

// Which context of a FEP a region is bound to, or an operation comes through.
struct ContextName {
  PidOnFep pid;
  ResourceIndex index;
  friend constexpr bool operator==(const ContextName&, const ContextName&) = default;
};

struct MemoryRegion {
  std::byte* base = nullptr;  // nullptr with length 2^64-1: all memory, offset = address
  std::uint64_t length = 0;
  std::uint64_t virtual_base = 0;   // subtracted from the wire's offset (FI_MR_VIRT_ADDR, SES-136)
  std::uint8_t access = 0;          // Access bits that the peer may use
  std::optional<JobId> job;         // only requests of this job (SES-17)
  std::optional<ResourceIndex> ri;  // only through this context (SES-135)
  std::optional<PidOnFep> pid;      // of this PIDonFEP; empty: of any
  std::uint16_t ri_count = 1;       // and as many minus 1 that follow it
  bool enabled = true;              // false: no peer may access it yet (SES-134)
  AccessObserver* observer = nullptr;
  DeviceMemory* device = nullptr;  // not nullptr: `base` is not for the CPU
};

// BadJob is answered with BAD_MKEY like BadKey, so that a key of another job does not show
// (SES-119).
enum class MrVerdict : std::uint8_t { Ok, BadKey, BadJob, NoRight, OutOfBounds };

struct MrAccess {
  MrVerdict verdict = MrVerdict::BadKey;
  std::byte* address = nullptr;  // where offset + 0 lies, when Ok
  AccessObserver* observer = nullptr;
  DeviceMemory* device = nullptr;  // whose address it is, if not the CPU's

  // Copies bytes to or from where they lie behind `address`; `host` as for uet::place.
  void place(HostCopy* host, std::uint64_t offset, std::span<const std::byte> bytes) const {
    uet::place(device, host, address + offset, bytes);
  }
  void fetch(std::span<std::byte> bytes, std::uint64_t offset) const {
    uet::fetch(device, bytes, address + offset);
  }
  // Does the application hear of a read of the region?
  bool counts_reads() const { return observer != nullptr && observer->counts_reads(); }
  // The operation that this access was for has been executed.
  void executed(std::uint8_t access, std::uint64_t length) const {
    if (observer != nullptr) observer->accessed(access, length);
  }
  void executed_part(std::uint8_t access, std::uint64_t length) const {
    if (observer != nullptr) observer->accessed_part(access, length);
  }
};

class MrTable {
 public:
  // `secret`: what makes keys of the provider's choice differ from those of other tables.
  MrTable(std::size_t capacity, const KeySecret& secret);
  // Registers under a key of the provider's choice / of the application's choice (KeyInUse when
  // taken, also by an OPTIMIZED one of the same index). NoMemory beyond capacity; Invalid for an
  // application key with reserved bits (SES-132).
  Result<Rkey> add(const MemoryRegion& region);
  Result<void> add_with_key(const MemoryRegion& region, Rkey key);
  // Registers under a key that another table has given, of its or of the application's choice: that
  // one keeps the names of the same FEP. KeyInUse, NoMemory or Invalid as above.
  Result<void> adopt(const MemoryRegion& region, Rkey key);
  // The key answers BadKey at once (SES-140), and nothing reads or writes the memory any more.
  Result<void> remove(Rkey key);
  // `observer` hears of each region before it is removed, until another call; nullptr: none does.
  void watch_removals(RemovalObserver* observer) { removals_ = observer; }
  // The context `from` gets the name `to`, or ends: then its regions have no rights any more, and
  // the next context with that name does not inherit them (SES-134).
  void move_context(const ContextName& from, const std::optional<ContextName>& to);
  // The region under this key, to restrict or enable it; nullptr if there is none.
  MemoryRegion* find(Rkey key);
  // The whole OPTIMIZED key of which a small header carries the low 12 bits: with IDEMPOTENT_SAFE
  // if it was registered so (WIRE 4.3).
  Rkey optimized_key(std::uint16_t index) const;
  // Checks in the order of SES-115 steps 12a to 12e; `offset` comes from the wire (SES-118).
  MrAccess check(Rkey key, JobId job, const ContextName& through, std::uint8_t access,
                 std::uint64_t offset, std::uint64_t length) const;
  std::size_t size() const { return regions_.size(); }

 private:
  Result<void> enter(const MemoryRegion& region, Rkey key);
  const MemoryRegion* look_up(Rkey key) const;

  std::size_t capacity_;
  KeySequence keys_;
  std::unordered_map<std::uint64_t, MemoryRegion> regions_;
  RemovalObserver* removals_ = nullptr;
  // The latest look-up: packets of one message name one key.
  mutable std::uint64_t last_key_ = 0;
  mutable const MemoryRegion* last_ = nullptr;
};

}  // namespace uet::ri
