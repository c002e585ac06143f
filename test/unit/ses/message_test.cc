// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Scattered memory and the buffers beside it.
#include "ses/message.h"

#include <algorithm>
#include <vector>

#include "unit/ses/harness.h"

namespace uet::ses {
namespace {

using test::Bytes;
using test::pattern;
using test::slice_of;

TEST(Scatter, BytesCrossSlicesAndStopAtTheEnd) {
  Bytes first(3);
  Bytes empty;
  Bytes second(4);
  const std::vector<IoSlice> to{slice_of(first), slice_of(empty), slice_of(second)};
  const Bytes data = pattern(5);
  EXPECT_EQ(scatter(to, 2, data, nullptr), 5u);
  EXPECT_EQ(first[2], data[0]);
  EXPECT_EQ(second[3], data[4]);
  EXPECT_EQ(scatter(to, 6, data, nullptr), 1u);
  EXPECT_EQ(second[3], data[0]);
  EXPECT_EQ(scatter(to, 7, data, nullptr), 0u);
  EXPECT_EQ(scatter(to, UINT64_MAX, data, nullptr), 0u);
  EXPECT_EQ(scatter({}, 0, data, nullptr), 0u);
}

TEST(Scatter, DevicesPlaceTheirPartThemselves) {
  test::FakeDevice device;
  Bytes memory(6);
  const std::vector<IoSlice> to{{&memory[0], 2}, {&memory[2], 3, &device}, {&memory[5], 1}};
  const Bytes data = pattern(6);
  EXPECT_EQ(scatter(to, 0, data, nullptr), 6u);
  EXPECT_EQ(memory, (Bytes{data[0], data[1], ~data[2], ~data[3], ~data[4], data[5]}));
}

// A device whose driver takes long to begin a copy.
struct SlowDevice final : DeviceMemory {
  void place(std::byte*, std::span<const std::byte>) noexcept override { ++places; }
  void fetch(std::span<std::byte>, const std::byte*) noexcept override {}
  void place_staged(std::byte* there, std::span<const std::byte> bytes) noexcept override {
    std::copy(bytes.begin(), bytes.end(), there);
    copies.push_back(bytes.size());
  }
  bool wants_long_copies() const noexcept override { return true; }
  int places = 0;
  std::vector<std::size_t> copies;
};

struct PlainCopy final : HostCopy {
  void copy(std::byte* there, std::span<const std::byte> bytes) noexcept override {
    std::copy(bytes.begin(), bytes.end(), there);
  }
};

TEST(Scatter, BytesThatFollowEachOtherBecomeOneCopy) {
  SlowDevice device;
  PlainCopy host;
  Bytes memory(10);
  const Bytes data = pattern(10);
  const std::vector<IoSlice> to{{memory.data(), memory.size(), &device}};
  const auto put = [&](std::size_t begin, std::size_t count) {
    scatter(to, begin, std::span(data).subspan(begin, count), &host);
  };
  put(0, 1);
  EXPECT_EQ(device.places, 1) << "no other packets are at hand";
  host.joins = true;
  put(0, 3);
  put(3, 2);
  EXPECT_TRUE(device.copies.empty());
  put(7, 3);  // a packet is missing
  EXPECT_EQ(device.copies, (std::vector<std::size_t>{5}));
  put(5, 2);
  end_run(&host);
  EXPECT_EQ(device.copies, (std::vector<std::size_t>{5, 3, 2}));
  end_run(&host);
  EXPECT_EQ(device.copies.size(), 3u);
  EXPECT_EQ(memory, data);
  EXPECT_EQ(device.places, 1);
}

TEST(Scatter, ARunIsNoLongerThanItsBuffer) {
  SlowDevice device;
  PlainCopy host;
  host.joins = true;
  Bytes memory(DeviceRun::kBytes + 2);
  const std::vector<IoSlice> to{{memory.data(), memory.size(), &device}};
  scatter(to, 0, Bytes(DeviceRun::kBytes - 1), &host);
  scatter(to, DeviceRun::kBytes - 1, Bytes(2), &host);
  EXPECT_EQ(device.copies, (std::vector<std::size_t>{DeviceRun::kBytes - 1}));
  end_run(&host);
  EXPECT_EQ(device.copies.back(), 2u);
}

TEST(Scatter, HostCopyTakesLongPiecesOfHostMemory) {
  struct : HostCopy {
    void copy(std::byte* there, std::span<const std::byte> bytes) noexcept override {
      copied += bytes.size();
      std::copy(bytes.rbegin(), bytes.rend(), there);
    }
    std::size_t copied = 0;
  } host;
  test::FakeDevice device;
  constexpr std::size_t kLeast = HostCopy::kLeastBytes;
  Bytes memory(3 * kLeast - 1);
  const std::vector<IoSlice> to{{&memory[0], kLeast},
                                {&memory[kLeast], kLeast - 1},
                                {&memory[2 * kLeast - 1], kLeast, &device}};
  const Bytes data = pattern(memory.size());
  EXPECT_EQ(scatter(to, 0, data, &host), memory.size());
  EXPECT_EQ(host.copied, kLeast) << "neither the shorter slice nor the one in device memory";
  EXPECT_TRUE(std::equal(data.begin(), data.begin() + kLeast, memory.rend() - kLeast));
  EXPECT_TRUE(std::equal(data.begin() + kLeast, data.begin() + 2 * kLeast - 1, &memory[kLeast]));
  EXPECT_EQ(memory[2 * kLeast - 1], ~data[2 * kLeast - 1]);
}

TEST(Gather, BytesCrossSlices) {
  Bytes first = pattern(3);
  Bytes second = pattern(4, 2);
  const std::vector<IoSlice> from{slice_of(first), slice_of(second)};
  Bytes out(4);
  gather(from, 1, 4, out.data());
  EXPECT_EQ(out, (Bytes{first[1], first[2], second[0], second[1]}));
}

TEST(Point, TwoSlicesFitThreeDoNot) {
  Bytes memory = pattern(12);
  const std::vector<IoSlice> from{{&memory[0], 4}, {&memory[4], 2}, {&memory[6], 6}};
  std::array<Slice, 2> out;
  ASSERT_TRUE(point(from, 1, 4, out));
  EXPECT_EQ(out[0].data, &memory[1]);
  EXPECT_EQ(out[0].length, 3u);
  EXPECT_EQ(out[1].data, &memory[4]);
  EXPECT_EQ(out[1].length, 1u);
  ASSERT_TRUE(point(from, 7, 5, out));
  EXPECT_EQ(out[1].length, 0u);
  EXPECT_FALSE(point(from, 0, 12, out));
}

TEST(TotalLength, SumThatWouldWrapStaysAtTheTop) {
  std::byte memory{};
  const std::vector<IoSlice> slices{{&memory, SIZE_MAX}, {&memory, 2}};
  EXPECT_EQ(total_length(slices), UINT64_MAX);
}

TEST(PieceStore, SmallOnesTakeNoFullBuffer) {
  BufferPool full(1024, 2);
  PieceStore store(full);
  Piece* first = store.take(PieceStore::kSmallBytes);
  Piece* second = store.take(PieceStore::kSmallBytes + 1);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(store.cost(PieceStore::kSmallBytes), PieceStore::kSmallBytes + sizeof(Piece));
  EXPECT_EQ(store.cost(PieceStore::kSmallBytes + 1), 1024u + sizeof(Piece));
  EXPECT_EQ(full.in_use(), 1u);
  EXPECT_EQ(store.take(1024, 1), nullptr) << "the last one is reserved";
  Piece* third = store.take(1024);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(store.take(1024), nullptr);
  EXPECT_EQ(store.available_bytes(), 0u);
  first->next = second;
  second->next = third;
  store.give_back_all(first);
  EXPECT_EQ(first, nullptr);
  EXPECT_EQ(store.in_use(), 0u);
  EXPECT_EQ(full.in_use(), 0u);
}

TEST(PieceStore, MoreThanABufferIsRefused) {
  BufferPool full(1024, 1);
  PieceStore store(full);
  EXPECT_EQ(store.take(1025), nullptr);
}

}  // namespace
}  // namespace uet::ses
