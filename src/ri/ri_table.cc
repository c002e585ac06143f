// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finding the addressed context. The hit is one hash lookup; only a miss looks at all entries to
// say what is wrong with the address.
#include "ri/ri_table.h"

#include <algorithm>

namespace uet::ri {
namespace {

bool is_valid(const RiKey& key) {
  return key.job.value <= kMaxJobId && key.pid_on_fep.value <= kMaxPidOnFep &&
         key.resource_index.value <= kMaxResourceIndex;
}

// The JobID is no part of an absolute address (SES-13).
std::uint64_t packed(const RiKey& key) {
  const std::uint64_t job = key.relative ? key.job.value : 0;
  return (key.relative ? std::uint64_t{1} << 48 : 0) | job << 24 |
         std::uint64_t{key.pid_on_fep.value} << 12 | key.resource_index.value;
}

}  // namespace

RiTable::RiTable(std::size_t capacity) : capacity_(capacity) {}

Result<void> RiTable::add(const RiKey& key, void* context) {
  if (!is_valid(key)) return Error::Invalid;
  if (contexts_.contains(packed(key))) return Error::KeyInUse;
  if (contexts_.size() >= capacity_) return Error::NoMemory;
  contexts_.emplace(packed(key), Entry{key, context});
  return {};
}

Result<void> RiTable::remove(const RiKey& key) {
  if (contexts_.erase(packed(key)) == 0) return Error::NotFound;
  last_ = nullptr;
  return {};
}

RiLookup RiTable::find(const RiKey& key) const {
  const std::uint64_t wanted = packed(key);
  if (last_ != nullptr && last_key_ == wanted) return {RiVerdict::Ok, last_->context};
  if (const auto found = contexts_.find(wanted); found != contexts_.end()) {
    last_key_ = wanted;
    last_ = &found->second;
    return {RiVerdict::Ok, last_->context};
  }
  bool pid_known = false;
  bool job_wrong = false;
  for (const auto& [unused, entry] : contexts_) {
    if (entry.key.relative != key.relative || entry.key.pid_on_fep != key.pid_on_fep) continue;
    if (!key.relative || entry.key.job == key.job) {
      pid_known = true;
    } else if (entry.key.resource_index == key.resource_index) {
      job_wrong = true;
    }
  }
  if (pid_known) return {RiVerdict::BadIndex, nullptr};
  return {job_wrong ? RiVerdict::BadJob : RiVerdict::BadPid, nullptr};
}

RiLookup RiTable::find_process(const RiKey& key) const {
  const Entry* best = nullptr;
  for (const auto& [unused, entry] : contexts_) {
    if (entry.key.relative != key.relative || entry.key.pid_on_fep != key.pid_on_fep) continue;
    if (key.relative && entry.key.job != key.job) continue;
    if (best == nullptr || entry.key.resource_index < best->key.resource_index) best = &entry;
  }
  if (best == nullptr) return {RiVerdict::BadPid, nullptr};
  return {RiVerdict::Ok, best->context};
}

}  // namespace uet::ri
