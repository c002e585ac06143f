// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a client of an older or newer libfabric has in its structures. The offsets are those of
// libfabric 1.17 and 2.6 on 64-bit machines, as numbers, so that other headers cannot move them.
#include "compat.h"

#include <gtest/gtest.h>
#include <rdma/fabric.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

namespace uet::prov {
namespace {

TEST(Compat, AnMrAttrIsReadAsFarAsItsCallersApiHasIt) {
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(1, 4)), 48U);
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(1, 5)), 64U);
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(1, 9)), 80U);
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(1, 17)), 80U);
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(2, 6)), 80U);
}

TEST(Compat, CounterLimitsLieBehindTheDomainAttrOf117) {
  EXPECT_EQ(kDomainAttrBytes + offsetof(DomainAttrTail, max_ep_auth_key), 192U);
  EXPECT_EQ(kDomainAttrBytes + offsetof(DomainAttrTail, max_group_id), 200U);
  EXPECT_EQ(kDomainAttrBytes + offsetof(DomainAttrTail, max_cntr_value), 208U);
  EXPECT_EQ(kDomainAttrBytes + offsetof(DomainAttrTail, max_err_cntr_value), 216U);
}

TEST(Compat, CounterLimitsAreWrittenOnlyWhereTheLibraryHasThem) {
  alignas(fi_domain_attr) std::array<std::byte, 224> room;
  room.fill(std::byte{0x5a});
  auto* attr = new (room.data()) fi_domain_attr;
  std::fill(room.begin(), room.end(), std::byte{0x5a});
  set_counter_limits(*attr);
  const bool has_them = fi_version() >= FI_VERSION(2, 5);
  const std::byte expected = has_them ? std::byte{0xff} : std::byte{0x5a};
  EXPECT_TRUE(std::all_of(room.begin(), room.begin() + 208,
                          [](std::byte value) { return value == std::byte{0x5a}; }));
  EXPECT_TRUE(std::all_of(room.begin() + 208, room.end(),
                          [&](std::byte value) { return value == expected; }));
}

TEST(Compat, NumbersOfOldNames) {
  EXPECT_EQ(kMrBasic, 1);
  EXPECT_EQ(kMrScalable, 2);
  EXPECT_EQ(kProgressControlUnified, FI_PROGRESS_MANUAL + 1);
  EXPECT_EQ(kRegMr, 1ULL << 59);
}

}  // namespace
}  // namespace uet::prov
