// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Places for a fixed number of objects that come and go, by number. Memory comes for a few
// neighbours at a time when the first of them is made, and is kept.
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
  explicit SlotArray(std::size_t count) : parts_((count + kPart - 1) / kPart), used_(count) {}
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
    return cell(slot).object;
  }
  const T& operator[](std::size_t slot) const {
    UET_ASSERT(holds(slot));
    return cell(slot).object;
  }
  // Makes one in a place that is free. May throw bad_alloc.
  template <class... Arguments>
  T& emplace(std::size_t slot, Arguments&&... arguments) {
    UET_ASSERT(!holds(slot));
    std::unique_ptr<Cell[]>& part = parts_[slot / kPart];
    if (part == nullptr) part = std::make_unique_for_overwrite<Cell[]>(kPart);
    T* object = std::construct_at(&cell(slot).object, std::forward<Arguments>(arguments)...);
    used_[slot] = true;
    return *object;
  }
  // Ends the object there, if there is one.
  void erase(std::size_t slot) {
    if (!holds(slot)) return;
    used_[slot] = false;
    std::destroy_at(&cell(slot).object);
  }
  // visit(T&) for each.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (holds(i)) visit(cell(i).object);
    }
  }
  // Whether holds(const T&) of any.
  template <class Predicate>
  bool any_of(Predicate&& predicate) const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (holds(i) && predicate(std::as_const(cell(i).object))) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kPart = 4;
  union Cell {
    Cell() {}
    ~Cell() {}
    T object;
  };

  Cell& cell(std::size_t slot) const { return parts_[slot / kPart][slot % kPart]; }

  std::vector<std::unique_ptr<Cell[]>> parts_;
  std::vector<bool> used_;
};

}  // namespace uet
