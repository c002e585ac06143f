// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receive side of an endpoint with a queue of receives of its own.
#pragma once

#include "objects/ep_bindings.h"
#include "objects/ep_options.h"
#include "objects/ep_state.h"
#include "objects/post_receive.h"

namespace uet::prov {

class Endpoint;
struct Command;

class RxSide {
 public:
  // `endpoint`: whose receives wait in the domain's WorkQueue.
  RxSide(const EpState& state, EpBindings& bindings, const EpOptions& options, Endpoint& endpoint)
      : engine_(state.engine),
        state_(state),
        bindings_(bindings),
        options_(options),
        endpoint_(endpoint) {}

  // Posts a receive, or looks at what has arrived: 0 or a negative fi_errno, -FI_EAGAIN if no slot
  // is free now.
  ssize_t receive(const RxCall& call) noexcept;
  // A command of its submission ring, with the domain's lock. False: it has to wait; else it
  // has been posted, or has completed with an error.
  bool execute(const Command& command, Time now) noexcept;
  // fi_rx_size_left(3).
  ssize_t size_left() noexcept;

 private:
  ssize_t defer(const RxCall& call) noexcept;
  ssize_t submit(const RxCall& call) noexcept;
  Result<void> start(const RxCall& call, const RxSource& source, Time now) noexcept;

  Engine& engine_;
  const EpState& state_;
  EpBindings& bindings_;
  const EpOptions& options_;
  Endpoint& endpoint_;
};

}  // namespace uet::prov
