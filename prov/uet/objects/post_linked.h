// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process: receives of endpoints and of shared receive contexts on their way to the
// engine.
#pragma once

#include "objects/post_receive.h"
#include "process/engine_link.h"
#include "process/post_again.h"

namespace uet::prov {

// A receive for the context or queue `number`, or a look at what that has. Again: it has as many
// receives as it may, or the engine takes nothing. With the domain's lock.
inline Result<void> hand_over_to(EngineLink& link, ContextNumber number, Engine& engine,
                                 const RxCall& call, const ReceiveSettings& settings,
                                 const RxSource& source, Time now) noexcept {
  const bool looks = (call.flags & (FI_PEEK | FI_DISCARD)) != 0;
  if (!looks && link.contexts().is_full(number)) return Error::Again;
  const LinkedContext linked{link, number};
  const auto post = [&] { return hand_over(engine, linked, call, settings, source, now); };
  const Result<void> posted = post();
  if (posted || posted.error() != Error::Again || call.locked) return posted;
  return post_again(engine, false, post);
}

}  // namespace uet::prov
