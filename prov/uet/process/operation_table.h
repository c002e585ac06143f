// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations of an application that its engine has, by number: an engine returns the numbers,
// not addresses of the application.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "process/share.h"

namespace uet::prov {

struct LinkedOperation {
  void* context = nullptr;
  std::uint64_t user_flags = 0;
  std::uint64_t posted = 0;  // counts posts; 0: the number is free
  ses::Kind kind{};
  std::uint16_t owner = 0;  // the context that it was posted to
  bool multi = false;       // a multi-receive, which ends with a completion that is `released`
  bool counted = false;     // of those that its context has in progress
  bool claims = false;      // a peek that has claimed a message, or is about to
};

class OperationTable {
 public:
  // Throws bad_alloc. `operation.posted` is set.
  OperationNumber add(LinkedOperation operation) {
    operation.posted = ++posted_;
    if (free_.empty()) {
      free_.reserve(all_.size() + 1);  // remove() cannot fail
      all_.push_back(operation);
      return static_cast<OperationNumber>(all_.size() - 1);
    }
    const OperationNumber number = free_.back();
    free_.pop_back();
    all_[number] = operation;
    return number;
  }
  LinkedOperation* find(OperationNumber number) {
    return number < all_.size() && all_[number].posted != 0 ? &all_[number] : nullptr;
  }
  void remove(OperationNumber number) {
    all_[number].posted = 0;
    free_.push_back(number);
  }
  // The oldest of `owner` with this context pointer; `claims` as in LinkedOperation.
  std::optional<OperationNumber> oldest(std::uint16_t owner, const void* context,
                                        bool claims) const;
  template <class Each>
  void for_each(Each&& each) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].posted != 0) each(static_cast<OperationNumber>(i), all_[i]);
    }
  }

 private:
  std::vector<LinkedOperation> all_;
  std::vector<OperationNumber> free_;
  std::uint64_t posted_ = 0;
};

inline std::optional<OperationNumber> OperationTable::oldest(std::uint16_t owner,
                                                             const void* context,
                                                             bool claims) const {
  std::optional<OperationNumber> found;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const LinkedOperation& one = all_[i];
    if (one.posted == 0 || one.owner != owner || one.context != context || one.claims != claims) {
      continue;
    }
    if (!found || one.posted < all_[*found].posted) found = static_cast<OperationNumber>(i);
  }
  return found;
}

}  // namespace uet::prov
