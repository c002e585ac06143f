// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory that the CPU has mapped; a memory file serves as well as a dmabuf.
#include "hmem/dmabuf.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace uet::prov {
namespace {

std::byte* device_address(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

TEST(Dmabuf, CopiesWhatIsBehindTheDevicesAddresses) {
  const int fd = memfd_create("dmabuf", 0);
  ASSERT_EQ(ftruncate(fd, 10'000), 0);
  std::byte* const base = device_address(0x7000'0000'1000);
  const auto buffer = Dmabuf::map(fd, 4100, 500, base);  // not at the beginning of a page
  ASSERT_NE(buffer, nullptr);
  std::array<std::byte, 4> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  buffer->place(base + 7, bytes);
  std::array<std::byte, 4> in_file{};
  ASSERT_EQ(pread(fd, in_file.data(), 4, 4107), 4);
  EXPECT_EQ(in_file, bytes);
  close(fd);  // it has one of its own
  std::array<std::byte, 3> fetched{};
  buffer->fetch(fetched, base + 8);
  EXPECT_EQ(fetched, (std::array{std::byte{2}, std::byte{3}, std::byte{4}}));
}

TEST(Dmabuf, IsNotMadeOfWhatCannotBeMapped) {
  EXPECT_EQ(Dmabuf::map(-1, 0, 10, nullptr), nullptr);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(Dmabuf::map(ends[0], 0, 10, nullptr), nullptr);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace uet::prov
