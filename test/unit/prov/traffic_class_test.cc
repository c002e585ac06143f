// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libfabric's traffic classes and the DSCPs that their packets get (SES-130).
#include "settings/traffic_class.h"

#include <gtest/gtest.h>
#include <rdma/fabric.h>

#include <set>

#include "uet/pds/api.h"

namespace uet::prov {
namespace {

constexpr std::uint8_t kDefault = 63;

std::uint8_t dscp_of(std::uint32_t tclass) {
  return pds::dscp_of_class(traffic_class_of(tclass), kDefault);
}

TEST(TrafficClass, Ses130_UnspecifiedClass_DscpFromParameters) {
  EXPECT_EQ(traffic_class_of(FI_TC_UNSPEC), 0);
  EXPECT_EQ(dscp_of(FI_TC_UNSPEC), kDefault);
}

TEST(TrafficClass, Ses130_EachDscpIsItself) {
  for (std::uint8_t dscp = 0; dscp < 64; ++dscp) {
    EXPECT_TRUE(is_traffic_class(fi_tc_dscp_set(dscp)));
    EXPECT_EQ(dscp_of(fi_tc_dscp_set(dscp)), dscp);
  }
  EXPECT_FALSE(is_traffic_class(fi_tc_dscp_set(64)));
}

TEST(TrafficClass, Ses130_EachLabelHasADscpOfItsOwn) {
  std::set<std::uint8_t> classes;
  for (std::uint32_t label = FI_TC_BEST_EFFORT; label <= FI_TC_NETWORK_CTRL; ++label) {
    EXPECT_TRUE(is_traffic_class(label));
    classes.insert(traffic_class_of(label));
  }
  EXPECT_EQ(classes.size(), 6U);
  EXPECT_EQ(dscp_of(FI_TC_BEST_EFFORT), 0);
  EXPECT_EQ(dscp_of(FI_TC_SCAVENGER), 1);
}

TEST(TrafficClass, OtherNumbersAreNone) {
  for (const std::uint32_t other : {1U, 0x80U, 0x206U, 0x300U, 0x400U, 0xFFFFFFFFU}) {
    EXPECT_FALSE(is_traffic_class(other)) << other;
    EXPECT_EQ(traffic_class_of(other), 0);
  }
}

}  // namespace
}  // namespace uet::prov
