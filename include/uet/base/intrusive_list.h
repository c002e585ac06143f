// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Doubly linked list whose links live in the elements: no allocation, O(1) removal of an element.
// An element derives from ListNode<Tag> once for every list it may be on at the same time.
#pragma once

#include "uet/base/check.h"

namespace uet {

template <class Tag>
class ListNode {
 public:
  ListNode() = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;
  bool linked() const { return next_ != nullptr; }

 private:
  template <class T, class U>
  friend class IntrusiveList;
  ListNode* next_ = nullptr;
  ListNode* previous_ = nullptr;
};

template <class T, class Tag>
class IntrusiveList {
  using Node = ListNode<Tag>;

 public:
  IntrusiveList() { head_.next_ = head_.previous_ = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return head_.next_ == &head_; }
  T& front() {
    UET_ASSERT(!empty());
    return static_cast<T&>(*head_.next_);
  }
  T& back() {
    UET_ASSERT(!empty());
    return static_cast<T&>(*head_.previous_);
  }
  void push_back(T& element) { insert_before(head_, element); }
  void push_front(T& element) { insert_before(*head_.next_, element); }
  T& pop_front() {
    T& element = front();
    remove(element);
    return element;
  }
  static void remove(T& element) {
    Node& node = element;
    UET_ASSERT(node.linked());
    node.previous_->next_ = node.next_;
    node.next_->previous_ = node.previous_;
    node.next_ = node.previous_ = nullptr;
  }

  class iterator {
   public:
    explicit iterator(Node* node) : node_(node) {}
    T& operator*() const { return static_cast<T&>(*node_); }
    T* operator->() const { return &static_cast<T&>(*node_); }
    iterator& operator++() {
      node_ = node_->next_;
      return *this;
    }
    bool operator==(const iterator&) const = default;

   private:
    friend class IntrusiveList;
    Node* node_;
  };
  // Puts `element` in front of what `at` points to.
  void insert(iterator at, T& element) { insert_before(*at.node_, element); }
  // The element at an iterator may be removed once the iterator has moved on.
  // For those who only look.
  template <class Predicate>
  bool any_of(Predicate&& holds) const {
    for (const Node* node = head_.next_; node != &head_; node = node->next_) {
      if (holds(static_cast<const T&>(*node))) return true;
    }
    return false;
  }
  iterator begin() { return iterator(head_.next_); }
  iterator end() { return iterator(&head_); }

 private:
  static void insert_before(Node& at, T& element) {
    Node& node = element;
    UET_ASSERT(!node.linked());
    node.next_ = &at;
    node.previous_ = at.previous_;
    at.previous_->next_ = &node;
    at.previous_ = &node;
  }
  Node head_;
};

}  // namespace uet
