// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keys with the bits IDEMPOTENT_SAFE and OPTIMIZED (SES-132) from registration to the wire.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kSafe = std::uint64_t{1} << 63;
constexpr std::uint64_t kOptimized = std::uint64_t{1} << 62;
constexpr std::uint64_t kIndex = 0xABC;  // 12 bits
constexpr std::uint8_t kBytes = 77;
constexpr std::uint8_t kOffset = 0x43;

// A small WRITE of kBytes to kOffset through the index kIndex (WIRE 3.4), generation 0, job 1.
bool has_small_write(const std::string& capture) {
  std::ifstream file(capture, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::string begin{0x01, 0x0B, 0, kBytes, 0, 0, 0, 1};
  const std::string end{0x0A, static_cast<char>(0xBC), 0, 0, 0, 0, 0, 0, 0, kOffset};
  constexpr std::size_t kEndAt = 10;  // behind PIDonFEP
  for (std::size_t at = bytes.find(begin); at != std::string::npos;
       at = bytes.find(begin, at + 1)) {
    if (bytes.compare(at + kEndAt, end.size(), end) == 0) return true;
  }
  return false;
}

struct Case {
  const char* name;
  std::uint64_t key;
  const char* short_headers;
  const char* rudi;
  bool small;  // the write above has a small header
};
void PrintTo(const Case& param, std::ostream* out) { *out << param.name; }

constexpr Case kCases[] = {
    {"Optimized", kOptimized | kIndex, "yes", "no", true},
    {"OptimizedAndSafe", kSafe | kOptimized | kIndex, "yes", "no", true},
    {"OptimizedAndSafeByRudi", kSafe | kOptimized | kIndex, "yes", "yes", true},
    {"OptimizedWithStandardHeaders", kOptimized | kIndex, "no", "no", false},
    {"Safe", kSafe | kIndex, "yes", "no", false},
    {"Plain", kIndex, "yes", "no", false}};

class Keys : public ::testing::TestWithParam<Case> {};

// The steps of both sides; `key` is the target's.
void use(std::uint64_t key) {
  Side initiator;
  Side target;
  const auto ep = initiator.open_endpoint(0);
  const auto target_ep = target.open_endpoint(0);
  const fi_addr_t to = initiator.insert(*target_ep);
  std::vector<char> memory(200'000, 0);
  fid_mr* made = nullptr;
  const auto expose = [&] {
    check(fi_mr_reg(target.domain.get(), memory.data(), memory.size(),
                    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &made, nullptr),
          "fi_mr_reg");
  };
  expose();
  require(fi_mr_key(made) == key, "another key");
  const auto done = [&](ssize_t posted, int error) {
    check(posted, "posting");
    const int ended = initiator.next(target).error;
    require(ended == error, "error " + std::to_string(ended) + ", not " + std::to_string(error));
  };
  const std::vector<char> source(150'000, 's');
  const auto write = [&](std::size_t bytes, std::uint64_t at, int error) {
    done(fi_write(ep.get(), source.data(), bytes, nullptr, to, at, key, nullptr), error);
  };
  write(kBytes, kOffset, 0);
  require(
      std::string_view(memory.data() + kOffset, kBytes) == std::string_view(source.data(), kBytes),
      "the short write");
  require(memory[kOffset - 1] == 0 && memory[kOffset + kBytes] == 0, "its edges");
  write(source.size(), 1000, 0);  // several packets
  require(std::equal(source.begin(), source.end(), memory.begin() + 1000), "the long write");
  done(fi_writedata(ep.get(), "data", 5, nullptr, 9, to, 0, key, nullptr), 0);
  const auto event = target.poll();
  require(event && event->data == 9 && std::strcmp(memory.data(), "data") == 0, "writedata");
  char back[5] = "";
  done(fi_read(ep.get(), back, 5, nullptr, to, 0, key, nullptr), 0);
  require(std::strcmp(back, "data") == 0, "the read");
  write(kBytes, memory.size() - kBytes + 1, FI_EFAULT);
  check(fi_close(&made->fid), "fi_close");
  write(kBytes, kOffset, FI_ENOKEY);
  expose();
  write(kBytes, kOffset, 0);
  check(fi_close(&made->fid), "fi_close");
}

// SES-5, SES-132, SES-137, WIRE 3.4, WIRE 4.3
TEST_P(Keys, Ses5_Ses132_OnlyOptimizedKeysUseSmallHeaders) {
  if (provider() != "uet") GTEST_SKIP() << "keys of uet";
  const Case& param = GetParam();
  const std::string capture = ::testing::TempDir() + "uet_key_" + std::to_string(::getpid());
  Process child("child",
                {{"tune.short_headers", param.short_headers},
                 {"tune.rudi", param.rudi},
                 {"FI_UET_PCAP", capture + ",clear"}},  // TSS-70
                [&] { use(param.key); });
  EXPECT_EQ(child.wait(), "");
  const std::string clear = captures_are_encrypted() ? capture + ".clear" : capture;
  EXPECT_EQ(has_small_write(clear), param.small);
  for (const std::string& name : {capture, capture + ".clear"}) {
    ::unlink(name.c_str());
    ::unlink((name + "-2").c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Keys, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// SES-132: bits that mean nothing, and indices that no small header could name.
TEST(KeyBits, ReservedOnesAreRefused) {
  Side side;
  char memory[8] = "";
  for (const std::uint64_t key :
       {kOptimized | 0x1000, kOptimized | kSafe | std::uint64_t{1} << 47, std::uint64_t{1} << 61,
        kSafe | std::uint64_t{1} << 56, std::uint64_t{1} << 48}) {
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_reg(side.domain.get(), memory, sizeof memory, FI_REMOTE_WRITE, 0, key, 0, &mr,
                        nullptr),
              -FI_EKEYREJECTED)
        << std::hex << key;
  }
}

}  // namespace
}  // namespace uet::e2e
