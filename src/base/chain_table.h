// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A hash table of chains whose links live in the elements: no allocation after construction, O(1)
// removal. Elements of one hash stay in the order they were put in; what an element is and which of
// a chain is meant, its user knows: a chain also holds others whose hash ends alike.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/zeroed_array.h"
#include "uet/base/check.h"

namespace uet {

// An element derives from ChainNode<Tag> once for every table it may be in at the same time.
template <class Tag>
class ChainNode {
 public:
  ChainNode() = default;
  ChainNode(const ChainNode&) = delete;
  ChainNode& operator=(const ChainNode&) = delete;
  bool chained() const { return head_ != nullptr; }

 private:
  template <class T, class U>
  friend class ChainTable;
  ChainNode* next_ = nullptr;      // nullptr: the last one
  ChainNode* previous_ = nullptr;  // of the first one: the last one
  ChainNode** head_ = nullptr;     // where the table keeps the chain's first one
};

template <class T, class Tag>
class ChainTable {
  using Node = ChainNode<Tag>;

 public:
  // About as many elements should have chains of their own; more make longer chains.
  explicit ChainTable(std::size_t elements)
      : heads_(std::bit_ceil(std::max<std::size_t>(elements, 1))) {}
  ChainTable(const ChainTable&) = delete;
  ChainTable& operator=(const ChainTable&) = delete;

  std::size_t size() const { return heads_.size(); }
  // Of an empty table. Keeps its size where there is no memory for another one.
  void resize(std::size_t elements) noexcept {
    try {
      heads_ = ZeroedArray<Node*>(std::bit_ceil(std::max<std::size_t>(elements, 1)));
    } catch (const std::bad_alloc&) {
    }
  }

  // The first of the chain, and the one behind `element`; nullptr if there is none.
  T* first(std::uint64_t hash) { return element_of(heads_[index_of(hash)]); }
  static T* next(T& element) { return element_of(node_of(element).next_); }

  void push_back(T& element, std::uint64_t hash) {
    insert_behind(element, hash, [](const T&) { return true; });
  }
  // Behind the last one of the chain that goes_before() accepts.
  template <class GoesBefore>
  void insert_behind(T& element, std::uint64_t hash, GoesBefore goes_before) {
    Node& node = node_of(element);
    UET_ASSERT(!node.chained());
    Node*& head = heads_[index_of(hash)];
    node.head_ = &head;
    if (head == nullptr) {
      node.previous_ = head = &node;
      return;
    }
    Node* before = head->previous_;
    while (before != nullptr && !goes_before(*element_of(before))) {
      before = before == head ? nullptr : before->previous_;
    }
    node.next_ = before != nullptr ? before->next_ : head;
    Node* behind = node.next_ != nullptr ? node.next_ : head;  // whose previous_ is the new one
    node.previous_ = before != nullptr ? before : head->previous_;
    behind->previous_ = &node;
    (before != nullptr ? before->next_ : head) = &node;
  }
  static void remove(T& element) {
    Node& node = node_of(element);
    UET_ASSERT(node.chained());
    Node*& head = *node.head_;
    Node* last = head->previous_;
    if (node.next_ != nullptr) {
      node.next_->previous_ = node.previous_;
    } else {
      head->previous_ = node.previous_;
    }
    if (head == &node) {
      head = node.next_;
      if (head != nullptr) head->previous_ = last;
    } else {
      node.previous_->next_ = node.next_;
    }
    node.next_ = node.previous_ = nullptr;
    node.head_ = nullptr;
  }

 private:
  static Node& node_of(T& element) { return element; }
  static T* element_of(Node* node) { return static_cast<T*>(node); }
  std::size_t index_of(std::uint64_t hash) const {
    return (hash * 0x9E3779B97F4A7C15ULL >> 32) & (heads_.size() - 1);
  }

  ZeroedArray<Node*> heads_;
};

}  // namespace uet
