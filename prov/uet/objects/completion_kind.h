// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The meaning of a completion of SES to libfabric: the flags of its CQ entry, the counter that
// counts it, the side of the endpoint that it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "uet/ses/api.h"

namespace uet::prov {

// The counters of an endpoint, in the order of the flags of fi_ep_bind(3).
enum CounterIndex : std::size_t {
  kSend,
  kRecv,
  kRead,
  kWrite,
  kRemoteRead,
  kRemoteWrite,
  kCounters
};

inline bool is_receive(ses::Kind kind) {
  return kind == ses::Kind::Receive || kind == ses::Kind::TaggedReceive;
}
// Reported to the CQ that is bound with FI_RECV.
inline bool belongs_to_rx(ses::Kind kind) {
  return is_receive(kind) || kind == ses::Kind::RemoteWrite;
}
// fi_cq_tagged_entry::flags.
std::uint64_t entry_flags(const ses::Completion& completion);
CounterIndex counter_index(ses::Kind kind);
// False: it transfers nothing (a peek, the release of a multi-receive buffer), so that no counter
// counts it.
bool counts(const ses::Completion& completion);

}  // namespace uet::prov
