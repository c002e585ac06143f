// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The contexts of SES that an application has opened, and its queues of receives that several
// contexts share, by the numbers that it calls them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "atomics.h"
#include "events.h"
#include "process/control.h"
#include "ses/ses.h"

namespace uet::engine {

// Completions of a context or queue become events.
class Context final : public ses::CompletionSink {
 public:
  Context(Events& events, Atomics& atomics, std::uint16_t number)
      : events_(events), atomics_(atomics), number_(number) {}

  ses::Context* context = nullptr;
  ses::ReceiveQueue* queue = nullptr;  // instead
  Context* receives_from = nullptr;    // a queue
  std::vector<JobId> jobs;
  std::uint16_t number() const { return number_; }

  void complete(const ses::Completion& completion) noexcept override;
  bool can_take_event() noexcept override { return events_.can_take_event(); }
  bool reserve_receive() noexcept override { return can_take_event(); }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind kind, std::uint64_t length) noexcept override {
    note(kind, 1, length);
  }
  void remote_part(ses::Kind kind, std::uint64_t length) noexcept override {
    note(kind, 0, length);
  }

 private:
  void note(ses::Kind kind, std::uint64_t events, std::uint64_t bytes) noexcept;

  Events& events_;
  Atomics& atomics_;
  const std::uint16_t number_;
};

class Contexts {
 public:
  static constexpr std::size_t kMost = 32768;

  Contexts(Events& events, Atomics& atomics) : events_(events), atomics_(atomics) {}

  // The number is in `number`. Throws bad_alloc.
  Result<void> open(ses::Ses& ses, const prov::ContextRequest& request, std::uint16_t& number);
  Result<void> open_queue(ses::Ses& ses, const prov::ContextRequest& request,
                          std::uint16_t& number);
  // A context or a queue; nullptr: there is none.
  Context* find(std::uint16_t number) const {
    return number < all_.size() ? all_[number].get() : nullptr;
  }
  // Invalid: a queue of open contexts.
  Result<void> close(ses::Ses& ses, Context& context, Time now);
  void close_all(ses::Ses& ses, Time now);

 private:
  std::unique_ptr<Context> take_number();

  Events& events_;
  Atomics& atomics_;
  std::vector<std::unique_ptr<Context>> all_;
  std::uint16_t next_ = 0;
};

}  // namespace uet::engine
