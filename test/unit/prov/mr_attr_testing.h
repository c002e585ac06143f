// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An fi_mr_attr as a client of libfabric 2.x passes it, whatever headers the test is built with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>

#include "compat.h"

namespace uet::prov {

// The tail lies behind the fi_mr_attr of 1.17 headers, and is the end of the fi_mr_attr of 2.x.
class MrAttr2x {
 public:
  MrAttr2x() : attr_(new (room_) fi_mr_attr{}), tail_(new (room_ + kMrAttrBytes) MrAttrTail{}) {}
  MrAttr2x(const MrAttr2x&) = delete;
  MrAttr2x& operator=(const MrAttr2x&) = delete;
  fi_mr_attr& attr() { return *attr_; }
  MrAttrTail& tail() { return *tail_; }

 private:
  alignas(fi_mr_attr)
      std::byte room_[std::max(sizeof(fi_mr_attr), kMrAttrBytes + sizeof(MrAttrTail))]{};
  fi_mr_attr* attr_;
  MrAttrTail* tail_;
};

}  // namespace uet::prov
