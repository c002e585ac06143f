// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pds/id_index.h"

#include <gtest/gtest.h>

namespace uet::pds {
namespace {

TEST(IdIndex, NewIndex_HasNoNumber) {
  const IdIndex index;
  for (const std::uint16_t id : {0, 1, 65535}) {
    EXPECT_FALSE(index.has(PdcId{id}));
    EXPECT_EQ(index[PdcId{id}], IdIndex::kNone);
  }
}

TEST(IdIndex, NumberOfAnId_StaysUntilRemoved) {
  IdIndex index;
  index.set(PdcId{65535}, 0);
  index.set(PdcId{0}, 65534);
  EXPECT_TRUE(index.has(PdcId{65535}));
  EXPECT_EQ(index[PdcId{65535}], 0);
  EXPECT_EQ(index[PdcId{0}], 65534);
  index.remove(PdcId{65535});
  EXPECT_FALSE(index.has(PdcId{65535}));
  EXPECT_TRUE(index.has(PdcId{0}));
}

}  // namespace
}  // namespace uet::pds
