// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SES test idea 14: every number of libfabric's two enumerations against UET's, both ways.
#include "calls/atomic.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "compat.h"
#include "ses/atomic.h"

namespace uet::prov {
namespace {

using wire::AmoDatatype;
using wire::AmoOp;

TEST(AtomicTable, Idea14_OperationsBothWays) {
  std::map<AmoOp, int> back;
  for (int number = 0; number < 64; ++number) {
    const auto ours = amo_of(static_cast<fi_op>(number));
    EXPECT_EQ(ours.has_value(), number <= kOpDiff) << number;
    if (ours) {
      EXPECT_TRUE(back.emplace(*ours, number).second) << number << " stands for two";
    }
  }
  for (int number = 0; number < 0x14; ++number) {
    EXPECT_TRUE(back.contains(static_cast<AmoOp>(number))) << number;
  }
  EXPECT_FALSE(back.contains(AmoOp::Inval)) << "no word for it in libfabric";
  // Where the two orders part.
  EXPECT_EQ(back[AmoOp::Diff], 19);
  EXPECT_EQ(back[AmoOp::Prod], FI_PROD);
  EXPECT_EQ(back[AmoOp::Bor], FI_BOR);
  EXPECT_EQ(back[AmoOp::Lxor], FI_LXOR);
  EXPECT_EQ(back[AmoOp::Mswap], FI_MSWAP);
}

TEST(AtomicTable, Idea14_DatatypesBothWays) {
  std::map<AmoDatatype, int> back;
  for (int number = 0; number < 64; ++number) {
    const auto ours = amo_of(static_cast<fi_datatype>(number));
    EXPECT_EQ(ours.has_value(), number <= kDatatypeBfloat16) << number << ", SES-99";
    if (ours) {
      EXPECT_TRUE(back.emplace(*ours, number).second) << number << " stands for two";
    }
  }
  for (int number = 0; number < 0x12; ++number) {
    EXPECT_TRUE(back.contains(static_cast<AmoDatatype>(number))) << number;
  }
  EXPECT_EQ(back[AmoDatatype::Int128], FI_INT128);
  EXPECT_EQ(back[AmoDatatype::Float], FI_FLOAT);
  EXPECT_EQ(back[AmoDatatype::LongDoubleComplex], FI_LONG_DOUBLE_COMPLEX);
  EXPECT_EQ(back[AmoDatatype::Fp16], 16);
  EXPECT_EQ(back[AmoDatatype::Bf16], 17);
}

// The names of the two lists agree, apart from spelling.
TEST(AtomicTable, Idea14_NamesAgree) {
  const std::pair<int, AmoDatatype> rows[] = {
      {FI_INT8, AmoDatatype::Int8},       {FI_UINT8, AmoDatatype::Uint8},
      {FI_INT16, AmoDatatype::Int16},     {FI_UINT16, AmoDatatype::Uint16},
      {FI_INT32, AmoDatatype::Int32},     {FI_UINT32, AmoDatatype::Uint32},
      {FI_INT64, AmoDatatype::Int64},     {FI_UINT64, AmoDatatype::Uint64},
      {FI_UINT128, AmoDatatype::Uint128}, {FI_DOUBLE, AmoDatatype::Double},
  };
  for (const auto& [theirs, ours] : rows) {
    EXPECT_EQ(amo_of(static_cast<fi_datatype>(theirs)), ours) << theirs;
  }
}

TEST(AtomicTable, SizesAreThoseOfTheTypes) {
  const auto bytes = [](int datatype) {
    return atomic_kind(ses::Kind::Atomic, static_cast<fi_datatype>(datatype), FI_SUM)
        ->element_bytes;
  };
  EXPECT_EQ(bytes(FI_INT8), 1U);
  EXPECT_EQ(bytes(FI_DOUBLE), sizeof(double));
  EXPECT_EQ(bytes(FI_DOUBLE_COMPLEX), 2 * sizeof(double));
  EXPECT_EQ(bytes(FI_LONG_DOUBLE), sizeof(long double));
  EXPECT_EQ(bytes(FI_UINT128), 16U);
  EXPECT_EQ(bytes(kDatatypeFloat16), 2U);
}

TEST(AtomicTable, Ses101PairsThatAreNone) {
  EXPECT_FALSE(atomic_kind(ses::Kind::Atomic, FI_DOUBLE, FI_BAND));
  EXPECT_FALSE(atomic_kind(ses::Kind::Atomic, FI_INT8, FI_ATOMIC_READ));
  EXPECT_FALSE(atomic_kind(ses::Kind::FetchAtomic, FI_INT8, FI_CSWAP));
  EXPECT_FALSE(atomic_kind(ses::Kind::CompareAtomic, FI_INT8, FI_SUM));
  EXPECT_FALSE(atomic_kind(ses::Kind::Atomic, FI_VOID, FI_SUM));
  EXPECT_FALSE(atomic_kind(ses::Kind::Atomic, FI_INT8, FI_NOOP));
  EXPECT_TRUE(atomic_kind(ses::Kind::CompareAtomic, FI_INT8, FI_MSWAP));
}

}  // namespace
}  // namespace uet::prov
