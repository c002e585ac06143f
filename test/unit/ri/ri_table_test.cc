// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addressing rules SES-11 to SES-16 as far as the lookup decides them.
#include "ri/ri_table.h"

#include <gtest/gtest.h>

namespace uet::ri {
namespace {

RiKey key(bool relative, std::uint32_t job, std::uint16_t pid, std::uint16_t index) {
  return {relative, JobId{job}, PidOnFep{pid}, ResourceIndex{index}};
}

class RiTableTest : public ::testing::Test {
 protected:
  RiTable table{8};
  int first = 1;
  int second = 2;
};

TEST_F(RiTableTest, Ses12_RelativeResolvesJobPidAndIndex) {
  ASSERT_TRUE(table.add(key(true, 101, 2, 10), &first));
  ASSERT_TRUE(table.add(key(true, 102, 2, 10), &second));
  EXPECT_EQ(table.find(key(true, 101, 2, 10)).context, &first);
  EXPECT_EQ(table.find(key(true, 102, 2, 10)).context, &second);
}

TEST_F(RiTableTest, RemovalForgetsTheLatestHit) {
  ASSERT_TRUE(table.add(key(true, 101, 2, 10), &first));
  ASSERT_TRUE(table.add(key(true, 101, 2, 11), &second));
  EXPECT_EQ(table.find(key(true, 101, 2, 10)).context, &first);
  EXPECT_EQ(table.find(key(true, 101, 2, 10)).context, &first);
  EXPECT_EQ(table.find(key(true, 101, 2, 11)).context, &second);
  ASSERT_TRUE(table.remove(key(true, 101, 2, 11)));
  EXPECT_EQ(table.find(key(true, 101, 2, 11)).verdict, RiVerdict::BadIndex);
  ASSERT_TRUE(table.add(key(true, 101, 2, 11), &first));
  EXPECT_EQ(table.find(key(true, 101, 2, 11)).context, &first);
}

TEST_F(RiTableTest, Ses13_AbsoluteIgnoresTheJob) {
  ASSERT_TRUE(table.add(key(false, 101, 2, 10), &first));
  EXPECT_EQ(table.find(key(false, 999, 2, 10)).context, &first);
  EXPECT_EQ(table.find(key(true, 101, 2, 10)).verdict, RiVerdict::BadPid);
}

TEST_F(RiTableTest, Ses14_DuplicateIsRefused) {
  ASSERT_TRUE(table.add(key(true, 101, 2, 10), &first));
  EXPECT_EQ(table.add(key(true, 101, 2, 10), &second).error(), Error::KeyInUse);
  ASSERT_TRUE(table.add(key(false, 101, 2, 10), &second));  // another way of addressing
  EXPECT_EQ(table.add(key(false, 7, 2, 10), &first).error(), Error::KeyInUse);
  EXPECT_EQ(table.size(), 2u);
}

TEST_F(RiTableTest, Ses15_IndicesOfOneProcessAreSeparate) {
  ASSERT_TRUE(table.add(key(true, 101, 2, 10), &first));
  ASSERT_TRUE(table.add(key(true, 101, 2, 11), &second));
  EXPECT_EQ(table.find(key(true, 101, 2, 11)).context, &second);
}

TEST_F(RiTableTest, Ses16_OtherJobIsToldFromOtherIndexAndOtherPid) {
  ASSERT_TRUE(table.add(key(true, 101, 2, 10), &first));
  EXPECT_EQ(table.find(key(true, 102, 2, 10)).verdict, RiVerdict::BadJob);
  EXPECT_EQ(table.find(key(true, 101, 2, 11)).verdict, RiVerdict::BadIndex);
  EXPECT_EQ(table.find(key(true, 101, 3, 10)).verdict, RiVerdict::BadPid);
  EXPECT_EQ(table.find(key(true, 101, 3, 10)).context, nullptr);
}

// WIRE 4.1
TEST_F(RiTableTest, Ses11_NumbersBeyondTheirFieldsAreInvalid) {
  EXPECT_EQ(table.add(key(true, kMaxJobId + 1, 2, 10), &first).error(), Error::Invalid);
  EXPECT_EQ(table.add(key(true, 1, kMaxPidOnFep + 1, 10), &first).error(), Error::Invalid);
  EXPECT_EQ(table.add(key(true, 1, 2, kMaxResourceIndex + 1), &first).error(), Error::Invalid);
  EXPECT_TRUE(table.add(key(true, kMaxJobId, kMaxPidOnFep, kMaxResourceIndex), &first));
}

TEST_F(RiTableTest, AddBeyondCapacityIsNoMemory) {
  for (std::uint16_t i = 0; i < 8; ++i) ASSERT_TRUE(table.add(key(true, 1, 2, i), &first));
  EXPECT_EQ(table.add(key(true, 1, 2, 8), &first).error(), Error::NoMemory);
}

TEST_F(RiTableTest, RemoveForgetsTheContext) {
  ASSERT_TRUE(table.add(key(true, 101, 2, 10), &first));
  EXPECT_TRUE(table.remove(key(true, 101, 2, 10)));
  EXPECT_EQ(table.remove(key(true, 101, 2, 10)).error(), Error::NotFound);
  EXPECT_EQ(table.find(key(true, 101, 2, 10)).verdict, RiVerdict::BadPid);
}

TEST_F(RiTableTest, Ses5_FindProcessTakesTheLowestIndex) {
  ASSERT_TRUE(table.add(key(true, 101, 2, 12), &second));
  ASSERT_TRUE(table.add(key(true, 101, 2, 10), &first));
  EXPECT_EQ(table.find_process(key(true, 101, 2, 0xABC)).context, &first);
  EXPECT_EQ(table.find_process(key(true, 102, 2, 0)).verdict, RiVerdict::BadPid);
}

}  // namespace
}  // namespace uet::ri
