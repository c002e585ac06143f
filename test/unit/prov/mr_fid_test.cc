// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Regions that are derived from another one, as clients of API 2.0 and later ask for them.
#include "objects/mr_fid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

#include "domain_testing.h"
#include "mr_attr_testing.h"
#include "pair_testing.h"

namespace uet::prov {
namespace {

struct Parts : ::testing::Test {
  int register_part(std::byte* begin, std::size_t length, Owned<fid_mr>& out) {
    iovec piece{begin, length};
    MrAttr2x attr;
    attr.attr().mr_iov = &piece;
    attr.attr().iov_count = 1;
    attr.attr().access = FI_REMOTE_READ;
    attr.attr().requested_key = 2;
    attr.tail().base_mr = base.get();
    fid_mr* made = nullptr;
    const int result = fi_mr_regattr(domain.domain.get(), &attr.attr(), 0, &made);
    out.reset(made);
    return result;
  }
  void SetUp() override {
    OpenDomain::open(base, [&](auto** out) {
      return fi_mr_reg(domain.domain.get(), memory.data(), memory.size(), FI_REMOTE_WRITE, 0, 1, 0,
                       out, nullptr);
    });
  }

  OpenDomain domain{FI_VERSION(2, 0)};
  std::array<std::byte, 100> memory{};
  Owned<fid_mr> base;
};

TEST_F(Parts, PartHasRightsOfItsOwnAndHoldsItsBase) {
  Owned<fid_mr> part;
  ASSERT_EQ(register_part(memory.data() + 10, 20, part), 0);
  EXPECT_EQ(fi_mr_key(part.get()), 2U);
  EXPECT_EQ(fi_close(&base->fid), -FI_EBUSY);
  part.reset();
}

TEST_F(Parts, PeersAreHeldToBoundsAndRightsOfThePart) {
  constexpr std::uint64_t kBaseKey = 1, kPartKey = 2;
  const EndpointPair pair(domain);
  Owned<fid_mr> part;
  ASSERT_EQ(register_part(memory.data() + 10, 20, part), 0);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  const auto read = [&](std::span<std::byte> to, std::uint64_t from) {
    EXPECT_EQ(fi_read(pair.initiator.get(), to.data(), to.size(), nullptr, pair.to, from, kPartKey,
                      nullptr),
              0);
    return pair.next_error();
  };
  const auto write = [&](std::uint64_t key) {
    const std::byte byte{0xEE};
    EXPECT_EQ(fi_write(pair.initiator.get(), &byte, 1, nullptr, pair.to, 0, key, nullptr), 0);
    return pair.next_error();
  };
  std::array<std::byte, 20> seen{};
  EXPECT_EQ(read(seen, 0), 0);
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), memory.begin() + 10));
  EXPECT_NE(read(seen, 1), 0) << "one byte beyond the part, inside the base";
  EXPECT_EQ(write(kPartKey), FI_EACCES);
  EXPECT_EQ(memory[10], std::byte{10}) << "the write was refused and yet arrived";
  EXPECT_EQ(write(kBaseKey), 0);
  EXPECT_EQ(memory[0], std::byte{0xEE});
}

TEST_F(Parts, PartBeyondTheBaseIsRefused) {
  Owned<fid_mr> part;
  EXPECT_EQ(register_part(memory.data() + 90, 11, part), -FI_EINVAL);
  EXPECT_EQ(register_part(memory.data() - 1, 5, part), -FI_EINVAL);
  EXPECT_EQ(register_part(memory.data() + 90, 10, part), 0);
}

TEST_F(Parts, BaseOfAnotherDomainIsRefused) {
  OpenDomain other(FI_VERSION(2, 0));
  Owned<fid_mr> far;
  OpenDomain::open(far, [&](auto** out) {
    return fi_mr_reg(other.domain.get(), memory.data(), memory.size(), 0, 0, 1, 0, out, nullptr);
  });
  std::swap(base, far);
  Owned<fid_mr> part;
  EXPECT_EQ(register_part(memory.data(), 5, part), -FI_EDOMAIN);
  std::swap(base, far);
}

}  // namespace
}  // namespace uet::prov
