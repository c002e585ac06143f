// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where the operations of an endpoint go: to the FEP of its domain, or to the engine in another
// process (FI_UET_ENGINE=process).
#pragma once

#include "objects/ep_state.h"
#include "process/engine_link.h"
#include "ses/initiator.h"

namespace uet::prov {

// Posts a ses::SendOp, RmaOp or AtomicOp, as ses::Initiator does. With the domain's lock.
template <class Op>
Result<void> post_operation(const EpState& state, const Op& op, Time now) UET_NO_THREAD_ANALYSIS {
  Engine& engine = state.engine;
  if (EngineLink* const link = engine.link()) [[unlikely]]
    return link->post(state.linked, op);
  return engine.fep().ses().initiator().post(*state.context, op, now);
}

}  // namespace uet::prov
