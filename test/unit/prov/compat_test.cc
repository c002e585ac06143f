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

#include "mr_attr_testing.h"

namespace uet::prov {
namespace {

TEST(Compat, AnMrAttrIsReadAsFarAsItsCallersApiHasIt) {
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(1, 4)), 48U);
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(1, 5)), 64U);
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(1, 9)), 80U);
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(1, 17)), 80U);
  EXPECT_EQ(mr_attr_bytes(FI_VERSION(2, 6)), 80U);
}

TEST(Compat, BaseOfARegionIsReadFromApi20On) {
  static_assert(kMrAttrBytes == 80);
  fid_mr base{};
  MrAttr2x attr;
  attr.tail().base_mr = &base;
  EXPECT_EQ(base_mr_of(attr.attr(), FI_VERSION(1, 22)), nullptr);
  EXPECT_EQ(base_mr_of(attr.attr(), FI_VERSION(2, 0)), &base);
}

TEST(Compat, CounterLimitsLieBehindTheDomainAttrOf117) {
  EXPECT_EQ(kDomainAttrBytes + offsetof(DomainAttrTail, max_ep_auth_key), 192U);
  EXPECT_EQ(kDomainAttrBytes + offsetof(DomainAttrTail, max_group_id), 200U);
  EXPECT_EQ(kDomainAttrBytes + offsetof(DomainAttrTail, max_cntr_value), 208U);
  EXPECT_EQ(kDomainAttrBytes + offsetof(DomainAttrTail, max_err_cntr_value), 216U);
}

TEST(Compat, CounterLimits_WrittenIfLibraryHasThem) {
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

// fi_domain_attr as the headers of several versions have it, with all in front of tclass in one.
constexpr std::size_t kBeforeTclass = 184;
struct Attr117 {
  std::byte before[kBeforeTclass];
  std::uint32_t tclass;
};
struct Attr120 {
  std::byte before[kBeforeTclass];
  std::uint32_t tclass;
  std::size_t max_ep_auth_key;
  std::uint32_t max_group_id;
};
struct Attr26 {
  std::byte before[kBeforeTclass];
  std::uint32_t tclass;
  std::size_t max_ep_auth_key;
  std::uint32_t max_group_id;
  std::uint64_t max_cntr_value;
  std::uint64_t max_err_cntr_value;
};
struct AttrAfter26 {
  std::byte before[kBeforeTclass];
  std::uint32_t tclass;
  std::size_t max_ep_auth_key;
  std::uint32_t max_group_id;
  std::uint64_t max_cntr_value;
  std::uint64_t max_err_cntr_value;
  std::size_t max_xpu_ctx_cnt;
};
struct ShorterAttr {
  std::byte before[kBeforeTclass - 8];
  std::uint32_t tclass;
};
struct AttrWithAMemberBetween {
  std::byte before[kBeforeTclass];
  std::uint32_t tclass;
  std::size_t max_ep_auth_key;
  std::uint32_t max_group_id;
  std::uint64_t between;
  std::uint64_t max_cntr_value;
  std::uint64_t max_err_cntr_value;
};

TEST(Compat, HeadersOfAllVersionsAreTaken) {
  EXPECT_EQ(offsetof(fi_domain_attr, tclass), kBeforeTclass);
  EXPECT_TRUE(has_known_layout<Attr117>());
  EXPECT_TRUE(has_known_layout<Attr120>());
  EXPECT_TRUE(has_known_layout<Attr26>());
  EXPECT_TRUE(has_known_layout<AttrAfter26>());
}

TEST(Compat, HeadersWithAnotherLayoutAreRefused) {
  EXPECT_FALSE(has_known_layout<ShorterAttr>());
  EXPECT_FALSE(has_known_layout<AttrWithAMemberBetween>());
}

// The attributes of endpoints, CQs and counters, with xpu_ctx at the end as main's headers have it.
struct EpAttr117 {
  std::byte before[88];
  std::uint8_t* auth_key;
};
struct EpAttrMain {
  std::byte before[88];
  std::uint8_t* auth_key;
  void* xpu_ctx;
};
struct EpAttrWithAMemberBetween {
  std::byte before[88];
  void* between;
  std::uint8_t* auth_key;
};
struct CqAttr117 {
  std::byte before[32];
  void* wait_set;
};
struct CqAttrMain {
  std::byte before[32];
  void* wait_set;
  void* xpu_ctx;
};
struct CqAttrWithAMemberBetween {
  std::byte before[32];
  void* between;
  void* wait_set;
};
struct CntrAttr117 {
  std::byte before[16];
  std::uint64_t flags;
};
struct CntrAttrMain {
  std::byte before[16];
  std::uint64_t flags;
  void* xpu_ctx;
};
struct CntrAttrWithAMemberBetween {
  std::byte before[16];
  void* between;
  std::uint64_t flags;
};

TEST(Compat, AttrsOfObjectsMayEndWithMoreMembers) {
  EXPECT_TRUE(has_known_ep_attr<EpAttr117>());
  EXPECT_TRUE(has_known_ep_attr<EpAttrMain>());
  EXPECT_FALSE(has_known_ep_attr<EpAttrWithAMemberBetween>());
  EXPECT_TRUE(has_known_cq_attr<CqAttr117>());
  EXPECT_TRUE(has_known_cq_attr<CqAttrMain>());
  EXPECT_FALSE(has_known_cq_attr<CqAttrWithAMemberBetween>());
  EXPECT_TRUE(has_known_cntr_attr<CntrAttr117>());
  EXPECT_TRUE(has_known_cntr_attr<CntrAttrMain>());
  EXPECT_FALSE(has_known_cntr_attr<CntrAttrWithAMemberBetween>());
}

TEST(Compat, NumbersOfOldNames) {
  EXPECT_EQ(kMrBasic, 1);
  EXPECT_EQ(kMrScalable, 2);
  EXPECT_EQ(kProgressControlUnified, FI_PROGRESS_MANUAL + 1);
  EXPECT_EQ(kRegMr, 1ULL << 59);
}

}  // namespace
}  // namespace uet::prov
