// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One libfabric endpoint inside the FEP: a resource index with its queues.
#pragma once

#include <cstddef>
#include <cstdint>

#include "uet/base/intrusive_list.h"
#include "uet/ri/ri_table.h"
#include "uet/ses/api.h"
#include "uet/ses/match.h"
#include "uet/ses/message.h"

namespace uet::ses {

class Context {
 public:
  Context(const ContextConfig& with, CompletionSink& to) : config(with), sink(to) {}

  ri::RiKey key() const {
    return {config.relative, config.job, config.pid_on_fep, config.resource_index};
  }
  MatchQueue& queue(bool is_tagged) { return is_tagged ? tagged : untagged; }

  const ContextConfig config;
  CompletionSink& sink;
  bool enabled = false;
  bool closing = false;                                   // its operations end without completions
  IntrusiveList<TxMessage, OutstandingTag> transmitting;  // in order of posting
  std::size_t transmitting_count = 0;
  std::size_t receive_count = 0;     // posted, waiting or bound to a message
  std::size_t unexpected_bytes = 0;  // memory its unexpected messages hold
  MatchQueue untagged;
  MatchQueue tagged;
};

}  // namespace uet::ses
