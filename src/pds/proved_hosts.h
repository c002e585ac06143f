// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which hosts have shown that they hear what is sent to their address, and what may be sent to the
// others for a packet that opens no PDC (PDS-222): without a handshake its source may be invented.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/sparse_array.h"
#include "uet/base/address.h"
#include "uet/base/time.h"

namespace uet::pds {

class ProvedHosts {
 public:
  // Bytes that all other hosts together may get beyond three for each byte received: so many at
  // once, and so many a second.
  static constexpr std::uint64_t kBurstBytes = 64 << 10;
  static constexpr std::uint64_t kBytesPerSecond = 1'000'000;

  // How long the proof lasts beyond a PDC that closes: longer than a packet is repeated, so that a
  // read of which each answer is lost fails by its time-outs, although the PDC closes in between.
  static constexpr Duration kLasts = std::chrono::seconds(60);

  // A PDC with a peer at this host is proved, or such a PDC has ended. Each add() needs its
  // remove(). add() may throw bad_alloc; nothing has changed then.
  void add(const FabricAddress& ip) { ++pdcs_[ip]; }
  void remove(const FabricAddress& ip) {
    const auto at = pdcs_.find(ip);
    if (--at->second == 0) pdcs_.erase(at);
  }
  // Such a PDC, used last at `last`, is about to end without an error.
  // If memory is short, it is not remembered.
  void keep(const FabricAddress& ip, Time last) {
    if (Recent* recent = recent_.make(position(ip)); recent != nullptr)
      *recent = {ip, last + kLasts};
  }

  // May an answer of `bytes` go to the source `ip` of a packet of `came` bytes? If so, it counts.
  bool may_answer(const FabricAddress& ip, std::uint32_t came, std::uint32_t bytes, Time now) {
    if (bytes <= 3 * came || is_proved(ip, now)) return true;
    const Time begin = std::max(budget_used_until_, now);
    const Time end = begin + time_of(bytes);
    if (end - now > time_of(kBurstBytes)) return false;
    budget_used_until_ = end;
    return true;
  }

 private:
  static constexpr std::size_t kRecent = 512;  // hosts; one takes the place of an older one

  struct Hash {
    std::size_t operator()(const FabricAddress& ip) const noexcept { return host_hash(ip); }
  };
  struct Recent {
    FabricAddress ip;
    Time until{};
  };
  static std::size_t position(const FabricAddress& ip) { return host_hash(ip) % kRecent; }
  bool is_proved(const FabricAddress& ip, Time now) const {
    const Recent& recent = recent_[position(ip)];
    return pdcs_.contains(ip) || (recent.ip == ip && now < recent.until);
  }
  static constexpr Duration time_of(std::uint64_t bytes) {
    return std::chrono::nanoseconds(bytes * 1'000'000'000 / kBytesPerSecond);
  }

  std::unordered_map<FabricAddress, std::uint32_t, Hash> pdcs_;  // how many PDCs prove the host
  SparseArray<Recent, kRecent, 16> recent_;
  Time budget_used_until_{};  // the bytes sent so far take until then at kBytesPerSecond
};

}  // namespace uet::pds
