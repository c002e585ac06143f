// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/base/intrusive_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace uet {
namespace {

struct TagA;
struct TagB;
struct Element : ListNode<TagA>, ListNode<TagB> {
  explicit Element(int n) : number(n) {}
  int number;
};
using ListA = IntrusiveList<Element, TagA>;
using ListB = IntrusiveList<Element, TagB>;

template <class List>
std::vector<int> numbers(List& list) {
  std::vector<int> all;
  for (Element& element : list) all.push_back(element.number);
  return all;
}

TEST(IntrusiveList, KeepsOrder) {
  Element one(1), two(2), three(3);
  ListA list;
  EXPECT_TRUE(list.empty());
  list.push_back(two);
  list.push_back(three);
  list.push_front(one);
  EXPECT_EQ(numbers(list), (std::vector{1, 2, 3}));
  EXPECT_EQ(list.front().number, 1);
  EXPECT_EQ(list.back().number, 3);
}

TEST(IntrusiveList, InsertPutsAnElementInFrontOfAnother) {
  Element one(1), two(2), three(3);
  ListA list;
  list.insert(list.end(), three);
  list.insert(list.begin(), one);
  list.insert(++list.begin(), two);
  EXPECT_EQ(numbers(list), (std::vector{1, 2, 3}));
}

TEST(IntrusiveList, RemoveFromTheMiddleAndAgain) {
  Element one(1), two(2), three(3);
  ListA list;
  list.push_back(one);
  list.push_back(two);
  list.push_back(three);
  ListA::remove(two);
  EXPECT_EQ(numbers(list), (std::vector{1, 3}));
  EXPECT_FALSE(static_cast<ListNode<TagA>&>(two).linked());
  list.push_back(two);
  EXPECT_EQ(numbers(list), (std::vector{1, 3, 2}));
}

TEST(IntrusiveList, PopFrontEmptiesIt) {
  Element one(1), two(2);
  ListA list;
  list.push_back(one);
  list.push_back(two);
  EXPECT_EQ(list.pop_front().number, 1);
  EXPECT_EQ(list.pop_front().number, 2);
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, AnyOfLooksAtAll) {
  Element one(1), two(2);
  ListA list;
  const auto is_two = [](const Element& element) { return element.number == 2; };
  EXPECT_FALSE(list.any_of(is_two));
  list.push_back(one);
  EXPECT_FALSE(list.any_of(is_two));
  list.push_back(two);
  EXPECT_TRUE(list.any_of(is_two));
}

TEST(IntrusiveList, AnElementMayBeOnTwoLists) {
  Element one(1), two(2);
  ListA a;
  ListB b;
  a.push_back(one);
  a.push_back(two);
  b.push_back(two);
  b.push_back(one);
  ListA::remove(one);
  EXPECT_EQ(numbers(a), (std::vector{2}));
  EXPECT_EQ(numbers(b), (std::vector{2, 1}));
}

TEST(IntrusiveList, ElementMayBeRemovedOnceTheIteratorHasMovedOn) {
  Element one(1), two(2), three(3);
  ListA list;
  for (Element* e : {&one, &two, &three}) list.push_back(*e);
  for (auto it = list.begin(); it != list.end();) {
    Element& element = *it;
    ++it;
    if (element.number != 2) ListA::remove(element);
  }
  EXPECT_EQ(numbers(list), (std::vector{2}));
}

}  // namespace
}  // namespace uet
