// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/secret.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace uet::tss {
namespace {

using testing::Each;

std::array<std::byte, kKeyBytes> ones() {
  std::array<std::byte, kKeyBytes> bytes;
  bytes.fill(std::byte{0xA5});
  return bytes;
}

// TSS-60: looks at the memory after the secret has ended.
TEST(Secret, Tss60_MemoryIsZeroAfterTheEnd) {
  alignas(Key) std::array<std::byte, sizeof(Key)> memory;
  const auto bytes = ones();
  auto* const key = new (memory.data()) Key(std::span<const std::byte, kKeyBytes>(bytes));
  EXPECT_EQ(memory[5], std::byte{0xA5});
  std::destroy_at(key);
  std::vector<std::byte> left(memory.begin(), memory.end());
  EXPECT_THAT(left, Each(std::byte{0}));
}

TEST(Secret, Tss60_ClearZeroes) {
  const auto bytes = ones();
  Key key{std::span<const std::byte, kKeyBytes>(bytes)};
  key.clear();
  EXPECT_THAT(key.bytes(), Each(std::byte{0}));
}

TEST(Secret, EqualSecretsComparesAllBytesAndTheLength) {
  const auto a = ones();
  auto b = a;
  EXPECT_TRUE(equal_secrets(a, b));
  b.back() = std::byte{0};
  EXPECT_FALSE(equal_secrets(a, b));
  EXPECT_FALSE(equal_secrets(a, std::span(a).first(31)));
}

}  // namespace
}  // namespace uet::tss
