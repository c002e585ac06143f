// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state that the parts of an endpoint have in common: its context of SES, its AV, and whether
// it is enabled. The endpoint changes it, the parts read it.
#pragma once

#include <rdma/fi_errno.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "objects/engine.h"
#include "process/engine_link.h"
#include "provider.h"
#include "ses/initiator.h"
#include "settings/hints.h"
#include "submission/submission.h"
#include "uet/ses/api.h"

namespace uet::prov {

class AvFid;
class Submission;

struct EpState {
  Engine& engine;
  const std::uint64_t caps;
  ses::ContextConfig config;
  std::vector<JobId> jobs;          // config.more_jobs: the keys of its AV when it was enabled
  ses::Context* context = nullptr;  // nullptr: there was no memory for another one
  ContextNumber linked = 0;         // its number, if the engine has a link
  const AvFid* av = nullptr;
  bool enabled = false;
  bool may_send = false;  // enabled, and for that
  bool may_receive = false;
  std::optional<ses::Peer> peer;      // of an endpoint of FI_EP_MSG while it is connected
  std::atomic<bool> has_peer{false};  // the same, for threads without the domain's lock
  Submission* submission = nullptr;   // from fi_enable on, if Submissions::active()

  bool ended = false;  // its connection has ended

  // As ses::Ses::cancel(), here or in the engine's process. With the domain's lock.
  Result<void> cancel(void* operation, Time now) const UET_NO_THREAD_ANALYSIS {
    if (EngineLink* const link = engine.link()) [[unlikely]]
      return link->cancel(linked, operation);
    return engine.fep().ses().cancel(*context, operation, now);
  }

  // The rest as of ses::Ses and ses::Initiator, likewise.
  void cancel_receives() const UET_NO_THREAD_ANALYSIS {
    if (EngineLink* const link = engine.link()) return link->cancel_receives(linked);
    engine.fep().ses().cancel_receives(*context);
  }
  void connect(const ses::Peer& to) const UET_NO_THREAD_ANALYSIS {
    engine.fep().ses().connect(*context, to);
    if (EngineLink* const link = engine.link()) link->connect(linked, to);
  }
  std::size_t outstanding() const UET_NO_THREAD_ANALYSIS {
    if (EngineLink* const link = engine.link()) return link->contexts().of(linked).transmits;
    return engine.fep().ses().outstanding(*context);
  }
  // No operation that transmits waits in its ring or has not completed.
  bool has_sent_all() const {
    return (submission == nullptr || submission->empty()) && outstanding() == 0;
  }
  void request_acks_now() const UET_NO_THREAD_ANALYSIS {
    if (EngineLink* const link = engine.link()) return link->request_acks_now(linked);
    engine.fep().ses().initiator().request_acks_now(*context);
  }

  // FI_EP_MSG: it has a peer and no AV.
  bool connects() const { return config.connected; }
  const EndpointType& type() const {
    if (config.connected) return msg_of(engine.params());
    return config.mode == DeliveryMode::Uud ? dgram_of(engine.params()) : rdm_of(engine.params());
  }
};

// Logs why a call is refused, "fi_call: object: problem; remedy"; returns `error`.
inline int refuse_endpoint(int error, const char* why) noexcept {
  FI_WARN(&provider, FI_LOG_EP_CTRL, "%s\n", why);
  return error;
}

// May an operation with FI_TRIGGER wait in the domain's queue? 0 or a negative fi_errno.
inline int may_defer(const EpState& state) noexcept {
  if (state.engine.dead()) return -FI_EOPNOTSUPP;
  if (!state.enabled)
    return refuse_endpoint(-FI_EOPBADSTATE,
                           "fi_sendmsg, fi_recvmsg: endpoint: not enabled; call fi_enable first");
  if ((state.caps & FI_TRIGGER) != 0) return 0;
  return refuse_endpoint(
      -FI_EINVAL,
      "fi_sendmsg, fi_recvmsg: endpoint: FI_TRIGGER was not requested; ask for the capability");
}

}  // namespace uet::prov
