// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory keys and the checks of SES-115 steps 12a to 12e.
#include "ri/mr_table.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace uet::ri {
namespace {

constexpr JobId kJob{1};
constexpr ResourceIndex kRi{15};
constexpr PidOnFep kPid{3};
constexpr ContextName kHere{kPid, kRi};
constexpr std::uint64_t kBit48 = std::uint64_t{1} << 48;

class MrTableTest : public testing::Test {
 protected:
  MemoryRegion region() {
    MemoryRegion r;
    r.base = memory_.data();
    r.length = memory_.size();
    r.access = kRemoteRead | kRemoteWrite;
    return r;
  }
  Rkey add(const MemoryRegion& r) { return table_.add(r).value(); }
  MrVerdict verdict(Rkey key, std::uint64_t offset, std::uint64_t length,
                    std::uint8_t access = kRemoteWrite) {
    return table_.check(key, kJob, kHere, access, offset, length).verdict;
  }

  std::array<std::byte, 100> memory_{};
  MrTable table_{4, {1, 2}};
};

TEST_F(MrTableTest, Check_KnownKeyGivesTheAddressOfTheOffset) {
  const Rkey key = add(region());
  const MrAccess access = table_.check(key, kJob, kHere, kRemoteWrite, 10, 90);
  EXPECT_EQ(access.verdict, MrVerdict::Ok);
  EXPECT_EQ(access.address, memory_.data() + 10);
}

TEST_F(MrTableTest, Check_Ses134_KeyIsNotValidBeforeItIsEnabled) {
  MemoryRegion disabled = region();
  disabled.enabled = false;
  const Rkey key = add(disabled);
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadKey);
  ASSERT_NE(table_.find(key), nullptr);
  table_.find(key)->enabled = true;
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::Ok);
  ASSERT_TRUE(table_.remove(key).ok());
  EXPECT_EQ(table_.find(key), nullptr);
}

TEST_F(MrTableTest, Check_Ses135_RegionMayBeRestrictedLater) {
  const Rkey key = add(region());
  table_.find(key)->ri = ResourceIndex{16};
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadKey);
  table_.find(key)->ri = kRi;
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::Ok);
  table_.find(key)->ri = ResourceIndex{13};
  table_.find(key)->ri_count = 2;
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadKey);
  table_.find(key)->ri_count = 3;
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::Ok);
}

TEST_F(MrTableTest, MoveContext_Ses135_RegionGoesWithItsContext) {
  const Rkey key = add(region());
  const Rkey other = add(region());
  table_.find(key)->ri = kRi;
  table_.move_context(kHere, ContextName{kPid, {16}});
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadKey);
  EXPECT_EQ(verdict(other, 0, 1), MrVerdict::Ok) << "bound to none";
  table_.move_context({kPid, {16}}, kHere);
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::Ok);
}

TEST_F(MrTableTest, Check_Ses135_SameIndexOfAnotherPidIsAnother) {
  const Rkey key = add(region());
  table_.find(key)->ri = kRi;
  table_.find(key)->pid = PidOnFep{4};
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadKey);
  table_.move_context(kHere, std::nullopt);  // not this one
  table_.move_context({PidOnFep{4}, kRi}, kHere);
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::Ok);
  EXPECT_EQ(table_.find(key)->pid, kPid);
}

TEST_F(MrTableTest, MoveContext_Ses134_EndedRegion_GoneForNext) {
  const Rkey key = add(region());
  table_.find(key)->ri = kRi;
  table_.move_context(kHere, std::nullopt);
  table_.find(key)->enabled = true;
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadKey);
  EXPECT_TRUE(table_.remove(key).ok());
}

TEST_F(MrTableTest, Check_AccessNamesTheObserver) {
  struct Observer final : AccessObserver {
    void accessed(std::uint8_t access, std::uint64_t) noexcept override { last = access; }
    std::uint8_t last = 0;
  } observer;
  const Rkey key = add(region());
  table_.check(key, kJob, kHere, kRemoteWrite, 0, 1).executed(kRemoteWrite, 1);  // no observer
  table_.find(key)->observer = &observer;
  table_.check(key, kJob, kHere, kRemoteWrite, 0, 1).executed(kRemoteWrite, 1);
  EXPECT_EQ(observer.last, kRemoteWrite);
}

// WIRE 4.3
TEST_F(MrTableTest, Add_Ses133_ProviderKeysHaveBit48AndDiffer) {
  const Rkey a = add(region());
  const Rkey b = add(region());
  EXPECT_EQ(a.value >> 48, 1U);
  EXPECT_EQ(b.value >> 48, 1U);
  EXPECT_NE(a, b);
}

// A stranger found the keys that were counted up, and with them the memory, in four seconds.
TEST_F(MrTableTest, Add_KeysTellNothingOfEachOther) {
  MrTable other(4, {1, 3});
  const std::uint64_t a = add(region()).value;
  const std::uint64_t b = add(region()).value;
  EXPECT_GT(std::popcount(a ^ b), 8);
  EXPECT_GT(std::popcount(a ^ other.add(region()).value().value), 8);
}

// 12c would tell that there is such a key, 12e how long the region is.
TEST_F(MrTableTest, Check_Ses119_NoRemoteRights_LooksMissing) {
  MemoryRegion local = region();
  local.access = 0;
  const Rkey key = add(local);
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadKey);
  EXPECT_EQ(verdict(key, 0, 1, kRemoteRead), MrVerdict::BadKey);
  EXPECT_EQ(verdict(key, 1000, 1), MrVerdict::BadKey);
}

TEST_F(MrTableTest, Add_Ses141_KeyIsNotReusedBefore65536Others) {
  const Rkey first = add(region());
  ASSERT_TRUE(table_.remove(first).ok());
  for (int i = 0; i < 65536; ++i) {
    const Rkey key = add(region());
    ASSERT_NE(key, first);
    ASSERT_TRUE(table_.remove(key).ok());
  }
}

TEST_F(MrTableTest, AddWithKey_Ses133_SameIndexInBothNameSpaces) {
  const Rkey provider = add(region());
  MemoryRegion other = region();
  other.access = kRemoteRead;
  const Rkey application{provider.value & ~kBit48};
  ASSERT_TRUE(table_.add_with_key(other, application).ok());
  EXPECT_EQ(verdict(provider, 0, 1), MrVerdict::Ok);
  EXPECT_EQ(verdict(application, 0, 1), MrVerdict::NoRight);
}

TEST_F(MrTableTest, Adopt_TakesKeysOfAnotherTable) {
  MrTable other(4, {3, 4});
  const Rkey chosen = other.add(region()).value();
  ASSERT_TRUE(table_.adopt(region(), chosen).ok());
  EXPECT_EQ(verdict(chosen, 0, 1), MrVerdict::Ok);
  EXPECT_EQ(table_.adopt(region(), chosen).error(), Error::KeyInUse);
  EXPECT_TRUE(table_.adopt(region(), Rkey{42}).ok());
  EXPECT_EQ(table_.adopt(region(), Rkey{kBit48 << 1 | 7}).error(), Error::Invalid);
  EXPECT_EQ(table_.size(), 2U);
}

TEST_F(MrTableTest, AddWithKey_TakenKeyIsKeyInUse) {
  ASSERT_TRUE(table_.add_with_key(region(), Rkey{42}).ok());
  EXPECT_EQ(table_.add_with_key(region(), Rkey{42}).error(), Error::KeyInUse);
  EXPECT_EQ(table_.size(), 1U);
}

// WIRE 4.3
TEST_F(MrTableTest, AddWithKey_Ses132_EachReservedBitIsInvalid) {
  for (int bit = 48; bit <= 61; ++bit) {
    const Rkey key{(std::uint64_t{1} << bit) | 7};
    EXPECT_EQ(table_.add_with_key(region(), key).error(), Error::Invalid) << bit;
  }
  EXPECT_EQ(table_.size(), 0U);
}

// WIRE 4.3
TEST_F(MrTableTest, AddWithKey_Ses132_FlagBits_AreAllowed) {
  EXPECT_TRUE(table_.add_with_key(region(), Rkey{(std::uint64_t{1} << 63) | 7}).ok());
  EXPECT_TRUE(table_.add_with_key(region(), Rkey{(std::uint64_t{1} << 62) | 0xFFF}).ok());
  EXPECT_TRUE(table_.add_with_key(region(), Rkey{0x0000'FFFF'FFFF'FFFF}).ok());
}

// WIRE 4.3: a small header carries only the index, so no two keys may share one.
TEST_F(MrTableTest, OptimizedKey_Ses132_IsFoundByItsIndexAlone) {
  constexpr Rkey kPlain{(std::uint64_t{1} << 62) | 0x123};
  constexpr Rkey kSafe{(std::uint64_t{3} << 62) | 0x123};
  for (const Rkey key : {kPlain, kSafe}) {
    ASSERT_TRUE(table_.add_with_key(region(), key).ok());
    EXPECT_EQ(table_.optimized_key(0x123), key);
    EXPECT_EQ(table_.add_with_key(region(), kPlain).error(), Error::KeyInUse);
    EXPECT_EQ(table_.add_with_key(region(), kSafe).error(), Error::KeyInUse);
    ASSERT_TRUE(table_.remove(key).ok());
  }
  EXPECT_EQ(table_.find(table_.optimized_key(0x123)), nullptr);
  ASSERT_TRUE(table_.add_with_key(region(), Rkey{5}).ok());
  EXPECT_TRUE(table_.add_with_key(region(), Rkey{(std::uint64_t{1} << 63) | 5}).ok());
}

// WIRE 4.3
TEST_F(MrTableTest, AddWithKey_Ses132_OptimizedKeyHasTwelveBits) {
  for (int bit = 12; bit <= 47; ++bit) {
    const Rkey key{(std::uint64_t{1} << 62) | (std::uint64_t{1} << bit)};
    EXPECT_EQ(table_.add_with_key(region(), key).error(), Error::Invalid) << bit;
  }
}

TEST_F(MrTableTest, Add_BeyondCapacityIsNoMemory) {
  for (int i = 0; i < 4; ++i) add(region());
  EXPECT_EQ(table_.add(region()).error(), Error::NoMemory);
  EXPECT_EQ(table_.add_with_key(region(), Rkey{1}).error(), Error::NoMemory);
  EXPECT_EQ(table_.size(), 4U);
}

TEST_F(MrTableTest, Add_RegionThatWrapsOrLiesAtNullIsInvalid) {
  MemoryRegion wraps = region();
  wraps.length = UINT64_MAX;
  EXPECT_EQ(table_.add(wraps).error(), Error::Invalid);
  MemoryRegion null;
  null.length = 4096;
  EXPECT_EQ(table_.add(null).error(), Error::Invalid);
  EXPECT_EQ(table_.add_with_key(null, Rkey{1}).error(), Error::Invalid);
}

TEST_F(MrTableTest, Remove_Ses140_KeyAnswersBadKeyAtOnce) {
  const Rkey key = add(region());
  ASSERT_EQ(verdict(key, 0, 1), MrVerdict::Ok);  // what is looked up last is remembered
  ASSERT_TRUE(table_.remove(key).ok());
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadKey);
  EXPECT_EQ(table_.remove(key).error(), Error::NotFound);
}

TEST_F(MrTableTest, Check_Ses118_BoundsWithoutWrap) {
  const Rkey key = add(region());
  EXPECT_EQ(verdict(key, 0, 100), MrVerdict::Ok);
  EXPECT_EQ(verdict(key, 99, 1), MrVerdict::Ok);
  EXPECT_EQ(verdict(key, 0, 101), MrVerdict::OutOfBounds);
  EXPECT_EQ(verdict(key, 99, 2), MrVerdict::OutOfBounds);
  EXPECT_EQ(verdict(key, 100, 1), MrVerdict::OutOfBounds);
  EXPECT_EQ(verdict(key, UINT64_MAX, 1), MrVerdict::OutOfBounds);       // sum wraps to 0
  EXPECT_EQ(verdict(key, UINT64_MAX - 9, 20), MrVerdict::OutOfBounds);  // sum wraps to 10
  EXPECT_EQ(verdict(key, 1, UINT64_MAX), MrVerdict::OutOfBounds);
}

TEST_F(MrTableTest, Check_ZeroLengthAccessReachesUpToTheEnd) {
  const Rkey key = add(region());
  EXPECT_EQ(verdict(key, 0, 0), MrVerdict::Ok);
  EXPECT_EQ(verdict(key, 100, 0), MrVerdict::Ok);
  EXPECT_EQ(verdict(key, 101, 0), MrVerdict::OutOfBounds);
}

TEST_F(MrTableTest, Check_RegionOfLengthZeroHoldsNothing) {
  MemoryRegion empty;
  empty.access = kRemoteWrite;
  const Rkey key = add(empty);
  EXPECT_EQ(verdict(key, 0, 0), MrVerdict::Ok);
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::OutOfBounds);
}

TEST_F(MrTableTest, Check_AllMemoryRegionTakesTheOffsetAsAddress) {
  MemoryRegion all;
  all.length = UINT64_MAX;
  all.access = kRemoteRead | kRemoteWrite;
  const Rkey key = add(all);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + 5;
  const MrAccess access = table_.check(key, kJob, kHere, kRemoteRead, address, 10);
  EXPECT_EQ(access.verdict, MrVerdict::Ok);
  EXPECT_EQ(access.address, memory_.data() + 5);
  EXPECT_EQ(verdict(key, UINT64_MAX, 1), MrVerdict::OutOfBounds);
  EXPECT_EQ(verdict(key, UINT64_MAX - 4, 10), MrVerdict::OutOfBounds);
}

TEST_F(MrTableTest, Check_Ses136_VirtualBaseIsSubtracted) {
  MemoryRegion r = region();
  r.virtual_base = 0x7000'0000'0000;
  const Rkey key = add(r);
  const MrAccess access = table_.check(key, kJob, kHere, kRemoteWrite, r.virtual_base + 20, 80);
  EXPECT_EQ(access.verdict, MrVerdict::Ok);
  EXPECT_EQ(access.address, memory_.data() + 20);
  EXPECT_EQ(verdict(key, r.virtual_base - 1, 1), MrVerdict::OutOfBounds);
  EXPECT_EQ(verdict(key, r.virtual_base + 20, 81), MrVerdict::OutOfBounds);
  EXPECT_EQ(verdict(key, 20, 1), MrVerdict::OutOfBounds);
}

// Steps 12a to 12e: an access that fails several of them gets the earliest verdict.
TEST_F(MrTableTest, Check_Ses115_VerdictsComeInOrder) {
  MemoryRegion r = region();
  r.access = kRemoteRead;
  r.job = JobId{7};
  r.ri = ResourceIndex{3};
  const Rkey key = add(r);
  const auto at = [&](JobId job, ResourceIndex ri, std::uint8_t access, std::uint64_t offset) {
    return table_.check(key, job, {kPid, ri}, access, offset, 1).verdict;
  };
  EXPECT_EQ(at(JobId{8}, ResourceIndex{4}, kRemoteWrite, 100), MrVerdict::BadKey);
  EXPECT_EQ(at(JobId{8}, ResourceIndex{3}, kRemoteWrite, 100), MrVerdict::BadJob);
  EXPECT_EQ(at(JobId{7}, ResourceIndex{3}, kRemoteWrite, 100), MrVerdict::NoRight);
  EXPECT_EQ(at(JobId{7}, ResourceIndex{3}, kRemoteRead, 100), MrVerdict::OutOfBounds);
  EXPECT_EQ(at(JobId{7}, ResourceIndex{3}, kRemoteRead, 99), MrVerdict::Ok);
}

// The target answers both with BAD_MKEY; here they stay apart so that it can count them.
TEST_F(MrTableTest, Check_Ses119_WrongJob_IsNotUnknownKey) {
  MemoryRegion r = region();
  r.job = JobId{7};
  const Rkey key = add(r);
  EXPECT_EQ(verdict(key, 0, 1), MrVerdict::BadJob);
  EXPECT_EQ(verdict(Rkey{key.value + 1}, 0, 1), MrVerdict::BadKey);
}

TEST_F(MrTableTest, Check_Ses135_RightsAreAllNeeded) {
  MemoryRegion r = region();
  r.access = kRemoteWrite;
  const Rkey key = add(r);
  EXPECT_EQ(verdict(key, 0, 1, kRemoteWrite), MrVerdict::Ok);
  EXPECT_EQ(verdict(key, 0, 1, kRemoteRead), MrVerdict::NoRight);
  EXPECT_EQ(verdict(key, 0, 1, kRemoteRead | kRemoteWrite), MrVerdict::NoRight);
}

TEST_F(MrTableTest, Check_RefusedAccessCarriesNoAddress) {
  const Rkey key = add(region());
  EXPECT_EQ(table_.check(key, kJob, kHere, kRemoteWrite, 0, 101).address, nullptr);
}

}  // namespace
}  // namespace uet::ri
