// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/index_table.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace uet::prov {
namespace {

using Name = ri::ContextName;

bool any(const Name&) { return true; }

Name name(std::uint16_t pid, std::uint16_t index) { return {{pid}, {index}}; }

class Indices : public testing::Test {
 protected:
  Indices() { table_.set_own_pid({5}); }
  Name next(std::size_t count = 1) { return table_.take({}, count, any).value(); }
  IndexTable table_;
};

TEST_F(Indices, LowestFreeIndexIsNext) {
  EXPECT_EQ(next(), name(5, 1));
  EXPECT_EQ(next(), name(5, 2));
  EXPECT_EQ(next(), name(5, 3));
  table_.give_back(name(5, 2), 1);
  EXPECT_EQ(next(2), name(5, 4)) << "two in a row";
  EXPECT_EQ(next(), name(5, 2));
  EXPECT_EQ(next(), name(5, 6));
}

TEST_F(Indices, WantedNameIsGivenOnce) {
  EXPECT_EQ(table_.take(name(5, 7), 2, any).value(), name(5, 7));
  EXPECT_EQ(table_.take(name(5, 8), 1, any).error(), Error::AddressInUse);
  EXPECT_EQ(table_.take(name(5, 6), 2, any).error(), Error::AddressInUse);
  EXPECT_EQ(table_.take(name(5, 4095), 2, any).error(), Error::NoMemory);
  EXPECT_EQ(table_.take(name(5, 0), 1, any).value(), name(5, 0));
  table_.give_back(name(5, 7), 2);
  EXPECT_EQ(table_.take(name(5, 8), 1, any).value(), name(5, 8));
}

// Another process of a shared port is told by the PIDonFEP modulo 32.
TEST_F(Indices, FurtherPidsFollowWhenOneIsFull) {
  std::set<std::pair<std::uint16_t, std::uint16_t>> given;
  for (std::size_t i = 0; i < IndexTable::kMost; ++i) {
    const Name one = next();
    EXPECT_EQ(one.pid.value % 32, 5);
    EXPECT_NE(one.index.value, 0);
    given.insert({one.pid.value, one.index.value});
  }
  EXPECT_EQ(given.size(), IndexTable::kMost);
  EXPECT_GE(given.size(), 32768U);
  EXPECT_EQ(table_.take({}, 1, any).error(), Error::NoMemory);
  EXPECT_EQ(table_.take(name(37, 9), 1, any).error(), Error::AddressInUse);
  table_.give_back(name(37, 9), 1);
  EXPECT_EQ(next(), name(37, 9));
}

TEST_F(Indices, RunStaysUnderOnePid) {
  EXPECT_EQ(table_.take(name(5, 1), 4000, any).value(), name(5, 1));
  EXPECT_EQ(next(200), name(37, 1));
  EXPECT_EQ(next(95), name(5, 4001));
}

// An address may ask for a PIDonFEP that the domain does not use by itself.
TEST_F(Indices, PidOfTheApplicationSharesTheIndices) {
  EXPECT_EQ(table_.take(name(99, 1), 1, any).value(), name(99, 1));
  EXPECT_EQ(table_.take(name(5, 1), 1, any).error(), Error::AddressInUse);
  table_.give_back(name(99, 1), 1);
  EXPECT_EQ(next(), name(5, 1));
}

TEST_F(Indices, AddressFormatMayLimitTheChoice) {
  const auto low = [](const Name& one) { return one.pid.value == 5 && one.index.value <= 64; };
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(table_.take({}, 1, low).ok());
  EXPECT_EQ(table_.take({}, 1, low).error(), Error::NoMemory);
  EXPECT_EQ(next(), name(5, 65));
}

// The number wraps at 12 bits.
TEST(IndicesOfTheLastPid, WrapAround) {
  IndexTable table;
  table.set_own_pid({4090});
  ASSERT_TRUE(table.take(name(4090, 1), 4095, any).ok());
  EXPECT_EQ(table.take({}, 1, any).value(), name(26, 1));
  table.give_back(name(26, 1), 1);
  EXPECT_EQ(table.take(name(26, 1), 1, any).value(), name(26, 1));
}

}  // namespace
}  // namespace uet::prov
