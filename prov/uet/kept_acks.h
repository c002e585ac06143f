// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which ACKs may wait until the application has replied, and the thread that sends them when it
// does not come back. With manual progress nobody else would: the application may compute for long
// after it has been told of a message, and its sender would send that again.
#pragma once

#include <cstdint>

#include "thread.h"

namespace uet::prov {

class Domain;

// All but start, stop and forget are called with the domain's lock.
class KeptAcks {
 public:
  // `wanted`: ack_after_reply of FI_UET_TUNING.
  explicit KeptAcks(bool wanted) : wanted_(wanted) {}

  // May a pass keep its ACKs (Fep::keep_acks)? Not while the application was late not long ago.
  bool allowed();
  // A pass has kept them.
  void kept() noexcept;
  // ACKs would have been kept if there was a thread: start() is to be called.
  bool wants_thread() const { return wants_thread_; }

  // Without the lock, by a caller who is alone in the domain unless that has a lock. Where the
  // thread cannot be had no ACK is kept.
  void start(Domain& domain) noexcept;
  // Returns when the thread has ended.
  void stop() noexcept { thread_.stop(); }
  // In a forked child, where the thread does not exist.
  void forget() noexcept { thread_.forget(); }

 private:
  static void loop(void* self) noexcept;
  void run() noexcept;
  bool look() noexcept;

  bool wanted_;
  bool wants_thread_ = false;
  std::uint32_t occasions_to_pass_ = 16;  // a domain that hears little needs no thread
  std::uint32_t penalty_ = 0;
  std::uint64_t kept_ = 0;
  std::uint64_t kept_at_last_look_ = 0;
  std::uint64_t kept_when_late_ = 0;
  unsigned quiet_looks_ = 0;
  bool asleep_ = true;

  Domain* domain_ = nullptr;
  Thread thread_;
};

}  // namespace uet::prov
