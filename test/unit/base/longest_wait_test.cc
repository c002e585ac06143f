// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/longest_wait.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace uet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kPatience = seconds(30);

// An entry of a table: how much its host holds of the table, and its time without progress.
struct Entry {
  std::size_t held = 1;
  Duration wait{};
};

const Entry* found(std::initializer_list<const Entry*> entries, std::size_t held_by_refused) {
  LongestWait<const Entry> search(held_by_refused, kPatience);
  for (const Entry* entry : entries) search.consider(*entry, entry->held, entry->wait);
  return search.found();
}

TEST(LongestWait, LongestWaitingEntryEnds) {
  const Entry young{1, seconds(31)};
  const Entry old{1, seconds(40)};
  const Entry equal{1, seconds(40)};
  EXPECT_EQ(found({&young, &old, &equal}, 1), &old);
  EXPECT_EQ(found({&equal, &old, &young}, 1), &equal);
  EXPECT_EQ(found({}, 0), nullptr);
}

TEST(LongestWait, EntryWithProgressInTimeStays) {
  const Entry almost{1, kPatience - milliseconds(1)};
  const Entry exactly{1, kPatience};
  EXPECT_EQ(found({&almost}, 0), nullptr);
  EXPECT_EQ(found({&almost, &exactly}, 0), &exactly);
}

TEST(LongestWait, HostThatHoldsLessLosesNothing) {
  const Entry small{3, seconds(60)};
  const Entry large{4, seconds(31)};
  EXPECT_EQ(found({&small, &large}, 4), &large);
  EXPECT_EQ(found({&small, &large}, 3), &small);
  EXPECT_EQ(found({&small, &large}, 5), nullptr);
}

}  // namespace
}  // namespace uet
