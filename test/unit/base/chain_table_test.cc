// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/chain_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace uet {
namespace {

struct TagA;
struct TagB;
struct Element : ChainNode<TagA>, ChainNode<TagB> {
  int number = 0;
};
using Table = ChainTable<Element, TagA>;

std::vector<int> chain(Table& table, std::uint64_t hash) {
  std::vector<int> numbers;
  for (Element* at = table.first(hash); at != nullptr; at = Table::next(*at)) {
    numbers.push_back(at->number);
  }
  return numbers;
}

TEST(ChainTable, KeepsAChainInTheOrderItWasFilled) {
  Table table(16);
  std::vector<Element> elements(3);
  for (int i = 0; i < 3; ++i) {
    elements[static_cast<std::size_t>(i)].number = i;
    table.push_back(elements[static_cast<std::size_t>(i)], 5);
  }
  EXPECT_EQ(chain(table, 5), (std::vector{0, 1, 2}));
  for (Element& element : elements) Table::remove(element);
  EXPECT_EQ(table.first(5), nullptr);
}

TEST(ChainTable, AnElementMayBeInTwoTables) {
  Table a(4);
  ChainTable<Element, TagB> b(4);
  Element element;
  a.push_back(element, 1);
  b.push_back(element, 2);
  Table::remove(element);
  EXPECT_FALSE(static_cast<ChainNode<TagA>&>(element).chained());
  EXPECT_EQ(b.first(2), &element);
  ChainTable<Element, TagB>::remove(element);
}

// One chain for all, so that every place of a chain is inserted at and removed from.
TEST(ChainTable, EveryPosition_CanBeInsertedAndRemoved) {
  Rng rng(1);
  Table table(1);
  std::vector<Element> elements(16);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i].number = static_cast<int>(i);
  std::vector<int> expected;
  for (int step = 0; step < 5000; ++step) {
    Element& any = elements[rng.below(elements.size())];
    const auto place = std::lower_bound(expected.begin(), expected.end(), any.number);
    if (static_cast<ChainNode<TagA>&>(any).chained()) {
      Table::remove(any);
      expected.erase(place);
    } else {
      table.insert_behind(any, rng.next(),
                          [&](const Element& other) { return other.number < any.number; });
      expected.insert(place, any.number);
    }
    ASSERT_EQ(chain(table, 0), expected);
  }
}

}  // namespace
}  // namespace uet
