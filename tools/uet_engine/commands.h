// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Executes the commands that an application writes into its rings. Each is copied before it is
// looked at, since the application may write to it at any time.
#pragma once

#include <cstdint>

#include "atomics.h"
#include "contexts.h"
#include "events.h"
#include "process_memory.h"
#include "rings.h"
#include "ses/ses.h"

namespace uet::engine {

class Commands {
 public:
  // All outlive this one.
  Commands(Contexts& contexts, Events& events, Atomics& atomics, ProcessMemory& memory)
      : contexts_(contexts), events_(events), atomics_(atomics), memory_(memory) {}

  // Executes the commands in the rings, as far as they need not wait; a bounded number. True if
  // any.
  bool execute_all(Rings& rings, ses::Ses& ses, Time now);

  // The first one of a ring had to wait when it was last looked at.
  bool wait() const { return receives_wait_ || transmits_wait_; }
  // There is one that was not looked at.
  bool any(const Rings& rings) const {
    return (!receives_wait_ && rings.receives.front() != nullptr) ||
           (!transmits_wait_ && rings.transmits.front() != nullptr);
  }

 private:
  // True if any; `waits`: its first one has to wait.
  bool execute_ring(Rings& rings, prov::CommandReader& ring, bool& waits, ses::Ses& ses, Time now);
  bool execute(const prov::SharedCommand& command, Rings& rings, ses::Ses& ses, Time now);
  Result<void> start(Context& context, const prov::SharedCommand& command, Rings& rings,
                     ses::Ses& ses, Time now);
  Result<void> start_atomic(Context& context, const prov::SharedCommand& command,
                            const ses::Peer& peer, Rings& rings, ses::Ses& ses, Time now);

  Contexts& contexts_;
  Events& events_;
  Atomics& atomics_;
  ProcessMemory& memory_;
  bool receives_wait_ = false;
  bool transmits_wait_ = false;
};

}  // namespace uet::engine
