// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the streams of one transfer share: counts for the report, and the first reason to end.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "failure.h"

namespace uet::copy {

class Tally {
 public:
  std::atomic<std::uint64_t> bytes{0};     // of files, sent or received in this transfer
  std::atomic<std::uint64_t> resumed{0};   // of files, that were there from an earlier transfer
  std::atomic<std::uint64_t> files{0};     // done
  std::atomic<std::uint64_t> left_out{0};  // neither a file nor a directory, such as a link
  std::atomic<std::uint64_t> expected{0};  // bytes of all files; 0: unknown

  // Ends the transfer; the first call counts.
  void stop(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    status_ = failure.status;
    text_ = failure.what();
    stopped_ = true;
  }
  bool stopped() const { return stopped_; }
  // A file of a tree that is left out, while the others go on; the first call counts.
  void problem(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    if (status_ != Status::Done) return;
    status_ = failure.status;
    text_ = failure.what();
  }
  // Why the disk is used through the page cache or without io_uring; the first call counts.
  void note_disk(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (disk_.empty()) disk_ = why;
  }
  Failure outcome() const {
    const std::lock_guard lock(mutex_);
    return {status_, text_};
  }
  std::string disk() const {
    const std::lock_guard lock(mutex_);
    return disk_;
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> stopped_{false};
  Status status_ = Status::Done;
  std::string text_;
  std::string disk_;
};

}  // namespace uet::copy
