// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/device_memory.h"

#include <gtest/gtest.h>

#include <array>

namespace uet {
namespace {

class Device final : public DeviceMemory {
 public:
  void place(std::byte*, std::span<const std::byte>) noexcept override { ++calls; }
  void fetch(std::span<std::byte>, const std::byte*) noexcept override { ++calls; }
  int calls = 0;
};

// With UndefinedBehaviorSanitizer, memcpy to and from nullptr is an error even of no bytes.
TEST(DeviceMemory, NoBytesNeedNoMemory) {
  place(nullptr, nullptr, nullptr, {});
  fetch(nullptr, {}, nullptr);
  Device device;
  place(&device, nullptr, nullptr, {});
  fetch(&device, {}, nullptr);
  EXPECT_EQ(device.calls, 0);
}

TEST(DeviceMemory, BytesGoToTheDeviceOrAreCopied) {
  std::array<std::byte, 4> from{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}, to{};
  place(nullptr, nullptr, to.data(), from);
  EXPECT_EQ(to, from);
  to = {};
  fetch(nullptr, to, from.data());
  EXPECT_EQ(to, from);
  Device device;
  place(&device, nullptr, to.data(), from);
  fetch(&device, to, from.data());
  EXPECT_EQ(device.calls, 2);
}

}  // namespace
}  // namespace uet
