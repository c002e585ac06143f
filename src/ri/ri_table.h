// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// (JobID, PIDonFEP, resource index) -> the context that serves it (SES section 2). Decides only who
// is addressed; what a context is and whether it is enabled is its owner's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "uet/base/result.h"
#include "uet/base/types.h"

namespace uet::ri {

// How a context is addressed. Relative (REL = 1): PIDonFEP counts within the job, so the JobID is
// part of the key (SES-12). Absolute (REL = 0): the JobID plays no part in the lookup (SES-13).
struct RiKey {
  bool relative = true;
  JobId job;
  PidOnFep pid_on_fep;
  ResourceIndex resource_index;
};

// SES-115 steps 3 and 4.
enum class RiVerdict : std::uint8_t { Ok, BadPid, BadIndex, BadJob };

struct RiLookup {
  RiVerdict verdict = RiVerdict::BadPid;
  void* context = nullptr;  // as registered, when Ok
};

class RiTable {
 public:
  // A table of at most `capacity` contexts.
  explicit RiTable(std::size_t capacity);
  // KeyInUse when this key is registered already (SES-14), NoMemory beyond capacity, Invalid when a
  // number does not fit its field (24, 12 and 12 bits). `context` stays the caller's.
  Result<void> add(const RiKey& key, void* context);
  // NotFound if it is not registered.
  Result<void> remove(const RiKey& key);
  // Allocates nothing. Without a hit the verdict says which part of the key is wrong: BadJob when
  // only the JobID differs from a relative context's (SES-16).
  RiLookup find(const RiKey& key) const;
  // The context with the lowest index of the process; for requests that carry no resource index
  // (small RMA requests, SES-5). key.resource_index is not read.
  RiLookup find_process(const RiKey& key) const;
  std::size_t size() const { return contexts_.size(); }

 private:
  struct Entry {
    RiKey key;
    void* context;
  };
  std::size_t capacity_;
  std::unordered_map<std::uint64_t, Entry> contexts_;
  // The latest hit: mostly several messages in a row are for one context.
  mutable std::uint64_t last_key_ = 0;
  mutable const Entry* last_ = nullptr;
};

}  // namespace uet::ri
