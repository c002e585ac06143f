// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which addresses belong to this host, remembered, because the kernel is slow to answer.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "nic/interface.h"
#include "uet/base/time.h"

namespace uet::nic {

class HostAddresses {
 public:
  using Read = std::function<std::vector<FabricAddress>()>;
  // An address that this host did not have is looked up again after so long.
  static constexpr Duration kInterval = std::chrono::seconds(10);

  // `read`: the function that asks the kernel; a test passes its own.
  explicit HostAddresses(Read read = addresses_of_host) : read_(std::move(read)) {}

  // Loopback addresses always belong to this host. Without memory for the list: false.
  bool has(const FabricAddress& ip, Time now) {
    if (is_loopback(ip) || knows(ip)) return true;
    if (is_fresh(now)) return false;
    fresh_until_ = now + kInterval;
    try {
      addresses_ = read_();
    } catch (const std::bad_alloc&) {
      return false;
    }
    return knows(ip);
  }
  // The answers of has() do not change at this time.
  bool is_fresh(Time now) const { return now < fresh_until_; }

 private:
  bool knows(const FabricAddress& ip) const {
    return std::find(addresses_.begin(), addresses_.end(), ip) != addresses_.end();
  }

  Read read_;
  std::vector<FabricAddress> addresses_;
  Time fresh_until_{};
};

}  // namespace uet::nic
