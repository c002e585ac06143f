// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The guaranteed responses of one PDC that wait for their CLEAR (PDS-111 to 118): how many there
// are, whether one more is allowed, and how long they have waited. They lie in the pool of all
// PDCs, charged to the host of the peer; RxWindow knows the index of each.
#pragma once

#include <cstdint>

#include "base/shares.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"

namespace uet::pds {

class StoredResponses {
 public:
  using Pool = SharedPool<Response>;

  std::uint16_t count() const { return count_; }
  // The host has a share of all, and this PDC one of what the host may still take.
  bool may_store(const Pool& pool, std::uint64_t host) const {
    return pool.has_beside(host, count_);
  }
  // Call it only if may_store(). Returns the index of the response.
  std::uint16_t store(Pool& pool, std::uint64_t host, const Response& response, Time now) {
    const std::uint16_t index = *pool.take(host);
    pool[index] = response;
    if (count_++ == 0) progress_ = cleared_at_ = coarse(now);
    return index;
  }
  // Its CLEAR has come.
  void cleared(Pool& pool, std::uint64_t host, std::uint16_t index, Time now) {
    drop(pool, host, index);
    progress_ = cleared_at_ = coarse(now);
  }
  // The PDC ends.
  void drop(Pool& pool, std::uint64_t host, std::uint16_t index) {
    pool.give_back(host, index);
    --count_;
  }
  // How long they have waited for a CLEAR; 0: there are none. An hour at most.
  Duration waits_for_clear(Time now) const {
    return count_ > 0 ? since(cleared_at_, now) : Duration{};
  }
  // No CLEAR has come for twice PDS_Clear_Time, nor was one asked for (PDS-118).
  bool clear_is_late(Duration clear_time, Time now) const {
    return since(progress_, now) > 2 * clear_time;
  }
  void clear_asked(Time now) { progress_ = coarse(now); }

 private:
  // Times of events of the last hour, in units of 1.024 us.
  static std::uint32_t coarse(Time time) { return static_cast<std::uint32_t>(to_ns(time) >> 10); }
  static Duration since(std::uint32_t event, Time now) {
    return Duration{std::int64_t{coarse(now) - event} << 10};
  }

  std::uint32_t cleared_at_ = 0;  // when one was cleared, or the first came
  std::uint32_t progress_ = 0;    // or was asked to be cleared
  std::uint16_t count_ = 0;
};

}  // namespace uet::pds
