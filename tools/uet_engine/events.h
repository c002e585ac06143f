// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an application is told: completions of its operations and accesses of peers, which wait here
// for the end of a pass and for a place in the ring of events.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "rings.h"
#include "uet/base/result.h"

namespace uet::engine {

// An access of a peer by its kind, and the context or the region.
struct AccessKey {
  std::uint64_t of = 0;
  prov::EventKind kind{};
  std::uint8_t operation = 0;
  bool part = false;
  friend bool operator==(const AccessKey&, const AccessKey&) = default;
};

class Events {
 public:
  // Events that the ring cannot take now and that no operation has a place for.
  static constexpr std::size_t kMostWaiting = 4096;

  // False: the application has to take events before it gets further ones.
  bool has_space() const { return waiting_.size() < kMostWaiting; }
  // May a peer cause an event that needs a place in a queue of the application?
  bool can_take_event() const {
    return has_space() && (queues_full_ == nullptr ||
                           std::atomic_ref(*queues_full_).load(std::memory_order_relaxed) == 0);
  }
  // Of the memory that is shared with the application: as Share::queues_full. Must live longer.
  void heed(std::uint32_t& queues_full) { queues_full_ = &queues_full; }
  bool any() const { return !waiting_.empty() || !accesses_.empty(); }
  // The application ends, or there was no memory for what it has to be told. Without a lock.
  bool cut_off() const { return cut_off_.load(std::memory_order_relaxed); }
  void cut_off_now() { cut_off_ = true; }

  void complete(const ses::Completion& completion, std::uint16_t context) noexcept;
  // The operation of `command` has not begun.
  void refuse(const prov::SharedCommand& command, Error error) noexcept;
  // Accesses of a kind are told together: only their sum counts.
  void note_access(const AccessKey& key, std::uint64_t events, std::uint64_t bytes) noexcept;
  // Hints, which are lost if there is no space.
  void note_refusal(const FepAddress& peer) noexcept;
  void note_lost_peer(const FepAddress& peer, pds::PdsError error) noexcept;
  // At the end of a pass. Wakes the application by `event_fd` if it sleeps.
  void hand_over(Rings& rings, int event_fd) noexcept;

 private:
  struct Access {
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
  };
  struct AccessHash {
    std::size_t operator()(const AccessKey& key) const noexcept {
      return static_cast<std::size_t>(key.of * 0x9E3779B97F4A7C15ULL) ^
             static_cast<std::size_t>(key.operation) << 3 ^
             static_cast<std::size_t>(key.kind) << 1 ^ static_cast<std::size_t>(key.part);
    }
  };

  void put(const prov::SharedEvent& event) noexcept;
  void tell_accesses() noexcept;

  std::deque<prov::SharedEvent> waiting_;  // for the ring
  std::unordered_map<AccessKey, Access, AccessHash> accesses_;
  std::uint32_t* queues_full_ = nullptr;
  std::atomic<bool> cut_off_{false};
};

}  // namespace uet::engine
