// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One libfabric endpoint inside the FEP: a resource index with its queues.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ri/ri_table.h"
#include "ses/match.h"
#include "ses/message.h"
#include "uet/base/intrusive_list.h"
#include "uet/ses/api.h"

namespace uet::ses {

struct HoldingTag;
struct DisabledTag;

// The generation of a resource index: requests must name it (SES-115 steps 8 and 9).
struct Generation {
  RiGeneration value;
  bool enabled = true;  // false: a message was refused, nothing may overtake it (SES-52)
};

// The source of a message: of several endpoints of a FEP the initiator id names one.
struct Source {
  FepAddress fep;
  InitiatorId initiator;
  friend bool operator==(const Source&, const Source&) = default;
};

class Context : public ListNode<HoldingTag>, public ListNode<DisabledTag> {
 public:
  Context(const ContextConfig& with, CompletionSink& to)
      : config(with),
        sink(to),
        generation{with.generation},
        own_receives(with.rx_size, with.directed_receive, false, to),
        receives(with.shared != nullptr ? *with.shared : own_receives) {}

  // Calls visit(ri::RiKey) for the ways to name it, one for each job, until it returns false. Jobs
  // that are named twice count once; absolute addresses name none.
  template <class Visit>
  void for_each_key(Visit visit) const {
    ri::RiKey key{config.relative, config.job, config.pid_on_fep, config.resource_index};
    if (!visit(key) || !config.relative) return;
    for (std::size_t i = 0; i < config.more_jobs.size(); ++i) {
      key.job = config.more_jobs[i];
      const auto before = config.more_jobs.first(i);
      const bool again =
          key.job == config.job || std::find(before.begin(), before.end(), key.job) != before.end();
      if (!again && !visit(key)) return;
    }
  }

  // May a send of this source reach the receives?
  bool takes(const FepAddress& fep, InitiatorId initiator) const {
    return !config.connected || peer == Source{fep, initiator};
  }

  ContextConfig config;
  CompletionSink& sink;
  bool enabled = false;
  std::optional<Source> peer;  // of a connection
  Generation generation;
  bool closing = false;                                   // its operations end without completions
  IntrusiveList<TxMessage, OutstandingTag> transmitting;  // in order of posting
  std::size_t transmitting_count = 0;
  std::size_t refused_count = 0;           // those of them that were refused and are tried again
  IntrusiveList<TxMessage, HeldTag> held;  // those of them that wait for a fence, in order
  std::size_t unexpected_bytes = 0;        // memory its unexpected messages hold
  std::size_t parked_count = 0;            // sends to it that were put off (SES-66)
  ReceiveQueue own_receives;
  ReceiveQueue& receives;  // where its messages find receives and wait for them
};

// Where PDS takes it. Of a message that has a context.
inline pds::Destination destination_of(const TxMessage& message) {
  return {message.to, message.header.job_id, message.mode, message.context->config.traffic_class};
}

}  // namespace uet::ses
