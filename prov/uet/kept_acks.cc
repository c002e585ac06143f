// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread looks every kLook while ACKs are being kept, which costs the callers nothing, and
// sleeps while none are.
#include "kept_acks.h"

#include <poll.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "domain.h"
#include "provider.h"

namespace uet::prov {
namespace {

constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 500'000};
constexpr unsigned kQuietLooks = 64;  // before it sleeps
// Occasions that pass unused after a late application, twice as many after each further one, until
// so many in a row were taken in time.
constexpr std::uint32_t kLeastPenalty = 64;
constexpr std::uint32_t kMostPenalty = 65536;
constexpr std::uint64_t kReliable = 4096;

}  // namespace

bool KeptAcks::allowed() {
  if (!wanted_) return false;
  if (occasions_to_pass_ > 0) {
    --occasions_to_pass_;
    return false;
  }
  wants_thread_ = !thread_.running();
  return thread_.running();
}

void KeptAcks::kept() noexcept {
  ++kept_;
  if (!asleep_) return;
  asleep_ = false;
  thread_.wake();
}

void KeptAcks::start(Domain& domain) noexcept {
  Lock& lock = domain.lock();
  lock.need();
  const Guard guard(lock);
  if (!std::exchange(wants_thread_, false) || thread_.running()) return;
  domain_ = &domain;
  const int error = thread_.start(loop, this);
  if (error == 0) return;
  FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_TUNING: ack_after_reply has no effect: no thread: %s\n",
          strerror(error));
  wanted_ = false;
}

void KeptAcks::loop(void* self) noexcept { static_cast<KeptAcks*>(self)->run(); }

void KeptAcks::run() noexcept {
  bool asleep = true;
  while (!thread_.stopping()) {
    pollfd fds{.fd = thread_.wake_fd().get(), .events = POLLIN, .revents = 0};
    if (ppoll(&fds, 1, asleep ? nullptr : &kLook, nullptr) > 0) thread_.wake_fd().drain();
    asleep = look();
  }
}

// ACKs that were there at the last look already are late. True if there is nothing to look for.
bool KeptAcks::look() noexcept {
  const Guard guard(domain_->lock());
  if (kept_ != kept_at_last_look_) {
    kept_at_last_look_ = kept_;
    quiet_looks_ = 0;
  } else if (domain_->push_kept_acks()) {
    if (kept_ - kept_when_late_ >= kReliable) penalty_ = 0;
    penalty_ = std::clamp(2 * penalty_, kLeastPenalty, kMostPenalty);
    occasions_to_pass_ = penalty_;
    kept_when_late_ = kept_;
  } else {
    asleep_ = ++quiet_looks_ >= kQuietLooks;
  }
  return asleep_;
}

}  // namespace uet::prov
