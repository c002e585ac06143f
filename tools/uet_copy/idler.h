// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sleeps when there was nothing to do for a while.
#pragma once

#include "connection.h"

namespace uet::copy {

class Idler {
 public:
  // `fd`: of other work, which ends the sleep when it is readable; -1: none.
  explicit Idler(Connection& connection, int fd = -1) : connection_(connection), fd_(fd) {}
  void turn(bool busy) {
    polls_ = busy ? 0 : polls_ + 1;
    if (polls_ > kPollsBeforeSleep) connection_.wait(fd_);
  }

 private:
  static constexpr unsigned kPollsBeforeSleep = 200;

  Connection& connection_;
  const int fd_;
  unsigned polls_ = 0;
};

}  // namespace uet::copy
