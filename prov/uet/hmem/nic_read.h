// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory that the NIC has accepted: the NIC reads payload there itself. All that the NIC
// does not do (received bytes, copies for peers of this host) is left to the driver as before.
#pragma once

#include "uet/base/device_memory.h"

namespace uet::prov {

class NicReadMemory final : public DeviceMemory {
 public:
  explicit NicReadMemory(DeviceMemory& driver) : driver_(driver) {}

  void place(std::byte* there, std::span<const std::byte> bytes) noexcept override {
    driver_.place(there, bytes);
  }
  void fetch(std::span<std::byte> bytes, const std::byte* there) noexcept override {
    driver_.fetch(bytes, there);
  }
  StagingMemory& staging() noexcept override { return driver_.staging(); }
  void fetch_staged(std::span<std::byte> bytes, const std::byte* there) noexcept override {
    driver_.fetch_staged(bytes, there);
  }
  void place_staged(std::byte* there, std::span<const std::byte> bytes) noexcept override {
    driver_.place_staged(there, bytes);
  }
  bool wants_long_copies() const noexcept override { return driver_.wants_long_copies(); }
  bool is_read_by_nic() const noexcept override { return true; }

 private:
  DeviceMemory& driver_;
};

}  // namespace uet::prov
