// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Places for a fixed number of objects that come and go, by number. Memory of a place that was
// never used is never touched, and an object takes no more of it than its own size.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "uet/base/check.h"

namespace uet {

template <class T>
class SlotArray {
 public:
  explicit SlotArray(std::size_t count)
      : cells_(std::make_unique_for_overwrite<Cell[]>(count)), used_(count) {}
  SlotArray(const SlotArray&) = delete;
  SlotArray& operator=(const SlotArray&) = delete;
  ~SlotArray() {
    for (std::size_t i = 0; i < size(); ++i) erase(i);
  }

  std::size_t size() const { return used_.size(); }
  bool holds(std::size_t slot) const { return used_[slot]; }
  // The object there; there must be one.
  T& operator[](std::size_t slot) {
    UET_ASSERT(holds(slot));
    return cells_[slot].object;
  }
  const T& operator[](std::size_t slot) const {
    UET_ASSERT(holds(slot));
    return cells_[slot].object;
  }
  // Makes one in a place that is free.
  template <class... Arguments>
  T& emplace(std::size_t slot, Arguments&&... arguments) {
    UET_ASSERT(!holds(slot));
    T* object = std::construct_at(&cells_[slot].object, std::forward<Arguments>(arguments)...);
    used_[slot] = true;
    return *object;
  }
  // Ends the object there, if there is one.
  void erase(std::size_t slot) {
    if (!holds(slot)) return;
    used_[slot] = false;
    std::destroy_at(&cells_[slot].object);
  }
  // visit(T&) for each.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (holds(i)) visit(cells_[i].object);
    }
  }
  // Whether holds(const T&) of any.
  template <class Predicate>
  bool any_of(Predicate&& predicate) const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (holds(i) && predicate(std::as_const(cells_[i].object))) return true;
    }
    return false;
  }

 private:
  union Cell {
    Cell() {}
    ~Cell() {}
    T object;
  };
  std::unique_ptr<Cell[]> cells_;
  std::vector<bool> used_;
};

}  // namespace uet
