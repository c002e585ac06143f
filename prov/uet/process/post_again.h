// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process: all endpoints of a domain share two rings, which are shorter than what
// their tx_attr->size and rx_attr->size allow together. A post that has a slot of its endpoint
// waits here until the engine has taken commands, and takes completions meanwhile, which the engine
// needs space for.
#pragma once

#include <sched.h>

#include "objects/engine.h"
#include "process/engine_link.h"
#include "uet/base/result.h"

namespace uet::prov {

inline constexpr Duration kMostPostPatience = std::chrono::seconds(2);

// Repeats `post`, which has returned Again. With the domain's lock, and not from within a pass.
template <class Post>
Result<void> post_again(Engine& engine, bool transmit, Post post) UET_NO_THREAD_ANALYSIS {
  EngineLink& link = *engine.link();
  Result<void> posted = Error::Again;
  const Time begun = clock_now();
  Time moved = begun;
  for (Time now = begun; now - begun < kMostPostPatience; now = clock_now()) {
    if (engine.progress(now)) {
      moved = now;
    } else if (now - moved >= link.patience(transmit)) {
      break;
    } else {
      ::sched_yield();
    }
    posted = post();
    if (posted || posted.error() != Error::Again) return posted;
  }
  link.gave_up();
  return posted;
}

}  // namespace uet::prov
